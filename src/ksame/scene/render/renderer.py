"""The renderer: every face in every frame replaced, masked or, where asked, kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from ksame.arrays import ByteArray, FloatArray
from ksame.heads.between import FinishedHead, between
from ksame.heads.head import Head, Region, wearing
from ksame.heads.invention import Invention, invent, taken_away
from ksame.models import Face, Source
from ksame.models.finisher import Finisher, Image, finisher
from ksame.scene.decide import Decision, Treatment, neutral_of
from ksame.scene.media import Frame
from ksame.scene.render.filling import fill, outline_of
from ksame.scene.render.masking import Mask
from ksame.scene.track.tracks import NOT_SURE, Tracks

MAX_YAW = 65.0
"""Degrees beyond which a turned head is masked: nothing like it was among what the finisher learned from."""
_MAX_GAP = 0.045  # seconds between frames, at most, for heads to be interpolated: 24 frames per second, with room
_CACHED = 256  # heads in frames whose regions are kept, by choice: rendering and changed_region both ask for them


@dataclass(frozen=True)
class MaskedInstead:
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
class _PlacedHead:
    """A head to be invented: its track, and its points in the square, (478, 2), in sides of it."""

    track: int
    invention: Invention
    points: FloatArray


@dataclass(frozen=True, eq=False)
class Keyframe:
    """A rendered frame, and the heads that the network made for it.

    Attributes
    ----------
    index : int
    time : float
    pixels : ndarray of shape (height, width, 3)
    heads : mapping of track to FinishedHead
    """

    index: int
    time: float
    pixels: ByteArray
    heads: Mapping[int, FinishedHead]


@dataclass(eq=False)
class Renderer:
    """Renders the frames of one recording, in any order; what it returns depends on nothing else.

    Parameters
    ----------
    cast : Tracks
    decisions : mapping of person to Decision
        For everyone in the cast.
    mask : Mask
        For whoever is masked on request; whoever cannot be replaced gets the plain fill.
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
    decisions: Mapping[str, Decision]
    mask: Mask = field(default_factory=Mask)
    span: tuple[float, float] = (0.0, np.inf)
    regions: Sequence[FloatArray] = ()
    seed: int = 0
    network: Finisher | None = None

    def __post_init__(self) -> None:
        self._tracks = {track.number: track for track in self.cast.tracks}
        self._neutrals: dict[int, FloatArray | None] = {}
        self.head_at = lru_cache(_CACHED)(self._head_at)

    def render(self, frame: Frame) -> ByteArray:
        """Return the new frame, (height, width, 3); the frame itself, not a copy, where nothing changes."""
        return self.keyframe(frame).pixels

    def keyframe(self, frame: Frame) -> Keyframe:
        """Return the new frame, all heads made by the network."""
        return self._render(frame, lambda _: None)

    def in_between(self, frame: Frame, before: Keyframe, after: Keyframe) -> ByteArray:
        """Return a new frame between two others; heads that are like theirs are interpolated."""
        share = (frame.index - before.index) / (after.index - before.index)
        close = after.time - before.time <= _MAX_GAP * (after.index - before.index)

        def interpolated(head: _PlacedHead) -> Image | None:
            first, last = before.heads.get(head.track), after.heads.get(head.track)
            if not close or first is None or last is None:
                return None
            return between(first, head.points, last, share)

        return self._render(frame, interpolated).pixels

    def masked_instead(self, index: int, time: float) -> list[MaskedInstead]:
        """Return who in a frame is masked because they cannot be replaced."""
        return [
            MaskedInstead(index, face.person, reason)
            for face in self.faces_at(index, time)
            if (reason := self._obstacle(face))
        ]

    def faces_at(self, index: int, time: float) -> list[Face]:
        """Return the faces of a frame that lies within the span."""
        return self.cast.at(index) if self.span[0] <= time <= self.span[1] else []

    def _render(self, frame: Frame, interpolated: Callable[[_PlacedHead], Image | None]) -> Keyframe:
        faces = self.faces_at(frame.index, frame.time)
        if not faces and not self.regions:
            return Keyframe(frame.index, frame.time, frame.pixels, {})
        out = frame.pixels.copy()
        changed = [face for face in faces if self.decisions[face.person].treatment is not Treatment.KEEP]
        heads = [head for face in changed if (head := self._placed(face, frame.index)) is not None]
        masked = [face for face in changed if face.track not in {head.track for head in heads}]
        finished: dict[int, FinishedHead] = {}
        if heads:
            outlines = [head.invention.region.outline for head in heads] + [outline_of(face)[0] for face in masked]
            hidden = taken_away(out.shape, [*outlines, *self.regions])
            for head in heads:
                square = invent(
                    out,
                    hidden,
                    head.invention,
                    self.network or finisher(),
                    still=self.cast.n_frames == 1,
                    finished=interpolated(head),
                )
                if square is not None:
                    finished[head.track] = FinishedHead(head.points, square)
        for face in masked:
            mask = Mask() if self._obstacle(face) else self.mask
            mask.apply(out, face, np.random.default_rng((self.seed, frame.index, face.track)))
        for outline in self.regions:
            fill(out, outline)
        return Keyframe(frame.index, frame.time, out, finished)

    def _neutral(self, track: int) -> FloatArray | None:
        """Return the neutral shape of whoever a track shows."""
        if track not in self._neutrals:
            self._neutrals[track] = neutral_of(self._tracks[track])
        return self._neutrals[track]

    def _head_at(self, track: int, frame: int) -> tuple[Head, Region] | None:
        """Return the head of a track in a frame, and its region; None without a mesh."""
        face, neutral = self._tracks[track].at(frame), self._neutral(track)
        if face is None or face.mesh is None or neutral is None:
            return None
        head = Head.of(face.mesh.points)
        return head, Region.of(head, neutral, self.decisions[face.person].cover)

    def _placed(self, face: Face, frame: int) -> _PlacedHead | None:
        """Return what is invented in a face's place; None where it is masked."""
        decision, neutral = self.decisions[face.person], self._neutral(face.track)
        if decision.treatment is not Treatment.REPLACE or self._obstacle(face):
            return None
        located = self.head_at(face.track, frame)
        if decision.surrogate is None or neutral is None or located is None:
            return None
        head, region = located
        points = head.place(wearing(decision.surrogate.looks.shape, head, neutral))[:, :2]
        in_square = points @ region.matrix[:, :2].T + region.matrix[:, 2]
        return _PlacedHead(face.track, Invention(decision.surrogate.looks, head, neutral, region), in_square)

    def _obstacle(self, face: Face) -> str:
        """Return why a face must be masked by the plain fill; empty where it need not be."""
        decision = self.decisions[face.person]
        if decision.treatment is Treatment.KEEP:
            return ""
        if not face.confirmed:
            return NOT_SURE
        if decision.masked_instead:
            return _why_no_mesh(face) or "no surrogate in whom the recogniser does not know the person"
        if decision.treatment is Treatment.MASK:
            return (_why_no_mesh(face) or "no mesh") if face.mesh is None and self.mask.needs_mesh else ""
        if face.mesh is None or decision.surrogate is None or self._neutral(face.track) is None:
            return _why_no_mesh(face) or "no frame in which the face was seen well enough"
        if abs(Head.of(face.mesh.points).yaw) > MAX_YAW:
            return "turned too far to the side"
        return ""


def _why_no_mesh(face: Face) -> str:
    """Say why a face has no mesh; empty where it has one."""
    if face.mesh is not None:
        return ""
    if face.source is Source.INTERPOLATED:
        return "not seen, filled in between or beside frames where it was"
    if face.source is Source.ADDED:
        return "added by hand, without a mesh"
    return "found, but without a mesh to be believed (profile, small, dark or hidden)"
