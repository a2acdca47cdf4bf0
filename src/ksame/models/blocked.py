"""The block-quantised networks of the OpenCV Zoo, made fit for ONNX Runtime, which runs them faster than OpenCV does.

The files are kept as they were published. ONNX Runtime refuses them for declarations only: inputs that nothing reads,
sizes fixed to one picture, and blocks where a tensor has one scale. These are mended when a file is loaded. PReLU,
for which it has no quick way, is put together of four operations for which it has, the same but for rounding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from string import ascii_lowercase

# Numbers of fields: of a model; of a graph; of a node.
_GRAPH = 7
_NODE, _INPUT, _OUTPUT, _VALUE_INFO = 1, 11, 12, 13
_READS, _WRITES, _KIND = 1, 2, 4
_BYTES = 2  # the wire type of what has a length
_FIXED = re.compile(rb"\x0a\x03\x08[\x80-\xff][\x01-\x7f]")  # a dimension from 128 on
_NAMED = b"\x0a\x03\x12\x01"  # a dimension with a name of one letter
# A block of 64 along axis 0. Where that is all of a tensor, ONNX wants no block: 0.
_BLOCK, _NO_BLOCK = (b"block_size\x18" + size + b"\xa0\x01\x02*\x0b\n\x04axis\x18\x00" for size in (b"\x40", b"\x00"))


def mended(model: bytes, *, any_size: bool = False) -> bytes:
    """Return the bytes of a network as ONNX Runtime takes them.

    Parameters
    ----------
    model : bytes
        An ONNX file of the OpenCV Zoo, quantised in blocks.
    any_size : bool
        Take pictures of any size; for networks none of whose biases has more than one block.
    """
    return b"".join(
        _field(_GRAPH, _graph(value, any_size)) if number == _GRAPH else whole
        for number, whole, value in _fields(model)
    )


def _graph(graph: bytes, any_size: bool) -> bytes:
    parts, inputs, names = [], 0, iter(ascii_lowercase.encode())
    for number, whole, value in _fields(graph):
        inputs += number == _INPUT
        if number == _NODE:
            parts.append(_nodes(whole.replace(_BLOCK, _NO_BLOCK) if any_size else whole, value))
        elif any_size and number in (_INPUT, _OUTPUT):
            parts.append(_FIXED.sub(lambda _: _NAMED + bytes([next(names)]), whole))
        elif number != _VALUE_INFO and not (number == _INPUT and inputs > 1):
            parts.append(whole)
    return b"".join(parts)


def _nodes(whole: bytes, node: bytes) -> bytes:
    """Return a node as it is, or what stands for a PReLU: max(x, 0) + slope * (x - max(x, 0))."""
    parts = [(number, value) for number, _, value in _fields(node)]
    if (_KIND, b"PRelu") not in parts:
        return whole
    x, slope = (value for number, value in parts if number == _READS)
    (out,) = (value for number, value in parts if number == _WRITES)
    above, below, scaled = (out + mark for mark in (b"_above", b"_below", b"_scaled"))
    return (
        _node(b"Relu", [x], above)
        + _node(b"Sub", [x, above], below)
        + _node(b"Mul", [below, slope], scaled)
        + _node(b"Add", [above, scaled], out)
    )


def _node(kind: bytes, reads: Sequence[bytes], writes: bytes) -> bytes:
    names = b"".join(_field(_READS, name) for name in reads)
    return _field(_NODE, names + _field(_WRITES, writes) + _field(_KIND, kind))


def _field(number: int, value: bytes) -> bytes:
    r"""Return a field that has a length, as protocol buffers write it.

    Examples
    --------
    >>> _field(2, b"hi")
    b'\x12\x02hi'
    """
    length, rest = b"", len(value)
    while rest > 127:
        length += bytes([rest & 127 | 128])
        rest >>= 7
    return bytes([number << 3 | _BYTES]) + length + bytes([rest]) + value


def _fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    r"""Yield number, all bytes and the value of every field of a protocol-buffers message.

    Examples
    --------
    >>> list(_fields(bytes([0x08, 0x96, 0x01, 0x12, 0x02, 0x68, 0x69])))
    [(1, b'\x08\x96\x01', b'\x96\x01'), (2, b'\x12\x02hi', b'hi')]
    """
    at = 0
    while at < len(message):
        tag, begin = varint(message, at)
        value, end = varint(message, begin)
        if tag & 7 == _BYTES:
            begin, end = end, end + value
        yield tag >> 3, message[at:end], message[begin:end]
        at = end


def varint(message: bytes, at: int) -> tuple[int, int]:
    """Return the whole number that begins at ``at`` in a protocol-buffers message, and where the next field begins."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
