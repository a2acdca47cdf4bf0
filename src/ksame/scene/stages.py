"""What is done with one file: a function for each stage, that can be sent to another process or machine.

Each leaves its value in the :class:`Store` and returns little. Whoever runs them must see the same files under the same
paths, the work folder included.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from ksame.errors import InputError, UsageError
from ksame.files import hash_tree
from ksame.models.finisher import finisher
from ksame.recipes import METHODS
from ksame.scene.at_risk import DAMAGED, NOBODY, AtRisk, Shown, shown, stretches, without_faces
from ksame.scene.config import Job, JobConfig
from ksame.scene.decide import Block, Decision, FileViews, Group, Judge, choose_in_block, file_views
from ksame.scene.edited import tracks_for
from ksame.scene.frames import Frames
from ksame.scene.media import (
    CONTAINERS,
    SEGMENT,
    DamagePolicy,
    Frame,
    Media,
    Output,
    OutputFrame,
    Pixels,
    WorkFolder,
    open_media,
    open_part,
)
from ksame.scene.memory import give_back_memory, one_opencv_thread
from ksame.scene.render import (
    Mask,
    MaskedInstead,
    Renderer,
    changed_region,
    first_needed,
    rectangle,
    render_frames,
)
from ksame.scene.result import FileResult
from ksame.scene.store import OUTPUT, TRACKS, VIEWS, Store, can_resume, key_of
from ksame.scene.track import find_tracks, load_tracks, save_tracks
from ksame.scene.track.tracks import Tracks, in_order
from ksame.scene.workers import CancelledError, Tools
from ksame.version import __version__

_LARGE = 16 << 20  # bytes of a frame after which memory is given back at once: holes between such frames add up


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


@dataclass(frozen=True, eq=False)
class WriteTask:
    """A file to be written, what becomes of whom in it, their names in the batch, and what all of it is made from."""

    file: JobFile
    decisions: Mapping[str, Decision]
    names: Mapping[str, str]
    key: str
    segment_length: int = SEGMENT  # frames

    def __str__(self) -> str:
        return str(self.file)


@dataclass(frozen=True, eq=False)
class PartTask:
    """Some segments, by their numbers, of a recording that is to be written."""

    whole: WriteTask
    segments: range

    def __str__(self) -> str:
        return f"{self.whole}, frames from {self.segments.start * self.whole.segment_length} on"


def track_file(run: StageRun, file: JobFile) -> None:
    """Find everyone in one file, unless a person has said who is where."""
    run.check(file)
    media = file.media
    if run.job.tracks is not None and run.job.tracks.exists():
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
    if run.job.tracks is not None and run.job.tracks.exists():
        return tracks_for(run.job.tracks, file.media)
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


def write_file(run: StageRun, task: WriteTask) -> FileResult:
    """Render and write one file; what stands complete under its final name is not written again."""
    file, names, decisions, key = task.file, task.names, task.decisions, task.key
    run.check(file)
    people = tuple(sorted(set(names.values()), key=in_order))
    note = run.store.value(OUTPUT, file.number, key)
    if note is not None and hash_tree(file.output) == note["files"]:
        return _result(file, people, note)
    may_replace = run.store.may_replace(file.number)
    folder = _work_folder(run, task)
    if may_replace and file.output.exists():  # it may have got its name before the interruption, or not
        shutil.rmtree(folder.path, ignore_errors=True)
    config, cast = run.config, cast_of(run, file)
    renderer = _renderer(run, cast, decisions)
    with Output(file.media, file.output, config.encoding, folder, force=run.job.force or may_replace) as output:
        begin = output.next_frame
        masked = _write_frames(run, Frames(file.media, first_needed(begin)), renderer, output.write, begin)
        n_frames = output.next_frame
        if n_frames != cast.n_frames:
            raise InputError(
                f"{file.media.path}: it has {n_frames} frames, but tracks for {cast.n_frames}. "
                "Were these tracks made for another recording?"
            )
        times = [float(file.media.timestamp(i).pts * file.media.time_base) for i in range(n_frames)]
        if run.tools.token.cancelled:
            raise CancelledError("stopped while writing")
        run.store.renaming(file.number)
        output.finish()
    earlier = [mask for i in range(begin) for mask in renderer.masked_instead(i, times[i])]
    masked = [replace(mask, person=names[mask.person]) for mask in (*earlier, *masked)]
    black = (MaskedInstead(frame, NOBODY, DAMAGED) for frame in file.media.damaged)
    unchanged = (replace(s, person=names.get(s.person, s.person)) for s in shown(cast, decisions, config.span, times))
    note = {
        "n_frames": n_frames,
        "files": hash_tree(file.output),
        "at_risk": [asdict(risk) for risk in stretches([*black, *masked], times) + without_faces(cast, times)],
        "losses": list(output.losses),
        "shown": [asdict(person) for person in unchanged],
    }
    run.store.finish(OUTPUT, file.number, key, note)
    return _result(file, people, note)


def parts_of(run: StageRun, task: WriteTask, n_frames: int, n_parts: int) -> list[PartTask]:
    """Cut a recording into parts for several workers; none where it is short, or stands complete."""
    file, n_segments = task.file, -(-n_frames // task.segment_length)
    count = min(n_parts, n_segments)
    named = run.store.may_replace(file.number) and file.output.exists()  # by an earlier run of this job
    if count < 2 or file.output.suffix.lower() not in CONTAINERS or named:
        return []
    _work_folder(run, task).prepare(file.media, file.output, run.config.encoding)  # here, not by all of them at once
    edges = [number * n_segments // count for number in range(count + 1)]
    return [PartTask(task, range(first, last)) for first, last in pairwise(edges)]


def render_part(run: StageRun, task: PartTask) -> None:
    """Render some segments of a recording, the same to the bit as where it is rendered from its beginning.

    What stands complete is not rendered again. Whoever writes the file renders what is missing.
    """
    whole, file = task.whole, task.whole.file
    run.check(file)
    cast = cast_of(run, file)
    renderer = _renderer(run, cast, whole.decisions)
    end = min(task.segments.stop * whole.segment_length, cast.n_frames)
    with open_part(file.media, file.output, run.config.encoding, _work_folder(run, whole), task.segments) as writer:
        begin = writer.next_frame
        if begin >= end:
            return
        # One frame more than is written: heads before it are interpolated towards those in it.
        frames = islice(Frames(file.media, first_needed(begin)), end + 1 - first_needed(begin))

        def write(pixels: Pixels, native: VideoFrame | None, touched: NDArray[np.bool_]) -> None:
            writer.write(OutputFrame(pixels, native, touched))

        _write_frames(run, frames, renderer, write, begin, end)


def _work_folder(run: StageRun, task: WriteTask) -> WorkFolder:
    out = run.store.place(OUTPUT, task.file.number) / "out"
    return WorkFolder(out, resume=True, run_key=task.key, segment_length=task.segment_length)


def _renderer(run: StageRun, cast: Tracks, decisions: Mapping[str, Decision]) -> Renderer:
    config = run.config
    regions = [rectangle(*region) for region in config.regions]
    network = None if METHODS[config.method].masks else finisher(config.device)
    mask = Mask(config.masking, config.level)
    return Renderer(cast, decisions, mask, config.span, regions, run.store.seed, network)


def _write_frames(
    run: StageRun,
    frames: Iterable[Frame],
    renderer: Renderer,
    write: Callable[[Pixels, VideoFrame | None, NDArray[np.bool_]], None],
    begin: int,
    end: int | None = None,
) -> list[MaskedInstead]:
    """Render and write frames from number ``begin`` on, and before ``end``; return whoever is masked in them.

    The frames given are those from ``first_needed(begin)`` on.
    """
    masked: list[MaskedInstead] = []
    first = first_needed(begin)
    with closing(render_frames(run.tools.progress(frames, "writing"), renderer, run.tools.pictures)) as rendered:
        for frame, pixels in islice(rendered, begin - first, None if end is None else end - first):
            write(pixels, frame.native, changed_region(renderer, frame, pixels))
            masked += renderer.masked_instead(frame.index, frame.time)
            large = frame.pixels.nbytes > _LARGE
            del frame, pixels  # not held while the next one is made
            if large:
                give_back_memory()
    return masked


def _result(file: JobFile, people: tuple[str, ...], note: Mapping[str, Any]) -> FileResult:
    """Return what became of a file, from what the store has noted."""
    at_risk = tuple(AtRisk(**risk) for risk in note["at_risk"])
    unchanged = tuple(Shown(**person) for person in note["shown"])
    losses = tuple(note["losses"])
    return FileResult(file.source, file.output, note["n_frames"], people, at_risk, note["files"], losses, unchanged)
