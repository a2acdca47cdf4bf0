"""Turn the finisher's weights into the ONNX file that comes with ksame, in 8-bit whole numbers.

    python -m tools.export_finisher OUT/finisher.pt [MORE.pt ...] --pairs PAIRS -o src/ksame/data/finisher.onnx

Weights of several moments of one training are averaged: artefacts that the critic brings late are milder then. PAIRS is
what it was trained on: the ranges of the numbers inside are measured on it. Convolutions in whole numbers take a third
of the time on a processor. Needs PyTorch, onnx and onnxruntime.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import onnx
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from tools.finisher_data import Data
from tools.train_finisher import INPUTS, Network

FINE = ("/stem/", "/head/", "/across.0/")  # the finest level stays exact: its errors would show as haze
BATCHES = ((128, 24), (256, 48))  # sizes, and how many pictures of each the ranges are measured on


class Pictures(CalibrationDataReader):
    """Inputs of the network, one at a time."""

    def __init__(self, data: Data) -> None:
        torch.manual_seed(0)
        batches = [data.batch(n, size)[0].cpu().numpy() for size, n in BATCHES]
        self._inputs = iter([picture[None] for batch in batches for picture in batch])

    def get_next(self):
        given = next(self._inputs, None)
        return None if given is None else {"given": given}


class Exported(torch.nn.Module):
    """The network with 8-bit colours for output, and both ends left in blocks of 2 x 2 pixels: fewer copies."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network, n = network, network.stem.out_channels
        stem = torch.nn.Conv2d(INPUTS, n, 2, stride=2)
        stem.weight.data = network.stem.weight.detach().view(n, INPUTS, 2, 2)
        stem.bias.data = network.stem.bias.detach()
        self.network.stem = stem

    def forward(self, x):
        colours = torch.tanh(self.network.blocks(self.network.stem(x)))
        return torch.round(127.5 * (colours + 1)).to(torch.uint8)


def main() -> None:
    """Export, quantise and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="+")
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    network = Network().eval()
    moments = [torch.load(path) for path in options.weights]
    network.load_state_dict({name: sum(m[name].float() for m in moments) / len(moments) for name in moments[0]})
    axes = {0: "n", 2: "height", 3: "width"}
    with tempfile.TemporaryDirectory() as folder:
        plain, ready = Path(folder) / "plain.onnx", Path(folder) / "ready.onnx"
        torch.onnx.export(
            Exported(network), (torch.zeros(1, INPUTS, 256, 256),), str(plain), dynamo=False, opset_version=17,
            input_names=["given"], output_names=["made"], dynamic_axes={"given": axes, "made": axes},
        )  # fmt: skip
        quant_pre_process(str(plain), str(ready), skip_symbolic_shape=True)
        names = [node.name for node in onnx.load(ready).graph.node if node.op_type == "Conv"]
        quantize_static(
            str(ready),
            str(options.output),
            Pictures(Data([options.pairs])),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            reduce_range=True,  # processors without VNNI would overflow
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            op_types_to_quantize=["Conv"],
            extra_options={"CalibMovingAverage": True},  # one odd picture does not widen the ranges
            nodes_to_exclude=[name for name in names if any(part in name for part in FINE)],
        )
    model = onnx.load(options.output)
    model.producer_name, model.producer_version, model.doc_string = "ksame", "", "finisher"
    onnx.save(model, options.output)


if __name__ == "__main__":
    main()
