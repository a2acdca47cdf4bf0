"""What a lossy film lacks: wherever a value is more than the tolerance off, how much of it is missing."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1
"""Levels that a restored value may differ from the original one."""
_LONG = 255  # a gap that takes eight bytes more


class FixWriter:
    """Gathers how far values are off, where that is more than the tolerance."""

    def __init__(self) -> None:
        self._gaps: list[bytes] = []
        self._values: list[bytes] = []
        self._since = 0

    def add(self, wanted: NDArray[Any], coded: NDArray[Any]) -> None:
        """Compare values, one after the other."""
        wanted, coded = wanted.ravel(), coded.ravel()
        off = wanted.astype(np.int32) - coded
        places = np.flatnonzero(np.abs(off) > TOLERANCE)
        if places.size:
            gaps = np.diff(places, prepend=-1 - self._since) - 1
            self._gaps.append(_as_bytes(gaps))
            self._values.append((off[places] - np.sign(off[places]) * TOLERANCE).astype("<i2").tobytes())
            self._since = off.size - 1 - int(places[-1])
        else:
            self._since += off.size

    def finish(self) -> tuple[bytes, bytes]:
        """Return the distances between these values, and what is missing."""
        values = np.frombuffer(b"".join(self._values), "<i2")
        squeezer = zlib.compressobj(9, strategy=zlib.Z_HUFFMAN_ONLY)
        planes = np.concatenate([(values & 255).astype(np.uint8), (values >> 8 & 255).astype(np.uint8)])
        gaps = squeezer.compress(b"".join(self._gaps)) + squeezer.flush()
        return gaps, zlib.compress(planes.tobytes(), 9)


def _as_bytes(gaps: NDArray[np.int64]) -> bytes:
    if (gaps < _LONG).all():
        return gaps.astype(np.uint8).tobytes()
    return b"".join(bytes([gap]) if gap < _LONG else struct.pack("<BQ", _LONG, gap) for gap in gaps.tolist())


class FixReader:
    """Gives back what :class:`FixWriter` gathered, for the same values in the same order."""

    def __init__(self, gaps: bytes, values: bytes) -> None:
        self._places = _places(zlib.decompress(gaps))
        low, high = np.frombuffer(zlib.decompress(values), np.uint8).reshape(2, -1)
        self._missing = low.astype(np.int32) + (high.astype(np.int8).astype(np.int32) << 8)
        self._next = self._done = 0

    def apply(self, coded: NDArray[Any]) -> NDArray[Any]:
        """Return the next values with what was missing."""
        flat = coded.reshape(-1).astype(np.int32)
        end = self._next + int(np.searchsorted(self._places[self._next :], self._done + flat.size))
        flat[self._places[self._next : end] - self._done] += self._missing[self._next : end]
        self._next, self._done = end, self._done + flat.size
        return flat.astype(coded.dtype).reshape(coded.shape)


def _places(data: bytes) -> NDArray[np.int64]:
    """Return where values are off, from the distances between them."""
    gaps: list[int] = []
    at = 0
    while at < len(data):
        long = data[at] == _LONG
        gaps.append(struct.unpack_from("<Q", data, at + 1)[0] if long else data[at])
        at += 9 if long else 1
    return np.asarray(np.cumsum(np.array(gaps, dtype=np.int64) + 1) - 1)
