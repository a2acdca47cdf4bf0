"""De-identifying a batch: look at every file, decide for everyone in all of them, then write every file.

Each step leaves its result in a work folder beside the output, so that an interrupted run can go on; the folder is
removed when all is done. Nothing stands under a final name before it is complete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from ksame import __version__
from ksame.errors import InputError, UsageError, seed_number, whole_number
from ksame.heads.head import Cover
from ksame.models import SFace
from ksame.models.finisher import finisher
from ksame.progress import Track, silent
from ksame.scene.choosing import SOMEONE_ELSE, Choice, check_method
from ksame.scene.composing import Composer, Plan, StandIn, composed, first_needed
from ksame.scene.deciding import decide
from ksame.scene.exposure import Shown, shown
from ksame.scene.first_pass import detect_tracks, sourced, tracks_for
from ksame.scene.masking import FILL, MASKS, Mask, rectangle
from ksame.scene.media import Damaged, Encoding, Media, Output, check_destination, check_wishes, open_media
from ksame.scene.memory import give_back_memory, one_opencv_thread, share_memory
from ksame.scene.observe import DetectorConfig
from ksame.scene.plan_storage import load_choice, save_choice
from ksame.scene.risk import DAMAGED, NOBODY, AtRisk, stretches, without_faces
from ksame.scene.running import Brake, Counted, each
from ksame.scene.touched import Touched
from ksame.scene.track import People, TrackerConfig, join_files, write_tracks
from ksame.scene.track.tracks import Tracks
from ksame.scene.work import Finished, Work, hashes, may_replace

MOST_WORKERS = 256
DETECTING = 2
"""Threads that detect faces in one file; the tracks do not depend on it."""


@dataclass(frozen=True)
class Options:
    """How a batch is de-identified.

    Parameters
    ----------
    method : str
        One of ``ksame.scene.choosing.METHODS``.
    k : int
        How many people share a face.
    cover : Cover
        How much of a head is invented.
    level : float, optional
        Strength of a mask.
    keep, only, mask : tuple of str
        People who stay as they are, who alone are replaced, who are masked.
    span : (float, float)
        Seconds between which faces are changed.
    regions : tuple of (x, y, width, height)
        Rectangles that are filled in all frames of all files.
    loop : bool
        Whether a recogniser judges the surrogates.
    detector : DetectorConfig
    tracker : TrackerConfig
    encoding : Encoding
    workers : int, optional
        Files worked on at the same time; by default as many as keep all processors busy.
    device : str
        Where heads are invented: see :data:`ksame.models.runtime.DEVICES`.
    damaged : "refuse" or "mask"
        What becomes of a recording with damaged frames: nothing is written, or these are black.
    """

    method: str = SOMEONE_ELSE
    k: int = 10
    cover: Cover = Cover.HEAD
    level: float | None = None
    keep: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    mask: tuple[str, ...] = ()
    span: tuple[float, float] = (0.0, np.inf)
    regions: tuple[tuple[float, float, float, float], ...] = ()
    loop: bool = True
    detector: DetectorConfig = field(default_factory=DetectorConfig)
    tracker: TrackerConfig = field(default_factory=TrackerConfig)
    encoding: Encoding = field(default_factory=Encoding)
    workers: int | None = None
    device: str = "auto"
    damaged: Damaged = "refuse"

    def __post_init__(self) -> None:
        check_method(self.method, self.k)
        if self.level is not None and self.method not in MASKS:
            raise UsageError(f"{self.method} has no level; levels belong to the masks: {', '.join(MASKS)}.")
        Mask(self.masking, self.level)
        if self.workers is not None:
            whole_number("workers", "Options", self.workers, 1, MOST_WORKERS)
        if not self.span[0] < self.span[1]:
            raise UsageError(f"--from must come before --to. Got {self.span[0]:g} and {self.span[1]:g} seconds.")

    @property
    def masking(self) -> str:
        """The mask for whoever is masked on request."""
        return self.method if self.method in MASKS else FILL


@dataclass(frozen=True)
class Job:
    """One file to be read and one to be written."""

    source: Path
    destination: Path


@dataclass(frozen=True, eq=False)
class Done:
    """What became of one file.

    Attributes
    ----------
    job : Job
    n_frames : int
    people : tuple of str
        Who was found, by their names in the batch.
    at_risk : tuple of AtRisk
        Where faces were masked because they could not be replaced; all of a file in which nobody was found.
    files : mapping of name to SHA-256
        What was written, by names below the folder of the destination.
    losses : tuple of str
        What of the source its output cannot hold.
    shown : tuple of Shown
        Who is left as they are in at least one frame.
    """

    job: Job
    n_frames: int
    people: tuple[str, ...]
    at_risk: tuple[AtRisk, ...]
    files: Mapping[str, str]
    losses: tuple[str, ...] = ()
    shown: tuple[Shown, ...] = ()


@dataclass(frozen=True, eq=False)
class Result:
    """What became of a batch.

    Attributes
    ----------
    done : tuple of Done
    failed : mapping of source to reason
        Files for which nothing was written.
    choice : Choice
    everyone : People
    casts : tuple of Tracks
        Who is where in each file that was written; on disk, and gone with the work in progress.
    seed : int
        Secret.
    """

    done: tuple[Done, ...]
    failed: dict[Path, str]
    choice: Choice
    everyone: People
    casts: tuple[Tracks, ...]
    seed: int

    @property
    def shown(self) -> dict[str, Shown]:
        """Who is left as they are in at least one frame of a file; a sure face where it is one in any of them."""
        known: dict[str, Shown] = {}
        for one in (one for done in self.done for one in done.shown):
            known[one.person] = one if one.confirmed else known.get(one.person, one)
        return known


@dataclass(eq=False)
class _Seen:
    """A file between the passes."""

    job: Job
    number: int
    media: Media
    work: Path
    cast: Tracks


def deidentify_scenes(
    jobs: Sequence[Job],
    options: Options | None = None,
    *,
    work: Path,
    seed: int | None = None,
    tracks: Path | None = None,
    resume: bool = False,
    force: bool = False,
    track: Track = silent,
    on_done: Callable[[Result], None] | None = None,
) -> Result:
    """De-identify photographs and recordings.

    Parameters
    ----------
    jobs : sequence of Job
        Destinations must differ.
    options : Options, optional
    work : Path
        Folder for the work in progress; removed when everything is written.
    seed : int, optional
        For the surrogates. A secret; drawn at random by default.
    tracks : Path, optional
        Tracks of the only file: read instead of looking, if the file exists; written there otherwise.
    resume : bool
        Go on with an interrupted run of the same jobs and options, if there is one.
    force : bool
        Replace destinations that exist.
    track : Track
        Shows progress.
    on_done : callable, optional
        Called with the result when all files are written, before the work in progress is removed.

    Raises
    ------
    InputError
        When a single file cannot be read; in a batch such files are left out and named in the result.
    """
    options = options or Options()
    seed = None if seed is None else seed_number("deidentify_scenes", seed)
    if tracks is not None and len(jobs) != 1:
        raise UsageError("Tracks belong to one file; give them with that file alone.")
    _check_jobs(jobs)
    share_memory()
    media, failed = _opened(jobs, options, work, resume=resume, force=force)
    prints, names = [m.fingerprint for _, _, m in media], [job.destination.name for job in jobs]
    state = Work.begin(work, prints, _key(options, 0), seed, outputs=names, resume=resume)
    try:
        with threadpool_limits(1, "blas"):  # matrices are small here: more threads would only wait busily
            result = _run(media, failed, options, state, tracks, resume=resume, force=force, track=track)
    except (InputError, UsageError):
        if not resume:  # there is nothing in it that the right command could go on with
            state.remove()
        raise
    if on_done is not None:
        on_done(result)
    state.remove()
    return result


def _run(
    media: Sequence[tuple[Job, int, Media]],
    failed: dict[Path, str],
    options: Options,
    state: Work,
    tracks: Path | None,
    *,
    resume: bool,
    force: bool,
    track: Track,
) -> Result:
    brake = Brake()
    recogniser = SFace()
    workers = options.workers or default_workers([source.kind for _, _, source in media])
    options = replace(options, workers=workers)
    seen = _looked(media, state, options, tracks, failed, brake, recogniser, resume=resume, track=track)
    everyone = join_files([one.cast for one in seen], options.tracker.same_person)
    files = [(one.media, one.cast) for one in seen]
    key = _key(options, state.seed)
    plan, basis = state.folder / "plan.npz", _basis(key, seen, everyone, tracks)
    choice = load_choice(plan, basis) if resume else None
    if choice is None:
        choice = decide(files, everyone, options, recogniser, state.seed, brake, track)
        save_choice(choice, plan, basis)
    recogniser.forget()
    give_back_memory()

    def write(one: _Seen) -> Done:
        number = seen.index(one)
        names = {person.name: everyone.names[number, person.name] for person in one.cast.people}
        plans = {local: choice.plans[name] for local, name in names.items()}
        inner = track if len(seen) == 1 else brake.track
        known = state.finished(one.number, one.job.destination) if resume else None
        if known is None:
            known = _write(one, plans, names, options, state, key, resume=resume, force=force, track=inner)
        people = tuple(name for name in everyone.people if name in names.values())
        return Done(one.job, known.n_frames, people, known.at_risk, known.files, known.losses, known.shown)

    done = each(seen, write, workers, brake, track, "replacing")
    return Result(tuple(done), failed, choice, everyone, tuple(one.cast for one in seen), state.seed)


def default_workers(kinds: Sequence[str]) -> int:
    """Return how many files are worked on at the same time: a photograph keeps one processor busy, a recording two."""
    processors = os.cpu_count() or 1
    return processors if all(kind == "photograph" for kind in kinds) else max(1, processors // 2)


def _check_jobs(jobs: Sequence[Job]) -> None:
    if not jobs:
        raise UsageError("There is nothing to de-identify.")
    taken: dict[Path, Path] = {}
    for job in jobs:
        place = job.destination.resolve()
        if place in taken:
            raise UsageError(f"{job.source} and {taken[place]} would both become {job.destination}.")
        if place == job.source.resolve():
            raise UsageError(f"{job.source}: the original would be overwritten. Choose another name.")
        taken[place] = job.source


def _opened(
    jobs: Sequence[Job], options: Options, work: Path, *, resume: bool, force: bool
) -> tuple[list[tuple[Job, int, Media]], dict[Path, str]]:
    """Open all files; the first error of a single file is raised, those of a batch are collected."""
    media: list[tuple[Job, int, Media]] = []
    failed: dict[Path, str] = {}
    for number, job in enumerate(jobs):
        try:
            one = open_media(job.source, options.damaged)
        except InputError as error:
            if len(jobs) == 1:
                raise
            failed[job.source] = str(error)
            continue
        replacing = force or (resume and may_replace(work, number))
        check_destination(one, job.destination, options.encoding, force=replacing)
        media.append((job, number, one))
    if not media:
        raise InputError("None of the files can be read. " + " ".join(failed.values()))
    check_wishes([one for _, _, one in media], options.encoding, options.regions)
    return media, failed


def _key(options: Options, seed: int) -> str:
    """Return a hash of everything that decides the pixels, the software's version included."""
    deciding = {name: value for name, value in asdict(options).items() if name not in ("workers", "device")}
    plain = json.dumps({**deciding, "seed": seed, "version": __version__}, sort_keys=True, default=str)
    return sha256(plain.encode()).hexdigest()


