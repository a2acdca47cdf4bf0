"""How detections become tracks, and tracks people."""

from __future__ import annotations

from dataclasses import dataclass, field

from ksame.errors import parameter_error
from ksame.scene.observe import DetectorConfig


@dataclass(frozen=True)
class TrackerConfig:
    """How detections become tracks, and tracks people."""

    patience: int = 30  # for how many frames a face may be hidden and still be the same track
    margin: int = 6  # how many frames before and after a track are filled
    # meshes of heads turned further, in degrees, are not believed
    yaw: float = 55.0
    pitch: float = 45.0
    same_person: float = 0.45  # cosine of SFace embeddings above which two tracks are one person
    detector: DetectorConfig = field(default_factory=DetectorConfig)  # how faces are found that become tracks

    def __post_init__(self) -> None:
        owner = type(self).__name__
        for name in ("patience", "margin"):
            if getattr(self, name) < 0:
                raise parameter_error(name, owner, "an integer of at least 0", getattr(self, name))
        for name in ("yaw", "pitch"):
            if not getattr(self, name) > 0:
                raise parameter_error(name, owner, "a number above 0", getattr(self, name))
        if not -1 < self.same_person < 1:
            raise parameter_error("same_person", owner, "a cosine in (-1, 1)", self.same_person)
