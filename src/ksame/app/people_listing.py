"""What ``ksame people`` finds and says."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

from ksame.app import talk
from ksame.app.scene_report import clock
from ksame.arrays import ByteArray
from ksame.scene.config import Job, JobConfig
from ksame.scene.job import find_people
from ksame.scene.media import Media
from ksame.scene.paths import Inputs
from ksame.scene.review import Row, crop, sheet
from ksame.scene.track import People
from ksame.scene.track.tracks import Track, Tracks

_THUMBNAILS = 3


@dataclass(frozen=True)
class Listed:
    """One person in one file."""

    name: str
    file: Path
    frames: int
    first: float  # seconds, as ``last``
    last: float
    size: float  # median height of the face in pixels
    unmeshed: int  # frames without a mesh: there the person would be masked
    confirmed: bool  # whether a second opinion says that it is a face


@dataclass(frozen=True, eq=False)
class Listing:
    """Who was found, perhaps on a sheet, and which files could not be read."""

    people: tuple[Listed, ...]
    failed: Mapping[Path, str]
    sheet: ByteArray | None


def listing(inputs: Inputs, config: JobConfig, *, sheet: bool, tracks: Path | None = None) -> Listing:
    """Find the same people in all files; with tracks, who is where is read from there, or written."""
    with tempfile.TemporaryDirectory(prefix="ksame-people-") as folder:
        work = Path(folder) / "work"
        files = [(item.path, work / f"{number}") for number, item in enumerate(inputs.files)]
        tracked, people, failed = find_people(Job(files, work, config, tracks=tracks), progress=talk.progress)
        if tracks is not None:
            for media, _ in tracked:
                for _ in talk.progress(media.frames(), "reading"):
                    pass  # so that the times of the frames are known
        listed = tuple(_listed(tracked, people, name, key) for name in people.ordered for key in people.keys(name))
        return Listing(listed, failed, _sheet(tracked, people) if sheet else None)


def _listed(seen: Sequence[tuple[Media, Tracks]], people: People, name: str, key: tuple[int, str]) -> Listed:
    media, in_file = seen[key[0]]
    tracks = in_file.of(key[1])
    seen_in = {frame for track in tracks for frame in range(track.first, track.end)}
    meshed = {track.first + int(row) for track in tracks for row in np.flatnonzero(track.meshed())}
    return Listed(
        name,
        media.path,
        len(seen_in),
        _time(media, min(track.first for track in tracks)),
        _time(media, max(track.end for track in tracks) - 1),
        round(float(np.median(np.concatenate([track.boxes[:, 3] for track in tracks]))), 1),
        len(seen_in - meshed),
        name not in people.unconfirmed,
    )


def _time(media: Media, frame: int) -> float:
    return round(float(media.timestamp(frame).pts * media.time_base), 3)


def _sheet(seen: Sequence[tuple[Media, Tracks]], people: People) -> ByteArray:
    """Show every person a few times, where they are seen best."""
    spots: dict[int, dict[int, list[tuple[str, Track]]]] = defaultdict(lambda: defaultdict(list))
    for name in people.ordered:
        best = [(n, track, frame) for n, local in people.keys(name) for track, frame in _best(seen[n][1], local)]
        for n, track, at in best[:_THUMBNAILS]:
            spots[n][at].append((name, track))
    pictures: dict[str, list[tuple[str, ByteArray]]] = {name: [] for name in people.ordered}
    for n, due in spots.items():
        frames = seen[n][0].frames()
        with closing(frames):
            for frame in frames:
                for name, track in due.get(frame.index, ()):
                    face = track.at(frame.index)
                    if face is not None:
                        pictures[name].append((clock(frame.time), crop(frame.pixels, face.box)))
                if frame.index >= max(due):
                    break
    return sheet([Row((name,), shown) for name, shown in pictures.items()])


def _best(in_file: Tracks, local: str) -> list[tuple[Track, int]]:
    """Return where a person of one file is seen best: the sharpest frames, else the middle of the longest track."""
    person = next(person for person in in_file.people if person.name == local)
    tracks = {track.number: track for track in in_file.of(local)}
    best = [(tracks[number], frame) for number, frame in person.best]
    longest = max(tracks.values(), key=len)
    return best[:1] or [(longest, longest.first + len(longest) // 2)]


def for_machines(listed: Listing) -> dict[str, Any]:
    """Return plain data."""
    return {
        "schema": "ksame/people",
        "version": 1,
        "people": [
            {
                "name": person.name,
                "confirmed": person.confirmed,
                "file": str(person.file),
                "frames": person.frames,
                "seconds": [person.first, person.last],
                "height": person.size,
                "frames_without_mesh": person.unmeshed,
            }
            for person in listed.people
        ],
        "unreadable": {str(path): reason for path, reason in listed.failed.items()},
    }


def show(listed: Listing) -> None:
    """Print the list."""
    rows = [
        (
            person.name if person.confirmed else f"{person.name} (not sure)",
            str(person.frames),
            clock(person.first),
            clock(person.last),
            f"{person.size:.0f} px",
            str(person.unmeshed or "–"),
            str(person.file),
        )
        for person in listed.people
    ]
    talk.show_lines(("person", "frames", "from", "to", "height", "without mesh", "file"), rows)
    if not listed.people:
        talk.say("[yellow]No face was found.[/] Check the pictures: what is not found is not changed.")
    for reason in listed.failed.values():
        talk.say(f"[yellow]left out[/] {escape(reason)}")
