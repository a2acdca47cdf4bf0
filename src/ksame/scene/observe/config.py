"""How faces are found in the frames of a recording."""

from __future__ import annotations

from dataclasses import dataclass

from ksame.errors import parameter_error
from ksame.photographs import PRESENCE


@dataclass(frozen=True)
class DetectorConfig:
    """How faces are detected, confirmed and meshed.

    Parameters
    ----------
    score : float
        Score of a detection that alone makes a face.
    doubtful : float
        Score that may begin a track; a second opinion or other frames must agree.
    low : float
        Score that continues a track where a face is expected (Zhang et al. 2022, ByteTrack, section 3).
    still : float
        Score in photographs, where no other frame can tell.
    detect_every : int
        Frames between two keyframes, which are searched as a whole. In large frames every second keyframe is searched
        for faces of at least 48 pixels only.
    detect_seconds : float
        The same in seconds, for recordings with few frames per second: between keyframes faces must not go far.
    tiny_every : int
        Small and turned faces are searched for where a shot begins, and after that part by part within so many
        frames; 0 for never.
    tiny : float
        Side in pixels of the smallest face searched for then.
    presence : float
        Probability below which a mesh is not believed.
    mesh_side : float
        Faces smaller than so many pixels get no mesh. Of 25 portraits shrunken to faces of 24 pixels, the mesh of 24
        is believed, 0.035 eye distances off that of the large face (median); 0.024 for 32 pixels, 0.012 for 60
        (``python -m benchmarks.small_meshes 25``).
    brief : float
        Seconds. Of frames that follow each other faster, calm faces are meshed in every second one, small ones in every
        third, and interpolated between. 0 for never.
    again, second : float
        What is found again by the detector, or seen by BlazeFace, at least so surely is a face. In 360 photographs of
        one person each, the 281 detections that are none reach 0.78 and 1.13, the 360 people at least 0.88 and 2.09.
    weights, evidence : (float, float, float), float
        A detection whose score and two second opinions, so weighted, come to less is no face. Fitted (logistic
        regression) on half of these photographs and on the same faces small, dark, noisy, tilted or half hidden.
    never_dropped : float
        Score from which on a detection is never dropped, whatever the other opinions say. Of the 281, one reaches it.
    """

    score: float = 0.6
    doubtful: float = 0.45
    low: float = 0.3
    still: float = 0.4
    detect_every: int = 6
    detect_seconds: float = 0.25
    tiny_every: int = 144
    tiny: float = 16.0
    presence: float = PRESENCE
    mesh_side: float = 24.0
    brief: float = 0.045
    again: float = 0.82
    second: float = 2.0
    weights: tuple[float, float, float] = (5.7, 9.9, 1.2)
    evidence: float = 11.0
    never_dropped: float = 0.85

    def __post_init__(self) -> None:
        owner = type(self).__name__
        for name in ("score", "doubtful", "low", "still", "presence", "again"):
            if not 0 < getattr(self, name) <= 1:
                raise parameter_error(name, owner, "a number in (0, 1]", getattr(self, name))
        if not self.low <= self.doubtful <= self.score:
            expected = f"between low ({self.low}) and score ({self.score})"
            raise parameter_error("doubtful", owner, expected, self.doubtful)
        for name, smallest in (("detect_every", 1), ("tiny_every", 0)):
            if getattr(self, name) < smallest:
                raise parameter_error(name, owner, f"an integer of at least {smallest}", getattr(self, name))
        for name in ("tiny", "mesh_side", "detect_seconds"):
            if not getattr(self, name) > 0:
                raise parameter_error(name, owner, "a number above 0", getattr(self, name))
