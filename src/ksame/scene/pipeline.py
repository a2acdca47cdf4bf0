"""De-identifying a batch: look at every file, decide for everyone in all of them, then write every file.

Each step leaves its result in a work folder beside the output, so that an interrupted run can go on; the folder is
removed when all is done. Nothing stands under a final name before it is complete.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ksame import __version__
from ksame.errors import InputError, OutputError, UsageError
from ksame.models import SFace
from ksame.progress import Track, silent
from ksame.scene.choosing import SOMEONE_ELSE, Choice, check_method, make_plans
from ksame.scene.composing import Composer, Plan, StandIn
from ksame.scene.looking import Looking, load_cast, look, read_tracks, save_cast
from ksame.scene.looking.storage import give_back_memory
from ksame.scene.masking import FILL, MASKS, Mask, rectangle
from ksame.scene.media import Encoding, Frame, Media, Output, check_destination, open_media
from ksame.scene.people import Everyone, join, treatments
from ksame.scene.preparing import Prepared, References, prepare
from ksame.scene.replacing.identities import Subject, View
from ksame.scene.replacing.rim import Cover
from ksame.scene.sightings import Cast
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.labels import genders

_STATE = "batch.json"
_VIEWS = 6  # of one person over all files, by which surrogates are judged


@dataclass(frozen=True)
class Options:
    """How a batch is de-identified.

    Parameters
    ----------
    method : str
        One of ``ksame.scene.choosing.METHODS``.
    k : int
        How many people share a face.
    cover : Cover, optional
        How much round the face is changed; by default the mildest that the recogniser is lost with.
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
    looking : Looking
    encoding : Encoding
    workers : int
        Files that are worked on at the same time.
    """

    method: str = SOMEONE_ELSE
    k: int = 10
    cover: Cover | None = None
    level: float | None = None
    keep: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    mask: tuple[str, ...] = ()
    span: tuple[float, float] = (0.0, np.inf)
    regions: tuple[tuple[float, float, float, float], ...] = ()
    loop: bool = True
    looking: Looking = field(default_factory=Looking)
    encoding: Encoding = field(default_factory=Encoding)
    workers: int = 1

    def __post_init__(self) -> None:
        check_method(self.method, self.k)
        if self.level is not None and self.method not in MASKS:
            raise UsageError(f"{self.method} has no level; levels belong to the masks: {', '.join(MASKS)}.")
        Mask(self.masking, self.level)
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
    stand_ins : tuple of StandIn
        Faces that were masked because they could not be replaced.
    """

    job: Job
    n_frames: int
    people: tuple[str, ...]
    stand_ins: tuple[StandIn, ...]


@dataclass(frozen=True, eq=False)
class Result:
    """What became of a batch.

    Attributes
    ----------
    done : tuple of Done
    failed : mapping of source to reason
        Files for which nothing was written.
    choice : Choice
    everyone : Everyone
    seed : int
        Secret.
    """

    done: tuple[Done, ...]
    failed: dict[Path, str]
    choice: Choice
    everyone: Everyone
    seed: int


