"""Tracks as a JSON file that a person can edit: who is who, which faces there are, and where.

Each track has one line a frame: its number, how the face is known ("seen", "filled" or "added"), and left, top, width
and height of the box. What may be edited:

- the ``person`` of a track, to give it to somebody else; a person without tracks may be deleted;
- a whole track, which is then left out: **the face is no longer replaced**. Whoever is left out so is warned of, and
  counted as kept;
- names: the person's and those of their tracks, to any words. They are the names of ``ksame people --tracks`` and of
  ``--keep``;
- boxes, and lines at the beginning and the end of a track. Frames left out between two lines are interpolated, so a new
  track needs only a few lines, of which ``how`` is "added";
- a mesh belongs to its frame, and is used only where that line has not become "added";
- ``confirmed`` of a track, false where it is perhaps no face: set to true, it counts as somebody. Such tracks have no
  meshes, so that it is masked in any case. Left out, it is true.

Not to be edited: ``source``, by which tracks of another recording are refused, and ``found``, who was found where, by
which it is noticed that somebody was left out or that a name became somebody else's.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from ksame.errors import InputError, OutputError
from ksame.models import Source
from ksame.privacy.documents import read_bytes, read_document
from ksame.scene.track.tracks import N_POINTS, Found, Person, Track, Tracks

SCHEMA, VERSION = "ksame/tracks", 2
_BLOCK = 64  # frames whose meshes are packed together
_POSE, _BLENDSHAPES, _POINTS = slice(0, 3), slice(3, 55), slice(55, 55 + 3 * N_POINTS)
_SCALES = np.array([100.0] * 3 + [10_000.0] * 52 + [100.0] * (3 * N_POINTS))
_WORDS = {Source.DETECTED: "seen", Source.INTERPOLATED: "filled", Source.ADDED: "added"}
_LONGEST = 1 << 30  # frames
_NAME = r"^[\w][\w .'-]*$"
"""What people may be called: words that stand in tables and on command lines as they are."""


_Frame = Annotated[int, Field(ge=0, le=_LONGEST)]
_Pixels = Annotated[float, Field(ge=-_LONGEST, le=_LONGEST)]
_Row = tuple[_Frame, Literal["seen", "filled", "added"], _Pixels, _Pixels, _Pixels, _Pixels]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class _Meshes(_Strict):
    first: _Frame
    count: int = Field(ge=1, le=_BLOCK)
    data: str


class _Track(_Strict):
    number: _Frame
    person: str = Field(pattern=_NAME)
    confirmed: bool = True
    frames: list[_Row] = Field(min_length=1)
    meshes: list[_Meshes] = []


class _Person(_Strict):
    name: str = Field(pattern=_NAME)
    embedding: list[float] | None = None
    best: list[tuple[_Frame, _Frame]] = []


class _Found(_Strict):
    person: str = Field(pattern=_NAME)
    first: _Frame
    count: int = Field(ge=1, le=_LONGEST)
    confirmed: bool
    boxes: str


class _File(_Strict):
    schema_: Literal["ksame/tracks"] = Field(alias="schema")
    version: Literal[2]
    source: str
    size: tuple[_Frame, _Frame]
    n_frames: int = Field(ge=0, le=_LONGEST)
    cuts: list[_Frame] = []
    people: list[_Person]
    tracks: list[_Track]
    found: list[_Found]


def write_tracks(cast: Tracks, path: Path) -> None:
    """Write a cast as JSON.

    Raises
    ------
    OutputError
        When it cannot be written; nothing then stands under ``path``.
    """
    partial = path.with_name(f".{path.name}.part")
    try:
        partial.unlink(missing_ok=True)
        partial.touch(mode=0o600)  # it is as secret as the originals from its first byte on
        with partial.open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(_lines(cast))
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: the tracks cannot be written ({error}).") from error
    finally:
        partial.unlink(missing_ok=True)


def read_tracks(path: Path, longest: int = _LONGEST) -> Tracks:
    """Read a cast from JSON, perhaps edited.

    Parameters
    ----------
    path : Path
    longest : int
        Frames beyond which it is not read: every frame of a track takes memory, however few lines tell of it.

    Raises
    ------
    InputError
        When the file is not there, is no such file, or contradicts itself.
    """
    data = read_bytes(path, "the file of tracks")
    try:
        content = read_document(_File, data, "tracks as `--tracks` writes them")
        if content.n_frames > longest:
            raise InputError(f"made for a recording of {content.n_frames} frames, far more than there are here.")
        return _cast(content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _lines(cast: Tracks) -> Iterator[str]:
    top = {"schema": SCHEMA, "version": VERSION, "source": cast.source}
    top |= {"size": list(cast.size), "n_frames": cast.n_frames}
    yield json.dumps(top | {"cuts": cast.cuts.tolist()}, indent=1)[:-2] + ',\n "people": [\n'
    for i, person in enumerate(cast.people):
        row = {
            "name": person.name,
            "embedding": None if person.embedding is None else [round(float(v), 6) for v in person.embedding],
            "best": [list(pair) for pair in person.best],
        }
        yield "  " + json.dumps(row) + ("," if i + 1 < len(cast.people) else "") + "\n"
    yield ' ],\n "tracks": [\n'
    for i, track in enumerate(cast.tracks):
        head = {"number": track.number, "person": track.person, "confirmed": track.confirmed}
        yield "  " + json.dumps(head)[:-1] + ', "frames": [\n'
        for j in range(len(track)):
            box = [round(float(value), 2) for value in track.boxes[j]]
            row_ = [track.first + j, _WORDS[Source(int(track.source[j]))], *box]
            yield "   " + json.dumps(row_) + ("," if j + 1 < len(track) else "") + "\n"
        yield '   ],\n   "meshes": [\n'
        blocks = list(_blocks(track.meshed()))
        for j, (begin, end) in enumerate(blocks):
            block = {"first": track.first + begin, "count": end - begin, "data": _packed(track, begin, end)}
            yield "    " + json.dumps(block) + ("," if j + 1 < len(blocks) else "") + "\n"
        yield "   ]}" + ("," if i + 1 < len(cast.tracks) else "") + "\n"
    yield ' ],\n "found": [\n'
    found = _as_found(cast)
    for i, one in enumerate(found):
        span = {"person": one.person, "first": one.first, "count": len(one.boxes), "confirmed": one.confirmed}
        boxes = {"boxes": _squeezed(np.round(one.boxes * 100.0))}
        yield "  " + json.dumps(span | boxes) + ("," if i + 1 < len(found) else "") + "\n"
    yield " ]\n}\n"


def _as_found(cast: Tracks) -> tuple[Found, ...]:
    if cast.found is not None:
        return cast.found
    return tuple(Found(track.person, track.first, track.boxes, track.confirmed) for track in cast.tracks)


def _blocks(meshed: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of stretches of frames with a mesh, at most ``_BLOCK`` long."""
    begin = None
    for i, has in enumerate([*meshed.tolist(), False]):
        if begin is not None and (not has or i - begin == _BLOCK):
            yield begin, i
            begin = None
        if has and begin is None:
            begin = i


