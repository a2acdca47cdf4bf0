"""Tracks as a JSON file that a person can edit: who is who, which faces there are, and where.

``docs/scenes.md`` says what may be edited. Not to be edited: ``source``, by which tracks of another recording are
refused, and ``found``, who was found where, by which it is noticed that somebody was left out or that a name became
somebody else's.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ksame.errors import InputError
from ksame.files import open_atomic
from ksame.models import Source
from ksame.privacy.documents import Record, read_bytes, read_document
from ksame.scene.media import Media
from ksame.scene.track.interpolate import runs
from ksame.scene.track.storage import BLENDSHAPES, POINTS, POSE, WIDTH, new_arrays, person_row
from ksame.scene.track.tracks import N_POINTS, OriginalTrack, Person, Track, Tracks

SCHEMA, VERSION = "ksame/tracks", 2
_BLOCK = 64  # frames whose meshes are packed together
_CENT = 100.0  # boxes, poses and points are kept in hundredths
_SCALES = np.full(WIDTH, _CENT)
_SCALES[BLENDSHAPES] = 10_000.0
_MESH = slice(POSE.start, WIDTH)  # columns that a mesh has in a row
_WORDS = {Source.DETECTED: "seen", Source.INTERPOLATED: "filled", Source.ADDED: "added"}
_LONGEST = 1 << 30  # frames
_NAME = r"^[\w][\w .'-]*$"
"""What people may be called: words that stand in tables and on command lines as they are."""

_Frame = Annotated[int, Field(ge=0, le=_LONGEST)]
_Pixels = Annotated[float, Field(ge=-_LONGEST, le=_LONGEST)]
_Length = Annotated[float, Field(gt=0, le=_LONGEST)]
_Row = tuple[_Frame, Literal["seen", "filled", "added"], _Pixels, _Pixels, _Length, _Length]


class _Meshes(Record):
    first: _Frame
    count: int = Field(ge=1, le=_BLOCK)
    data: str


class _Track(Record):
    number: _Frame
    person: str = Field(pattern=_NAME)
    confirmed: bool = True
    frames: list[_Row] = Field(min_length=1)
    meshes: tuple[_Meshes, ...] = ()


class _Person(Record):
    name: str = Field(pattern=_NAME)
    embedding: Annotated[list[float], Field(min_length=128, max_length=128)] | None = None
    best: tuple[tuple[_Frame, _Frame], ...] = ()


class _Original(Record):
    person: str = Field(pattern=_NAME)
    first: _Frame
    count: int = Field(ge=1, le=_LONGEST)
    confirmed: bool
    boxes: str


class _File(Record):
    schema_: Literal["ksame/tracks"] = Field(alias="schema")
    version: Literal[2]
    source: str
    size: tuple[Annotated[int, Field(ge=1, le=_LONGEST)], Annotated[int, Field(ge=1, le=_LONGEST)]]
    n_frames: int = Field(ge=0, le=_LONGEST)
    cuts: tuple[_Frame, ...] = ()
    people: list[_Person]
    tracks: list[_Track]
    found: list[_Original]


def write_tracks(tracks: Tracks, path: Path) -> None:
    """Write tracks as JSON, readable by their owner only: they are as secret as the originals.

    Raises OutputError when it cannot be written; nothing then stands under ``path``.
    """
    with open_atomic(path, private=True) as stream:
        stream.writelines(line.encode() for line in _lines(tracks))


def read_tracks_of(media: Media, path: Path) -> Tracks:
    """Read tracks, and refuse those of another recording."""
    tracks = read_tracks(path, media.n_frames if media.exact else 2 * media.n_frames + 1000)
    if tracks.size != media.size:
        raise InputError(f"{path}: made for pictures of {tracks.size}, but {media.path} has {media.size}.")
    if tracks.source != media.fingerprint:
        raise InputError(
            f"{path}: made for another recording than {media.path}. Name a file that does not exist to look anew."
        )
    return tracks


def read_tracks(path: Path, longest: int = _LONGEST) -> Tracks:
    """Read tracks from JSON, perhaps edited.

    Raises InputError when the file is not there, is no such file, contradicts itself, or was made for more than the
    ``longest`` number of frames: every frame of a track takes memory, however few lines tell of it.
    """
    data = read_bytes(path, "the file of tracks")
    try:
        content = read_document(_File, data, "tracks as `--tracks` writes them")
        if content.n_frames > longest:
            raise InputError(f"made for a recording of {content.n_frames} frames, far more than there are here.")
        return _tracks(content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _lines(tracks: Tracks) -> Iterator[str]:
    top = {"schema": SCHEMA, "version": VERSION, "source": tracks.source}
    top |= {"size": list(tracks.size), "n_frames": tracks.n_frames, "cuts": tracks.cuts.tolist()}
    yield json.dumps(top, indent=1)[:-2] + ',\n "people": [\n'
    yield from _joined((person_row(person, digits=6) for person in tracks.people), "  ")
    yield ' ],\n "tracks": [\n'
    for i, track in enumerate(tracks.tracks):
        head = {"number": track.number, "person": track.person, "confirmed": track.confirmed}
        yield ",\n" * (i > 0) + "  " + json.dumps(head)[:-1] + ', "frames": [\n'
        yield from _joined(_frames(track), "   ")
        yield '   ],\n   "meshes": [\n'
        yield from _joined(_meshes(track), "    ")
        yield "   ]}"
    yield "\n" * bool(tracks.tracks) + ' ],\n "found": [\n'
    yield from _joined(map(_original_row, tracks.as_found), "  ")
    yield " ]\n}\n"


def _joined(items: Iterable[Any], indent: str) -> Iterator[str]:
    """Yield one line of JSON per item, with commas between."""
    comma = ""
    for item in items:
        yield comma + indent + json.dumps(item)
        comma = ",\n"
    yield "\n" * bool(comma)


def _frames(track: Track) -> Iterator[list[Any]]:
    for frame, (box, source) in enumerate(zip(track.boxes, track.source, strict=True), start=track.first):
        yield [frame, _WORDS[Source(int(source))], *(round(float(value), 2) for value in box)]


def _meshes(track: Track) -> Iterator[dict[str, Any]]:
    """Yield blocks of poses, blendshapes and points as whole numbers."""
    for run in runs(track.meshed()):
        for begin in range(*run, _BLOCK):
            rows = slice(begin, min(begin + _BLOCK, run[1]))
            count = rows.stop - begin
            parts = [track.poses[rows], track.blendshapes[rows], track.points[rows].reshape(count, -1)]
            data = _packed(np.round(np.concatenate(parts, axis=1) * _SCALES[_MESH]))
            yield {"first": track.first + begin, "count": count, "data": data}


def _original_row(track: OriginalTrack) -> dict[str, Any]:
    row = {"person": track.person, "first": track.first, "count": len(track.boxes), "confirmed": track.confirmed}
    return row | {"boxes": _packed(np.round(track.boxes * _CENT))}


def _packed(rows: NDArray[Any]) -> str:
    """Return whole numbers, each row's difference to the one before, compressed."""
    values = rows.astype("<i4")
    values[1:] = np.diff(values, axis=0)
    return base64.b64encode(zlib.compress(values.tobytes(), 6)).decode("ascii")


