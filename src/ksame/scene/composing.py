"""Pass 2, replace: every face in every frame replaced, masked or, where asked, kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum

import cv2
import numpy as np

from ksame.faces.faceset import ByteArray, FloatArray
from ksame.heads.head import Cover, Head, Region
from ksame.heads.invention import Invention, invent, taken_away
from ksame.heads.surrogate import Surrogate
from ksame.models import Face, Source
from ksame.models.finisher import Finisher, Image, finisher
from ksame.scene.masking import Mask, fill, outline_of
from ksame.scene.media import Frame
from ksame.scene.neutral import neutral_of
from ksame.scene.track.tracks import NOT_SURE, Tracks

MAX_YAW = 65.0
"""Degrees beyond which a turned head is masked: nothing like it was among what the finisher learned from."""


STEP = 3
"""In one of so many frames, the network makes every head; in the others, those that do not keep calm."""
_BRIEF = 0.045  # seconds from frame to frame, at most, for heads to be mixed from those before and after
# How far points may move meanwhile, and off a straight line, in sides of the square. At 0.02 and 0.006, a talking head
# was less steady (1.25 times its own jitter, not 1.14), and its blinks less its own (correlation 0.84, not 0.90).
_MOVED, _BENT = 0.012, 0.0025
_AHEAD = 2  # keys that are made ahead of the frames before them
_ROOM = 120 << 20  # bytes that the frames may take which wait for each other


class Treatment(str, Enum):
    """What becomes of a person."""

    REPLACE = "replace"
    MASK = "mask"
    KEEP = "keep"


@dataclass(frozen=True, eq=False)
class Plan:
    """What becomes of one person in a whole batch.

    Attributes
    ----------
    treatment : Treatment
    surrogate : Surrogate, optional
        Who they become, if they are replaced.
    cover : Cover
        How much of the head is invented.
    stands_in : bool
        Whether the mask was not asked for: the person could not be replaced safely.
    """

    treatment: Treatment
    surrogate: Surrogate | None = None
    cover: Cover = Cover.HEAD
    stands_in: bool = False


@dataclass(frozen=True)
class StandIn:
    """A face that was masked because it could not be replaced.

    Attributes
    ----------
    frame : int
    person : str
    reason : str
    """

    frame: int
    person: str
    reason: str


@dataclass(frozen=True, eq=False)
class _Placed:
    """A head to be invented: its track, and where its points lie in the square, (478, 2), in sides of it."""

    track: int
    invention: Invention
    places: FloatArray


@dataclass(frozen=True, eq=False)
class _Made:
    """A head that was invented: where its points lay in the square, and the square that the network made."""

    places: FloatArray
    made: Image


@dataclass(frozen=True, eq=False)
class Key:
    """A new frame, and by track the heads that the network made for it.

    Attributes
    ----------
    index : int
    time : float
    pixels : ndarray of shape (height, width, 3)
    heads : mapping of track to what was made
    """

    index: int
    time: float
    pixels: ByteArray
    heads: Mapping[int, _Made]


def _calm(first: FloatArray, now: FloatArray, last: FloatArray, share: float) -> bool:
    """Tell whether a head hardly changes between two frames, and only in a straight line; places in its square."""
    moved = np.hypot(*(last - first).T).max()
    bent = np.hypot(*(now - first - share * (last - first)).T).max()
    return bool(moved < _MOVED and bent < _BENT)


@dataclass(eq=False)
class Composer:
    """Composes the frames of one recording, in order.

    Parameters
    ----------
    cast : Tracks
    plans : mapping of person to Plan
        For everyone in the cast.
    mask : Mask
        What masks whoever is masked on request; whoever cannot be replaced gets the plain fill.
    span : (float, float)
        Seconds between which faces are changed.
    regions : sequence of ndarray of shape (n, 2)
        Outlines that are filled in every frame.
    seed : int
        For masks with noise.
    network : Finisher, optional
        Invents heads; the one that comes with ksame by default.
    """

    cast: Tracks
    plans: Mapping[str, Plan]
    mask: Mask = field(default_factory=Mask)
    span: tuple[float, float] = (0.0, np.inf)
    regions: Sequence[FloatArray] = ()
    seed: int = 0
    network: Finisher | None = None

    def __post_init__(self) -> None:
        self._tracks = {track.number: track for track in self.cast.tracks}
        self._neutrals: dict[int, FloatArray | None] = {}

    def compose(self, frame: Frame) -> ByteArray:
        """Return the new frame."""
        return self.key(frame).pixels

    def key(self, frame: Frame) -> Key:
        """Return the new frame, and its heads for the frames beside it."""
        return self._composed(frame, lambda _: None)

    def between(self, frame: Frame, before: Key, after: Key) -> ByteArray:
        """Return a new frame between two others; heads that are calm meanwhile are mixed from theirs."""
        share = (frame.index - before.index) / (after.index - before.index)
        brief = after.time - before.time <= _BRIEF * (after.index - before.index)

        def mixed(head: _Placed) -> Image | None:
            first, last = before.heads.get(head.track), after.heads.get(head.track)
            if not brief or first is None or last is None or not _calm(first.places, head.places, last.places, share):
                return None
            if first.made.shape != last.made.shape:
                return None
            return np.asarray(cv2.addWeighted(first.made, 1 - share, last.made, share, 0), dtype=np.float32)

        return self._composed(frame, mixed).pixels

    def _composed(self, frame: Frame, known: Callable[[_Placed], Image | None]) -> Key:
        faces = self.cast.at(frame.index) if self._within(frame.time) else []
        if not faces and not self.regions:
            return Key(frame.index, frame.time, frame.pixels, {})
        onto = frame.pixels.copy()
        changed = [face for face in faces if self.plans[face.person].treatment is not Treatment.KEEP]
        heads = [head for face in changed if (head := self._invention(face)) is not None]
        masked = [face for face in changed if face.track not in {head.track for head in heads}]
        made: dict[int, _Made] = {}
        if heads:
            outlines = [head.invention.region.outline for head in heads] + [outline_of(face)[0] for face in masked]
            hidden = taken_away(onto.shape, [*outlines, *self.regions])
            for head in heads:
                square = invent(
                    onto,
                    hidden,
                    head.invention,
                    self.network or finisher(),
                    still=self.cast.n_frames == 1,
                    made=known(head),
                )
                if square is not None:
                    made[head.track] = _Made(head.places, square)
        for face in masked:
            mask = Mask() if self._obstacle(face) else self.mask
            mask.apply(onto, face, np.random.default_rng((self.seed, frame.index, face.track)))
        for outline in self.regions:
            fill(onto, outline)
        return Key(frame.index, frame.time, onto, made)

    def stand_ins(self, index: int, time: float) -> list[StandIn]:
        """Return who in a frame is masked because they cannot be replaced."""
        faces = self.cast.at(index) if self._within(time) else []
        return [StandIn(index, face.person, reason) for face in faces if (reason := self._obstacle(face))]

    def _within(self, time: float) -> bool:
        return self.span[0] <= time <= self.span[1]

    def _neutral(self, track: int) -> FloatArray | None:
        """Return the neutral shape of whoever a track shows."""
        if track not in self._neutrals:
            self._neutrals[track] = neutral_of(self._tracks[track])
        return self._neutrals[track]

    def _invention(self, face: Face) -> _Placed | None:
        """Return what is invented in a face's place; None where it is masked."""
        plan = self.plans[face.person]
        neutral = None if face.mesh is None else self._neutral(face.track)
        if plan.treatment is not Treatment.REPLACE or self._obstacle(face):
            return None
        if face.mesh is None or plan.surrogate is None or neutral is None:
            return None
        head = Head.of(face.mesh.points)
        region = Region.of(head, neutral, plan.cover)
        places = face.mesh.points[:, :2] @ region.matrix[:, :2].T
        return _Placed(face.track, Invention(plan.surrogate.looks, head, neutral, region), places + region.matrix[:, 2])

    def _obstacle(self, face: Face) -> str:
        """Return why a face must be masked by the plain fill; empty where it need not be."""
        plan = self.plans[face.person]
        if plan.treatment is Treatment.KEEP:
            return ""
        if not face.confirmed:
            return NOT_SURE
        if plan.stands_in:
            return _why(face) or "no surrogate in whom the recogniser does not know the person"
        if plan.treatment is Treatment.MASK:
            return (_why(face) or "no mesh") if face.mesh is None and self.mask.needs_mesh else ""
        if face.mesh is None or plan.surrogate is None or self._neutral(face.track) is None:
            return _why(face) or "no frame in which the face was seen well enough"
        if abs(Head.of(face.mesh.points).yaw) > MAX_YAW:
            return "turned too far to the side"
        return ""


