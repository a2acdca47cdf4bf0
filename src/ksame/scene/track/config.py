"""How detections become tracks, and tracks people."""

from __future__ import annotations

from dataclasses import dataclass, field

from ksame.parameters import Parameters, parameter
from ksame.scene.observe import DetectorConfig


@dataclass(frozen=True)
class TrackerConfig(Parameters):
    """How detections become tracks, and tracks people."""

    patience: int = parameter(30, "for how many frames a face may be hidden and still be the same track", low=0)
    margin: int = parameter(6, "how many frames before and after a track are filled", low=0)
    # meshes of heads turned further, in degrees, are not believed
    yaw: float = parameter(55.0, "how far a head may be turned", low=0, high=180, above=True)
    pitch: float = parameter(45.0, "how far it may be lowered or raised", low=0, high=180, above=True)
    same_person: float = parameter(
        0.45, "cosine of SFace embeddings of one person", low=-1, high=1, above=True, below=True
    )
    detector: DetectorConfig = field(default_factory=DetectorConfig)  # how faces are found that become tracks
