"""What is done with one file: a function for each stage, that can be sent to another process or machine.

Each leaves its value in the :class:`Store` and returns little. Whoever runs them must see the same files under the same
paths, the work folder included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

from ksame.errors import InputError, UsageError
from ksame.models.finisher import finisher
from ksame.scene.config import Job, JobConfig
from ksame.scene.decide import Block, FileViews, Group, Judge, choose_in_block, file_views
from ksame.scene.edited import tracks_for
from ksame.scene.frames import Frames
from ksame.scene.media import (
    DamagePolicy,
    Media,
    open_media,
)
from ksame.scene.memory import give_back_memory, one_opencv_thread
from ksame.scene.store import TRACKS, VIEWS, Store, can_resume, key_of
from ksame.scene.track import find_tracks, load_tracks, save_tracks
from ksame.scene.track.tracks import Tracks
from ksame.scene.workers import CancelledError, Tools
from ksame.version import __version__


@dataclass(frozen=True, eq=False)
class JobFile:
    """A file of a job, by its number in it; it is opened where it is worked on."""

    number: int
    source: Path
    output: Path
    damaged: DamagePolicy
    fingerprint: str = ""  # of the file that the job was begun with

    def __str__(self) -> str:
        return str(self.source)

    @cached_property
    def media(self) -> Media:
        """What is in it."""
        return open_media(self.source, self.damaged)

    def opened(self) -> JobFile:
        """Return the file with its fingerprint, opened."""
        file = replace(self, fingerprint=self.media.fingerprint)
        file.__dict__["media"] = self.media
        return file

    def __getstate__(self) -> dict[str, Any]:
        there = {"source": self.source.absolute(), "output": self.output.absolute()}
        return {name: value for name, value in (self.__dict__ | there).items() if name != "media"}


@dataclass(frozen=True, eq=False)
class StageRun:
    """One run of a job: its store, and what work on files shares."""

    job: Job
    store: Store
    tools: Tools

    @property
    def config(self) -> JobConfig:
        """How files are de-identified."""
        return self.job.config

    def check(self, file: JobFile) -> None:
        """Refuse to work where the run is over, or other files are seen than those that it was begun with."""
        if not can_resume(self.store.folder):
            raise UsageError(
                f"A worker does not see {self.store.folder}, or the run is over. All workers must see the same files "
                "under the same paths."
            )
        if self.tools.token.cancelled:
            raise CancelledError("stopped")
        if file.media.fingerprint != file.fingerprint:
            raise InputError(f"{file}: a worker sees another file there, or it was changed. Run again.")


def track_file(run: StageRun, file: JobFile) -> None:
    """Find everyone in one file, unless a person has said who is where."""
    run.check(file)
    media = file.media
    if run.job.edited:
        if not (run.job.tracks_of(file.source) or file.source).exists():
            raise InputError(f"{file}: it has no tracks in {run.job.tracks}. Name a folder that is empty to look anew.")
        return
    key = key_of(file.fingerprint, asdict(run.config.tracker), __version__)
    folder = run.store.place(TRACKS, file.number)
    if run.store.value(TRACKS, file.number, key) is not None and load_tracks(folder) is not None:
        return
    still = media.kind == "photograph"
    picture = list(Frames(media)) if still else []  # decoded once, though it is gone through twice
    with one_opencv_thread():
        cast = find_tracks(
            lambda start: picture or Frames(media, start),
            media.size,
            None if still else folder,
            run.config.tracker,
            still=still,
            recogniser=run.tools.recogniser,
            map=run.tools.pictures.map,
            progress=run.tools.progress,
        )
    if still:
        save_tracks(cast, folder)
    give_back_memory()
    run.store.finish(TRACKS, file.number, key)


def cast_of(run: StageRun, file: JobFile) -> Tracks:
    """Return who is where in a file, as it was found or as a person has edited it."""
    edited = run.job.tracks_of(file.source)
    if edited is not None and edited.exists():
        return tracks_for(edited, file.media)
    cast = load_tracks(run.store.place(TRACKS, file.number))
    if cast is None:
        raise InputError(f"{file}: its tracks are gone from {run.store.folder}. Run again.")
    return cast


@dataclass(frozen=True, eq=False)
class StoredCasts(Sequence[Tracks]):
    """Who is where in files, read from the store whenever they are asked for."""

    run: StageRun
    files: tuple[JobFile, ...]

    def __len__(self) -> int:
        return len(self.files)

    @overload
    def __getitem__(self, index: int) -> Tracks: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Tracks]: ...
    def __getitem__(self, index: int | slice) -> Tracks | Sequence[Tracks]:
        if isinstance(index, slice):
            return replace(self, files=self.files[index])
        return cast_of(self.run, self.files[index])


def view_file(run: StageRun, file: JobFile) -> FileViews:
    """Return what one file shows of everyone: pieces of a few hundred pixels, which lie in the store."""
    run.check(file)
    views = file_views(Frames(file.media), cast_of(run, file), run.tools.judge, run.config)
    return views.stored(run.store.place(VIEWS, file.number).absolute())


def choose_block(run: StageRun, block: Block) -> list[Group]:
    """Choose the surrogates of some people; the pieces of frames by which they are judged lie in the store."""
    judge = Judge(run.tools.judge, finisher(run.config.device), run.config.cover)
    judged, progress = run.config.judged, run.tools.progress
    return choose_in_block(block, judge, run.tools.pictures, judged=judged, progress=progress)
