"""What is looked at between jobs: uploads, people, frames and previews. It is done in another process, see ``Looker``.

A picture or recording that makes a decoder crash, or takes for ever, ends that process and not the server.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import shutil
import signal
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from concurrent.futures import TimeoutError as OutOfTimeError
from contextlib import closing
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from threading import Lock, Thread
from typing import Any, TypeVar

import numpy as np
from PIL import Image

from ksame.arrays import ByteArray
from ksame.errors import InputError, UsageError
from ksame.files import make_folder, write_atomic
from ksame.models import Source
from ksame.pictures import open_picture
from ksame.scene.config import Job
from ksame.scene.job import preview
from ksame.scene.media import open_media
from ksame.scene.paths import find_inputs
from ksame.scene.render.renderer import MAX_YAW
from ksame.scene.review import crop, evenly
from ksame.scene.track import Track, Tracks, read_tracks, write_tracks
from ksame.scene.track.corrections import discard, draw, renamed, split
from ksame.scene.track.tracks import in_order
from ksame.studio.commands import scene_config
from ksame.studio.projects import PREVIEW, THUMBS, TRACKS, UNDO
from ksame.studio.state import (
    Correction,
    Discard,
    Draw,
    FaceBox,
    Merge,
    PersonView,
    Project,
    Split,
    StoredFile,
    Stretch,
    TrackView,
    Undo,
)

T = TypeVar("T")
_THUMBS = 3  # pictures of a track
_PATIENCE = 300.0  # seconds that a look may take


class Looker:
    """Runs functions of this module in a process of its own, one at a time."""

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._patience, self._lock = patience, Lock()
        self._pool: ProcessPoolExecutor | None = None

    def ask(self, look: Callable[..., T], *args: Any) -> T:
        """Return what a function returns; InputError where its process dies or takes too long."""
        with self._lock:
            if self._pool is None:
                self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begin)
            pool = self._pool
        try:
            return pool.submit(look, *args).result(self._patience)
        except (BrokenExecutor, OutOfTimeError) as error:
            self.stop()
            raise InputError(
                "It could not be looked at: it takes too long, or breaks the reader. Leave it out."
            ) from error

    def stop(self) -> None:
        """End the process; the next question starts another."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)


