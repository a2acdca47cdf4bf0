"""Turn the finisher's weights into the ONNX file that comes with ksame: half precision on disk, single when run.

    python tools/export_finisher.py OUT/finisher.pt -o src/ksame/data/finisher.onnx

Needs PyTorch and onnx.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from train_finisher import INPUTS, Network

LEAST = 512  # numbers from which on a tensor is stored in half precision


def main() -> None:
    """Export, halve and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    network = Network().eval()
    network.load_state_dict({name: value.float() for name, value in torch.load(options.weights).items()})
    buffer = io.BytesIO()
    axes = {0: "n", 2: "height", 3: "width"}
    torch.onnx.export(
        network, (torch.zeros(1, INPUTS, 256, 256),), buffer, dynamo=False, opset_version=17,
        input_names=["given"], output_names=["made"], dynamic_axes={"given": axes, "made": axes},
    )  # fmt: skip
    model = onnx.load_from_string(buffer.getvalue())
    casts = []
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.size >= LEAST:
            name = tensor.name
            tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}.half"))
            casts.append(onnx.helper.make_node("Cast", [f"{name}.half"], [name], to=onnx.TensorProto.FLOAT))
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.producer_name, model.producer_version, model.doc_string = "ksame", "", "finisher"
    for node in model.graph.node:
        node.doc_string = ""
    onnx.checker.check_model(model)
    options.output.write_bytes(model.SerializeToString())


if __name__ == "__main__":
    main()
