"""Runs the stages over files: observe and track every file, decide for everyone, then render and write every file.

This is the only place that runs work in threads: one pool works on files, another on pictures for all of them. Work on
a file waits for work on its pictures, and that waits for nothing. What each stage makes is kept in a :class:`Store`
beside the output, so that an interrupted job can go on; the store is removed when all is done. Nothing stands under a
final name before it is complete.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from ksame.errors import InputError, UsageError
from ksame.files import hash_tree, sha256_of
from ksame.models import SFace
from ksame.models.finisher import finisher
from ksame.progress import Progress, silent
from ksame.recipes import METHODS
from ksame.scene.at_risk import DAMAGED, NOBODY, AtRisk, Shown, shown, stretches, without_faces
from ksame.scene.config import Job, JobConfig
from ksame.scene.decide import Plan, decide, load_plan, save_plan
from ksame.scene.edited import tracks_for
from ksame.scene.frames import Frames
from ksame.scene.media import Media, Output, WorkFolder, check_destination, check_requests, open_media
from ksame.scene.memory import give_back_memory, one_opencv_thread, share_memory
from ksame.scene.render import (
    Mask,
    MaskedInstead,
    Renderer,
    changed_region,
    first_needed,
    rectangle,
    render_frames,
)
from ksame.scene.result import FileResult, JobResult
from ksame.scene.store import OUTPUT, PLAN, TRACKS, Store, can_resume, key_of
from ksame.scene.track import People, find_tracks, join_files, load_tracks, save_tracks, write_tracks
from ksame.scene.track.tracks import Tracks, in_order
from ksame.scene.workers import CancelToken, picture_pool
from ksame.version import __version__

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, eq=False)
class _File:
    """A file of a job, by its number in it."""

    number: int
    output: Path
    media: Media


@dataclass(eq=False)
class _Run:
    """One run of a job: its store, and how work is spread and shown."""

    job: Job
    store: Store
    progress: Progress
    token: CancelToken
    recogniser: SFace
    workers: int
    pictures: Executor

    @property
    def config(self) -> JobConfig:
        return self.job.config

    def inner(self) -> Progress:
        """Return how progress inside one file is shown: only where it is the only one."""
        return self.progress if len(self.job.files) == 1 else self.token.checked

    def map_files(self, work: Callable[[T], U], items: Sequence[T], what: str) -> list[U]:
        """Do something with every item, several at a time; the results are in order."""
        try:
            if len(items) == 1:
                return [work(items[0])]
            with ThreadPoolExecutor(self.workers) as pool:
                pending = [pool.submit(work, item) for item in items]
                try:
                    return [future.result() for future in self.progress(pending, what)]
                except BaseException:
                    self.token.cancel()
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
        finally:
            give_back_memory()


def run(job: Job, *, progress: Progress = silent, on_done: Callable[[JobResult], None] | None = None) -> JobResult:
    """De-identify photographs and recordings.

    Parameters
    ----------
    job : Job
    progress : Progress
    on_done : callable, optional
        Called with the result when all files are written, before the work in progress is removed.

    Raises
    ------
    InputError
        When a single file cannot be read; in a batch such files are left out and named in the result.
    """
    share_memory()
    files, failed = _open(job)
    _check_outputs(job, files)
    store = Store.begin(
        job.work,
        [file.media.fingerprint for file in files],
        job.config.key(),
        job.seed,
        outputs=[output.name for _, output in job.files],
        resume=job.resume,
    )
    workers = job.config.workers or default_workers([file.media.kind for file in files])
    try:
        # Matrices are small here: more threads would only wait busily.
        with picture_pool() as pictures, threadpool_limits(1, "blas"):
            stages = _Run(job, store, progress, CancelToken(), SFace(), workers, pictures)
            result = _run(stages, files, failed)
    except (InputError, UsageError):
        if not job.resume:  # there is nothing in it that the right command could go on with
            store.remove()
        raise
    if on_done is not None:
        on_done(result)
    store.remove()
    return result


def find_people(job: Job, *, progress: Progress = silent) -> tuple[list[tuple[Media, Tracks]], People, dict[Path, str]]:
    """Return who is where in the files of a job, who is who in all of them, and which could not be read.

    Nothing is written but to the job's work folder; its outputs are not looked at.
    """
    files, failed = _open(job)
    workers = job.config.workers or default_workers([file.media.kind for file in files])
    store = Store.begin(job.work, [], "", 0, outputs=[], resume=False)
    with picture_pool() as pictures:
        casts = _track_all(_Run(job, store, progress, CancelToken(), SFace(), workers, pictures), files, failed)
    tracked = [(file.media, casts[file.number]) for file in files if file.number in casts]
    return tracked, join_files([cast for _, cast in tracked], job.config.tracker.same_person), failed


def _run(run: _Run, files: list[_File], failed: dict[Path, str]) -> JobResult:
    casts = _track_all(run, files, failed)
    files = [file for file in files if file.number in casts]
    everyone = join_files([casts[file.number] for file in files], run.config.tracker.same_person)
    run.recogniser.forget()  # deciding loads the recogniser that judges
    plan, key = _decide(run, files, casts, everyone)
    give_back_memory()

    def write(item: tuple[int, _File]) -> FileResult:
        index, file = item
        cast = casts[file.number]
        names = {person.name: everyone.names[index, person.name] for person in cast.people}
        return _write(run, file, cast, names, plan, key_of(key, file.media.fingerprint))

    results = run.map_files(write, list(enumerate(files)), "writing")
    return JobResult(
        tuple(results), failed, plan, everyone, tuple(casts[file.number] for file in files), run.store.seed
    )


def default_workers(kinds: Sequence[str]) -> int:
    """Return how many files are worked on at the same time: a photograph keeps one processor busy, a recording two."""
    processors = os.cpu_count() or 1
    return processors if all(kind == "photograph" for kind in kinds) else max(1, processors // 2)


def _open(job: Job) -> tuple[list[_File], dict[Path, str]]:
    """Open all files; the first error of a single file is raised, those of a batch are collected."""
    files: list[_File] = []
    failed: dict[Path, str] = {}
    for number, (source, output) in enumerate(job.files):
        try:
            files.append(_File(number, output, open_media(source, job.config.damaged)))
        except InputError as error:
            if len(job.files) == 1:
                raise
            failed[source] = str(error)
    if not files:
        raise InputError("None of the files can be read. " + " ".join(failed.values()))
    return files, failed


def _check_outputs(job: Job, files: Sequence[_File]) -> None:
    """Refuse, before any work, outputs that cannot be written and settings without an effect."""
    earlier = Store(job.work, 0, job.resume and can_resume(job.work))
    for file in files:
        force = job.force or earlier.may_replace(file.number)
        check_destination(file.media, file.output, job.config.encoding, force=force)
    check_requests([file.media for file in files], job.config.encoding, job.config.regions)


def _track_all(run: _Run, files: Sequence[_File], failed: dict[Path, str]) -> dict[int, Tracks]:
    """Find everyone in every file; files of a batch that turn out to be damaged are added to ``failed``."""

    def track(file: _File) -> Tracks | InputError:
        try:
            return _track(run, file)
        except InputError as error:
            if len(files) == 1:
                raise
            return error

    with one_opencv_thread():
        tracked = run.map_files(track, files, "detecting faces")
    if run.job.tracks is not None:
        run.store.expect("tracks", sha256_of(run.job.tracks))
    casts = {}
    for file, cast in zip(files, tracked, strict=True):
        if isinstance(cast, InputError):
            failed[file.media.path] = str(cast)
        else:
            casts[file.number] = cast
    if not casts:
        raise InputError("None of the files can be read. " + " ".join(failed.values()))
    return casts


def _track(run: _Run, file: _File) -> Tracks:
    """Find everyone in one file, or read who is where from tracks that a person has edited."""
    edited, media = run.job.tracks, file.media
    if edited is not None and edited.exists():
        return tracks_for(edited, media)
    key = key_of(media.fingerprint, asdict(run.config.tracker), __version__)
    folder = run.store.place(TRACKS, file.number)
    cast = load_tracks(folder) if run.store.value(TRACKS, file.number, key) is not None else None
    if cast is None:
        still = media.kind == "photograph"
        cast = find_tracks(
            lambda start: Frames(media, start),
            media.size,
            None if still else folder,
            run.config.tracker,
            still=still,
            recogniser=run.recogniser,
            map=run.pictures.map,
            progress=run.inner(),
        )
        if still:
            save_tracks(cast, folder)
        give_back_memory()
        run.store.finish(TRACKS, file.number, key)
    if edited is not None:
        write_tracks(replace(cast, source=media.fingerprint), edited)
        cast = tracks_for(edited, media)
    return cast


def _decide(run: _Run, files: Sequence[_File], casts: Mapping[int, Tracks], everyone: People) -> tuple[Plan, str]:
    """Decide who becomes whom, or read it from the store; return also a hash of what it was decided from."""
    names = [[number, local, name] for (number, local), name in everyone.names.items()]
    edited = None if run.job.tracks is None else sha256_of(run.job.tracks)
    key = key_of(run.config.key(), run.store.seed, [file.media.fingerprint for file in files], edited, names)
    place = run.store.place(PLAN) / "plan.npz"
    if run.store.value(PLAN, 0, key) is not None:
        return load_plan(place), key
    plan = decide(
        [(Frames(file.media), casts[file.number]) for file in files],
        everyone,
        run.config,
        run.store.seed,
        map_files=run.map_files,
        executor=run.pictures,
        progress=run.progress,
    )
    save_plan(plan, place)
    run.store.finish(PLAN, 0, key)
    return plan, key


def _write(run: _Run, file: _File, cast: Tracks, names: Mapping[str, str], plan: Plan, key: str) -> FileResult:
    """Render and write one file; what stands complete under its final name is not written again."""
    people = tuple(sorted(set(names.values()), key=in_order))
    note = run.store.value(OUTPUT, file.number, key)
    if note is not None and hash_tree(file.output) == note["files"]:
        return _result(file, people, note)
    out = run.store.place(OUTPUT, file.number) / "out"
    may_replace = run.store.may_replace(file.number)
    if may_replace and file.output.exists():  # it may have got its name before the interruption, or not
        shutil.rmtree(out, ignore_errors=True)
    config, decisions = run.config, {local: plan.decisions[name] for local, name in names.items()}
    regions = [rectangle(*region) for region in config.regions]
    network = None if METHODS[config.method].masks else finisher(config.device)
    mask = Mask(config.masking, config.level)
    renderer = Renderer(cast, decisions, mask, config.span, regions, run.store.seed, network)
    folder = WorkFolder(out, run.job.resume, key)
    with Output(file.media, file.output, config.encoding, folder, force=run.job.force or may_replace) as output:
        begin = output.next_frame
        times = [float(file.media.timestamp(i).pts * file.media.time_base) for i in range(begin)]
        masked = [mask for i, time in enumerate(times) for mask in renderer.masked_instead(i, time)]
        frames = run.inner()(Frames(file.media, first_needed(begin)), "writing")
        with closing(render_frames(frames, renderer, run.pictures)) as rendered:
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
        run.store.renaming(file.number)
        output.finish()
    masked = [replace(mask, person=names[mask.person]) for mask in masked]
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


def _result(file: _File, people: tuple[str, ...], note: Mapping[str, Any]) -> FileResult:
    """Return what became of a file, from what the store has noted."""
    at_risk = tuple(AtRisk(**risk) for risk in note["at_risk"])
    unchanged = tuple(Shown(**person) for person in note["shown"])
    losses = tuple(note["losses"])
    return FileResult(file.media.path, file.output, note["n_frames"], people, at_risk, note["files"], losses, unchanged)
