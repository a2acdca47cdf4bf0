"""Runs the stages over files: observe and track every file, decide for everyone, then render and write every file.

Files are worked on by a :class:`ksame.scheduling.Scheduler`: in threads of this process, or in others; work on their
pictures is shared by all files of a process, and waits for nothing. What each stage makes is kept in a :class:`Store`
beside the output, so that an interrupted job can go on; the store is removed when all is done. Nothing stands under a
final name before it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
from ksame.scene.media import SEGMENT, Frame, Media, check_destination, check_requests
from ksame.scene.media.output import remove_part
from ksame.scene.memory import give_back_memory, share_memory
from ksame.scene.render import STEP, first_needed, render_frames
from ksame.scene.result import JobResult
from ksame.scene.sealing.casefile import new_keys
from ksame.scene.stages import JobFile, StageRun, choose_block, track_file, view_file, write_all_tracks
from ksame.scene.store import KEYS, PLAN, Store, can_resume, key_of
from ksame.scene.track import People
from ksame.scene.track.edits import warn_of_edits
from ksame.scene.track.tracks import Tracks
from ksame.scene.workers import CancelToken, Tools, picture_pool
from ksame.scene.writing import WriteTask, parts_of, render_part, write_file
from ksame.scheduling import Scheduler, open_scheduler
from ksame.vault import Recipients

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, eq=False)
class _Run(StageRun):
    """One run of a job, how its work is spread and shown, and which of its files could not be used so far."""

    scheduler: Scheduler
    progress: Progress
    failed: dict[Path, str]

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

    def used(self, files: Sequence[JobFile], results: Sequence[U | InputError]) -> dict[int, U]:
        """Return what came of each file, by its number, without those that failed.

        Why a file of a batch could not be used is noted; that of a single one is raised, and that there is none left.
        """
        used = {}
        for file, result in zip(files, results, strict=True):
            if not isinstance(result, InputError):
                used[file.number] = result
                continue
            if len(self.job.files) == 1:
                raise result
            self.failed[file.source] = str(result)
            self.store.note_failed(file.number, str(result))
        _require_any(used, self.failed)
        return used


@contextmanager
def _running(
    job: Job, store: Store, files: Sequence[JobFile], failed: dict[Path, str], progress: Progress
) -> Iterator[_Run]:
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
            yield _Run(job, store, tools, scheduler, progress, failed)
    finally:
        token.cancel()


def run(job: Job, *, progress: Progress = silent, on_done: Callable[[JobResult], None] | None = None) -> JobResult:
    """De-identify photographs and recordings.

    ``on_done`` is called with the result when all files are written, before the work in progress is removed. Raises
    InputError when a single file cannot be read; in a batch such files are left out and named in the result.
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
        with _running(job, store, files, failed, progress) as stages:
            result = _run(stages, files)
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
    with _running(job, store, files, failed, progress) as stages:
        by_number = _track_all(stages, files)
    tracked = [(file.media, stages.tracks(file)) for file in files if file.number in by_number]
    return tracked, stages.people([tracks for _, tracks in tracked]), failed


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
    with _running(job, store, files, failed, progress) as run:
        files, people, plan, _ = _decide(run, files, _track_all(run, files))
        number, file = next(((n, file) for n, file in enumerate(files) if file.source == source), (0, None))
        if file is None:
            raise InputError(failed.get(source) or f"{source} is no file of this job.")
        tracks = run.tracks(file)
        decisions = {p.name: plan.decisions[people.names[number, p.name]] for p in tracks.people}
        frames = islice(file.media.frames(first_needed(index)), STEP + 1)  # heads between two depend on the second
        with closing(render_frames(frames, run.renderer(source, tracks, decisions), run.tools.pictures)) as made:
            for frame, pixels in made:
                if frame.index == index:
                    return frame, pixels
    raise UsageError(f"{source.name} has no frame {index}.")


