"""What is done with one file: a function for each stage, that can be sent to another process or machine.

Each leaves its value in the :class:`Store` and returns little. Whoever runs them must see the same files under the same
paths, the work folder included.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from ksame.errors import InputError, UsageError
from ksame.files import hash_tree
from ksame.models.finisher import finisher
from ksame.recipes import METHODS
from ksame.scene.at_risk import DAMAGED, NOBODY, AtRisk, Shown, shown, stretches, without_faces
from ksame.scene.config import Job, JobConfig
from ksame.scene.decide import Decision, FileViews, file_views
from ksame.scene.edited import tracks_for
from ksame.scene.frames import Frames
from ksame.scene.media import DamagePolicy, Media, Output, Voice, WorkFolder, open_media
from ksame.scene.memory import give_back_memory, one_opencv_thread
from ksame.scene.render import (
    Mask,
    MaskedInstead,
    Renderer,
    changed_region,
    first_needed,
    render_frames,
)
from ksame.scene.result import FileResult
from ksame.scene.store import OUTPUT, TRACKS, VIEWS, Store, can_resume, key_of
from ksame.scene.track import find_tracks, load_tracks, save_tracks
from ksame.scene.track.tracks import Tracks, in_order
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


@dataclass(frozen=True, eq=False)
class WriteTask:
    """A file to be written, what becomes of whom in it, their names in the batch, and what all of it is made from."""

    file: JobFile
    decisions: Mapping[str, Decision]
    names: Mapping[str, str]
    key: str

    def __str__(self) -> str:
        return str(self.file)


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
    with one_opencv_thread():
        cast = find_tracks(
            lambda start: Frames(media, start),
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


def view_file(run: StageRun, file: JobFile) -> FileViews:
    """Return what one file shows of everyone: pieces of a few hundred pixels, which lie in the store."""
    run.check(file)
    views = file_views(Frames(file.media), cast_of(run, file), run.tools.judge, run.config)
    return views.stored(run.store.place(VIEWS, file.number).absolute())


def write_file(run: StageRun, task: WriteTask) -> FileResult:
    """Render and write one file; what stands complete under its final name is not written again."""
    file, names, decisions, key = task.file, task.names, task.decisions, task.key
    run.check(file)
    people = tuple(sorted(set(names.values()), key=in_order))
    note = run.store.value(OUTPUT, file.number, key)
    if note is not None and hash_tree(file.output) == note["files"]:
        return _result(file, people, note)
    out = run.store.place(OUTPUT, file.number) / "out"
    may_replace = run.store.may_replace(file.number)
    if may_replace and file.output.exists():  # it may have got its name before the interruption, or not
        shutil.rmtree(out, ignore_errors=True)
    config, cast = run.config, cast_of(run, file)
    network = None if METHODS[config.method].masks else finisher(config.device)
    mask = Mask(config.masking, config.level)
    boxes = {} if config.boxes is None else config.boxes.of(file.source, cast.n_frames)
    renderer = Renderer(cast, decisions, mask, config.span, config.regions, run.store.seed, network, boxes)
    folder = WorkFolder(out, resume=True, run_key=key)
    voice, force = Voice.drawn(run.store.seed), run.job.force or may_replace
    with Output(file.media, file.output, config.encoding, folder, force=force, voice=voice) as output:
        begin = output.next_frame
        masked: list[MaskedInstead] = []
        frames = run.tools.progress(Frames(file.media, first_needed(begin)), "writing")
        with closing(render_frames(frames, renderer, run.tools.pictures)) as rendered:
            for frame, pixels in islice(rendered, begin - first_needed(begin), None):
                output.write(pixels, frame.native, changed_region(renderer, frame, pixels))
                masked += renderer.masked_instead(frame.index, frame.time)
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


def _result(file: JobFile, people: tuple[str, ...], note: Mapping[str, Any]) -> FileResult:
    """Return what became of a file, from what the store has noted."""
    at_risk = tuple(AtRisk(**risk) for risk in note["at_risk"])
    unchanged = tuple(Shown(**person) for person in note["shown"])
    losses = tuple(note["losses"])
    return FileResult(file.source, file.output, note["n_frames"], people, at_risk, note["files"], losses, unchanged)