def _unpacked(text: str, n_rows: int, width: int, what: str, advice: str) -> NDArray[np.int64]:
    """Undo :func:`_packed`; an InputError says what is damaged, and what to do."""
    try:
        # One byte too many is refused, and a bomb never gets larger.
        data = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), 4 * n_rows * width + 1)
        return np.cumsum(np.frombuffer(data, dtype="<i4").reshape(n_rows, width), axis=0, dtype=np.int64)
    except (ValueError, zlib.error) as error:
        raise InputError(f"{what} damaged ({error}). {advice}") from error


def _tracks(content: _File) -> Tracks:
    for kind, names in (
        ("person", [person.name for person in content.people]),
        ("track", [str(track.number) for track in content.tracks]),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"There is more than one {kind} {twice[0]}.")
    if any(not 0 < cut < content.n_frames for cut in content.cuts) or sorted(set(content.cuts)) != list(content.cuts):
        raise InputError(f"Cuts must be rising frame numbers from 1 to {content.n_frames - 1}. Got {content.cuts}.")
    tracks = {track.number: _track(track, content) for track in content.tracks}
    owners = {track.person for track in tracks.values()}
    people = tuple(_person(person, tracks) for person in content.people if person.name in owners)
    cuts = np.array(content.cuts, dtype=np.intp)
    originals = tuple(_original(original, content.n_frames) for original in content.found)
    return Tracks(content.size, content.n_frames, people, tuple(tracks.values()), cuts, originals, content.source)