def _basis(key: str, seen: Sequence[_Seen], everyone: People, tracks: Path | None) -> str:
    """Return a hash of everything that decides who becomes whom: options, files, tracks, and who is who."""
    names = [[number, local, name] for (number, local), name in everyone.names.items()]
    edited = None if tracks is None else sha256(tracks.read_bytes()).hexdigest()
    return sha256(json.dumps([key, [one.media.fingerprint for one in seen], edited, names]).encode()).hexdigest()


def _looked(
    media: Sequence[tuple[Job, int, Media]],
    work: Work,
    options: Options,
    tracks: Path | None,
    failed: dict[Path, str],
    brake: Brake,
    recogniser: SFace,
    *,
    resume: bool,
    track: Track,
) -> list[_Seen]:
    """Find out who is where; files of a batch that turn out to be damaged are left out and added to ``failed``."""
    inner = track if len(media) == 1 else brake.track

    def one(item: tuple[Job, int, Media]) -> _Seen | InputError:
        (job, number, source), place = item, work.place(item[1])
        try:
            cast = None if tracks is None or not tracks.exists() else tracks_for(tracks, source)
            if cast is None:
                folder = place / "cast"
                with ThreadPoolExecutor(DETECTING) as pool:
                    options_of = (options.detector, options.tracker)
                    cast = detect_tracks(
                        source, folder, *options_of, recogniser=recogniser, resume=resume, map=pool.map, track=inner
                    )
                give_back_memory()
            if tracks is not None and not tracks.exists():
                write_tracks(sourced(cast, source), tracks)
                cast = tracks_for(tracks, source)
        except InputError as error:
            if len(media) == 1:
                raise
            return error
        place.mkdir(exist_ok=True)
        return _Seen(job, number, source, place, cast)

    with one_opencv_thread():
        found = each(media, one, options.workers or 1, brake, track, "detecting faces")
    if tracks is not None:
        work.remember("tracks", sha256(tracks.read_bytes()).hexdigest())
    failed.update(
        {job.source: str(seen) for (job, _, _), seen in zip(media, found, strict=True) if isinstance(seen, InputError)}
    )
    if not any(isinstance(one, _Seen) for one in found):
        raise InputError("None of the files can be read. " + " ".join(failed.values()))
    return [one for one in found if isinstance(one, _Seen)]


