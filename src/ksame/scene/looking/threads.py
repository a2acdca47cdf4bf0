"""OpenCV's own threads, which are one setting for the whole process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import cv2

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
