"""Arrays too large for memory: they lie in files without a name, which are gone when the program ends, however it ends.

Whoever works on rows of such an array does so block by block. What fits into one block is worked on as a whole, so that
results of small sets do not depend on any of this.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ksame.errors import OutputError

HELD = 32 * 2**20
"""Bytes of an array beyond which it lies on disk."""

BLOCK = 16 * 2**20
"""Bytes of rows that are worked on at a time."""

Kind = TypeVar("Kind", bound=np.generic)


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array whose values are not set: in memory, or in the folder for temporary files where it is large.

    Raises
    ------
    OutputError
        When there is no room for it.
    """
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size <= HELD:
        return np.empty(shape, kind)
    try:
        with tempfile.TemporaryFile(prefix="ksame-") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)  # a disk that fills up later would end the program
            return np.asarray(np.memmap(file, kind, "w+", shape=shape))
    except OSError as error:
        raise OutputError(
            f"{tempfile.gettempdir()}: no room for {size / 1e9:.1f} GB of temporary data ({error.strerror}). "
            "Make room, or name another folder in the environment variable TMPDIR."
        ) from error


def blocks(n: int, row_bytes: int) -> Iterator[slice]:
    """Yield slices that cover n rows, each of as many as fit into a block."""
    step = max(1, BLOCK // max(1, row_bytes))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def take(array: NDArray[Kind], rows: ArrayLike) -> NDArray[Kind]:
    """Return rows of an array, in their order."""
    index = np.asarray(rows, dtype=np.intp)
    taken = empty((len(index), *array.shape[1:]), array.dtype)
    for part in blocks(len(index), row_size(array)):
        taken[part] = array[index[part]]
    return taken


def doubles(array: NDArray[Any], rows: ArrayLike | None = None, *, origin: ArrayLike = 0.0) -> NDArray[np.float64]:
    """Return the values of an array, or of rows of it, as doubles in an array of their own, ``origin`` taken away."""
    index = None if rows is None else np.asarray(rows, dtype=np.intp)
    n = len(array) if index is None else len(index)
    converted = empty((n, *array.shape[1:]), np.float64)
    for part in blocks(n, math.prod(array.shape[1:]) * 8):
        converted[part] = array[part if index is None else index[part]]
        converted[part] -= origin
    return converted


def row_size(array: NDArray[Any]) -> int:
    """Return the bytes of one row."""
    return math.prod(array.shape[1:]) * array.itemsize


def frozen(array: NDArray[Kind]) -> NDArray[Kind]:
    """Return the array after nobody can write into it any more, neither here nor where its values lie."""
    below: Any = array
    while isinstance(below, np.ndarray):
        below.flags.writeable = False
        below = below.base
    return array


def is_frozen(array: NDArray[Any]) -> bool:
    """Tell whether nobody can write into an array, so that it may be shared instead of copied."""
    below: Any = array
    while isinstance(below, np.ndarray):
        if below.flags.writeable:
            return False
        below = below.base
    return below is None or isinstance(below, mmap.mmap)
