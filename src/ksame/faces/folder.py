"""Loading a folder of faces: who is who comes from sub-folders or from ``labels.csv``."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ksame import scratch
from ksame.errors import InputError, NotRegisteredError, PrivacyWarning
from ksame.faces.faceset import FaceSet
from ksame.faces.landmarks import EYES_AND_NOSE
from ksame.faces.reading import SUFFIXES, StrPath, read_image
from ksame.faces.registration import Template, register
from ksame.geometry import Similarity
from ksame.progress import Progress, silent
from ksame.scheduling import Scheduler, open_scheduler

T = TypeVar("T")

_POINT_COLUMNS = tuple(f"{point}_{axis}" for point in EYES_AND_NOSE for axis in "xy")


@dataclass(frozen=True)
class Entry:
    """A picture in a folder: where it is, whom it shows, its labels, and its landmarks where they are known."""

    path: Path
    subject: str
    attributes: Mapping[str, str]
    points: NDArray[np.float64] | None


@dataclass(frozen=True)
class Loaded:
    """What a folder held: the faces, and the files that could not be read, with the reason of each."""

    faces: FaceSet
    unreadable: tuple[str, ...]


def load_folder(
    folder: StrPath,
    *,
    labels: StrPath | None = None,
    template: Template | None = None,
    skip_unreadable: bool = False,
    progress: Progress = silent,
) -> Loaded:
    """Load every picture below ``folder``.

    Parameters
    ----------
    folder : Path or str
        Pictures directly inside, or in one sub-folder for each subject.
    labels : Path or str, optional
        A CSV file with the columns ``file,subject`` and any attributes; ``labels.csv`` inside the folder is found by
        itself. The columns ``left_eye_x, left_eye_y, right_eye_x, right_eye_y, nose_x, nose_y`` give landmarks. Only
        the files it lists are loaded.
    template : Template, optional
        Register every face to this template; needs landmarks. Without it, pictures of one size are taken as
        registered already; pictures of several sizes are registered to 99 x 134 where landmarks are known.
    skip_unreadable : bool
        Leave unreadable files out and list them, instead of raising.

    Raises
    ------
    InputError
        Naming every file that cannot be read, or the sizes that differ, or the column that is missing.
    """
    folder = Path(folder)
    entries = list_entries(folder, labels)
    located = all(entry.points is not None for entry in entries)
    stack = _Stack(len(entries), template if located else None)
    kept, unreadable = read_each(entries, stack.add, skip_unreadable=skip_unreadable, progress=progress)
    if template is not None and not located:
        raise InputError(
            f"{folder}: registration needs the eyes and the nose of every face. "
            f"Give labels.csv the columns {', '.join(_POINT_COLUMNS)}."
        )
    if stack.error is not None:
        raise stack.error
    if len(stack.sizes) == 1:
        points = np.stack(stack.points) if located else None
        return Loaded(gather(folder, kept, stack.images(), points), unreadable)
    if located:
        usual = Template.eyes_and_nose()
        return load_folder(folder, labels=labels, template=usual, skip_unreadable=skip_unreadable, progress=progress)
    sizes = sorted(stack.sizes)
    listed = ", ".join(f"{w}x{h}" for w, h in sizes[:5]) + (" ..." if len(sizes) > 5 else "")
    raise NotRegisteredError(
        f"{folder}: registered faces must have one size, found {len(sizes)} ({listed}). "
        "Give landmarks in labels.csv so that they can be registered, or crop them to one size."
    )


def list_entries(folder: Path, labels: StrPath | None = None) -> list[Entry]:
    """Return the pictures of a folder and whom they show, by ``labels.csv`` or by sub-folders."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder.")
    table = Path(labels) if labels is not None else folder / "labels.csv"
    return _from_table(folder, table) if labels is not None or table.is_file() else _from_tree(folder)


def read_each(
    entries: Sequence[Entry],
    take: Callable[[Entry, NDArray[np.float32]], T],
    *,
    skip_unreadable: bool = False,
    scheduler: Scheduler | None = None,
    progress: Progress = silent,
) -> tuple[list[T], tuple[str, ...]]:
    """Read the pictures, one after the other or as the scheduler has it.

    Returned are what ``take`` makes of each, and why others could not be read: none unless ``skip_unreadable``, since
    otherwise these raise, all together.
    """
    with nullcontext(scheduler) if scheduler else open_scheduler() as chosen:
        each = chosen.map(partial(_read, take), entries, "reading pictures", progress=progress)
    taken = [result for result in each if not isinstance(result, InputError)]
    unreadable = [str(result) for result in each if isinstance(result, InputError)]
    if unreadable and not skip_unreadable:
        raise InputError(
            f"{len(unreadable)} of {len(entries)} files cannot be read:\n  "
            + "\n  ".join(unreadable)
            + "\nRemove them, or leave them out with --skip-unreadable."
        )
    if not taken:
        raise InputError(f"None of the {len(entries)} files can be read (for instance {entries[0].path}).")
    return taken, tuple(unreadable)


def _read(take: Callable[[Entry, NDArray[np.float32]], T], entry: Entry) -> T:
    return take(entry, read_image(entry.path))


