"""What an experiment is, how large it is run, and how its numbers are kept so that nothing is computed twice."""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray
from ksame.faces.faceset import FaceSet
from ksame.files import make_folder, write_atomic
from ksame.papers.data import Data, NotAvailableError, Wanted
from ksame.progress import Progress, silent
from ksame.version import __version__, software

Row = dict[str, Any]
"""One measured number with all that it depends on: a line of the CSV file."""

T = TypeVar("T")


@dataclass(frozen=True)
class Scale:
    """How large an experiment is run."""

    name: str
    max_people: int
    share_of_runs: float  # of the paper's number of repetitions, at least two
    max_levels: int  # strengths on a curve

    def people(self, paper: int) -> int:
        """Return how many people to take where the paper took ``paper``."""
        return min(paper, self.max_people)

    def runs(self, paper: int) -> int:
        """Return how often to repeat what the paper repeated ``paper`` times."""
        return min(paper, max(2, round(paper * self.share_of_runs)))

    def levels(self, all_of_them: Sequence[T], keep: Sequence[T] = ()) -> list[T]:
        """Thin a curve out to evenly spaced strengths; those in ``keep`` stay.

        Examples
        --------
        >>> FAST.levels(range(13), keep=[4])
        [0, 2, 4, 5, 7, 10, 12]
        """
        there = list(all_of_them)
        if len(there) <= self.max_levels:
            return there
        places = {round(i) for i in np.linspace(0, len(there) - 1, self.max_levels)}
        return [level for i, level in enumerate(there) if i in places or level in keep]


FULL = Scale("full", 10**6, 1.0, 10**6)
FAST = Scale("fast", 250, 0.05, 6)
TINY = Scale("tiny", 24, 0.001, 2)


@dataclass(frozen=True, eq=False)
class Pictures:
    """Faces laid out as a figure of a paper shows them, with the captions of rows and columns."""

    images: ByteArray  # (n_rows, n_columns, height, width, channels)
    rows: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Findings:
    """What an experiment found; notes say how many people, which recogniser, and what is unlike the paper."""

    rows: list[Row]
    notes: tuple[str, ...] = ()
    pictures: Pictures | None = None


@dataclass(frozen=True)
class Drawing:
    """A figure: the name of its file, without an ending, and what is to be seen; see :mod:`ksame.papers.figures`."""

    name: str
    caption: str

    def draw(self, findings: Findings) -> Any:
        """Return the matplotlib figure, or None where there is nothing to draw."""
        raise NotImplementedError


@dataclass(frozen=True)
class Task:
    """What an experiment is given: where faces come from, how large, and the seed."""

    data: Data
    scale: Scale
    seed: int
    progress: Progress = silent

    def faces(self, people: int, **wanted: Any) -> FaceSet:
        """Return faces of as many people as the scale allows; see :class:`ksame.papers.data.Wanted`."""
        return self.data.faces(Wanted(self.scale.people(people), seed=self.seed, **wanted), self.progress)


Run = Callable[[Task], Findings]


@dataclass(frozen=True)
class Experiment:
    """One figure or table of a paper."""

    name: str  # of its files
    where: str  # figure, table or section of the paper
    title: str
    run: Run
    drawings: tuple[Drawing, ...] = ()
    heavy: bool = False  # takes long; several processes begin with these


@dataclass(frozen=True, eq=False)
class Outcome:
    """An experiment that was run, or why it could not be."""

    paper: str
    experiment: str
    findings: Findings
    missing: str = ""  # why the data cannot serve
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    reused: bool = False  # the numbers are those of an earlier call


@dataclass(frozen=True)
class Key:
    """All that decides the numbers; results are used again only where it is the same."""

    paper: str
    experiment: str
    data: str
    scale: str
    seed: int
    ksame: str = __version__
    code: str = ""

    @classmethod
    def of(cls, paper: str, experiment: Experiment, task: Task) -> Key:
        """Return the key of an experiment; a change of its paper's module makes it another one."""
        module = sys.modules[experiment.run.__module__]
        code = hashlib.sha256(inspect.getsource(module).encode()).hexdigest()[:16]
        return cls(paper, experiment.name, task.data.digest, task.scale.name, task.seed, code=code)


