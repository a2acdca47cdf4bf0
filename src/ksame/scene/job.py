"""Runs the stages over files: observe and track every file, decide for everyone, then render and write every file.

Files are worked on by a :class:`ksame.scheduling.Scheduler`: in threads of this process, or in others; work on their
pictures is shared by all files of a process, and waits for nothing. What each stage makes is kept in a :class:`Store`
beside the output, so that an interrupted job can go on; the store is removed when all is done. Nothing stands under a
final name before it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from ksame.arrays import ByteArray
from ksame.errors import InputError, UsageError
from ksame.progress import Progress, silent
from ksame.recipes import METHODS
from ksame.scene.config import Job
from ksame.scene.decide import Block, FileViews, Group, Plan, decide, load_plan, save_plan
from ksame.scene.edited import warn_of_edits
from ksame.scene.editing import hash_of_tracks, who_is_who, write_all_tracks
from ksame.scene.frames import Frames
from ksame.scene.media import SEGMENT, Frame, Media, check_destination, check_requests
from ksame.scene.media.output import remove_part
from ksame.scene.memory import give_back_memory, share_memory
from ksame.scene.render import STEP, first_needed, render_frames
from ksame.scene.result import FileResult, JobResult
from ksame.scene.sealing import new_keys
from ksame.scene.stages import JobFile, StageRun, StoredCasts, cast_of, choose_block, track_file, view_file
from ksame.scene.store import KEYS, PLAN, Store, can_resume, key_of
from ksame.scene.track import People
from ksame.scene.track.tracks import Tracks
from ksame.scene.workers import CancelToken, Tools, picture_pool
from ksame.scene.writing import WriteTask, parts_of, render_part, renderer_for, write_file
from ksame.scheduling import Scheduler, open_scheduler
from ksame.vault import Recipients

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, eq=False)
class _Run(StageRun):
    """One run of a job, and how its work is spread and shown."""

    scheduler: Scheduler
    progress: Progress

    def map(self, work: Callable[[StageRun, T], U], items: Sequence[T], what: str) -> list[U | InputError]:
        """Do something with every item, several at a time; see :meth:`ksame.scheduling.Scheduler.map`."""
        # It goes with every item: without tracks, work on one of thousands of files needs none of the others.
        edited = self.job.tracks
        alone = self.job.files[:1]
        job = replace(self.job, files=alone) if edited is None else replace(self.job, tracks=edited.absolute())
        sent = StageRun(job, self.store, self.tools)
        try:
            return self.scheduler.map(
                partial(work, sent), items, what, progress=self.progress, stop=self.tools.token.cancel
            )
        finally:
            give_back_memory()


@contextmanager
def _running(job: Job, store: Store, files: Sequence[JobFile], progress: Progress) -> Iterator[_Run]:
    """Give a run with everything that works for it; what still does at the end is stopped."""
    workers = job.config.workers or default_workers([file.media.kind for file in files])
    token = CancelToken(store.folder / "running").begin()
    try:
        # Matrices are small here: more threads would only wait busily.
        with (
            open_scheduler(job.config.scheduler, workers) as scheduler,
            picture_pool() as pictures,
            threadpool_limits(1, "blas"),
        ):
            tools = Tools(token, pictures, progress if len(job.files) == 1 else None)
            yield _Run(job, store, tools, scheduler, progress)
    finally:
        token.cancel()


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
    files, failed = check_job(job)
    store = Store.begin(
        job.work,
        [file.fingerprint for file in files],
        key_of(job.config.key(), job.recipients) if job.recipients else job.config.key(),
        job.seed,
        outputs=[output.name for _, output in job.files],
        resume=job.resume,
    )
    for number, (source, _) in enumerate(job.files):
        if source in failed:
            store.note_failed(number, failed[source])
    try:
        with _running(job, store, files, progress) as stages:
            result = _run(stages, files, failed)
    except (InputError, UsageError):
        if not job.resume:  # there is nothing in it that the right command could go on with
            store.remove()
        raise
    if on_done is not None:
        on_done(result)
    store.remove()
    return result


def check_job(job: Job) -> tuple[list[JobFile], dict[Path, str]]:
    """Open all files and check what can be checked before any work; return them, and why others cannot be read."""
    files, failed = _open(job)
    _check_outputs(job, files)
    return files, failed


def find_people(job: Job, *, progress: Progress = silent) -> tuple[list[tuple[Media, Tracks]], People, dict[Path, str]]:
    """Return who is where in the files of a job, who is who in all of them, and which could not be read.

    Nothing is written but to the job's work folder; its outputs are not looked at.
    """
    files, failed = _open(job)
    store = Store.begin(job.work, [], "", 0, outputs=[], resume=False)
    with _running(job, store, files, progress) as stages:
        found = _track_all(stages, files, failed)
    tracked = [(file.media, cast_of(stages, file)) for file in files if file.number in found]
    return tracked, who_is_who(stages, [cast for _, cast in tracked]), failed


def preview(job: Job, source: Path, index: int, *, progress: Progress = silent) -> tuple[Frame, ByteArray]:
    """Return one frame of a file of the job, and what becomes of it: the very pixels that are written.

    What was found and decided stays in the job's work folder, so that the next frame takes less time. The job's outputs
    are not looked at. Raises UsageError where there is no such frame.
    """
    files, failed = _open(job)
    named = ([file.fingerprint for file in files], job.config.key(), job.seed)
    try:
        store = Store.begin(job.work, *named, outputs=[], resume=True)
    except UsageError:  # what is there was made of something else
        store = Store.begin(job.work, *named, outputs=[], resume=False)
    with _running(job, store, files, progress) as run:
        casts = _track_all(run, files, failed)
        files, everyone, plan, _ = _decide(run, [file for file in files if file.number in casts], casts, failed)
        for number, file in enumerate(files):
            if file.source == source:
                cast = cast_of(run, file)
                decisions = {p.name: plan.decisions[everyone.names[number, p.name]] for p in cast.people}
                begin = first_needed(index)
                frames = islice(Frames(file.media, begin), STEP + 1)  # heads between two depend on the second
                with closing(
                    render_frames(frames, renderer_for(run, source, cast, decisions), run.tools.pictures)
                ) as made:
                    for frame, pixels in made:
                        if frame.index == index:
                            return frame, pixels
                raise UsageError(f"{source.name} has no frame {index}.")
    raise InputError(failed.get(source) or f"{source} is no file of this job.")


def _run(run: _Run, files: list[JobFile], failed: dict[Path, str]) -> JobResult:
    casts = _track_all(run, files, failed)
    files = [file for file in files if file.number in casts]
    run.tools.forget()
    files, everyone, plan, key = _decide(run, files, casts, failed)
    run.tools.forget()
    give_back_memory()
    keys = _keys(run, plan, key)
    if keys:
        key = key_of(key, {name: value["recipient"] for name, value in keys.items()})
    tasks = []
    for index, file in enumerate(files):
        names = {person.name: everyone.names[index, person.name] for person in casts[file.number].people}
        decisions = {local: plan.decisions[name] for local, name in names.items()}
        public = {name: str(value["recipient"]) for name, value in keys.items()}
        tasks.append(WriteTask(file, decisions, names, key_of(key, file.fingerprint), SEGMENT, public))
    workers = run.scheduler.n_elsewhere
    parts = [part for task in tasks for part in parts_of(run, task, casts[task.file.number].n_frames, workers)]
    if parts:  # what fails is tried again, and told, where the file is written
        run.map(render_part, parts, "rendering")
    results: dict[int, FileResult] = {}
    for index, result in enumerate(run.map(write_file, tasks, "writing")):
        if isinstance(result, InputError):
            remove_part(files[index].output)
        else:
            results[index] = replace(result, source=files[index].source, output=files[index].output)
        _note(run, files[index], result, failed)
    _require_one(results, failed)
    if len(results) < len(files):  # nobody is hidden among people who are not published
        everyone = everyone.only(results)
        plan = plan.only(everyone.people)
    kept = StoredCasts(run, tuple(files[index] for index in results))
    return JobResult(tuple(results.values()), failed, plan, everyone, kept, run.store.seed, keys)


def _keys(run: _Run, plan: Plan, key: str) -> Mapping[str, Mapping[str, Any]]:
    """Make a key for everybody whose originals are sealed, or take those of the interrupted run; none without a vault.

    What is kept of a secret key is what was wrapped for the recipients: nothing that this machine could open.
    """
    if not run.job.recipients:
        return {}
    key = key_of(key, run.job.recipients, sorted(plan.decisions))
    keys = run.store.value(KEYS, 0, key)
    if keys is None:
        keys = new_keys(plan.decisions, Recipients(run.job.recipients))
        run.store.finish(KEYS, 0, key, keys)
    return keys


def _note(run: _Run, file: JobFile, result: object, failed: dict[Path, str]) -> None:
    """Note why a file of a batch could not be used; that of a single one is raised."""
    if not isinstance(result, InputError):
        return
    if len(run.job.files) == 1:
        raise result
    failed[file.source] = str(result)
    run.store.note_failed(file.number, str(result))


def _require_one(files: Mapping[int, object], failed: Mapping[Path, str]) -> None:
    if not files:
        raise InputError("None of the files can be read. " + " ".join(failed.values()))


def default_workers(kinds: Sequence[str]) -> int:
    """Return how many files are worked on at the same time: a photograph keeps one processor busy, a recording two."""
    processors = os.cpu_count() or 1
    return processors if all(kind == "photograph" for kind in kinds) else max(1, processors // 2)


def _open(job: Job) -> tuple[list[JobFile], dict[Path, str]]:
    """Open all files; the first error of a single file is raised, those of a batch are collected."""
    files: list[JobFile] = []
    failed: dict[Path, str] = {}
    for number, (source, output) in enumerate(job.files):
        file = JobFile(number, source, output, job.config.damaged)
        try:
            files.append(file.opened())
        except InputError as error:
            if len(job.files) == 1:
                raise
            failed[source] = str(error)
    if not files:
        raise InputError("None of the files can be read. " + " ".join(failed.values()))
    return files, failed


def _check_outputs(job: Job, files: Sequence[JobFile]) -> None:
    """Refuse, before any work, outputs that cannot be written and settings without an effect."""
    earlier = Store(job.work, 0) if job.resume and can_resume(job.work) else None
    for file in files:
        force = job.force or (earlier is not None and earlier.may_replace(file.number))
        check_destination(file.media, file.output, job.config.encoding, force=force)
    check_requests([file.media for file in files], job.config.encoding, job.config.regions)
    if job.config.boxes is not None:
        job.config.boxes.check({file.source: file.media.size for file in files})


def _track_all(run: _Run, files: Sequence[JobFile], failed: dict[Path, str]) -> dict[int, Tracks]:
    """Find everyone in every file; files of a batch that turn out to be damaged are added to ``failed``.

    Their meshes stay in the store: those of thousands of files would fill the memory.
    """
    casts = {}
    for file, result in zip(files, run.map(track_file, files, "detecting faces"), strict=True):
        _note(run, file, result, failed)
        if not isinstance(result, InputError):
            casts[file.number] = cast_of(run, file).without_meshes()
    _require_one(casts, failed)
    if run.job.tracks is None:
        return casts
    tracked = [file for file in files if file.number in casts]
    if not run.job.edited:
        write_all_tracks(run, tracked, [casts[file.number] for file in tracked])
        casts = {file.number: cast_of(run, file).without_meshes() for file in tracked}
    for file in tracked:
        warn_of_edits(run.job.tracks_of(file.source) or run.job.tracks, cast_of(run, file))
    run.store.expect("tracks", hash_of_tracks(run, tracked))
    return casts


def _decide(
    run: _Run, files: list[JobFile], casts: Mapping[int, Tracks], failed: dict[Path, str]
) -> tuple[list[JobFile], People, Plan, str]:
    """Decide who becomes whom, or read it from the store; return also a hash of what it was decided from.

    Files that can no longer be read are left out of those returned, and added to ``failed``.
    """
    views: dict[int, FileViews] = {}
    while True:
        everyone = who_is_who(run, [casts[file.number] for file in files])
        names = [[number, local, name] for (number, local), name in everyone.names.items()]
        key = key_of(
            run.config.key(), run.store.seed, [file.fingerprint for file in files], hash_of_tracks(run, files), names
        )
        place = run.store.place(PLAN) / "plan.npz"
        if run.store.value(PLAN, 0, key) is not None:
            return files, everyone, load_plan(place), key
        if views or METHODS[run.config.method].masks:
            break
        for file, result in zip(files, run.map(view_file, files, "reading faces"), strict=True):
            _note(run, file, result, failed)
            if not isinstance(result, InputError):
                views[file.number] = result
        _require_one(views, failed)
        files = [file for file in files if file.number in views]  # who is who may have changed with that
    plan = decide(
        [views[file.number] for file in files if views],
        everyone,
        run.config,
        run.store.seed,
        recogniser=run.tools.judge,
        executor=run.tools.pictures,
        progress=run.progress,
        map_blocks=partial(_choose_elsewhere, run) if run.scheduler.n_elsewhere else None,
    )
    save_plan(plan, place)
    run.store.finish(PLAN, 0, key)
    return files, everyone, plan, key


def _choose_elsewhere(run: _Run, blocks: Sequence[Block]) -> list[list[Group]]:
    """Choose the surrogates of all blocks, several at a time; nobody is left out."""
    chosen = []
    for groups in run.map(choose_block, blocks, "choosing surrogates"):
        if isinstance(groups, InputError):
            raise groups
        chosen.append(groups)
    return chosen
