"""A face in a picture: one type from the detector to the audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from ksame.arrays import FloatArray
from ksame.models.pose import Pose


class Source(IntEnum):
    """How a face came to be known in a frame."""

    DETECTED = 0
    """Found by a detector, or meshed where it was expected."""
    INTERPOLATED = 1
    """Between, before or after frames where it was detected: its place is computed."""
    ADDED = 2
    """Put in by hand."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """A face as 478 points."""

    points: FloatArray  # (478, 3): x and y in the picture, z away from the viewer about the head's centre, in pixels
    presence: float  # probability that there is a face at all
    blendshapes: FloatArray  # (52,): expression weights in [0, 1], in the order of ``BLENDSHAPES``
    pose: Pose  # which way the head is turned

    def __post_init__(self) -> None:
        for name in ("points", "blendshapes"):
            _freeze(self, name)


@dataclass(frozen=True, eq=False)
class Face:
    """A face in a picture."""

    box: tuple[float, float, float, float]  # left, top, width and height in pixels; may reach beyond the picture
    # (5, 2): eye, eye, tip of the nose, corner and corner of the mouth, x before y; of each pair, the one on the left
    # of an upright face in the picture first; NaN where they are not known
    landmarks: FloatArray = field(default_factory=lambda: np.full((5, 2), np.nan))
    score: float = 1.0  # confidence of the detector, in [0, 1]
    mesh: Mesh | None = None  # only where it is believed: a face without one can be masked, not replaced
    # whether a second opinion says that this is a face: what is not confirmed is masked in its own size, never
    # replaced, and counts as nobody
    confirmed: bool = False
    source: Source = Source.DETECTED
    track: int = 0  # number of the track it belongs to; 0 outside of recordings
    person: str = ""  # such as "P1"; empty where people are not told apart

    def __post_init__(self) -> None:
        _freeze(self, "landmarks")

    @property
    def side(self) -> float:
        """Mean of the box's width and height."""
        return (self.box[2] + self.box[3]) / 2

    @property
    def roll(self) -> float:
        """How far the line between the eyes is turned clockwise in the picture, in radians; 0 where it is not known."""
        x, y = self.landmarks[1] - self.landmarks[0]
        return float(np.arctan2(y, x)) if abs(x) + abs(y) > 1e-6 else 0.0  # also for NaN


def _freeze(record: object, name: str) -> None:
    """Make an array of a frozen record float64 and read-only."""
    array = np.array(getattr(record, name), dtype=np.float64)
    array.flags.writeable = False
    object.__setattr__(record, name, array)
