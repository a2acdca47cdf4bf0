"""Something measured beside a yardstick: in turns, in one run, so that the ratio says more than the seconds."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from ksame.errors import InputError, KsameError

T = TypeVar("T")
U = TypeVar("U")


class MissingYardstickError(KsameError):
    """A yardstick that is not installed."""


@dataclass(frozen=True)
class Settings:
    """How much is measured."""

    faces: int = 200  # of the face sets, as height and width
    height: int = 134
    width: int = 99
    codes: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)  # how many are grouped
    rounds: int = 3  # turns of which medians are taken; on media, half as many
    install: bool = False  # install yardsticks that are missing, each into an environment of its own
    clip: Path | None = None  # a recording instead of the sample that comes with the package

    def __post_init__(self) -> None:
        if self.clip is not None and not self.clip.is_file():
            raise InputError(f"{self.clip}: no such recording. Give --clip a file.")


@dataclass(frozen=True)
class Comparison:
    """One line of the table."""

    what: str
    yardstick: str
    seconds: float | None = None  # a median, as all below; None where the yardstick is missing
    yardstick_seconds: float | None = None
    cpu: float | None = None  # processor time of all threads and processes, which other programs disturb less
    yardstick_cpu: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)  # seen besides: memory, or how far both agree
    skipped: str = ""  # why nothing was measured

    @property
    def ratio(self) -> float | None:
        """How many times as fast as the yardstick; below 1 the yardstick is faster."""
        return _share(self.yardstick_seconds, self.seconds)

    @property
    def cpu_ratio(self) -> float | None:
        """The same of processor time."""
        return _share(self.yardstick_cpu, self.cpu)

    def as_dict(self) -> dict[str, Any]:
        """Return it for machines."""
        return {**asdict(self), "ratio": self.ratio, "cpu_ratio": self.cpu_ratio}


def _share(theirs: float | None, ours: float | None) -> float | None:
    return theirs / ours if theirs and ours else None


@dataclass(frozen=True)
class Benchmark:
    """A function that yields comparisons, by name."""

    name: str
    summary: str
    run: Callable[[Settings], Iterator[Comparison]]


@dataclass(frozen=True)
class Timed(Generic[T]):
    """What something returned, and the seconds and the processor time it took."""

    seconds: float
    cpu: float
    value: T


def processor_time() -> float:
    """Return the processor seconds of this process and of those that it started and that have ended."""
    if sys.platform == "win32":
        return sum(os.times()[:4])
    import resource

    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def timed(function: Callable[[], T]) -> Callable[[], Timed[T]]:
    """Return the function with a clock."""

    def run() -> Timed[T]:
        start, used = time.perf_counter(), processor_time()
        value = function()
        return Timed(time.perf_counter() - start, processor_time() - used, value)

    return run


def compare(
    what: str,
    yardstick: str,
    ours: Callable[[], Timed[T]],
    theirs: Callable[[], Timed[U]],
    *,
    rounds: int,
    figures: Callable[[T, U], Mapping[str, float]] = lambda own, other: {},
) -> Comparison:
    """Run both in turns, the yardstick first, and return medians; ``figures`` compares what they returned."""
    own, other = [], []
    try:
        for _ in range(rounds):
            other.append(theirs())
            own.append(ours())
    except MissingYardstickError as missing:
        return Comparison(what, yardstick, skipped=str(missing))
    return Comparison(
        what,
        yardstick,
        statistics.median(each.seconds for each in own),
        statistics.median(each.seconds for each in other),
        statistics.median(each.cpu for each in own),
        statistics.median(each.cpu for each in other),
        figures(own[-1].value, other[-1].value),
    )