class _Stack:
    """Pictures of one size, registered as they come where there is a template.

    Nothing is kept after a second size was seen, or a picture that cannot be registered.
    """

    def __init__(self, n: int, template: Template | None) -> None:
        self.n, self.template = n, template
        self.sizes: set[tuple[int, int]] = set()
        self.points: list[NDArray[np.float64]] = []
        self.error: InputError | None = None
        self._images: NDArray[np.float32] | None = None
        self._count = 0

    def add(self, entry: Entry, picture: NDArray[np.float32]) -> Entry:
        """Lay a picture on top; grey ones among coloured ones become coloured."""
        points = entry.points
        if self.template is not None and points is not None and self.error is None:
            try:
                picture, move = _registered(entry, picture, points, self.template)
                points = move.apply(points)
            except InputError as error:
                self.error = error
        self.sizes.add((picture.shape[1], picture.shape[0]))
        if len(self.sizes) > 1 or self.error is not None:
            self._images = None
            return entry
        self._require_room(picture.shape)[self._count] = picture
        self._count += 1
        if points is not None:
            self.points.append(points)
        return entry

    def _require_room(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return the stack, with three channels from the first picture on that has them."""
        before = self._images
        if before is None or before.shape[3] < shape[2]:
            self._images = scratch.empty((self.n, *shape), np.float32)
            for part in scratch.blocks(0 if before is None else self._count, 4 * int(np.prod(shape))):
                self._images[part] = before[part]  # type: ignore[index]  # there are none without it
        assert self._images is not None  # noqa: S101 -- made above
        return self._images

    def images(self) -> NDArray[np.float32]:
        """Return the pictures, (n, height, width, channels); none can be added any more."""
        assert self._images is not None  # noqa: S101 -- asked for only where there are pictures
        return scratch.frozen(self._images)[: self._count]


def gather(folder: Path, entries: Sequence[Entry], images: NDArray[Any], points: NDArray[Any] | None) -> FaceSet:
    """Return a face set of entries, with their subjects, labels and names relative to ``folder``."""
    return FaceSet(
        images,
        np.array([entry.subject for entry in entries]),
        points,
        {name: np.array([entry.attributes[name] for entry in entries]) for name in entries[0].attributes},
        tuple(str(entry.path.resolve().relative_to(folder.resolve())) for entry in entries),
    )


def _registered(
    entry: Entry, picture: NDArray[np.float32], points: NDArray[np.float64], template: Template
) -> tuple[NDArray[np.float32], Similarity]:
    width, height = picture.shape[1], picture.shape[0]
    if np.any(points < (-width, -height)) or np.any(points > (2 * width, 2 * height)):
        raise InputError(
            f"{entry.path}: the landmarks lie far outside the picture of {width}x{height} pixels. Correct labels.csv."
        )
    try:
        return register(picture, points, template)
    except InputError as error:
        raise InputError(f"{entry.path}: {error}") from error


def _from_tree(folder: Path) -> list[Entry]:
    files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    if not files:
        raise InputError(f"{folder}: no pictures found ({', '.join(sorted(SUFFIXES))}).")
    nested = [p for p in files if p.parent != folder]
    if nested and len(nested) != len(files):
        loose = next(p for p in files if p.parent == folder)
        raise InputError(
            f"{folder}: some pictures lie in sub-folders and some do not (for instance {loose.name}), "
            "so it is unclear who is who. Put every picture in the sub-folder of its subject, or write labels.csv."
        )
    if not nested:
        warnings.warn(
            "Neither sub-folders nor labels.csv say who is who. Every file is taken as a different "
            "person; if somebody appears twice, the guarantee does not hold for them.",
            PrivacyWarning,
            stacklevel=3,
        )
        return [Entry(p, p.name, {}, None) for p in files]
    return [Entry(p, p.relative_to(folder).parts[0], {}, None) for p in files]


def _from_table(folder: Path, table: Path) -> list[Entry]:
    try:
        with table.open(newline="", encoding="utf-8-sig") as handle:
            rows: list[dict[str, Any]] = list(csv.DictReader(handle))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{table}: cannot be read ({error}).") from error
    if not rows:
        raise InputError(f"{table}: no rows. Expected the columns file,subject and one row for each picture.")
    columns = [c for c in rows[0] if c]
    if missing := {"file", "subject"} - set(columns):
        raise InputError(f"{table}: missing column(s) {', '.join(sorted(missing))}; found {', '.join(columns)}.")
    with_points = set(_POINT_COLUMNS) <= set(columns)
    if not with_points and set(_POINT_COLUMNS) & set(columns):
        raise InputError(f"{table}: landmarks need all of the columns {', '.join(_POINT_COLUMNS)}.")
    attributes = [c for c in columns if c not in {"file", "subject", *_POINT_COLUMNS}]
    entries = []
    for line, row in enumerate(rows, start=2):
        too_long, row = None in row, {c: (row[c] or "").strip() for c in columns}
        if too_long or not row["file"] or not row["subject"]:
            raise InputError(f"{table}, line {line}: expected {len(columns)} values with a file and a subject.")
        points = None
        if with_points:
            try:
                points = np.array([float(row[c]) for c in _POINT_COLUMNS]).reshape(-1, 2)
            except ValueError as error:
                raise InputError(f"{table}, line {line}: a landmark is not a number ({error}).") from error
            if not np.isfinite(points).all():
                raise InputError(f"{table}, line {line}: a landmark is not a finite number.")
        if "\0" in row["file"]:
            raise InputError(f"{table}, line {line}: the name of the file holds a NUL character.")
        path = folder / row["file"]
        if not path.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{table}, line {line}: {row['file']} lies outside {folder}.")
        entries.append(Entry(path, row["subject"], {a: row[a] for a in attributes}, points))
    if len({entry.path.resolve() for entry in entries}) != len(entries):
        raise InputError(f"{table}: a file is listed twice.")
    return entries
