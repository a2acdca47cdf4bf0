"""The renderer: every face in every frame replaced, masked or, where asked, kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from ksame.arrays import ByteArray, FloatArray
from ksame.heads.drawing import Invention
from ksame.heads.head import Head
from ksame.heads.invention import FinishedHead, finish, put, taken_away
from ksame.models import Face, Source
from ksame.models.finisher import Finisher, finisher
from ksame.scene.decide import Decision, Treatment, neutral_of
from ksame.scene.media import Frame
from ksame.scene.media.regions import Box, Region, boxes_at
from ksame.scene.render.filling import fill, outline_of, rectangle
from ksame.scene.render.given import uncovered
from ksame.scene.render.masking import Mask
from ksame.scene.track.tracks import NOT_SURE, Tracks

MAX_YAW = 65.0
"""Degrees beyond which a turned head is masked: nothing like it was among what the finisher learned from."""
_CACHED = 64  # frames whose plans are kept, by choice: several steps of rendering ask for them


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
class FramePlan:
    """What becomes of the faces in one frame.

    Attributes
    ----------
    heads : mapping of track to Invention
        Heads to be invented, those nearest to the camera last.
    masked : tuple of (Face, str)
        Faces to be masked, and why they cannot be replaced; empty where a mask was asked for.
    outlines : tuple of ndarray of shape (n, 2)
        All that is taken away.
    filled : tuple of ndarray of shape (n, 2)
        What of it is filled because a person named it.
    """

    heads: Mapping[int, Invention]
    masked: tuple[tuple[Face, str], ...]
    outlines: tuple[FloatArray, ...]
    filled: tuple[FloatArray, ...]


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
    regions : sequence of Region
        Rectangles that are filled, in every frame or for a time, whoever is there.
    seed : int
        For masks with noise.
    boxes : mapping of int to sequence of Box
        By frame; filled as regions are, but where a face that was found is replaced or masked in their place.
    network : Finisher, optional
        Invents heads; the one that comes with ksame by default.
    """

    cast: Tracks
    decisions: Mapping[str, Decision]
    mask: Mask = field(default_factory=Mask)
    span: tuple[float, float] = (0.0, np.inf)
    regions: Sequence[Region] = ()
    seed: int = 0
    network: Finisher | None = None
    boxes: Mapping[int, Sequence[Box]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._tracks = {track.number: track for track in self.cast.tracks}
        self._neutrals: dict[int, FloatArray | None] = {}
        self._plan = lru_cache(_CACHED)(self._make_plan)

    def plan(self, index: int, time: float) -> FramePlan:
        """Return what becomes of the faces of a frame, of which nothing does outside the span, and what is filled."""
        return self._plan(index, time)

    def render(self, frame: Frame) -> ByteArray:
        """Return the new frame, (height, width, 3); the frame itself, not a copy, where nothing changes."""
        return self.compose(frame, {})

    def finish(self, frame: Frame, tracks: Collection[int]) -> dict[int, FinishedHead]:
        """Let the network make the heads of some tracks in a frame; heads outside the picture are left out."""
        plan = self.plan(frame.index, frame.time)
        hidden = taken_away(frame.pixels.shape, plan.outlines)
        network = self.network or finisher()
        made = {track: finish(frame.pixels, hidden, plan.heads[track], network) for track in tracks}
        return {track: head for track, head in made.items() if head is not None}

    def compose(self, frame: Frame, finished: Mapping[int, FinishedHead]) -> ByteArray:
        """Return the new frame, (height, width, 3); heads that are not given as finished are made by the network."""
        plan = self.plan(frame.index, frame.time)
        if not plan.outlines:
            return frame.pixels
        missing = plan.heads.keys() - finished.keys()
        finished = {**finished, **self.finish(frame, missing)} if missing else finished
        out = frame.pixels.copy()
        if plan.heads:
            hidden = taken_away(out.shape, plan.outlines)
            for track, invention in plan.heads.items():
                if track in finished:
                    put(out, hidden, invention.region, finished[track], still=self.cast.n_frames == 1)
        for face, reason in plan.masked:
            mask = Mask() if reason else self.mask
            mask.apply(out, face, np.random.default_rng((self.seed, frame.index, face.track)))
        for outline in plan.filled:
            fill(out, outline)
        return out

    def masked_instead(self, index: int, time: float) -> list[MaskedInstead]:
        """Return who in a frame is masked because they cannot be replaced."""
        return [MaskedInstead(index, face.person, reason) for face, reason in self.plan(index, time).masked if reason]

    def _make_plan(self, index: int, time: float) -> FramePlan:
        heads: dict[int, Invention] = {}
        masked: list[tuple[Face, str]] = []
        for face in self.cast.at(index) if self.span[0] <= time <= self.span[1] else ():
            decision = self.decisions[face.person]
            if decision.treatment is Treatment.KEEP:
                continue
            invention = self._invention(face, decision)
            if isinstance(invention, Invention):
                heads[face.track] = invention
            else:
                masked.append((face, invention))
        outlines = (*(head.region.outline for head in heads.values()), *(outline_of(face)[0] for face, _ in masked))
        filled = [rectangle(*box) for box in boxes_at(self.regions, time)]
        filled += uncovered(self.boxes.get(index, ()), outlines)
        return FramePlan(heads, tuple(masked), (*outlines, *filled), tuple(filled))

    def _neutral(self, track: int) -> FloatArray | None:
        """Return the neutral shape of whoever a track shows."""
        if track not in self._neutrals:
            self._neutrals[track] = neutral_of(self._tracks[track])
        return self._neutrals[track]

    def _invention(self, face: Face, decision: Decision) -> Invention | str:
        """Return what is invented in a face's place, or why it must be masked; empty where a mask was asked for."""
        if not face.confirmed:
            return NOT_SURE
        if decision.masked_instead:
            return _why_no_mesh(face) or "no surrogate in whom the recogniser does not know the person"
        if decision.treatment is Treatment.MASK:
            return (_why_no_mesh(face) or "no mesh") if face.mesh is None and self.mask.needs_mesh else ""
        neutral = self._neutral(face.track)
        if face.mesh is None or decision.surrogate is None or neutral is None:
            return _why_no_mesh(face) or "no frame in which the face was seen well enough"
        head = Head.of(face.mesh.points)
        if abs(head.yaw) > MAX_YAW:
            return "turned too far to the side"
        return Invention.of(decision.surrogate.looks, head, neutral, decision.cover)


def _why_no_mesh(face: Face) -> str:
    """Say why a face has no mesh; empty where it has one."""
    if face.mesh is not None:
        return ""
    if face.source is Source.INTERPOLATED:
        return "not seen, filled in between or beside frames where it was"
    if face.source is Source.ADDED:
        return "added by hand, without a mesh"
    return "found, but without a mesh to be believed (profile, small, dark or hidden)"