def _begin() -> None:
    """Let the server alone end this process: by its own end, not by Ctrl-C in its terminal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_server, daemon=True).start()


def _end_with_server() -> None:
    server = multiprocessing.parent_process()
    if server is not None:
        server.join()
        os._exit(0)


def probe(file: StoredFile, path: Path) -> StoredFile:
    """Look into an upload, and return the file with what is in it.

    Raises InputError when it is no picture or recording that can be read.
    """
    size = path.stat().st_size
    try:
        if file.role == "labels":
            return file.model_copy(update={"size": size, "kind": "table"})
        if file.role != "media":
            with open_picture(path) as picture:
                width, height = picture.size
                picture.load()
            return file.model_copy(update={"size": size, "width": width, "height": height})
        media = open_media(path)
    except InputError as error:
        raise InputError(str(error).replace(str(path), file.name)) from error
    kind = "photograph" if media.kind == "photograph" else "video"
    seen = {"kind": kind, "width": media.size[0], "height": media.size[1], "n_frames": media.n_frames}
    return file.model_copy(update={"size": size, **seen, "rate": float(media.rate)})


def people(folder: Path, files: tuple[StoredFile, ...]) -> tuple[PersonView, ...]:
    """Return everyone in all files, with their tracks; pictures of them are made where there are none yet."""
    tracked = _all_tracks(folder, files)
    _make_thumbs(folder, tracked)
    shown: dict[str, list[tuple[StoredFile, Track]]] = defaultdict(list)
    for file, tracks in tracked:
        for track in tracks.tracks:
            shown[track.person].append((file, track))
    return tuple(_person(name, shown[name]) for name in sorted(shown, key=in_order))


def faces_in(folder: Path, file: StoredFile, index: int) -> tuple[FaceBox, ...]:
    """Return where faces are in a frame."""
    boxes = []
    for face in _tracks(folder, file).at(index):
        x, y, width, height = face.box
        boxes.append(FaceBox(person=face.person, track=face.track, x=x, y=y, width=width, height=height))
    return tuple(boxes)


def frame(folder: Path, file: StoredFile, index: int) -> bytes:
    """Return a frame as it is, as JPEG."""
    frames = open_media(folder / file.role / file.stored_as).frames(index)
    with closing(frames):  # a generator
        for each in frames:
            return _jpeg(each.pixels)
    raise UsageError(f"{file.name} has no frame {index}.")


def frame_after(folder: Path, project: Project, file: StoredFile, index: int) -> bytes:
    """Return what becomes of a frame, as JPEG."""
    media = folder / "media"
    sources = find_inputs([media]).files  # in the order of the command: it has a hand in who gets which face
    files = [(source.path, folder / PREVIEW / f"{number}") for number, source in enumerate(sources)]
    tracks = folder / TRACKS
    job = Job(files, folder / PREVIEW / "work", scene_config(project), project.settings.seed, tracks)
    return _jpeg(preview(job, media / file.stored_as, index)[1])


def correct(folder: Path, files: tuple[StoredFile, ...], wanted: Correction) -> tuple[str, ...]:
    """Correct the tracks; what they were is kept, to be taken back. Return who is there now."""
    steps = sorted((folder / UNDO).glob("*"))
    if isinstance(wanted, Undo):
        if not steps:
            raise UsageError("There is nothing to take back.")
        for path in steps[-1].glob("*.json"):
            write_atomic(folder / TRACKS / path.name, path.read_bytes(), private=True)
        shutil.rmtree(steps[-1], ignore_errors=True)
    else:
        changed = _corrected(folder, files, wanted)
        step = folder / UNDO / f"{len(steps) + 1:05d}"
        make_folder(step)
        for path in changed:
            write_atomic(step / path.name, path.read_bytes(), private=True)
        for path, tracks in changed.items():
            write_tracks(tracks, path)
    return tuple({person.name for _, tracks in _all_tracks(folder, files) for person in tracks.people})


def _corrected(
    folder: Path, files: tuple[StoredFile, ...], wanted: Merge | Split | Draw | Discard
) -> dict[Path, Tracks]:
    """Return the tracks that a correction changes, by their files."""
    tracked = _all_tracks(folder, files)
    names = {person.name for _, tracks in tracked for person in tracks.people}
    if isinstance(wanted, Merge):
        for name in (wanted.person, wanted.into):
            if name not in names:
                raise UsageError(f"There is no {name} here.")
        if wanted.person == wanted.into:
            raise UsageError(f"{wanted.person} is one person already.")
        with_them = [
            (file, tracks) for file, tracks in tracked if wanted.person in {each.name for each in tracks.people}
        ]
        return {_tracks_of(folder, file): renamed(tracks, {wanted.person: wanted.into}) for file, tracks in with_them}
    file, tracks = next(((file, tracks) for file, tracks in tracked if file.number == wanted.file), (None, None))
    if file is None or tracks is None:
        raise UsageError("This file has no tracks. Look for people first.")
    new = next(f"P{i}" for i in range(1, len(names) + 2) if f"P{i}" not in names)
    if isinstance(wanted, Split):
        made = split(tracks, wanted.track, wanted.frame, wanted.person or new)
    elif isinstance(wanted, Draw):
        made = draw(tracks, (wanted.x, wanted.y, wanted.width, wanted.height), wanted.first, wanted.last, new)
    else:
        made = discard(tracks, wanted.track)
    return {_tracks_of(folder, file): made}


def _tracks_of(folder: Path, file: StoredFile) -> Path:
    return folder / TRACKS / f"{file.stored_as}.json"


def _all_tracks(folder: Path, files: Iterable[StoredFile]) -> list[tuple[StoredFile, Tracks]]:
    return [(file, _tracks(folder, file)) for file in files if _tracks_of(folder, file).is_file()]


def _tracks(folder: Path, file: StoredFile) -> Tracks:
    path = _tracks_of(folder, file)
    if not path.is_file():
        raise UsageError("This file has no tracks. Look for people first.")
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=32)
def _read(path: Path, changed: int) -> Tracks:
    return read_tracks(path)


def _person(name: str, shown: list[tuple[StoredFile, Track]]) -> PersonView:
    views = [_track(file, track) for file, track in shown]
    masked = ("masked", "unsure", "drawn")
    return PersonView(
        name=name,
        confirmed=any(track.confirmed for _, track in shown),
        frames=sum(len(track) for _, track in shown),
        masked=sum(s.last - s.first + 1 for view in views for s in view.stretches if s.what in masked),
        tracks=tuple(views),
    )


def _track(file: StoredFile, track: Track) -> TrackView:
    """Say frame by frame what will become of a face, in stretches."""
    meshed = track.meshed() & (np.abs(track.poses[:, 0]) <= MAX_YAW)
    words = np.where(meshed, np.where(track.source == Source.DETECTED, "found", "filled"), "masked")
    words = np.where(track.source == Source.ADDED, "drawn", words if track.confirmed else "unsure")
    starts = [0, *(np.flatnonzero(words[1:] != words[:-1]) + 1).tolist(), len(words)]
    return TrackView(
        file=file.number,
        number=track.number,
        first=track.first,
        last=track.end - 1,
        stretches=tuple(
            Stretch(first=track.first + a, last=track.first + b - 1, what=words[a].item()) for a, b in pairwise(starts)
        ),
        thumbs=tuple(evenly(track, _THUMBS)),
    )


def thumb(folder: Path, file: int, track: int, index: int) -> Path:
    """Return where the picture of a face is."""
    return folder / THUMBS / f"{file}-{track}-{index}.jpg"


def _make_thumbs(folder: Path, tracked: list[tuple[StoredFile, Tracks]]) -> None:
    """Cut out what is to be shown of every track."""
    make_folder(folder / THUMBS)
    for file, tracks in tracked:
        due: dict[int, list[Track]] = defaultdict(list)
        for track in tracks.tracks:
            for index in evenly(track, _THUMBS):
                if not thumb(folder, file.number, track.number, index).exists():
                    due[index].append(track)
        if not due:
            continue
        frames = open_media(folder / file.role / file.stored_as).frames()
        with closing(frames):  # a generator
            for each in frames:
                for track in due.pop(each.index, ()):
                    face = track.at(each.index)
                    if face is not None:
                        path = thumb(folder, file.number, track.number, each.index)
                        write_atomic(path, _jpeg(crop(each.pixels, face.box)), private=True)
                if not due:
                    break


def _jpeg(pixels: ByteArray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=88)
    return stream.getvalue()