@dataclass(eq=False)
class _Seen:
    """A file between the passes."""

    job: Job
    media: Media
    work: Path
    cast: Cast
    prepared: Prepared | None = None


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
    on_cast: Callable[[Everyone, Sequence[Cast]], None] | None = None,
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
        Tracks of the only file, edited by hand, instead of looking at it again.
    resume : bool
        Go on with an interrupted run of the same jobs and options.
    force : bool
        Replace destinations that exist.
    track : Track
        Shows progress.
    on_cast : callable, optional
        Called with everyone and the casts before anything is replaced.

    Raises
    ------
    InputError
        When a single file cannot be read; in a batch such files are left out and named in the result.
    """
    options = options or Options()
    if tracks is not None and len(jobs) != 1:
        raise UsageError("Tracks belong to one file; give them with that file alone.")
    _check_jobs(jobs)
    media, failed = _opened(jobs, options, force=force)
    seed = _begin(work, [m for _, m in media], options, seed, resume=resume)
    recogniser = SFace()
    seen = _looked(media, work, options, tracks, resume, track)
    everyone = join([one.cast for one in seen], options.looking.same_person)
    if on_cast is not None:
        on_cast(everyone, [one.cast for one in seen])
    wishes = treatments(everyone.people, keep=options.keep, only=options.only, mask=options.mask)
    if options.method not in MASKS:
        _each(seen, lambda one: _prepare(one, recogniser), options.workers, track, "getting to know everyone")
    subjects = subjects_of([one.prepared for one in seen], everyone)
    choice = make_plans(
        wishes,
        subjects,
        recogniser,
        np.random.default_rng(seed),
        method=options.method,
        k=options.k,
        cover=options.cover,
        loop=options.loop,
        track=track,
    )
    del recogniser, subjects  # as large as all that writing takes
    give_back_memory()
    key = _key(options, seed)

    def write(one: _Seen) -> Done:
        number = seen.index(one)
        plans = {person.name: choice.plans[everyone.names[number, person.name]] for person in one.cast.people}
        names = {person.name: everyone.names[number, person.name] for person in one.cast.people}
        inner = track if len(seen) == 1 else silent
        return _write(one, plans, names, options, seed, key, resume=resume, force=force, track=inner)

    done = _each(seen, write, options.workers, track, "replacing")
    shutil.rmtree(work, ignore_errors=True)
    return Result(tuple(done), failed, choice, everyone, seed)


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


def _opened(jobs: Sequence[Job], options: Options, *, force: bool) -> tuple[list[tuple[Job, Media]], dict[Path, str]]:
    """Open all files; the first error of a single file is raised, those of a batch are collected."""
    media: list[tuple[Job, Media]] = []
    failed: dict[Path, str] = {}
    for job in jobs:
        try:
            one = open_media(job.source)
        except InputError as error:
            if len(jobs) == 1:
                raise
            failed[job.source] = str(error)
            continue
        check_destination(one, job.destination, options.encoding, force=force)
        media.append((job, one))
    if not media:
        raise InputError("None of the files can be read. " + " ".join(failed.values()))
    return media, failed


def _key(options: Options, seed: int) -> str:
    """Return a hash of everything that decides the pixels, the software's version included."""
    plain = json.dumps({**asdict(options), "seed": seed, "version": __version__}, sort_keys=True, default=str)
    return sha256(plain.encode()).hexdigest()


def _begin(work: Path, media: Sequence[Media], options: Options, seed: int | None, *, resume: bool) -> int:
    """Make the work folder, or check that an earlier one is for the same; return the seed."""
    state = {"fingerprints": [one.fingerprint for one in media], "options": _key(options, 0)}
    file = work / _STATE
    if resume and file.exists():
        try:
            old = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            old = {}
        if {name: old.get(name) for name in state} != state or (seed is not None and seed != old.get("seed")):
            raise UsageError(
                f"{work}: the interrupted run was with other files or options. Repeat its command with --resume, or "
                "leave --resume out to begin anew."
            )
        return int(old["seed"])
    shutil.rmtree(work, ignore_errors=True)
    chosen = secrets.randbits(63) if seed is None else seed
    try:
        work.mkdir(parents=True)
        work.chmod(0o700)
        part = work / f"{_STATE}.part"
        part.write_text(json.dumps({**state, "seed": chosen}), encoding="utf-8")
        part.replace(file)
    except OSError as error:
        raise OutputError(f"{work}: cannot be written ({error.strerror}). Choose another output folder.") from error
    return chosen