def _write(
    one: _Seen,
    plans: dict[str, Plan],
    names: dict[str, str],
    options: Options,
    work: Work,
    key: str,
    *,
    resume: bool,
    force: bool,
    track: Track,
) -> Finished:
    composer = Composer(
        one.cast,
        plans,
        Mask(options.masking, options.level),
        options.span,
        [rectangle(*region) for region in options.regions],
        work.seed,
        None if options.method in MASKS else finisher(options.device),
    )
    destination = one.job.destination
    force = force or (resume and may_replace(work.folder, one.number))
    touched, place = Touched(composer), one.work / "out"
    with Output(one.media, destination, options.encoding, place, resume=resume, force=force, run_key=key) as output:
        begin = output.next_frame
        frames = track(Counted(one.media, first_needed(begin)), "replacing")
        for frame, pixels in islice(composed(frames, composer), begin - first_needed(begin), None):
            output.write(pixels, frame.native, touched.of(frame, pixels))
        n_frames = output.next_frame
        if n_frames != one.cast.n_frames:
            raise InputError(
                f"{one.job.source}: it has {n_frames} frames, but who is in it is known for {one.cast.n_frames}. "
                "Were these tracks made for another recording?"
            )
        times = [float(one.media.stamp(i).at * one.media.time_base) for i in range(n_frames)]
        work.ending(one.number)
        output.finish()
    stand_ins = (stand_in for i, time in enumerate(times) for stand_in in composer.stand_ins(i, time))
    renamed = (StandIn(s.frame, names[s.person], s.reason) for s in stand_ins)
    black = (StandIn(frame, NOBODY, DAMAGED) for frame in one.media.damaged)
    unchanged = (replace(s, person=names.get(s.person, s.person)) for s in shown(one.cast, plans, options.span, times))
    at_risk = stretches([*black, *renamed], times) + without_faces(one.cast, times)
    finished = Finished(n_frames, hashes(destination), at_risk, output.losses, tuple(unchanged))
    work.done(one.number, finished)
    return finished