def _packed(track: Track, begin: int, end: int) -> str:
    """Return poses, blendshapes and points as whole numbers, each frame's difference to the one before."""
    rows = slice(begin, end)
    parts = [track.poses[rows], track.blendshapes[rows], track.points[rows].reshape(end - begin, -1)]
    return _squeezed(np.round(np.concatenate(parts, axis=1) * _SCALES))


def _squeezed(rows: NDArray[Any]) -> str:
    values = rows.astype("<i4")
    values[1:] = np.diff(values, axis=0)
    return base64.b64encode(zlib.compress(values.tobytes(), 6)).decode("ascii")


def _spread(text: str, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Undo :func:`_squeezed`; a ValueError says what is wrong."""
    expected = 4 * shape[0] * shape[1]
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), expected + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return np.cumsum(np.frombuffer(data, dtype="<i4").reshape(shape), axis=0, dtype=np.int64)


def _unpacked(block: _Meshes, track: int) -> NDArray[np.float64]:
    try:
        values = _spread(block.data, (block.count, len(_SCALES)))
    except ValueError as error:
        raise InputError(
            f"The meshes from frame {block.first} on of track {track} are damaged ({error}). Delete that block to have "
            "these frames masked."
        ) from error
    return np.asarray(values / _SCALES)


def _found(one: _Found, n_frames: int) -> Found:
    if one.first + one.count > n_frames:
        raise InputError(f"{one.person} was found beyond the recording's {n_frames} frames. Write the tracks anew.")
    try:
        boxes = _spread(one.boxes, (one.count, 4)) / 100.0
    except ValueError as error:
        raise InputError(
            f"Where {one.person} was found is damaged ({error}). It is not to be edited: write the tracks anew."
        ) from error
    return Found(one.person, one.first, boxes.astype(np.float32), one.confirmed)


def _cast(content: _File) -> Tracks:
    if min(content.size) < 1:
        raise InputError(f"The size must be positive. Got {content.size}.")
    for kind, names in (
        ("person", [p.name for p in content.people]),
        ("track", [str(t.number) for t in content.tracks]),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"There is more than one {kind} {twice[0]}.")
    if any(not 0 < cut < content.n_frames for cut in content.cuts) or sorted(set(content.cuts)) != content.cuts:
        raise InputError(f"Cuts must be rising frame numbers from 1 to {content.n_frames - 1}. Got {content.cuts}.")
    tracks = tuple(_track(track, content) for track in content.tracks)
    spans = {track.number: track for track in tracks}
    people = []
    owners = {track.person for track in tracks}
    for person in content.people:
        if person.name not in owners:
            continue
        if person.embedding is not None and len(person.embedding) != 128:
            raise InputError(f"The embedding of {person.name} must have 128 numbers. Got {len(person.embedding)}.")
        best = tuple((n, f) for n, f in person.best if n in spans and _is_good(spans[n], f, person.name))
        embedding = None if person.embedding is None else np.array(person.embedding)
        people.append(Person(person.name, embedding, best))
    cuts = np.array(content.cuts, dtype=np.intp)
    found = tuple(_found(one, content.n_frames) for one in content.found)
    return Tracks(content.size, content.n_frames, tuple(people), tracks, cuts, found, content.source)


def _is_good(track: Track, frame: int, person: str) -> bool:
    """Tell whether a frame that was among the best still is one of this person, with a mesh."""
    face = track.at(frame)
    return track.person == person and face is not None and face.mesh is not None


def _track(track: _Track, content: _File) -> Track:
    number = track.number
    if track.person not in {person.name for person in content.people}:
        raise InputError(f"Track {number} belongs to {track.person!r}, who is not among the people. Add them there.")
    at = np.array([row[0] for row in track.frames], dtype=np.int64)
    if np.any(np.diff(at) <= 0):
        raise InputError(f"The frames of track {number} must rise from line to line.")
    if at[0] < 0 or at[-1] >= content.n_frames:
        raise InputError(f"Track {number} leaves the recording's {content.n_frames} frames.")
    given = np.array([row[2:] for row in track.frames], dtype=np.float64)
    if np.any(given[:, 2:] <= 0):
        raise InputError(f"A box of track {number} has no width or no height.")
    first, n = int(at[0]), int(at[-1] - at[0] + 1)
    frames = np.arange(first, first + n)
    boxes = np.stack([np.interp(frames, at, column) for column in given.T], axis=1).astype(np.float32)
    codes = {word: how for how, word in _WORDS.items()}
    lines = np.array([codes[row[1]] for row in track.frames], dtype=np.uint8)
    source = np.full(n, Source.ADDED if np.all(lines == Source.ADDED) else Source.INTERPOLATED, dtype=np.uint8)
    source[at - first] = lines
    arrays: dict[str, NDArray[Any]] = {
        "points": np.full((n, N_POINTS, 3), np.nan, dtype=np.float32),
        "blendshapes": np.zeros((n, 52), dtype=np.float32),
        "poses": np.zeros((n, 3), dtype=np.float32),
    }
    kept = np.zeros(n, dtype=bool)
    kept[at - first] = lines != Source.ADDED
    for block in track.meshes:
        values = _unpacked(block, number)
        here = np.arange(block.first, block.first + block.count) - first
        use = (here >= 0) & (here < n)
        use[use] = kept[here[use]]
        arrays["poses"][here[use]] = values[use, _POSE]
        arrays["blendshapes"][here[use]] = values[use, _BLENDSHAPES]
        arrays["points"][here[use]] = values[use, _POINTS].reshape(-1, N_POINTS, 3)
    return Track(number, track.person, first, boxes, source=source, **arrays, confirmed=track.confirmed)
