"""Work beside the picture: one thing at a time, in a thread that may give way to the one that publishes."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from ksame.live.statistics import Statistics

T = TypeVar("T")
Change = Callable[[], None]
"""Puts into effect what was worked out."""
Work = Callable[[], "Change | None"]
"""Works something out, and changes nothing that others may look at meanwhile."""


class Inline(Executor):
    """Does at once, in the thread that asks, what others do in threads of their own."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Call a function and return what came of it."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # told to whoever asks for the result
            future.set_exception(error)
        return future


class Background:
    """One thing at a time in a thread of its own; it changes nothing before it is asked whether it is free.

    What goes wrong is counted under its name; nothing is raised. Other threads go first by as much as it is ``nice``,
    where the system lets threads have priorities of their own.
    """

    def __init__(self, name: str, statistics: Statistics, executor: Executor | None = None, nice: int = 0) -> None:
        self._name, self._statistics, self._nice = name, statistics, nice
        self._executor = executor or ThreadPoolExecutor(1, f"ksame-live-{name}", initializer=self._give_way)
        self._running: Future[Change | None] | None = None

    @property
    def free(self) -> bool:
        """Whether something may be started; what has been done is put into effect first, in the thread that asks."""
        if self._running is not None and self._running.done():
            change, self._running = self._running.result(), None
            if change is not None:
                change()
        return self._running is None

    def start(self, work: Work, on_failure: Change | None = None) -> None:
        """Begin with something, only where it is free; say what is to change where it fails."""
        self._running = self._executor.submit(self._guarded, work, on_failure)

    def close(self) -> None:
        """Wait for what is being done."""
        self._executor.shutdown()

    def _guarded(self, work: Work, on_failure: Change | None) -> Change | None:
        try:
            return work()
        except Exception as error:  # counted, and the picture goes on
            self._statistics.failures[f"{self._name}: {type(error).__name__}: {error}"] += 1
            return on_failure

    def _give_way(self) -> None:
        if sys.platform == "linux":  # elsewhere a thread has the priority of its process
            with suppress(OSError):
                thread = threading.get_native_id()
                os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + self._nice)