def _person(person: _Person, tracks: Mapping[int, Track]) -> Person:
    """Return a person; what is no longer theirs, or has no mesh, is none of their best frames any more."""
    best = []
    for number, frame in person.best:
        face = tracks[number].at(frame) if number in tracks else None
        if face is not None and face.person == person.name and face.mesh is not None:
            best.append((number, frame))
    return Person(person.name, None if person.embedding is None else np.array(person.embedding), tuple(best))


def _original(given: _Original, n_frames: int) -> OriginalTrack:
    person = given.person
    if given.first + given.count > n_frames:
        raise InputError(f"{person} was found beyond the recording's {n_frames} frames. Write the tracks anew.")
    advice = "It is not to be edited: write the tracks anew."
    boxes = _unpacked(given.boxes, given.count, 4, f"Where {person} was found is", advice) / _CENT
    return OriginalTrack(person, given.first, boxes.astype(np.float32), given.confirmed)


def _track(track: _Track, content: _File) -> Track:
    number = track.number
    if track.person not in {person.name for person in content.people}:
        raise InputError(f"Track {number} belongs to {track.person!r}, who is not among the people. Add them there.")
    at = np.array([row[0] for row in track.frames], dtype=np.int64)
    if np.any(np.diff(at) <= 0):
        raise InputError(f"The frames of track {number} must rise from line to line.")
    if at[-1] >= content.n_frames:
        raise InputError(f"Track {number} leaves the recording's {content.n_frames} frames.")
    given = np.array([row[2:] for row in track.frames], dtype=np.float64)
    first, n = int(at[0]), int(at[-1] - at[0] + 1)
    frames = np.arange(first, first + n)
    codes = {word: source for source, word in _WORDS.items()}
    lines = np.array([codes[row[1]] for row in track.frames], dtype=np.uint8)
    arrays = new_arrays(n)
    arrays["boxes"][:] = np.stack([np.interp(frames, at, column) for column in given.T], axis=1)
    arrays["source"][:] = Source.ADDED if np.all(lines == Source.ADDED) else Source.INTERPOLATED
    arrays["source"][at - first] = lines
    arrays["points"][:] = np.nan
    has_mesh = np.zeros(n, dtype=bool)
    has_mesh[at - first] = lines != Source.ADDED
    for block in track.meshes:
        what = f"The meshes from frame {block.first} on of track {number} are"
        advice = "Delete that block to have these frames masked."
        values = np.full((block.count, WIDTH), np.nan)
        values[:, _MESH] = _unpacked(block.data, block.count, WIDTH - _MESH.start, what, advice) / _SCALES[_MESH]
        here = np.arange(block.first, block.first + block.count) - first
        use = (here >= 0) & (here < n)
        use[use] = has_mesh[here[use]]
        arrays["poses"][here[use]] = values[use, POSE]
        arrays["blendshapes"][here[use]] = values[use, BLENDSHAPES]
        arrays["points"][here[use]] = values[use, POINTS].reshape(-1, N_POINTS, 3)
    return Track(number, track.person, first, **arrays, confirmed=track.confirmed)
