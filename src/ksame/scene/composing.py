"""Pass 2, replace: every face in every frame replaced, masked or, where asked, kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from ksame.faces.faceset import ByteArray, FloatArray
from ksame.heads.head import Cover, Head, Region
from ksame.heads.invention import Invention, invent, taken_away
from ksame.heads.surrogate import Surrogate
from ksame.models.finisher import Finisher, finisher
from ksame.scene.masking import Mask, fill, outline_of
from ksame.scene.media import Frame
from ksame.scene.neutral import neutral_of
from ksame.scene.sightings import NOT_SURE, Cast, How, Sighting

MAX_YAW = 65.0
"""Degrees beyond which a turned head is masked: nothing like it was among what the finisher learned from."""


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


@dataclass(eq=False)
class Composer:
    """Composes the frames of one recording, in order.

    Parameters
    ----------
    cast : Cast
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

    cast: Cast
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
        faces = self.cast.at(frame.index) if self._within(frame.time) else []
        if not faces and not self.regions:
            return frame.pixels
        onto = frame.pixels.copy()
        changed = [face for face in faces if self.plans[face.person].treatment is not Treatment.KEEP]
        heads = [(face, head) for face in changed if (head := self._invention(face)) is not None]
        masked = [face for face in changed if face not in [one for one, _ in heads]]
        if heads:
            outlines = [head.region.outline for _, head in heads] + [outline_of(face)[0] for face in masked]
            hidden = taken_away(onto.shape, [*outlines, *self.regions])
            for _, head in heads:
                invent(onto, hidden, head, self.network or finisher())
        for face in masked:
            mask = Mask() if self._obstacle(face) else self.mask
            mask.apply(onto, face, np.random.default_rng((self.seed, face.frame, face.track)))
        for outline in self.regions:
            fill(onto, outline)
        return onto

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

    def _invention(self, face: Sighting) -> Invention | None:
        """Return what is invented in a face's place; None where it is masked."""
        plan = self.plans[face.person]
        neutral = None if face.points is None else self._neutral(face.track)
        if plan.treatment is not Treatment.REPLACE or self._obstacle(face):
            return None
        if face.points is None or plan.surrogate is None or neutral is None:
            return None
        head = Head.of(face.points)
        return Invention(plan.surrogate.looks, head, neutral, Region.of(head, neutral, plan.cover))

    def _obstacle(self, face: Sighting) -> str:
        """Return why a face must be masked by the plain fill; empty where it need not be."""
        plan = self.plans[face.person]
        if plan.treatment is Treatment.KEEP:
            return ""
        if not face.confirmed:
            return NOT_SURE
        if plan.stands_in:
            return _why(face) or "no surrogate in whom the recogniser does not know the person"
        if plan.treatment is Treatment.MASK:
            return (_why(face) or "no mesh") if face.points is None and self.mask.needs_mesh else ""
        if face.points is None or plan.surrogate is None or self._neutral(face.track) is None:
            return _why(face) or "no frame in which the face was seen well enough"
        if abs(Head.of(face.points).yaw) > MAX_YAW:
            return "turned too far to the side"
        return ""


def _why(face: Sighting) -> str:
    """Say why a face has no mesh; empty where it has one."""
    if face.points is not None:
        return ""
    if face.how is How.FILLED:
        return "not seen, filled in between or beside frames where it was"
    if face.how is How.ADDED:
        return "added by hand, without a mesh"
    return "found, but without a mesh to be believed (profile, small, dark or hidden)"
