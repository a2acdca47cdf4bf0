"""Tracks on disk: one array per quantity, the rows of all tracks one after the other, mapped into memory.

``tracks.json`` says whose they are and is written last: a folder without it is not finished.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.errors import InputError, OutputError
from ksame.files import open_atomic, read_json, write_json
from ksame.models import Face
from ksame.scene.track.tracks import N_POINTS, Person, Track, Tracks

SCHEMA, VERSION = "ksame/track-rows", 1
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


def new_arrays(n_rows: int, folder: Path | None) -> dict[str, NDArray[Any]]:
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
    """Keep tracks in a folder; they count as kept only when all of it is there.

    Raises
    ------
    OutputError
        When it cannot be written.
    """
    with _kept_in(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _INDEX).unlink(missing_ok=True)
    total = sum(len(track) for track in tracks.tracks)
    for name, (shape, dtype) in SHAPES.items():
        header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (total, *shape)}
        with open_atomic(folder / f"{name}.npy") as stream:
            np.lib.format.write_array_header_1_0(stream, header)
            for track in tracks.tracks:
                stream.write(np.asarray(getattr(track, name), dtype).tobytes())
    write_json(folder / _INDEX, _index(tracks))


def begin(folder: Path) -> Path:
    """Mark the tracks of a folder as not finished, and return an empty folder in it, for those that grow."""
    growing = folder / "growing"
    with _kept_in(folder):
        (folder / _INDEX).unlink(missing_ok=True)
        shutil.rmtree(growing, ignore_errors=True)
        growing.mkdir(parents=True)
    return growing


def finish(folder: Path, tracks: Tracks) -> None:
    """Mark the arrays of a folder as those of ``tracks``, complete."""
    if not tracks.tracks:
        save_tracks(tracks, folder)
        return
    with _kept_in(folder):
        for track in tracks.tracks:
            for name in SHAPES:
                getattr(track, name).flush()
    write_json(folder / _INDEX, _index(tracks))


@contextmanager
def _kept_in(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{folder}: the tracks cannot be kept ({error}). Make room on that disk.") from error


def load_tracks(folder: Path) -> Tracks | None:
    """Return the tracks that a folder holds, mapped from disk; None if it holds no finished ones.

    Raises
    ------
    InputError
        When the folder holds something else, or its parts do not fit together.
    """
    if not (folder / _INDEX).exists():
        return None
    try:
        index = read_json(folder / _INDEX)
        if (index["schema"], index["version"]) != (SCHEMA, VERSION):
            raise ValueError(f"{index['schema']} version {index['version']}, not {SCHEMA} version {VERSION}")
        total = sum(int(track["length"]) for track in index["tracks"])
        # Every mapped array keeps a file open: a batch of photographs, with a row or two each, would have too many.
        mapped = total and int(index["n_frames"]) > 1
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r" if mapped else None) for name in SHAPES}
        for name, (shape, dtype) in SHAPES.items():
            if arrays[name].shape != (total, *shape) or arrays[name].dtype != dtype:
                raise ValueError(f"{name}.npy has the shape {arrays[name].shape}, expected {(total, *shape)}")
        tracks = []
        for row in index["tracks"]:
            number, first, start, length = (int(row[name]) for name in ("number", "first", "start", "length"))
            views = {name: array[start : start + length] for name, array in arrays.items()}
            tracks.append(Track(number, row["person"], first, **views, confirmed=bool(row.get("confirmed", True))))
        people = []
        for row in index["people"]:
            embedding = None if row["embedding"] is None else np.array(row["embedding"], dtype=np.float64)
            people.append(
                Person(row["name"], embedding, tuple((int(track), int(frame)) for track, frame in row["best"]))
            )
        width, height = (int(side) for side in index["size"])
        cuts = np.array(index["cuts"], dtype=np.intp)
        return Tracks((width, height), int(index["n_frames"]), tuple(people), tuple(tracks), cuts)
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


def _index(tracks: Tracks) -> dict[str, Any]:
    rows, start = [], 0
    for track in tracks.tracks:
        row = {"number": track.number, "person": track.person, "first": track.first}
        rows.append(row | {"start": start, "length": len(track), "confirmed": track.confirmed})
        start += len(track)
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "size": list(tracks.size),
        "n_frames": tracks.n_frames,
        "cuts": tracks.cuts.tolist(),
        "people": [person_row(person) for person in tracks.people],
        "tracks": rows,
    }