def _looked(
    media: Sequence[tuple[Job, Media]],
    work: Path,
    options: Options,
    tracks: Path | None,
    resume: bool,
    track: Track,
) -> list[_Seen]:
    def one(item: tuple[int, tuple[Job, Media]]) -> _Seen:
        number, (job, source) = item
        place = work / f"{number:06d}"
        if tracks is not None:
            cast = read_tracks(tracks)
            if cast.size != source.size:
                raise InputError(f"{tracks}: made for pictures of {cast.size}, but {job.source} has {source.size}.")
            return _Seen(job, source, place, cast)
        folder = place / "cast"
        earlier = load_cast(folder) if resume else None
        if earlier is not None:
            return _Seen(job, source, place, earlier)
        frames, inner = _Counted(source), track if len(media) == 1 else silent
        if source.kind != "photograph":
            return _Seen(job, source, place, look(frames, source.size, folder, options.looking, track=inner))
        cast = look(frames, source.size, None, options.looking, still=True, track=inner)
        save_cast(cast, folder)
        return _Seen(job, source, place, cast)

    return _each(list(enumerate(media)), one, options.workers, track, "looking")


class _Counted:
    """The frames of a recording, with a hint of how many there are."""

    def __init__(self, media: Media, start: int = 0) -> None:
        self._media = media
        self._start = start

    def __iter__(self) -> Iterator[Frame]:
        return self._media.frames(self._start)

    def __length_hint__(self) -> int:
        return max(0, self._media.n_frames - self._start)


def _each(items: Sequence[Any], work: Callable[[Any], Any], workers: int, track: Track, what: str) -> list[Any]:
    """Do something with every item, several at a time, in order."""
    if len(items) == 1:
        return [work(items[0])]
    with ThreadPoolExecutor(max(1, workers)) as pool:
        pending = [pool.submit(work, item) for item in items]
        try:
            return [one.result() for one in track(pending, what)]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _prepare(one: _Seen, recogniser: SFace) -> None:
    names = {person.name for person in one.cast.people}
    still = one.media.kind == "photograph"
    folder = None if still else one.work / "references"
    one.prepared = prepare(one.media.frames(), one.cast, recogniser, people=names, folder=folder)


def subjects_of(files: Sequence[Prepared | None], everyone: Everyone) -> list[Subject]:
    """Gather views and codes of everyone over all files of a batch, in its order."""
    model = face_model()
    subjects = []
    for name in everyone.people:
        views: list[View] = []
        codes = []
        for number, local in everyone.keys(name):
            prepared = files[number]
            if prepared is not None and prepared.views.get(local):
                views += prepared.views[local]
                codes.append(prepared.codes[local])
        if views:
            code = np.mean(codes, axis=0)
            woman = bool(genders(model, code[None])[0] == "F")
            born, tone = (float(model.predicted(code[None], label)[0]) for label in ("born", "tone"))
            subjects.append(Subject(name, woman, born, tone, code, tuple(views[:_VIEWS])))
    return subjects


def _write(
    one: _Seen,
    plans: dict[str, Plan],
    names: dict[str, str],
    options: Options,
    seed: int,
    key: str,
    *,
    resume: bool,
    force: bool,
    track: Track,
) -> Done:
    composer = Composer(
        one.cast,
        plans,
        References() if one.prepared is None else one.prepared.references,
        Mask(options.masking, options.level),
        options.span,
        [rectangle(*region) for region in options.regions],
        seed,
    )
    with Output(
        one.media, one.job.destination, options.encoding, one.work / "out", resume=resume, force=force, run_key=key
    ) as output:
        for frame in track(_Counted(one.media, output.next_frame), "replacing"):
            output.write(composer.compose(frame))
        n_frames = output.next_frame
        times = [float(one.media.stamp(i).at * one.media.time_base) for i in range(n_frames)]
        output.finish()
    stand_ins = [stand_in for i, time in enumerate(times) for stand_in in composer.stand_ins(i, time)]
    renamed = tuple(StandIn(s.frame, names[s.person], s.reason) for s in stand_ins)
    return Done(one.job, n_frames, tuple(sorted(set(names.values()))), renamed)
