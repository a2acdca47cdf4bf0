"""Where independent pieces of work run: threads of this process, processes of this machine, or a Dask cluster.

There is one way to spread work: ``scheduler.map(function, items, what)``. The function is one of a module, and with its
arguments can be sent to another process; the results are in order, and the same wherever they were made.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

from ksame.errors import InputError, KsameError, UsageError, whole_number
from ksame.progress import Progress, silent
from ksame.version import __version__

T = TypeVar("T")
U = TypeVar("U")

LOCAL, PROCESSES = "local", "processes"
MAX_WORKERS = 256
ADDRESSES = ("tcp://", "tls://")
INSTALL = "pip install 'ksame[cluster]'"
_PATIENCE = 15  # seconds in which a scheduler has to answer, and to have a worker
_LOST = (
    "The Dask scheduler was lost before all was done. Start it and run again; ksame deidentify goes on with --resume."
)
_PRIVATE: dict[str, Any] = {
    # What workers hold shows originals: it is never swapped to a disk. Their web servers tell names: nothing is served.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.admin.large-graph-warning-threshold": "1GB",
}


class Scheduler(ABC):
    """Runs a function on many items."""

    n_elsewhere: int = 0
    """How many items are worked on at a time in other processes; 0 where all is done in this one."""

    @abstractmethod
    def map(
        self,
        function: Callable[[T], U],
        items: Sequence[T],
        what: str,
        *,
        progress: Progress = silent,
        stop: Callable[[], None] = lambda: None,
    ) -> list[U | InputError]:
        """Return the result of every item, in order; where an item cannot be used, its :class:`InputError`.

        An item on which worker after worker dies cannot be used either. Any other error ends the work.

        Parameters
        ----------
        what : str
            What is shown with the progress: items are counted as they are done, wherever that is.
        stop : callable
            Called where the work ends early: tells what is still running to stop.
        """


def check_scheduler(name: str, processes: int | None = None) -> None:
    """Refuse a name that no scheduler has, and a number of processes where none are started."""
    if name not in (LOCAL, PROCESSES) and not name.startswith(ADDRESSES):
        raise UsageError(f"--scheduler must be {LOCAL}, {PROCESSES} or the address tcp://HOST:PORT. Got {name!r}.")
    if processes is not None:
        whole_number("workers", "scheduler", processes, 1, MAX_WORKERS)
        if name != PROCESSES:
            raise UsageError(f"--workers is for --scheduler {PROCESSES}. Leave it out with {name}.")


@contextmanager
def open_scheduler(name: str = LOCAL, workers: int | None = None) -> Iterator[Scheduler]:
    """Give a scheduler; what was started for it ends with it.

    Parameters
    ----------
    name : str
        ``local`` for threads of this process, ``processes`` for processes of this machine that are started now, or the
        address of a Dask scheduler. Workers must see the same files under the same paths, and have the same ksame.
    workers : int, optional
        Items worked on at the same time: by default one in this process, or as many processes as there are processors.
        A cluster has as many workers as it has.

    Raises
    ------
    UsageError
        When Dask is not installed, or no scheduler with a worker answers.
    """
    check_scheduler(name)
    if name == LOCAL:
        yield _Threads(workers or 1)
        return
    try:
        import dask
        import distributed
    except ImportError as error:
        raise UsageError(f"--scheduler {name} needs Dask: {INSTALL}. Or leave it out.") from error
    with dask.config.set(_PRIVATE), _client(distributed, name, workers) as client:
        yield _Dask(client)


@contextmanager
def _client(distributed: Any, name: str, workers: int | None) -> Iterator[Any]:
    if name == PROCESSES:
        # TLS with keys made for this run: on a shared machine nobody else can reach the workers.
        with (
            distributed.LocalCluster(
                n_workers=workers or os.cpu_count() or 1,
                threads_per_worker=1,
                security=True,
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                silence_logs=50,
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client
        return
    try:
        client = distributed.Client(name, timeout=_PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise UsageError(
            f"{name}: no Dask scheduler answers there. Start one with 'dask scheduler', and workers with "
            f"'dask worker {name}'; or leave --scheduler out."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except (OSError, TimeoutError) as error:
            raise UsageError(f"{name}: the scheduler has no workers. Start some with 'dask worker {name}'.") from error
        yield client


class _Counted(Generic[T]):
    """Items that come as they are done, with how many there will be."""

    def __init__(self, items: Iterable[T], n: int) -> None:
        self._items, self._n = items, n

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __length_hint__(self) -> int:
        return self._n


class _Threads(Scheduler):
    def __init__(self, workers: int) -> None:
        self._workers = workers

    def map(
        self,
        function: Callable[[T], U],
        items: Sequence[T],
        what: str,
        *,
        progress: Progress = silent,
        stop: Callable[[], None] = lambda: None,
    ) -> list[U | InputError]:
        if len(items) == 1:  # it may show progress of its own
            return [_attempt(function, items[0])]
        if self._workers == 1:
            return [_attempt(function, item) for item in progress(items, what)]
        with ThreadPoolExecutor(self._workers) as pool:
            pending = [pool.submit(_attempt, function, item) for item in items]
            try:
                done: Iterable[Future[U | InputError]] = _Counted(as_completed(pending), len(pending))
                for future in progress(done, what):
                    future.result()
            except BaseException:
                stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [future.result() for future in pending]


def _attempt(function: Callable[[T], U], item: T) -> U | InputError:
    try:
        return function(item)
    except InputError as error:
        return error


class _DiedError(InputError):
    """Every worker that was given an item died."""


class _Dask(Scheduler):
    def __init__(self, client: Any) -> None:
        self._client = client

    @property
    def n_elsewhere(self) -> int:  # type: ignore[override]
        return sum(self._client.nthreads().values())

    def map(
        self,
        function: Callable[[T], U],
        items: Sequence[T],
        what: str,
        *,
        progress: Progress = silent,
        stop: Callable[[], None] = lambda: None,
    ) -> list[U | InputError]:
        import distributed

        # Not pure: what an earlier run has made of the same arguments is no result of this one.
        pending = self._client.map(_attempt_there, [(__version__, function, item) for item in items], pure=False)
        numbers = {future.key: number for number, future in enumerate(pending)}
        results: dict[int, U | InputError] = {}
        try:
            done = distributed.as_completed(  # type: ignore[no-untyped-call]
                pending, loop=self._client.loop, raise_errors=False
            )
            for future in progress(_Counted(done, len(pending)), what):
                number = numbers[future.key]
                results[number] = _result(future, items[number])
                future.release()
            # Whatever waited in a worker that died is blamed too: what is alone with its worker is to blame.
            for number in [number for number, result in results.items() if isinstance(result, _DiedError)]:
                alone = self._client.submit(_attempt_there, (__version__, function, items[number]), pure=False)
                results[number] = _result(alone, items[number])
        except BaseException:
            stop()
            with suppress(Exception):  # the cluster may be what failed
                self._client.cancel(pending)
            raise
        if len(results) < len(items):
            raise KsameError(_LOST)
        return [results[number] for number in range(len(items))]


def _attempt_there(sent: tuple[str, Callable[[T], U], T]) -> U | InputError:
    version, function, item = sent
    if version != __version__:
        raise UsageError(f"A worker has ksame {__version__}, but this is {version}. Install the same on all machines.")
    return _attempt(function, item)


def _result(future: Any, item: object) -> Any:
    from distributed.scheduler import KilledWorker

    try:
        return future.result()
    except KilledWorker:
        return _DiedError(
            f"{item}: every worker that was given it died. Give workers more memory, or work on this file apart."
        )
    except CancelledError as error:
        raise KsameError(_LOST) from error
    except ImportError as error:
        raise UsageError(f"A worker lacks something ({error}). Install the same ksame on all machines.") from error
