"""Tracks on disk: one array per quantity, the rows of all tracks one after the other, mapped into memory.

``tracks.json`` says whose they are and is written last: a folder without it is not finished.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.errors import InputError, OutputError
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
BOX, POSE, BLENDSHAPES, POINTS = slice(0, 4), slice(4, 7), slice(7, 59), slice(59, 59 + 3 * N_POINTS)
SMALL = slice(0, 59)  # everything but the points
WIDTH = 59 + 3 * N_POINTS


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
    if folder is None or n_rows == 0:
        return {name: np.zeros((n_rows, *shape), dtype) for name, (shape, dtype) in SHAPES.items()}
    folder.mkdir(parents=True, exist_ok=True)
    return {
        name: np.lib.format.open_memmap(folder / f"{name}.npy", mode="w+", dtype=dtype, shape=(n_rows, *shape))
        for name, (shape, dtype) in SHAPES.items()
    }


@dataclass(frozen=True)
class Place:
    """Where the rows of a track are in the arrays, and in which frame they begin."""

    number: int
    first: int
    start: int
    length: int
    confirmed: bool = True


def tracks_of(arrays: dict[str, NDArray[Any]], places: Sequence[Place], people: Sequence[str]) -> tuple[Track, ...]:
    """Return tracks as views of the arrays; ``people`` has whose they are."""
    tracks = []
    for place, person in zip(places, people, strict=True):
        rows = slice(place.start, place.start + place.length)
        views = {name: arrays[name][rows] for name in SHAPES}
        tracks.append(Track(place.number, person, place.first, **views, confirmed=place.confirmed))
    return tuple(tracks)


def save_tracks(tracks: Tracks, folder: Path) -> None:
    """Keep tracks in a folder; they count as kept only when all of it is there.

    Raises
    ------
    OutputError
        When it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _INDEX).unlink(missing_ok=True)
        total = sum(len(track) for track in tracks.tracks)
        for name, (shape, dtype) in SHAPES.items():
            partial = folder / f".{name}.part.npy"
            if total:
                kept = np.lib.format.open_memmap(partial, mode="w+", dtype=dtype, shape=(total, *shape))
                start = 0
                for track in tracks.tracks:
                    kept[start : start + len(track)] = getattr(track, name)
                    start += len(track)
                kept.flush()
                del kept
            else:
                np.save(partial, np.zeros((0, *shape), dtype))
            partial.replace(folder / f"{name}.npy")
        _write(folder / _INDEX, json.dumps(_index(tracks), indent=1))
    except OSError as error:
        raise OutputError(f"{folder}: the tracks cannot be kept ({error}). Make room on that disk.") from error


def finish(folder: Path, tracks: Tracks | None) -> None:
    """Mark the arrays of a folder as those of ``tracks``, complete; or, without one, as not finished."""
    try:
        if tracks is None:
            (folder / _INDEX).unlink(missing_ok=True)
            return
        if not any(len(track) for track in tracks.tracks):
            save_tracks(tracks, folder)
            return
        for track in tracks.tracks:
            for name in SHAPES:
                mapped: Any = getattr(track, name)
                mapped.flush()
        _write(folder / _INDEX, json.dumps(_index(tracks), indent=1))
    except OSError as error:
        raise OutputError(f"{folder}: the tracks cannot be kept ({error}). Make room on that disk.") from error


def load_tracks(folder: Path) -> Tracks | None:
    """Return the tracks that a folder holds, mapped from disk; None if it holds no finished ones.

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
        raise InputError(f"{file}: the tracks cannot be read ({error}). Delete the folder to detect again.") from error
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
        return Tracks((width, height), int(index["n_frames"]), people, tracks, np.array(index["cuts"], dtype=np.intp))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder}: these are not the tracks of a recording ({error}). Delete the folder to detect again."
        ) from error


def _index(tracks: Tracks) -> dict[str, Any]:
    spans, start = [], 0
    for track in tracks.tracks:
        row = {"number": track.number, "person": track.person, "first": track.first}
        spans.append(row | {"start": start, "length": len(track), "confirmed": track.confirmed})
        start += len(track)
    people = [
        {
            "name": person.name,
            "embedding": None if person.embedding is None else [float(value) for value in person.embedding],
            "best": [list(pair) for pair in person.best],
        }
        for person in tracks.people
    ]
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "size": list(tracks.size),
        "n_frames": tracks.n_frames,
        "cuts": tracks.cuts.tolist(),
        "people": people,
        "tracks": spans,
    }


def _write(file: Path, text: str) -> None:
    partial = file.with_name(f".{file.name}.part")
    with partial.open("w", encoding="utf-8") as stream:
        stream.write(text + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(file)
