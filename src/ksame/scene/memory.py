"""Settings of the whole process: OpenCV's threads and the memory that the C library keeps back."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

# Names of settings in glibc, and what they are set to, by measuring. Frames of 4K video are taken from the system and
# given back to it one by one, since among others they leave holes. What is smaller is kept, the detector's tiles
# (``_TILE`` there) above all: asking for it again took long.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_SETTINGS = ((_ARENA_MAX, 2), (_MMAP_THRESHOLD, 23 << 20), (_TRIM_THRESHOLD, 256 << 20))
_lock = Lock()
_users: list[int] = []
"""For everyone within, how many threads there were before; the first of them counts."""


@contextmanager
def one_opencv_thread() -> Iterator[None]:
    """Give OpenCV a single thread; as many as before again when the last who asked for it has finished.

    Several files are looked at at once: were each to restore what it found, one would change the setting under the
    others, and the last would leave the wrong one behind.
    """
    with _lock:
        _users.append(_users[0] if _users else cv2.getNumThreads())
        if len(_users) == 1:
            cv2.setNumThreads(1)
    try:
        yield
    finally:
        with _lock:
            before = _users.pop()
            if not _users:
                cv2.setNumThreads(before)


def give_back_memory() -> None:
    """Return freed memory to the system; glibc keeps that of threads, which adds up in a long run."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def forget_mapped(array: NDArray[Any]) -> None:
    """Let go of what was read of an array that is mapped read-only from a file; it is read again when asked for."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED") and not array.flags.writeable:
        base.madvise(mmap.MADV_DONTNEED)


def share_memory() -> None:
    """Let threads that are yet to come share two stores of memory, and keep large frames out of them.

    With one store each, what all threads keep back adds up.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            for setting, value in _SETTINGS:
                ctypes.CDLL("libc.so.6").mallopt(setting, value)