def versions(*more: str) -> dict[str, str]:
    """Return the versions of all that numbers may depend on, and of ``more`` packages."""
    packages = ("numpy", "scipy", "scikit-learn", "opencv-python-headless", *more)
    return {**software(*packages), "platform": platform.platform(terse=True)}


def perform(paper: str, experiment: Experiment, task: Task, folder: Path, *, fresh: bool = False) -> Outcome:
    """Run an experiment, or read what an earlier call with the same key found, and keep its numbers in ``folder``."""
    key = Key.of(paper, experiment, task)
    earlier = None if fresh else _read(folder, key)
    if earlier is not None:
        return earlier
    start, cpu = time.perf_counter(), time.process_time()
    missing = ""
    try:
        findings = experiment.run(task)
    except NotAvailableError as reason:
        findings, missing = Findings([]), str(reason)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    outcome = Outcome(paper, experiment.name, findings, missing, round(seconds, 2), round(cpu_seconds, 2))
    _write(folder, key, experiment, outcome)
    return outcome


def _write(folder: Path, key: Key, experiment: Experiment, outcome: Outcome) -> None:
    make_folder(folder)
    pictures = outcome.findings.pictures
    if pictures is not None:
        buffer = io.BytesIO()
        arrays: dict[str, Any] = vars(pictures)
        np.savez_compressed(buffer, **arrays)
        write_atomic(folder / f"{key.experiment}.npz", buffer.getvalue())
    record = {
        "schema": "ksame/experiment",
        "version": 1,
        "key": asdict(key),
        "where": experiment.where,
        "title": experiment.title,
        "missing": outcome.missing,
        "notes": list(outcome.findings.notes),
        "seconds": outcome.seconds,
        "cpu_seconds": outcome.cpu_seconds,
        "versions": versions(),
        "pictures": pictures is not None,
        "rows": outcome.findings.rows,
    }
    write_atomic(folder / f"{key.experiment}.json", (json.dumps(record, indent=1) + "\n").encode())


def _read(folder: Path, key: Key) -> Outcome | None:
    """Return what was found earlier under this key; None where there is nothing, or nothing whole."""
    try:
        record = json.loads((folder / f"{key.experiment}.json").read_bytes())
        if record["schema"] != "ksame/experiment" or record["key"] != asdict(key):
            return None
        pictures = _pictures(folder / f"{key.experiment}.npz") if record["pictures"] else None
        findings = Findings(record["rows"], tuple(record["notes"]), pictures)
        how = (record["missing"], record["seconds"], record["cpu_seconds"])
        return Outcome(key.paper, key.experiment, findings, *how, reused=True)
    except (OSError, ValueError, KeyError, TypeError, BadZipFile):
        return None


def _pictures(file: Path) -> Pictures:
    with np.load(file, allow_pickle=False) as archive:
        rows, columns = (tuple(str(text) for text in archive[name]) for name in ("rows", "columns"))
        return Pictures(np.asarray(archive["images"]), rows, columns)


class Rows:
    """Numbers of one experiment, to be asked for by what they depend on."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = list(rows)

    def where(self, **wanted: Any) -> Rows:
        """Return the rows whose columns have these values; a column that a row lacks is no match."""
        return Rows([row for row in self.rows if all(row.get(name) == value for name, value in wanted.items())])

    def column(self, name: str) -> NDArray[Any]:
        """Return the values of a column in the rows that have it; raises where there is none."""
        return np.array([row[name] for row in self._with(name)])

    def value(self, name: str, **wanted: Any) -> float:
        """Return the one value of a column in the row with these values."""
        return float(self.where(**wanted).column(name)[0])

    def curve(self, x: str, y: str, **wanted: Any) -> dict[Any, float]:
        """Return y by x over the rows with these values that have both."""
        return {row[x]: float(row[y]) for row in self.where(**wanted)._with(x, y)}

    def _with(self, *names: str) -> list[Row]:
        complete = [row for row in self.rows if all(name in row for name in names)]
        if not complete:
            raise NotAvailableError("not measured at this size")
        return complete
