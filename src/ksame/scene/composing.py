"""Pass 2, replace: every face in every frame replaced, masked or, where asked, kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from ksame.faces.faceset import ByteArray, FloatArray
from ksame.scene.masking import Mask, fill
from ksame.scene.media import Frame
from ksame.scene.preparing import References
from ksame.scene.replacing.face import Fitted, fit_surrogate, paint
from ksame.scene.replacing.rim import Cover
from ksame.scene.replacing.surrogate import Surrogate
from ksame.scene.sightings import Cast, How, Sighting


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
        How much round the face is changed.
    stands_in : bool
        Whether the mask was not asked for: the person could not be replaced safely.
    """

    treatment: Treatment
    surrogate: Surrogate | None = None
    cover: Cover = Cover.FACE
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
    references : References
    mask : Mask
        What masks whoever is masked on request; whoever cannot be replaced gets the plain fill.
    span : (float, float)
        Seconds between which faces are changed.
    regions : sequence of ndarray of shape (n, 2)
        Outlines that are filled in every frame.
    seed : int
        For masks with noise.
    """

    cast: Cast
    plans: Mapping[str, Plan]
    references: References
    mask: Mask = field(default_factory=Mask)
    span: tuple[float, float] = (0.0, np.inf)
    regions: Sequence[FloatArray] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        self._fitted: dict[int, Fitted] = {}

    def compose(self, frame: Frame) -> ByteArray:
        """Return the new frame."""
        faces = self.cast.at(frame.index) if self._within(frame.time) else []
        if not faces and not self.regions:
            return frame.pixels
        onto = frame.pixels.copy()
        for face in faces:
            self._treat(frame.pixels, onto, face)
        for outline in self.regions:
            fill(onto, outline)
        for number in [n for n in self._fitted if self._ended(n, frame.index)]:
            del self._fitted[number]
        return onto

    def stand_ins(self, index: int, time: float) -> list[StandIn]:
        """Return who in a frame is masked because they cannot be replaced."""
        faces = self.cast.at(index) if self._within(time) else []
        return [StandIn(index, face.person, reason) for face in faces if (reason := self._obstacle(face))]

    def _within(self, time: float) -> bool:
        return self.span[0] <= time <= self.span[1]

    def _ended(self, number: int, frame: int) -> bool:
        return not any(track.number == number and track.end > frame for track in self.cast.tracks)

    def _obstacle(self, face: Sighting) -> str:
        """Return why a face must be masked by the plain fill; empty where it need not be."""
        plan = self.plans[face.person]
        if plan.treatment is Treatment.KEEP:
            return ""
        if plan.stands_in:
            return _why(face) or "no surrogate in whom the recogniser does not know the person"
        if plan.treatment is Treatment.MASK:
            return (_why(face) or "no mesh") if face.points is None and self.mask.needs_mesh else ""
        if face.points is None or plan.surrogate is None or face.track not in self.references:
            return _why(face) or "no frame in which the face was seen well enough"
        return ""

    def _treat(self, pixels: ByteArray, onto: ByteArray, face: Sighting) -> None:
        plan = self.plans[face.person]
        if plan.treatment is Treatment.KEEP:
            return
        obstacle = bool(self._obstacle(face))
        if obstacle or plan.treatment is Treatment.MASK:
            mask = Mask() if obstacle else self.mask
            mask.apply(onto, face, np.random.default_rng((self.seed, face.frame, face.track)))
        elif face.points is not None and plan.surrogate is not None:
            if face.track not in self._fitted:
                self._fitted[face.track] = fit_surrogate(plan.surrogate, self.references[face.track], plan.cover)
            paint(pixels, face.points, self._fitted[face.track], onto, plan.cover)


def _why(face: Sighting) -> str:
    """Say why a face has no mesh; empty where it has one."""
    if face.points is not None:
        return ""
    if face.how is How.FILLED:
        return "not seen, filled in between or beside frames where it was"
    if face.how is How.ADDED:
        return "added by hand, without a mesh"
    return "found, but without a mesh to be believed (profile, small, dark or hidden)"
