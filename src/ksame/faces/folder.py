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
    read, unreadable = read_each(
        entries, lambda entry, picture: (entry, picture), skip_unreadable=skip_unreadable, progress=progress
    )
    kept, pictures = [entry for entry, _ in read], [picture for _, picture in read]
    return Loaded(_assemble(folder, pictures, kept, template), unreadable)


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
    """Read the pictures, one after the other or as the scheduler has it, and keep what ``take`` makes of each.

    Returns
    -------
    taken : list
    unreadable : tuple of str
        Why files could not be read; always empty without ``skip_unreadable``, when they raise together.
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


def _assemble(
    folder: Path, pictures: list[NDArray[np.float32]], entries: list[Entry], template: Template | None
) -> FaceSet:
    if any(p.shape[2] == 3 for p in pictures):
        pictures = [np.repeat(p, 3, axis=2) if p.shape[2] == 1 else p for p in pictures]
    sizes = sorted({(p.shape[1], p.shape[0]) for p in pictures})
    located = [entry.points for entry in entries if entry.points is not None]
    points = np.stack(located) if len(located) == len(entries) else None
    if template is None and len(sizes) > 1 and points is not None:
        template = Template.eyes_and_nose()
    if template is not None:
        if points is None:
            raise InputError(
                f"{folder}: registration needs the eyes and the nose of every face. "
                f"Give labels.csv the columns {', '.join(_POINT_COLUMNS)}."
            )
        registered = [_registered(e, p, q, template) for e, p, q in zip(entries, pictures, points, strict=True)]
        pictures = [face for face, _ in registered]
        points = np.stack([move.apply(q) for (_, move), q in zip(registered, points, strict=True)])
    elif len(sizes) > 1:
        listed = ", ".join(f"{w}x{h}" for w, h in sizes[:5]) + (" ..." if len(sizes) > 5 else "")
        raise NotRegisteredError(
            f"{folder}: registered faces must have one size, found {len(sizes)} ({listed}). "
            "Give landmarks in labels.csv so that they can be registered, or crop them to one size."
        )
    return gather(folder, entries, np.stack(pictures), points)


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
    missing = {"file", "subject"} - set(columns)
    if missing:
        raise InputError(f"{table}: missing column(s) {', '.join(sorted(missing))}; found {', '.join(columns)}.")
    with_points = set(_POINT_COLUMNS) <= set(columns)
    if not with_points and set(_POINT_COLUMNS) & set(columns):
        raise InputError(f"{table}: landmarks need all of the columns {', '.join(_POINT_COLUMNS)}.")
    attributes = [c for c in columns if c not in {"file", "subject", *_POINT_COLUMNS}]
    entries = []
    for line, row in enumerate(rows, start=2):
        row = {c: (row.get(c) or "").strip() if c else "" for c in row} if None not in row else row
        if None in row or any(c not in row for c in columns) or not row["file"] or not row["subject"]:
            raise InputError(f"{table}, line {line}: expected {len(columns)} values with a file and a subject.")
        points = None
        if with_points:
            try:
                points = np.array([float(row[c]) for c in _POINT_COLUMNS]).reshape(-1, 2)
            except ValueError as error:
                raise InputError(f"{table}, line {line}: a landmark is not a number ({error}).") from error
            if not np.isfinite(points).all():
                raise InputError(f"{table}, line {line}: a landmark is not a finite number.")
        path = folder / row["file"]
        if not path.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{table}, line {line}: {row['file']} lies outside {folder}.")
        entries.append(Entry(path, row["subject"], {a: row[a] for a in attributes}, points))
    seen = {entry.path.resolve() for entry in entries}
    if len(seen) != len(entries):
        raise InputError(f"{table}: a file is listed twice.")
    return entries
