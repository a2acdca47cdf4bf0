"""How faces are found in the frames of a recording."""

from __future__ import annotations

from dataclasses import dataclass

from ksame.errors import parameter_error
from ksame.parameters import Parameters, parameter
from ksame.photographs import PRESENCE


@dataclass(frozen=True)
class DetectorConfig(Parameters):
    """How faces are detected, confirmed and meshed.

    Small meshes: of 25 portraits shrunken to faces of 24 pixels, the mesh of 24 is believed, 0.035 eye distances off
    that of the large face (median); 0.024 for 32 pixels, 0.012 for 60 (``python -m benchmarks.small_meshes 25``).

    Second opinions: in 360 photographs of one person each, the 281 detections that are no face reach 0.78 when they are
    found ``again`` and 1.13 by BlazeFace, one of them ``never_dropped``; the 360 people reach at least 0.88 and 2.09.
    ``weights`` and ``evidence`` were fitted (logistic regression) on half of these photographs and on the same faces
    small, dark, noisy, tilted or half hidden.
    """

    score: float = parameter(0.6, "score of a detection that alone makes a face", low=0, high=1, above=True)
    # may begin a track; a second opinion or other frames must agree
    doubtful: float = parameter(0.45, "score that may begin a track", low=0, high=1, above=True)
    # where a face is expected (Zhang et al. 2022, ByteTrack, section 3)
    low: float = parameter(0.3, "score that continues a track", low=0, high=1, above=True)
    still: float = parameter(0.4, "score in photographs, where no other frame can tell", low=0, high=1, above=True)
    # these are searched as a whole; in large frames every second one for faces of at least 48 pixels only
    detect_every: int = parameter(6, "frames between two keyframes", low=1)
    # for recordings with few frames per second: between keyframes faces must not go far
    detect_seconds: float = parameter(0.25, "seconds between two keyframes", low=0, high=60, above=True)
    # where a shot begins, and after that part by part within so many frames
    tiny_every: int = parameter(144, "frames in which small and turned faces are searched for; 0 for never", low=0)
    tiny: float = parameter(16.0, "side in pixels of the smallest face searched for then", low=0, high=1e4, above=True)
    presence: float = parameter(PRESENCE, "probability from which a mesh is believed", low=0, high=1, above=True)
    mesh_side: float = parameter(24.0, "side in pixels of the smallest face with a mesh", low=0, high=1e4, above=True)
    # of frames that follow each other faster, calm faces are meshed in every second one, small ones in every third
    brief: float = parameter(0.045, "seconds between frames of which some are interpolated; 0 for never", low=0, high=9)
    again: float = parameter(0.82, "score at which what is found again is a face", low=0, high=1, above=True)
    second: float = 2.0  # logit of BlazeFace at which it is one
    weights: tuple[float, float, float] = (5.7, 9.9, 1.2)  # of the score and of both second opinions
    evidence: float = 11.0  # what comes to less, so weighted, is no face
    never_dropped: float = 0.85  # score from which on a detection is never dropped, whatever the other opinions say

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low <= self.doubtful <= self.score:
            expected = f"between low ({self.low}) and score ({self.score})"
            raise parameter_error("doubtful", type(self).__name__, expected, self.doubtful)