def first_needed(index: int) -> int:
    """Return the frame from which on :func:`composed` must be given frames to make the one of ``index``."""
    return index - index % STEP


def composed(frames: Iterable[Frame], composer: Composer, workers: int = 2) -> Iterator[tuple[Frame, ByteArray]]:
    """Yield all frames of a recording and what becomes of them, in order; some are worked on ahead of time.

    Parameters
    ----------
    frames : iterable of Frame
        Without gaps; the first has an index that :func:`first_needed` returns. A frame comes out the same wherever
        they begin.
    composer : Composer
    workers : int
        Threads.
    """
    with ThreadPoolExecutor(workers) as pool:
        blocks: deque[tuple[Sequence[Frame], Future[Key]]] = deque()
        done: deque[Future[list[tuple[Frame, ByteArray]]]] = deque()

        def finish() -> None:
            frames, key = blocks.popleft()
            done.append(pool.submit(_block, composer, frames, key, blocks[0][1] if blocks else None))

        try:
            for block in _blocks(frames):
                blocks.append((block, pool.submit(composer.key, block[0])))
                if len(blocks) > _AHEAD:
                    finish()
                if len(done) > 1:
                    yield from done.popleft().result()
            while blocks:
                finish()
            while done:
                yield from done.popleft().result()
        finally:
            for _, key in blocks:
                key.cancel()
            for one in done:
                one.cancel()


def _blocks(frames: Iterable[Frame]) -> Iterator[list[Frame]]:
    """Yield frames in blocks that begin with a key; one by one where they are too large to wait for each other."""
    block: list[Frame] = []
    for frame in frames:
        large = frame.pixels.nbytes * 2 * STEP * (_AHEAD + 1) > _ROOM
        if block and (large or frame.index % STEP == 0):
            yield block
            block = []
        block.append(frame)
    if block:
        yield block


def _block(
    composer: Composer, frames: Sequence[Frame], key: Future[Key], following: Future[Key] | None
) -> list[tuple[Frame, ByteArray]]:
    """Return the frames of a block and the new ones; its key, and that of the next, were begun before."""
    first, last = key.result(), None if following is None else following.result()
    rest = [composer.compose(frame) if last is None else composer.between(frame, first, last) for frame in frames[1:]]
    return list(zip(frames, [first.pixels, *rest], strict=True))


def _why(face: Face) -> str:
    """Say why a face has no mesh; empty where it has one."""
    if face.mesh is not None:
        return ""
    if face.source is Source.INTERPOLATED:
        return "not seen, filled in between or beside frames where it was"
    if face.source is Source.ADDED:
        return "added by hand, without a mesh"
    return "found, but without a mesh to be believed (profile, small, dark or hidden)"
