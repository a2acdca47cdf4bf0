"""What ``ksame people`` finds and says."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Column, Table

from ksame.app import talk
from ksame.app.gathering import Found
from ksame.app.scene_report import clock
from ksame.errors import InputError, UsageError
from ksame.faces.faceset import ByteArray
from ksame.models import SFace
from ksame.scene.first_pass import detect_tracks, tracks_for
from ksame.scene.media import Damaged, Media, open_media
from ksame.scene.memory import one_opencv_thread
from ksame.scene.observe import DetectorConfig
from ksame.scene.pipeline import DETECTING
from ksame.scene.review import Row, crop, sheet
from ksame.scene.running import Brake, Counted, each
from ksame.scene.track import People, TrackerConfig, join_files
from ksame.scene.track.tracks import Track, Tracks

_THUMBNAILS = 3


@dataclass(frozen=True)
class Listed:
    """One person in one file.

    Attributes
    ----------
    name : str
    file : Path
    frames : int
    first, last : float
        Seconds.
    size : float
        Median height of the face in pixels.
    unmeshed : int
        Frames without a mesh: there the person would be masked.
    confirmed : bool
        Whether it surely is a face.
    """

    name: str
    file: Path
    frames: int
    first: float
    last: float
    size: float
    unmeshed: int
    confirmed: bool


@dataclass(frozen=True, eq=False)
class Listing:
    """Who was found, perhaps on a sheet, and which files could not be read."""

    people: tuple[Listed, ...]
    failed: Mapping[Path, str]
    sheet: ByteArray | None


def listing(
    found: Sequence[Found], *, workers: int, sheet: bool, damaged: Damaged = "refuse", tracks: Path | None = None
) -> Listing:
    """Look at all files and find the same people in them; with tracks, who is in the only file is read from there."""
    if tracks is not None and len(found) != 1:
        raise UsageError("Tracks belong to one file; give them with that file alone.")
    with tempfile.TemporaryDirectory(prefix="ksame-people-") as work:
        brake = Brake()
        recogniser = SFace()
        inner = talk.track if len(found) == 1 else brake.track

        def one(numbered: tuple[int, Found]) -> tuple[Media, Tracks] | InputError:
            number, item = numbered
            try:
                media = open_media(item.path, damaged)
                if tracks is not None:
                    return _dated(media), tracks_for(tracks, media)
                folder = Path(work) / str(number)
                with ThreadPoolExecutor(DETECTING) as pool:
                    return media, detect_tracks(
                        media,
                        folder,
                        DetectorConfig(),
                        TrackerConfig(),
                        recogniser=recogniser,
                        map=pool.map,
                        track=inner,
                    )
            except InputError as error:
                if len(found) == 1:
                    raise
                return error

        with one_opencv_thread():
            looked = each(list(enumerate(found)), one, workers, brake, talk.track, "detecting faces")
        seen = [pair for pair in looked if not isinstance(pair, InputError)]
        failed = {
            item.path: str(pair) for item, pair in zip(found, looked, strict=True) if isinstance(pair, InputError)
        }
        if not seen:
            raise InputError("None of the files can be read. " + " ".join(failed.values()))
        everyone = join_files([cast for _, cast in seen], TrackerConfig().same_person)
        people = tuple(_listed(seen, everyone, name, key) for name in everyone.people for key in everyone.keys(name))
        return Listing(people, failed, _sheet(seen, everyone) if sheet else None)


def _listed(seen: Sequence[tuple[Media, Tracks]], everyone: People, name: str, key: tuple[int, str]) -> Listed:
    media, cast = seen[key[0]]
    tracks = cast.of(key[1])
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
        name not in everyone.unsure,
    )


def _dated(media: Media) -> Media:
    """Go through the frames, so that their times are known."""
    for _ in talk.track(Counted(media), "reading"):
        pass
    return media


def _time(media: Media, frame: int) -> float:
    return round(float(media.stamp(frame).at * media.time_base), 3)


def _sheet(seen: Sequence[tuple[Media, Tracks]], everyone: People) -> ByteArray:
    """Show every person a few times, where they are seen best."""
    spots: dict[int, dict[int, list[tuple[str, Track]]]] = defaultdict(lambda: defaultdict(list))
    for name in everyone.people:
        some = [(n, track, frame) for n, local in everyone.keys(name) for track, frame in _best(seen[n][1], local)]
        for n, track, at in some[:_THUMBNAILS]:
            spots[n][at].append((name, track))
    pictures: dict[str, list[tuple[str, ByteArray]]] = {name: [] for name in everyone.people}
    for n, due in spots.items():
        frames = seen[n][0].frames()
        with closing(frames):  # type: ignore[type-var]  # a generator
            for frame in frames:
                for name, track in due.get(frame.index, ()):
                    face = track.at(frame.index)
                    if face is not None:
                        pictures[name].append((f"{clock(frame.time)}", crop(frame.pixels, face.box)))
                if frame.index >= max(due):
                    break
    return sheet([Row((name,), shown) for name, shown in pictures.items()])


def _best(cast: Tracks, local: str) -> list[tuple[Track, int]]:
    """Return where a person of one file is seen best: the sharpest frames, else the middle of the longest track."""
    person = next(person for person in cast.people if person.name == local)
    tracks = {track.number: track for track in cast.of(local)}
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
                "name": one.name,
                "confirmed": one.confirmed,
                "file": str(one.file),
                "frames": one.frames,
                "seconds": [one.first, one.last],
                "height": one.size,
                "frames_without_mesh": one.unmeshed,
            }
            for one in listed.people
        ],
        "unreadable": {str(path): reason for path, reason in listed.failed.items()},
    }


def show(listed: Listing) -> None:
    """Print the list."""
    table = Table("person", Column("file", overflow="fold"), "frames", "from", "to", "height", "without mesh")
    for one in listed.people:
        table.add_row(
            one.name if one.confirmed else f"{one.name} (not sure)",
            escape(str(one.file)),
            str(one.frames),
            clock(one.first),
            clock(one.last),
            f"{one.size:.0f} px",
            str(one.unmeshed or "–"),
        )
    talk.show(table)
    if not listed.people:
        talk.say("[yellow]No face was found.[/] Look for yourself: what is not found is not changed.")
    for reason in listed.failed.values():
        talk.say(f"[yellow]left out[/] {escape(reason)}")
