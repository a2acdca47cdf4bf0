"""The renderer: every face in every frame replaced, masked or, where asked, kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ksame.arrays import ByteArray, FloatArray
from ksame.heads.covers import Cover
from ksame.heads.drawing import Invention, Looks
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
_TOGETHER = 16  # frames whose heads are planned at once, from one whose number is a multiple on, by choice: for speed
_CACHED = 10 * _TOGETHER  # frames whose plans are kept, by choice: several steps of rendering ask for them


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
        frames: Iterable[Iterable[Face]],
        decisions: Mapping[str, Decision],
        neutral: Callable[[int], FloatArray | None],
        mask: Mask,
    ) -> list[FramePlan]:
        """Plan for the faces of some frames, in each of them those nearest to the camera last.

        Parameters
        ----------
        frames : iterable of iterable of Face
        decisions : mapping of person to Decision
        neutral : callable
            Returns the neutral shape, (478, 3), of whoever a track shows, if it is known.
        mask : Mask
            For whoever is masked on request.
        """
        changed = [[f for f in faces if decisions[f.person].treatment is not Treatment.KEEP] for faces in frames]
        inventions = iter(_inventions([face for faces in changed for face in faces], decisions, neutral, mask))
        plans = []
        for faces in changed:
            heads: dict[int, Invention] = {}
            masked: list[tuple[Face, str]] = []
            for face in faces:
                invention = next(inventions)
                if isinstance(invention, Invention):
                    heads[face.track] = invention
                else:
                    masked.append((face, invention))
            plans.append(cls._of(heads, masked))
        return plans

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
        self._plan_faces = lru_cache(_CACHED // _TOGETHER)(self._make_plans_of_faces)

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
        shown = self.span[0] <= time <= self.span[1]
        plan = self._plan_faces(index // _TOGETHER)[index % _TOGETHER] if shown else FramePlan({}, (), (), ())
        filled = [rectangle(*box) for box in boxes_at(self.regions, time)]
        return plan.filling([*filled, *uncovered(self.boxes.get(index, ()), plan.outlines)])

    def _make_plans_of_faces(self, number: int) -> list[FramePlan]:
        first = number * _TOGETHER
        if first % _FORGET == 0:
            for track in self.tracks.tracks:
                forget_mapped(track.points)
        frames = (self.tracks.at(index) for index in range(first, first + _TOGETHER))
        return FramePlan.of(frames, self.decisions, self._neutral, self.mask)

    def _neutral(self, track: int) -> FloatArray | None:
        """Return the neutral shape of whoever a track shows."""
        if track not in self._neutrals:
            self._neutrals[track] = neutral_of(self._by_number[track])
        return self._neutrals[track]


class _Wanted(NamedTuple):
    """A head that is to be invented."""

    points: FloatArray  # (478, 3): of the mesh
    looks: Looks
    neutral: FloatArray  # (478, 3)
    cover: Cover


def _inventions(
    faces: Iterable[Face],
    decisions: Mapping[str, Decision],
    neutral: Callable[[int], FloatArray | None],
    mask: Mask,
) -> list[Invention | str]:
    """Return what is invented in each face's place, or why it must be masked; empty where a mask was asked for."""
    found = [_wanted(face, decisions[face.person], neutral, mask) for face in faces]
    wanted = [each for each in found if isinstance(each, _Wanted)]
    if not wanted:
        return [each for each in found if not isinstance(each, _Wanted)]
    points, looks, neutrals, covers = zip(*wanted, strict=True)
    heads = Head.of(np.stack(points))
    made = zip(np.abs(heads.yaw) > MAX_YAW, Invention.all(looks, heads, np.stack(neutrals), covers), strict=True)
    results: Iterator[Invention | str] = ("turned too far to the side" if away else one for away, one in made)
    return [next(results) if isinstance(each, _Wanted) else each for each in found]


def _wanted(face: Face, decision: Decision, neutral: Callable[[int], FloatArray | None], mask: Mask) -> _Wanted | str:
    """Return the head that is wanted in a face's place, or why it must be masked; empty where a mask was asked for."""
    if not face.confirmed:
        return NOT_SURE
    if decision.masked_instead:
        return _why_no_mesh(face) or "no surrogate in whom the recogniser does not know the person"
    if decision.treatment is Treatment.MASK:
        return (_why_no_mesh(face) or "no mesh") if face.mesh is None and mask.needs_mesh else ""
    shape = neutral(face.track)
    if face.mesh is None or decision.surrogate is None or shape is None:
        return _why_no_mesh(face) or "no frame in which the face was seen well enough"
    return _Wanted(face.mesh.points, decision.surrogate.looks, shape, decision.cover)


def _why_no_mesh(face: Face) -> str:
    """Say why a face has no mesh; empty where it has one."""
    if face.mesh is not None:
        return ""
    if face.source is Source.INTERPOLATED:
        return "not seen, filled in between or beside frames where it was"
    if face.source is Source.ADDED:
        return "added by hand, without a mesh"
    return "found, but without a mesh to be believed (profile, small, dark or hidden)"
