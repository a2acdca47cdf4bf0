"""The two threads of this package: one decodes ahead of the caller, one encodes behind it. Few frames wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")

_QUEUE_BYTES = 1 << 25


def queue_length(size: tuple[int, int]) -> int:
    """Return how many frames may wait: eight small ones, one of 4K."""
    return max(1, min(8, _QUEUE_BYTES // (3 * size[0] * size[1])))


def prefetch(items: Generator[T, None, None], n_waiting: int) -> Generator[T, None, None]:
    """Yield ``items``, made in a thread of their own, at most ``n_waiting`` of them before they are asked for."""
    pool = ThreadPoolExecutor(1, "ksame-reader")
    waiting = deque(pool.submit(next, items, None) for _ in range(n_waiting))
    try:
        while (item := waiting.popleft().result()) is not None:
            waiting.append(pool.submit(next, items, None))
            yield item
    finally:
        for future in waiting:
            future.cancel()
        # Nothing is submitted here: what was left half-read may be collected by a thread in the middle of a submit,
        # and would wait for it for ever.
        pool.shutdown()
        items.close()


class EncoderThread(Generic[T]):
    """Hands items to ``encode``, which takes them in order in a thread of its own, up to its first error.

    That error is raised by the next :meth:`put` that notices it, or by :meth:`close`.
    """

    def __init__(self, encode: Callable[[T], None], n_waiting: int) -> None:
        self._encode = encode
        self._n_waiting = n_waiting
        self._failed = False
        self._pool = ThreadPoolExecutor(1, "ksame-writer")
        self._waiting: deque[Future[None]] = deque()

    def _run(self, item: T) -> None:
        if self._failed:
            return
        try:
            self._encode(item)
        except BaseException:
            self._failed = True
            raise

    def put(self, item: T) -> None:
        """Queue an item; wait while the queue is full."""
        while self._waiting and (len(self._waiting) >= self._n_waiting or self._waiting[0].done()):
            self._waiting.popleft().result()
        self._waiting.append(self._pool.submit(self._run, item))

    def close(self) -> None:
        """Wait until all is done."""
        self._pool.shutdown()
        while self._waiting:
            self._waiting.popleft().result()