def _run(run: _Run, files: list[JobFile]) -> JobResult:
    tracks = _track_all(run, files)
    run.tools.forget()
    files, people, plan, key = _decide(run, files, tracks)
    run.tools.forget()
    give_back_memory()
    keys = _keys(run, plan, key)
    public = {name: str(value["recipient"]) for name, value in keys.items()}
    if keys:
        key = key_of(key, public)
    tasks = []
    for index, file in enumerate(files):
        names = {person.name: people.names[index, person.name] for person in tracks[file.number].people}
        decisions = {local: plan.decisions[name] for local, name in names.items()}
        tasks.append(WriteTask(file, decisions, names, key_of(key, file.fingerprint), SEGMENT, public))
    workers = run.scheduler.n_elsewhere
    parts = [part for task in tasks for part in parts_of(run, task, tracks[task.file.number].n_frames, workers)]
    if parts:  # what fails is tried again, and told, where the file is written
        run.map(render_part, parts, "rendering")
    written = run.map(write_file, tasks, "writing")
    for file, result in zip(files, written, strict=True):
        if isinstance(result, InputError):
            remove_part(file.output)
    results = run.used(files, written)
    kept = [index for index, file in enumerate(files) if file.number in results]
    if len(kept) < len(files):  # nobody is hidden among people who are not published
        people = people.only(kept)
        plan = plan.only(people.ordered)
        files = [files[index] for index in kept]
    done = tuple(replace(results[file.number], source=file.source, output=file.output) for file in files)
    return JobResult(done, run.failed, plan, people, lambda index: run.tracks(files[index]), run.store.seed, keys)


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


def _require_any(files: Collection[object], failed: Mapping[Path, str]) -> None:
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
    _require_any(files, failed)
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


def _track_all(run: _Run, files: Sequence[JobFile]) -> dict[int, Tracks]:
    """Find everyone in every file, by its number; files of a batch that turn out to be damaged are left out.

    Their meshes stay in the store: those of thousands of files would fill the memory.
    """
    usable = run.used(files, run.map(track_file, files, "detecting faces"))
    tracked = [file for file in files if file.number in usable]
    tracks = {file.number: run.tracks(file).without_meshes() for file in tracked}
    if run.job.tracks is None:
        return tracks
    if not run.job.edited:
        write_all_tracks(run, tracked, list(tracks.values()))
        tracks = {file.number: run.tracks(file).without_meshes() for file in tracked}
    for file in tracked:
        warn_of_edits(run.job.tracks_of(file.source) or run.job.tracks, run.tracks(file))
    run.store.expect("tracks", run.hash_of_edits(tracked))
    return tracks


def _decide(
    run: _Run, files: Sequence[JobFile], tracks: Mapping[int, Tracks]
) -> tuple[list[JobFile], People, Plan, str]:
    """Decide who becomes whom, or read it from the store; return also a hash of what it was decided from.

    Files without tracks, and those that can no longer be read, are left out of those returned.
    """
    files = [file for file in files if file.number in tracks]
    views: dict[int, FileViews] = {}
    while True:
        people = run.people([tracks[file.number] for file in files])
        names = [[number, local, name] for (number, local), name in people.names.items()]
        key = key_of(
            run.config.key(), run.store.seed, [file.fingerprint for file in files], run.hash_of_edits(files), names
        )
        place = run.store.place(PLAN) / "plan.npz"
        if run.store.value(PLAN, 0, key) is not None:
            return files, people, load_plan(place), key
        if views or METHODS[run.config.method].masks:
            break
        views = run.used(files, run.map(view_file, files, "reading faces"))
        files = [file for file in files if file.number in views]  # who is who may have changed with that
    plan = decide(
        [views[file.number] for file in files if views],
        people,
        run.config,
        run.store.seed,
        recogniser=run.tools.judge,
        executor=run.tools.pictures,
        progress=run.progress,
        map_blocks=partial(_choose_elsewhere, run) if run.scheduler.n_elsewhere else None,
    )
    save_plan(plan, place)
    run.store.finish(PLAN, 0, key)
    return files, people, plan, key


def _choose_elsewhere(run: _Run, blocks: Sequence[Block]) -> list[list[Group]]:
    """Choose the surrogates of all blocks, several at a time; nobody is left out."""
    chosen = []
    for groups in run.map(choose_block, blocks, "choosing surrogates"):
        if isinstance(groups, InputError):
            raise groups
        chosen.append(groups)
    return chosen
