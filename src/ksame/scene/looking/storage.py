"""Rows of tracks while they grow, and a finished cast on disk.

A growing track is a file of float32 rows, appended to in blocks. A finished cast is one array a quantity, the rows of
all tracks one after the other, as ``.npy`` files that are mapped into memory, and ``cast.json``, which is written last:
a folder without it is not finished.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.errors import InputError, OutputError
from ksame.scene.sightings import N_POINTS, Cast, Person, Track

SCHEMA, VERSION = "ksame/cast", 1
_INDEX = "cast.json"
_ARENA_MAX = -8  # the name of that setting in glibc
_BLOCK = 64  # rows kept in memory before they are written

SHAPES: dict[str, tuple[tuple[int, ...], type[Any]]] = {
    "boxes": ((4,), np.float32),
    "points": ((N_POINTS, 3), np.float32),
    "blendshapes": ((52,), np.float32),
    "poses": ((3,), np.float32),
    "source": ((), np.uint8),
}
BOX, POSE, BLENDSHAPES, POINTS = slice(0, 4), slice(4, 7), slice(7, 59), slice(59, 59 + 3 * N_POINTS)
SMALL = slice(0, 59)  # everything but the points
WIDTH = 59 + 3 * N_POINTS


class Spool:
    """Rows of a track that is still growing, (n_rows, WIDTH): box, pose, blendshapes, points; NaN where unknown.

    Parameters
    ----------
    file : Path or None
        Where they are written; None keeps them in memory.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._open: list[NDArray[np.float32]] = []
        self._kept: list[NDArray[np.float32]] = []
        self._written = 0
        if file is not None:
            file.unlink(missing_ok=True)

    def __len__(self) -> int:
        return self._written + len(self._open)

    def append(self, row: NDArray[np.float32]) -> None:
        """Add a row, (WIDTH,)."""
        if len(self._open) >= _BLOCK:
            self._flush()
        self._open.append(row)

    def _flush(self) -> None:
        if not self._open:
            return
        block = np.stack(self._open)
        self._open = []
        self._written += len(block)
        if self._file is None:
            self._kept.append(block)
            return
        try:
            with self._file.open("ab") as stream:
                stream.write(block.tobytes())
        except OSError as error:
            raise OutputError(
                f"{self._file}: what was seen cannot be kept ({error}). "
                "Make room, or choose another place for the output."
            ) from error

    def rows(self, n: int) -> NDArray[np.float32]:
        """Return the first ``n`` rows; mapped where they are on disk."""
        self._flush()
        if self._file is None:
            return np.concatenate(self._kept)[:n]
        return np.memmap(self._file, dtype=np.float32, mode="r", shape=(self._written, WIDTH))[:n]

    def drop(self) -> None:
        """Forget the rows."""
        self._open, self._kept, self._written = [], [], 0
        if self._file is not None:
            self._file.unlink(missing_ok=True)


def give_back_memory() -> None:
    """Return freed memory to the system; glibc keeps that of threads, which adds up in a long run."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def share_memory() -> None:
    """Let threads that are yet to come share two stores of memory; with one each, what all keep back adds up."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL("libc.so.6").mallopt(_ARENA_MAX, 2)


def new_arrays(n_rows: int, folder: Path | None) -> dict[str, NDArray[Any]]:
    """Return empty arrays for a finished cast, in memory or mapped to files of ``folder``."""
    if folder is None or n_rows == 0:
        return {name: np.zeros((n_rows, *shape), dtype) for name, (shape, dtype) in SHAPES.items()}
    folder.mkdir(parents=True, exist_ok=True)
    return {
        name: np.lib.format.open_memmap(folder / f"{name}.npy", mode="w+", dtype=dtype, shape=(n_rows, *shape))
        for name, (shape, dtype) in SHAPES.items()
    }


@dataclass(frozen=True)
class Place:
    """Where the rows of a track are in the arrays of a cast, and in which frame they begin."""

    number: int
    first: int
    start: int
    length: int
    confirmed: bool = True


def tracks_of(arrays: dict[str, NDArray[Any]], places: Sequence[Place], people: Sequence[str]) -> tuple[Track, ...]:
    """Return tracks as views of the arrays of a cast; ``people`` has whose they are."""
    tracks = []
    for place, person in zip(places, people, strict=True):
        rows = slice(place.start, place.start + place.length)
        views = {name: arrays[name][rows] for name in SHAPES}
        tracks.append(Track(place.number, person, place.first, **views, confirmed=place.confirmed))
    return tuple(tracks)


