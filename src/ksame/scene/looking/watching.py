"""Pass 1: look at every frame once, and tell who was where."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise, zip_longest
from pathlib import Path

import numpy as np

from ksame.errors import InputError
from ksame.faces.faceset import FloatArray
from ksame.models import SFace
from ksame.progress import Track as Progress
from ksame.progress import silent
from ksame.scene.looking.confirming import Verdict
from ksame.scene.looking.cuts import CutFinder
from ksame.scene.looking.detecting import ALL, STILL, Search, Share, search, search_still
from ksame.scene.looking.faces import N_BEST, Face
from ksame.scene.looking.filling import Plan, plan, write_points
from ksame.scene.looking.following import Eyes, Follower, Moment
from ksame.scene.looking.joining import Stretch, join, mean_embedding
from ksame.scene.looking.options import Frame, Looking
from ksame.scene.looking.storage import BOX, Place, Spool, finish, give_back_memory, new_arrays, tracks_of
from ksame.scene.looking.threads import one_opencv_thread
from ksame.scene.sightings import Cast, Person, Track, in_order

_AGREEING = 3  # frames in which a doubtful detection must be seen to count
_RECOGNISED = 3  # of the best pictures of a track, by which people are told apart
_WAITING = 200  # pictures kept until a recogniser is asked about them
_TIDY = 96  # frames after which memory is given back
_SHARES = 3  # into which looking for small and for turned faces is divided
_AHEAD = 2  # searches of whole frames that are begun ahead of time


def look(
    frames: Iterable[Frame],
    size: tuple[int, int],
    work: Path | None = None,
    options: Looking | None = None,
    *,
    still: bool = False,
    recogniser: SFace | None = None,
    track: Progress = silent,
) -> Cast:
    """Find everyone in a photograph or a recording.

    Memory does not grow with the length of the recording where ``work`` is given.

    Parameters
    ----------
    frames : iterable of Frame
        In order, numbered from 0; gone through once.
    size : (int, int)
        Width and height of the frames.
    work : Path, optional
        Folder for what is seen. The finished cast is kept there, for :func:`load_cast`; an unfinished one is begun
        anew. None keeps all in memory.
    options : Looking, optional
    still : bool
        A photograph: small and turned faces are looked for at once, and every face is somebody else.
    recogniser : SFace, optional
        Tells people apart. Whoever has other work for it afterwards need not load it again.
    track : Track
        Shows progress.

    Returns
    -------
    cast : Cast
    """
    options = options or Looking()
    if still:
        options = replace(options, doubtful=min(options.doubtful, STILL), low=min(options.low, STILL))
    growing = None
    if work is not None:
        finish(work, None)
        growing = work / "growing"
        shutil.rmtree(growing, ignore_errors=True)
        growing.mkdir(parents=True)
    # Whole frames are searched in one thread of their own: a search takes much memory. OpenCV gets no threads beside
    # these: with two, a picture is resized no sooner, for half as much work again.
    with (
        one_opencv_thread(),
        ThreadPoolExecutor(1, "scout") as scout,
        ThreadPoolExecutor(options.threads, "follower") as pool,
    ):
        watcher = _Watcher(size, growing, options, scout, pool, recogniser or SFace(), still=still)
        for frame in track(frames, "looking"):
            watcher.read(frame)
        watcher.end()
    found = _finished(watcher, work)  # after the threads gave their networks back
    if not still:  # the next photograph needs as much again
        give_back_memory()
    if growing is not None:
        shutil.rmtree(growing, ignore_errors=True)
    return found


@dataclass(eq=False)
class _Pending:
    """A frame that was read and waits to be looked at."""

    moment: Moment
    cut: bool
    searched: Future[Search] | None = None
    coarse: bool = False  # whether it is searched for larger faces only


@dataclass(eq=False)
class _Ended:
    """A face that is no longer followed."""

    face: Face
    shot: int
    pictures: list[tuple[int, float]] = field(default_factory=list)  # frame and quality
    embeddings: FloatArray = field(default_factory=lambda: np.empty((0, 128)))

    @property
    def confirmed(self) -> bool:
        """Whether it surely is a face."""
        return self.face.verdict is Verdict.FACE


class _Watcher:
    def __init__(
        self,
        size: tuple[int, int],
        growing: Path | None,
        options: Looking,
        scout: Executor,
        pool: Executor,
        recogniser: SFace,
        *,
        still: bool,
    ) -> None:
        self.size, self.options, self.still = size, options, still
        self.n_frames = 0
        self.cuts: list[int] = []
        self.ended: list[_Ended] = []
        self._scout = scout
        self._recogniser = recogniser
        self._eyes = Eyes(options)
        self._follower = Follower(
            self._eyes, pool, lambda number: Spool(None if growing is None else growing / f"{number}.rows")
        )
        self._finder = CutFinder()
        self._pending: deque[_Pending] = deque()
        self._time = -np.inf  # of the frame before
        self._shot = 0  # number of the first frame of the shot that is being read

    def read(self, frame: Frame) -> None:
        """Take a frame."""
        rgb = np.ascontiguousarray(frame.pixels)
        if frame.index != self.n_frames or rgb.shape != (self.size[1], self.size[0], 3) or rgb.dtype != np.uint8:
            raise InputError(
                f"Expected frame {self.n_frames} as 8-bit RGB of {self.size[0]}x{self.size[1]} pixels. "
                f"Got frame {frame.index}, {rgb.dtype}, of the shape {rgb.shape}."
            )
        cut = self._finder.is_cut(rgb)
        if cut:
            self._search(self._pending[-1], last=True)  # who was in the last frames of a shot must not be missed
            self._shot = frame.index
        pending = _Pending(Moment(frame.index, rgb, frame.time - self._time < self.options.brief), cut)
        self._time = frame.time
        if (frame.index - self._shot) % self.options.detect_every == 0:
            self._search(pending)
        self._pending.append(pending)
        self.n_frames += 1
        if self.n_frames % _TIDY == 0:
            give_back_memory()
        if len(self._pending) > _AHEAD * self.options.detect_every:
            self._look()

    def end(self) -> None:
        """Look at what is left."""
        if self._pending:
            self._search(self._pending[-1], last=True)
        while self._pending:
            self._look()
        self._follower.cut()
        self._take_ended()

    def _search(self, pending: _Pending, *, last: bool = False) -> None:
        """Begin to search a frame; the last of a shot never coarsely: no later search would find who was left out."""
        if pending.searched is not None and not (last and pending.coarse):
            return
        if self.still:
            pending.searched = self._scout.submit(search_still, self._eyes.detector, pending.moment.rgb)
            return
        options, since = self.options, pending.moment.frame - self._shot
        hard = None
        if options.tiny_every > 0:  # all at once where a shot begins, then share by share, lest all others wait
            shares = max(1, min(_SHARES, options.tiny_every // options.detect_every))
            every = options.detect_every * max(1, options.tiny_every // (options.detect_every * shares))
            if since == 0:
                hard = ALL
            elif since % every == 0:
                hard = Share(since // every % shares, shares)
        pending.coarse = since % options.full_every != 0 and hard is None and not last
        pending.searched = self._scout.submit(
            search, self._eyes.detector, pending.moment.rgb, options, coarse=pending.coarse, hard=hard
        )

    def _look(self) -> None:
        """Look at the frames up to the next that is searched as a whole."""
        if self._pending[0].cut:  # the frame before was searched
            self._follower.cut()
            self._take_ended()
            self.cuts.append(self._pending[0].moment.frame)
        frames, searched = self._block()
        for _ in frames:
            self._pending.popleft()
        if searched is None:
            raise RuntimeError("the last frame that was read was not searched")
        following, next_search = self._block()
        same_shot = next_search is not None and not self._pending[0].cut
        self._follower.advance(frames, searched, following if same_shot else ())
        self._take_ended()

    def _block(self) -> tuple[list[Moment], Future[Search] | None]:
        """Return the frames that wait up to the first that is searched, and that search if there is one.

        Nobody rests in the frame that is searched, to compare what is followed with what is found; nor in the last of
        a shot: no later one could tell where they were.
        """
        frames: list[Moment] = []
        for pending, after in zip_longest(self._pending, list(self._pending)[1:]):
            alert = pending.searched is not None or after is None or after.cut
            frames.append(replace(pending.moment, brief=False) if alert else pending.moment)
            if pending.searched is not None:
                return frames, pending.searched
        return frames, None

    def _take_ended(self) -> None:
        for face in self._follower.closed:
            if face.verdict is Verdict.NO_FACE or not (self.still or _credible(face, self.options)):
                face.spool.drop()
                continue
            self.ended.append(_Ended(face, len(self.cuts)))
        self._follower.closed = []
        if sum(len(one.face.best) for one in self.ended) > _WAITING:
            self.recognise()
            self._recogniser.forget()  # it takes as much memory as all the rest

    def recognise(self) -> None:
        """Have the best pictures of faces that ended recognised, and let the pictures go."""
        for one in self.ended:
            pictures, one.face.best = one.face.best, []
            if pictures and one.confirmed:
                best = pictures[:_RECOGNISED]
                one.embeddings = np.array([self._recogniser.embed(p.pixels, p.points) for p in best])
                one.pictures = [(p.frame, p.quality) for p in pictures]


def _credible(face: Face, options: Looking) -> bool:
    """Tell whether a face was seen surely once, or doubtfully several times."""
    return face.sure >= options.score or face.n_seen >= _AGREEING


def _finished(watcher: _Watcher, work: Path | None) -> Cast:
    """Fill, smooth and join what was seen."""
    if not watcher.still:
        give_back_memory()
    watcher.recognise()
    ended = sorted(watcher.ended, key=lambda e: (e.face.first, e.face.number))
    bounds = list(pairwise([0, *watcher.cuts, watcher.n_frames]))
    plans: list[Plan] = []
    stretches: list[Stretch] = []
    for one in ended:
        face = one.face
        rows = face.spool.rows(face.length)
        plans.append(plan(rows, face.first, bounds[one.shot], watcher.options, confirmed=one.confirmed))
        entry, last = (np.array(rows[i, BOX], dtype=np.float64) for i in (0, -1))
        stretches.append(Stretch(face.first, face.first + face.length, entry, last, one.embeddings, one.shot))
    arrays = new_arrays(sum(len(p) for p in plans), work)
    places, start = [], 0
    for number, (one, p) in enumerate(zip(ended, plans, strict=True), start=1):
        span = slice(start, start + len(p))
        for name in ("boxes", "poses", "blendshapes", "source"):
            arrays[name][span] = getattr(p, name)
        write_points(one.face.spool.rows(one.face.length), p, arrays["points"][span])
        one.face.spool.drop()
        places.append(Place(number, p.first, start, len(p), one.confirmed))
        start += len(p)
    groups = list(range(len(ended))) if watcher.still else join(stretches, watcher.options.same_person)
    names = _names(groups, plans, [one.confirmed for one in ended])
    tracks = tracks_of(arrays, places, names)
    people = _people(names, tracks, stretches, [one.pictures for one in ended])
    cast = Cast(watcher.size, watcher.n_frames, people, tracks, np.array(watcher.cuts, dtype=np.intp))
    if work is not None:
        finish(work, cast)
    return cast


def _names(groups: Sequence[int], plans: Sequence[Plan], confirmed: Sequence[bool]) -> list[str]:
    """Call people P1, P2 and so on, and what is perhaps no face U1 and so on, by how many pixels they are in."""
    amount = dict.fromkeys(groups, 0.0)
    for group, p in zip(groups, plans, strict=True):
        amount[group] += float(np.prod(p.boxes[:, 2:], axis=1).sum())
    order = sorted(amount, key=lambda group: (-amount[group], group))
    known = {group for group, sure in zip(groups, confirmed, strict=True) if sure}
    people = [group for group in order if group in known]
    others = [group for group in order if group not in known]
    names = {group: f"P{i}" for i, group in enumerate(people, 1)} | {
        group: f"U{i}" for i, group in enumerate(others, 1)
    }
    return [names[group] for group in groups]


def _people(
    names: Sequence[str],
    tracks: Sequence[Track],
    stretches: Sequence[Stretch],
    pictures: Sequence[Sequence[tuple[int, float]]],
) -> tuple[Person, ...]:
    people = []
    for name in sorted(set(names), key=in_order):
        mine = [i for i, other in enumerate(names) if other == name]
        best = sorted(
            (-quality, tracks[i].number, frame)
            for i in mine
            for frame, quality in pictures[i]
            if not np.isnan(tracks[i].points[frame - tracks[i].first, 0, 0])
        )
        chosen = tuple((number, frame) for _, number, frame in best[:N_BEST])
        people.append(Person(name, mean_embedding([stretches[i] for i in mine]), chosen))
    return tuple(people)
