"""Tracks on disk: one array per quantity, the rows of all tracks one after the other, mapped into memory.

``tracks.json`` says whose they are and is written last: a folder without it is not finished.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import READING
from ksame.errors import InputError, OutputError
from ksame.files import open_atomic, read_json, write_json
from ksame.models import Face
from ksame.scene.track.tracks import N_POINTS, Person, Track, Tracks

_FORMAT = {"schema": "ksame/track-rows", "version": 1}
_INDEX = "tracks.json"

SHAPES: dict[str, tuple[tuple[int, ...], type[Any]]] = {
    "boxes": ((4,), np.float32),
    "points": ((N_POINTS, 3), np.float32),
    "blendshapes": ((52,), np.float32),
    "poses": ((3,), np.float32),
    "source": ((), np.uint8),
}
# Columns of a row while tracks grow, and how many there are.
BOX, POSE, BLENDSHAPES, POINTS = slice(0, 4), slice(4, 7), slice(7, 59), slice(59, 59 + 3 * N_POINTS)
WIDTH = POINTS.stop


def row_of(face: Face | None) -> NDArray[np.float32]:
    """Return the row that is kept of a face in a frame, (WIDTH,); all NaN where there is none."""
    row = np.full(WIDTH, np.nan, dtype=np.float32)
    if face is None:
        return row
    row[BOX] = face.box
    if face.mesh is not None:
        pose = face.mesh.pose
        row[POSE] = pose.yaw, pose.pitch, pose.roll
        row[BLENDSHAPES] = face.mesh.blendshapes
        row[POINTS] = face.mesh.points.ravel()
    return row


def new_arrays(n_rows: int, folder: Path | None = None) -> dict[str, NDArray[Any]]:
    """Return empty arrays for finished tracks, in memory or mapped to files of ``folder``."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, (shape, dtype) in SHAPES.items():
        if folder is not None and n_rows:  # nothing can be mapped to an empty file
            with _kept_in(folder):
                file = folder / f"{name}.npy"
                arrays[name] = np.lib.format.open_memmap(file, mode="w+", dtype=dtype, shape=(n_rows, *shape))
        else:
            arrays[name] = np.zeros((n_rows, *shape), dtype)
    return arrays


def save_tracks(tracks: Tracks, folder: Path) -> None:
    """Keep tracks in a folder; they count as kept only when all of it is there. An OutputError says why not."""
    begin(folder).rmdir()
    arrays: dict[str, NDArray[Any]] = {}
    for name, (shape, dtype) in SHAPES.items():
        rows = [np.zeros((0, *shape)), *(getattr(track, name) for track in tracks.tracks)]
        arrays[name] = np.concatenate(rows, dtype=dtype, casting="unsafe")
    finish(folder, tracks, arrays)


def begin(folder: Path) -> Path:
    """Mark the tracks of a folder as not finished, and return an empty folder in it, for those that grow."""
    growing = folder / "growing"
    with _kept_in(folder):
        (folder / _INDEX).unlink(missing_ok=True)
        shutil.rmtree(growing, ignore_errors=True)
        growing.mkdir(parents=True)
    return growing


def finish(folder: Path, tracks: Tracks, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Mark the arrays of a folder as those of ``tracks``, complete."""
    for name, array in arrays.items():
        if isinstance(array, np.memmap):
            with _kept_in(folder):
                array.flush()
        else:
            with open_atomic(folder / f"{name}.npy") as stream:
                np.save(stream, array)
    index = {
        "size": tracks.size,
        "n_frames": tracks.n_frames,
        "cuts": tracks.cuts.tolist(),
        "people": [person_row(person) for person in tracks.people],
        "tracks": [
            {"number": t.number, "person": t.person, "first": t.first, "length": len(t), "confirmed": t.confirmed}
            for t in tracks.tracks
        ],
    }
    write_json(folder / _INDEX, _FORMAT | index)


@contextmanager
def _kept_in(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{folder}: the tracks cannot be kept ({error}). Make room on that disk.") from error


def load_tracks(folder: Path) -> Tracks | None:
    """Return the tracks that a folder holds, mapped from disk; None if it holds no finished ones.

    An InputError says that the folder holds something else, or that its parts do not fit together.
    """
    if not (folder / _INDEX).exists():
        return None
    try:
        index = read_json(folder / _INDEX)
        if not _FORMAT.items() <= index.items():
            raise ValueError(f"expected {_FORMAT}")
        total = sum(row["length"] for row in index["tracks"])
        # Every mapped array keeps a file open: a batch of photographs, with a row or two each, would have too many.
        mapped = total and index["n_frames"] > 1
        with READING:
            arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r" if mapped else None) for name in SHAPES}
        for name, (shape, dtype) in SHAPES.items():
            if arrays[name].shape != (total, *shape) or arrays[name].dtype != dtype:
                raise ValueError(f"{name}.npy has the shape {arrays[name].shape}, expected {(total, *shape)}")
        tracks, start = [], 0
        for row in index["tracks"]:
            views = {name: array[start : start + row["length"]] for name, array in arrays.items()}
            confirmed = row.get("confirmed", True)
            tracks.append(Track(row["number"], row["person"], row["first"], **views, confirmed=confirmed))
            start += row["length"]
        people = []
        for row in index["people"]:
            embedding = None if row["embedding"] is None else np.array(row["embedding"], dtype=np.float64)
            people.append(Person(row["name"], embedding, tuple((track, frame) for track, frame in row["best"])))
        width, height = index["size"]
        cuts = np.array(index["cuts"], dtype=np.intp)
        return Tracks((width, height), index["n_frames"], tuple(people), tuple(tracks), cuts)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder}: these are not the tracks of a recording ({error}). Delete the folder to detect again."
        ) from error


def person_row(person: Person, digits: int | None = None) -> dict[str, Any]:
    """Return a person as JSON, the embedding rounded to so many digits."""
    embedding = None if person.embedding is None else person.embedding.tolist()
    if embedding is not None and digits is not None:
        embedding = [round(value, digits) for value in embedding]
    return {"name": person.name, "embedding": embedding, "best": [list(pair) for pair in person.best]}
