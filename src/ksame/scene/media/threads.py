"""One thread that works ahead of, or behind, the caller, with a bounded queue between them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_QUEUE_BYTES = 1 << 26
_PATIENCE = 0.1


def depth(size: tuple[int, int]) -> int:
    """Return how many frames may wait: eight small ones, one of 8K."""
    return max(1, min(8, _QUEUE_BYTES // (3 * size[0] * size[1])))


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def ahead(items: Iterable[T], n_waiting: int) -> Iterator[T]:
    """Yield ``items``, made in a thread of their own, at most ``n_waiting`` of them before they are asked for."""
    waiting: queue.Queue[T | _End] = queue.Queue(n_waiting)
    stop = threading.Event()

    def put(item: T | _End) -> bool:
        while not stop.is_set():
            try:
                waiting.put(item, timeout=_PATIENCE)
            except queue.Full:
                continue
            return True
        return False

    def work() -> None:
        error: BaseException | None = None
        iterator = iter(items)
        try:
            for item in iterator:
                if not put(item):
                    break
        except BaseException as caught:  # handed to the caller below
            error = caught
        finally:
            close = getattr(iterator, "close", None)
            if close is not None:
                close()
        put(_End(error))

    thread = threading.Thread(target=work, name="ksame-reader", daemon=True)
    thread.start()
    try:
        while True:
            item = waiting.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        stop.set()
        thread.join()


class Behind(Generic[T]):
    """Hand items to ``work``, which takes them in order in a thread of its own.

    An error of ``work`` is raised by the next :meth:`put`, or by :meth:`close`.
    """

    def __init__(self, work: Callable[[T], None], n_waiting: int) -> None:
        self._work = work
        self._waiting: queue.Queue[T | None] = queue.Queue(n_waiting)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ksame-writer", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (item := self._waiting.get()) is not None:
            if self._error is not None:
                continue
            try:
                self._work(item)
            except BaseException as caught:  # raised in the caller's thread
                self._error = caught

    def put(self, item: T) -> None:
        """Queue an item; wait while the queue is full."""
        if self._error is not None:
            raise self._error
        self._waiting.put(item)

    def close(self) -> None:
        """Wait until all is done."""
        self._waiting.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error