def save_cast(cast: Cast, folder: Path) -> None:
    """Keep a cast in a folder; it counts as kept only when all of it is there.

    Raises
    ------
    OutputError
        When it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _INDEX).unlink(missing_ok=True)
        total = sum(len(track) for track in cast.tracks)
        for name, (shape, dtype) in SHAPES.items():
            partial = folder / f".{name}.part.npy"
            if total:
                kept = np.lib.format.open_memmap(partial, mode="w+", dtype=dtype, shape=(total, *shape))
                start = 0
                for track in cast.tracks:
                    kept[start : start + len(track)] = getattr(track, name)
                    start += len(track)
                kept.flush()
                del kept
            else:
                np.save(partial, np.zeros((0, *shape), dtype))
            partial.replace(folder / f"{name}.npy")
        _write(folder / _INDEX, json.dumps(_index(cast), indent=1))
    except OSError as error:
        raise OutputError(f"{folder}: the tracks cannot be kept ({error}). Make room on that disk.") from error


def finish(folder: Path, cast: Cast | None) -> None:
    """Mark the arrays of a folder as those of ``cast``, complete; or, without one, as not finished."""
    try:
        if cast is None:
            (folder / _INDEX).unlink(missing_ok=True)
            return
        if not any(len(track) for track in cast.tracks):
            save_cast(cast, folder)
            return
        for track in cast.tracks:
            for name in SHAPES:
                mapped: Any = getattr(track, name)
                mapped.flush()
        _write(folder / _INDEX, json.dumps(_index(cast), indent=1))
    except OSError as error:
        raise OutputError(f"{folder}: the tracks cannot be kept ({error}). Make room on that disk.") from error


def load_cast(folder: Path) -> Cast | None:
    """Return the cast that a folder holds, mapped from disk; None if it holds no finished one.

    Raises
    ------
    InputError
        When the folder holds something else, or its parts do not fit together.
    """
    file = folder / _INDEX
    try:
        index = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: the tracks cannot be read ({error}). Delete the folder to look again.") from error
    try:
        if (index["schema"], index["version"]) != (SCHEMA, VERSION):
            raise ValueError(f"{index['schema']} version {index['version']}, not {SCHEMA} version {VERSION}")
        places = [
            Place(int(t["number"]), int(t["first"]), int(t["start"]), int(t["length"]), bool(t.get("confirmed", True)))
            for t in index["tracks"]
        ]
        total = sum(place.length for place in places)
        mode: Any = "r" if total else None
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode=mode) for name in SHAPES}
        for name, (shape, dtype) in SHAPES.items():
            if arrays[name].shape != (total, *shape) or arrays[name].dtype != dtype:
                raise ValueError(f"{name}.npy has the shape {arrays[name].shape}, expected {(total, *shape)}")
        people = tuple(
            Person(
                p["name"],
                None if p["embedding"] is None else np.array(p["embedding"], dtype=np.float64),
                tuple((int(track), int(frame)) for track, frame in p["best"]),
            )
            for p in index["people"]
        )
        width, height = (int(side) for side in index["size"])
        tracks = tracks_of(arrays, places, [t["person"] for t in index["tracks"]])
        return Cast((width, height), int(index["n_frames"]), people, tracks, np.array(index["cuts"], dtype=np.intp))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder}: these are not the tracks of a recording ({error}). Delete the folder to look again."
        ) from error


def _index(cast: Cast) -> dict[str, Any]:
    tracks, start = [], 0
    for track in cast.tracks:
        row = {"number": track.number, "person": track.person, "first": track.first}
        tracks.append(row | {"start": start, "length": len(track), "confirmed": track.confirmed})
        start += len(track)
    people = [
        {
            "name": person.name,
            "embedding": None if person.embedding is None else [float(value) for value in person.embedding],
            "best": [list(pair) for pair in person.best],
        }
        for person in cast.people
    ]
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "size": list(cast.size),
        "n_frames": cast.n_frames,
        "cuts": cast.cuts.tolist(),
        "people": people,
        "tracks": tracks,
    }


def _write(file: Path, text: str) -> None:
    partial = file.with_name(f".{file.name}.part")
    with partial.open("w", encoding="utf-8") as stream:
        stream.write(text + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(file)
