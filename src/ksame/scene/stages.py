"""What is done with one file: a function for each stage, that can be sent to another process or machine.

Each leaves its value in the :class:`Store` and returns little. Whoever runs them must see the same files under the same
paths, the work folder included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ksame.errors import InputError, UsageError
from ksame.files import make_folder, sha256_of
from ksame.models.finisher import finisher
from ksame.recipes import METHODS
from ksame.scene.config import Job, JobConfig
from ksame.scene.decide import Block, Decision, FileViews, Group, Judge, choose_in_block, collect_views
from ksame.scene.media import DamagePolicy, Media, open_media
from ksame.scene.memory import give_back_memory, one_opencv_thread
from ksame.scene.render import Mask, Renderer
from ksame.scene.store import TRACKS, VIEWS, Store, can_resume, key_of
from ksame.scene.track import People, by_name, find_tracks, join_files, load_tracks, save_tracks, write_tracks
from ksame.scene.track.corrections import renamed
from ksame.scene.track.tracks import Tracks
from ksame.scene.track.tracks_file import read_tracks_of
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

    def tracks(self, file: JobFile) -> Tracks:
        """Return who is where in a file, as it was found or as a person has edited it."""
        edited = self.job.tracks_of(file.source)
        if edited is not None and edited.exists():
            return read_tracks_of(file.media, edited)
        tracks = load_tracks(self.store.place(TRACKS, file.number))
        if tracks is None:
            raise InputError(f"{file}: its tracks are gone from {self.store.folder}. Run again.")
        return tracks

    def people(self, tracks: Sequence[Tracks]) -> People:
        """Tell who is who in all files: by their faces, or by the names in tracks that may have been edited."""
        return join_files(tracks, self.config.tracker.same_person) if self.job.tracks is None else by_name(tracks)

    def edited_paths(self, files: Sequence[JobFile]) -> list[Path]:
        """Return where the tracks of files may be edited."""
        return [path for file in files if (path := self.job.tracks_of(file.source)) is not None]

    def hash_of_edits(self, files: Sequence[JobFile]) -> str:
        """Return a hash of the tracks that may have been edited; empty where there are none."""
        paths = self.edited_paths(files)
        return sha256_of(*paths) if paths else ""

    def renderer(self, source: Path, tracks: Tracks, decisions: Mapping[str, Decision]) -> Renderer:
        """Return what renders the frames of one file."""
        return renderer_for(self.config, self.store.seed, source, tracks, decisions)


def renderer_for(
    config: JobConfig, seed: int, source: Path, tracks: Tracks, decisions: Mapping[str, Decision]
) -> Renderer:
    """Return what renders the frames of a source as a job is told to."""
    network = None if METHODS[config.method].masks else finisher(config.device)
    boxes = {} if config.boxes is None else config.boxes.of(source, tracks.n_frames)
    mask = Mask(config.masking, config.level)
    return Renderer(tracks, decisions, mask, config.span, config.regions, seed, network, boxes)


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
    picture = list(media.frames()) if still else []  # decoded once, though it is gone through twice
    with one_opencv_thread():
        tracks = find_tracks(
            lambda start: picture or media.frames(start),
            media.size,
            None if still else folder,
            run.config.tracker,
            still=still,
            recogniser=run.tools.recogniser,
            map=run.tools.pictures.map,
            progress=run.tools.progress,
        )
    if still:
        save_tracks(tracks, folder)
    give_back_memory()
    run.store.finish(TRACKS, file.number, key)


def write_all_tracks(run: StageRun, files: Sequence[JobFile], tracks: Sequence[Tracks]) -> None:
    """Write the tracks of all files, to be edited, or of none; people have the names that they have in the batch."""
    people = join_files(tracks, run.config.tracker.same_person)
    paths = run.edited_paths(files)
    if len(files) > 1:
        make_folder(paths[0].parent)
    try:
        for index, (file, path) in enumerate(zip(files, paths, strict=True)):
            names = {local: name for (number, local), name in people.names.items() if number == index}
            write_tracks(replace(renamed(run.tracks(file), names), source=file.fingerprint), path)
    except BaseException:
        for path in paths:
            path.unlink(missing_ok=True)
        raise


def view_file(run: StageRun, file: JobFile) -> FileViews:
    """Return what one file shows of everyone: pieces of a few hundred pixels, which lie in the store."""
    run.check(file)
    views = collect_views(
        lambda only: file.media.frames(only=only), run.tracks(file), run.tools.judge, run.config.tracker.detector
    )
    return views.stored(run.store.place(VIEWS, file.number).absolute())


def choose_block(run: StageRun, block: Block) -> list[Group]:
    """Choose the surrogates of some people; the pieces of frames by which they are judged lie in the store."""
    judge = Judge(run.tools.judge, finisher(run.config.device), run.config.cover)
    judged, progress = run.config.judged, run.tools.progress
    return choose_in_block(block, judge, run.tools.pictures, judged=judged, progress=progress)
