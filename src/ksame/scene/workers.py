"""What work on files shares within one process: threads for pictures, recognisers, and a token that stops it."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TypeVar

from threadpoolctl import threadpool_limits

from ksame.errors import KsameError
from ksame.models import RECOGNISERS, Recogniser, SFace
from ksame.progress import Progress
from ksame.scene.decide import JUDGE
from ksame.scene.memory import share_memory

T = TypeVar("T")
_EVERY = 0.2  # seconds between two looks at the file of a token


class CancelledError(KsameError):
    """Work on one file ends because that on another failed, or was interrupted."""


@dataclass(frozen=True)
class CancelToken:
    """Stops files that are worked on elsewhere, in threads or on other machines.

    A file in the work folder says which run is going on. Whoever works for another one stops: also where its own run
    was killed and could cancel nothing.
    """

    file: Path
    run: str = field(default_factory=lambda: secrets.token_hex(8))

    def begin(self) -> CancelToken:
        """Let this run be the one that is going on."""
        self.file.write_text(self.run, encoding="utf-8")
        return self

    def cancel(self) -> None:
        """Stop all work for this run."""
        self.file.unlink(missing_ok=True)

    @property
    def cancelled(self) -> bool:
        """Whether this run is no longer the one that is going on."""
        try:
            return self.file.read_text(encoding="utf-8") != self.run
        except OSError:
            return True

    def checked(self, items: Iterable[T], what: str) -> Iterator[T]:
        """Yield the items until work is cancelled."""
        looked = 0.0
        for item in items:
            if time.monotonic() - looked >= _EVERY:
                if self.cancelled:
                    raise CancelledError(f"stopped while {what}")
                looked = time.monotonic()
            yield item


@dataclass(frozen=True, eq=False)
class Tools:
    """What work on files shares within one process; sent to another, it becomes what that one has."""

    token: CancelToken
    pool: Executor | None = None  # for pictures of all files; that of the worker by default
    inner: Progress | None = None  # for what is inside one file; none is shown by default

    @property
    def pictures(self) -> Executor:
        """Works on pictures of all files."""
        return self.pool or _worker_pool()

    def progress(self, items: Iterable[T], what: str) -> Iterable[T]:
        """Yield what is inside one file until work is cancelled."""
        return (self.inner or self.token.checked)(items, what)

    @cached_property
    def recogniser(self) -> SFace:
        """Tells people apart."""
        return SFace()

    @cached_property
    def judge(self) -> Recogniser:
        """Judges surrogates."""
        return RECOGNISERS[JUDGE].build()

    def forget(self) -> None:
        """Give the recognisers' memory back until they are needed again."""
        for name in ("recogniser", "judge"):
            self.__dict__.pop(name, None)

    def __reduce__(self) -> tuple[Callable[[CancelToken], Tools], tuple[CancelToken]]:
        return _worker_tools, (self.token,)


@lru_cache(maxsize=1)
def _worker_tools(token: CancelToken) -> Tools:
    """Return the tools of this worker for one run; those for an earlier run are forgotten."""
    share_memory()  # Dask has workers give back every little piece, and ask for it again
    return Tools(token)


@lru_cache(maxsize=1)
def _worker_pool() -> Executor:
    """Start the threads for pictures of a worker: as many as it may use."""
    from distributed import get_worker

    threadpool_limits(1, "blas")  # sums of several threads may differ in the last bit
    return ThreadPoolExecutor(get_worker().state.nthreads, "pictures")


@contextmanager
def picture_pool() -> Iterator[Executor]:
    """Start as many threads as there are processors, for pictures; what has not begun at the end never does."""
    pool = ThreadPoolExecutor(os.cpu_count() or 1, "pictures")
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
