"""The block-quantised networks of the OpenCV Zoo, made fit for ONNX Runtime, which runs them faster than OpenCV does.

The files are kept as they were published. ONNX Runtime refuses them for declarations only: inputs that nothing reads,
sizes fixed to one picture, and blocks where a tensor has one scale. Each is mended in the bytes without moving any: a
field gets a number that ONNX does not use, a fixed size becomes a named one of the same length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import ascii_lowercase

from ksame.models.landmarker import varint

_GRAPH = 7  # field of a model; the others are fields of a graph
_INPUT, _OUTPUT, _VALUE_INFO = 11, 12, 13
_UNUSED = 9 << 3 | 2  # key of a field that readers skip
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
    out = bytearray(model)
    begin, end = next((start, stop) for number, _, start, stop in _fields(model, 0, len(model)) if number == _GRAPH)
    inputs, names = 0, iter(ascii_lowercase.encode())
    for number, key, start, stop in _fields(model, begin, end):
        inputs += number == _INPUT
        if number == _VALUE_INFO or (number == _INPUT and inputs > 1):
            out[key] = _UNUSED
        elif any_size and number in (_INPUT, _OUTPUT):
            out[start:stop] = _FIXED.sub(lambda _: _NAMED + bytes([next(names)]), model[start:stop])
    return bytes(out).replace(_BLOCK, _NO_BLOCK) if any_size else bytes(out)


def _fields(message: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield number, place of the key, begin and end of every field of a protocol-buffers message.

    Examples
    --------
    >>> list(_fields(bytes([0x08, 0x96, 0x01, 0x12, 0x02, 0x68, 0x69]), 0, 7))
    [(1, 0, 1, 3), (2, 3, 5, 7)]
    """
    while at < end:
        key = at
        tag, start = varint(message, at)
        value, after = varint(message, start)
        begin, at = (after, after + value) if tag & 7 == 2 else (start, after)
        yield tag >> 3, key, begin, at
