"""The renderer: every face in every frame replaced, masked or, where asked, kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from ksame.scene.memory import forget_mapped
from ksame.scene.render.filling import fill, outline_of, rectangle
from ksame.scene.render.given import uncovered
from ksame.scene.render.masking import Mask
from ksame.scene.track.tracks import NOT_SURE, Tracks

MAX_YAW = 65.0
"""Degrees beyond which a turned head is masked: nothing like it was among what the finisher learned from."""
_FORGET = 256  # frames after which their meshes are let go of, by choice: those of an hour take 500 MB
_CACHED = 160  # frames whose plans are kept, by choice: several steps of rendering ask for them


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

    @classmethod
    def of(
        cls,
        faces: Iterable[Face],
        decisions: Mapping[str, Decision],
        neutral: Callable[[int], FloatArray | None],
        mask: Mask,
    ) -> FramePlan:
        """Plan for the faces of a frame, those nearest to the camera last.

        Parameters
        ----------
        faces : iterable of Face
        decisions : mapping of person to Decision
        neutral : callable
            Returns the neutral shape, (478, 3), of whoever a track shows, if it is known.
        mask : Mask
            For whoever is masked on request.
        """
        heads: dict[int, Invention] = {}
        masked: list[tuple[Face, str]] = []
        for face in faces:
            decision = decisions[face.person]
            if decision.treatment is Treatment.KEEP:
                continue
            invention = _invention(face, decision, neutral, mask)
            if isinstance(invention, Invention):
                heads[face.track] = invention
            else:
                masked.append((face, invention))
        return cls._of(heads, masked)

    @classmethod
    def _of(cls, heads: Mapping[int, Invention], masked: Sequence[tuple[Face, str]]) -> FramePlan:
        outlines = (*(head.region.outline for head in heads.values()), *(outline_of(face)[0] for face, _ in masked))
        return cls(heads, tuple(masked), outlines, ())

    def filling(self, outlines: Sequence[FloatArray]) -> FramePlan:
        """Return the plan with outlines, each (n, 2), that are filled whatever is there."""
        return replace(self, outlines=(*self.outlines, *outlines), filled=tuple(outlines))

    def masking(self, more: Sequence[tuple[Face, str]]) -> FramePlan:
        """Return the plan with some more faces masked, and why; the heads of their tracks are not invented."""
        tracks = {face.track for face, _ in more}
        heads = {track: head for track, head in self.heads.items() if track not in tracks}
        return self._of(heads, (*self.masked, *more))

    def compose(
        self,
        pixels: ByteArray,
        finished: Mapping[int, FinishedHead],
        mask: Mask,
        noise: Callable[[Face], np.random.Generator],
        *,
        still: bool = False,
    ) -> ByteArray:
        """Return the new frame, (height, width, 3): finished heads put in, and masks; regions are left to the caller.

        Parameters
        ----------
        pixels : ndarray of shape (height, width, 3)
            The frame; it is not changed.
        finished : mapping of track to FinishedHead
            Heads outside the picture may be left out.
        mask : Mask
            For whoever is masked on request; whoever cannot be replaced gets the plain fill.
        noise : callable
            Returns the generator for the mask of a face.
        still : bool
            Whether it is a photograph.
        """
        out = pixels.copy()
        if self.heads:
            hidden = taken_away(out.shape, self.outlines)
            for track, invention in self.heads.items():
                if track in finished:
                    put(out, hidden, invention.region, finished[track], still=still)
        for face, reason in self.masked:
            (Mask() if reason else mask).apply(out, face, noise(face))
        return out


@dataclass(eq=False)
class Renderer:
    """Renders the frames of one recording, in any order; what it returns depends on nothing else.

    Parameters
    ----------
    tracks : Tracks
    decisions : mapping of person to Decision
        For everyone in the tracks.
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

    tracks: Tracks
    decisions: Mapping[str, Decision]
    mask: Mask = field(default_factory=Mask)
    span: tuple[float, float] = (0.0, np.inf)
    regions: Sequence[Region] = ()
    seed: int = 0
    network: Finisher | None = None
    boxes: Mapping[int, Sequence[Box]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_number = {track.number: track for track in self.tracks.tracks}
        self._neutrals: dict[int, FloatArray | None] = {}
        self._plan = lru_cache(_CACHED)(self._make_plan)

    def plan(self, index: int, time: float) -> FramePlan:
        """Return what becomes of the faces of a frame, of which nothing does outside the span, and what is filled."""
        return self._plan(index, time)

    def person(self, track: int) -> str:
        """Return whom a track shows."""
        return self._by_number[track].person

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
        out = plan.compose(
            frame.pixels,
            finished,
            self.mask,
            lambda face: np.random.default_rng((self.seed, frame.index, face.track)),
            still=self.tracks.n_frames == 1,
        )
        for outline in plan.filled:
            fill(out, outline)
        return out

    def masked_instead(self, index: int, time: float) -> list[MaskedInstead]:
        """Return who in a frame is masked because they cannot be replaced."""
        return [MaskedInstead(index, face.person, reason) for face, reason in self.plan(index, time).masked if reason]

    def _make_plan(self, index: int, time: float) -> FramePlan:
        if index % _FORGET == 0:
            for track in self.tracks.tracks:
                forget_mapped(track.points)
        faces = self.tracks.at(index) if self.span[0] <= time <= self.span[1] else ()
        plan = FramePlan.of(faces, self.decisions, self._neutral, self.mask)
        filled = [rectangle(*box) for box in boxes_at(self.regions, time)]
        return plan.filling([*filled, *uncovered(self.boxes.get(index, ()), plan.outlines)])

    def _neutral(self, track: int) -> FloatArray | None:
        """Return the neutral shape of whoever a track shows."""
        if track not in self._neutrals:
            self._neutrals[track] = neutral_of(self._by_number[track])
        return self._neutrals[track]


def _invention(
    face: Face, decision: Decision, neutral: Callable[[int], FloatArray | None], mask: Mask
) -> Invention | str:
    """Return what is invented in a face's place, or why it must be masked; empty where a mask was asked for."""
    if not face.confirmed:
        return NOT_SURE
    if decision.masked_instead:
        return _why_no_mesh(face) or "no surrogate in whom the recogniser does not know the person"
    if decision.treatment is Treatment.MASK:
        return (_why_no_mesh(face) or "no mesh") if face.mesh is None and mask.needs_mesh else ""
    shape = neutral(face.track)
    if face.mesh is None or decision.surrogate is None or shape is None:
        return _why_no_mesh(face) or "no frame in which the face was seen well enough"
    head = Head.of(face.mesh.points)
    if abs(head.yaw) > MAX_YAW:
        return "turned too far to the side"
    return Invention.of(decision.surrogate.looks, head, shape, decision.cover)


def _why_no_mesh(face: Face) -> str:
    """Say why a face has no mesh; empty where it has one."""
    if face.mesh is not None:
        return ""
    if face.source is Source.INTERPOLATED:
        return "not seen, filled in between or beside frames where it was"
    if face.source is Source.ADDED:
        return "added by hand, without a mesh"
    return "found, but without a mesh to be believed (profile, small, dark or hidden)"
