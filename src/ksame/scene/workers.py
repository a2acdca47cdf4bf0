"""The threads of a job: one pool for pictures, and a token that stops work on other files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TypeVar

from ksame.errors import KsameError

T = TypeVar("T")


class CancelledError(KsameError):
    """Work on one file ends because that on another failed, or was interrupted."""


class CancelToken:
    """Stops files that are worked on in other threads."""

    def __init__(self) -> None:
        self._cancelled = Event()

    def cancel(self) -> None:
        """Stop them."""
        self._cancelled.set()

    def checked(self, items: Iterable[T], what: str) -> Iterator[T]:
        """Yield the items until work is cancelled."""
        for item in items:
            if self._cancelled.is_set():
                raise CancelledError(f"stopped while {what}")
            yield item


@contextmanager
def picture_pool() -> Iterator[Executor]:
    """Start as many threads as there are processors, for pictures; what has not begun at the end never does."""
    pool = ThreadPoolExecutor(os.cpu_count() or 1, "pictures")
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
