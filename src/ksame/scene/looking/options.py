"""How a recording is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ksame.errors import parameter_error
from ksame.faces.faceset import ByteArray
from ksame.photographs import PRESENCE


class Frame(Protocol):
    """One picture of a recording."""

    @property
    def index(self) -> int:
        """Its number, from 0, without gaps."""
        ...

    @property
    def time(self) -> float:
        """When it is shown, in seconds."""
        ...

    @property
    def pixels(self) -> ByteArray:
        """8-bit RGB, (height, width, 3)."""
        ...


@dataclass(frozen=True)
class Looking:
    """How a recording is looked at.

    Parameters
    ----------
    score : float
        How sure the detector must be for one detection to be a face.
    doubtful : float
        How sure it must be where several frames agree.
    low : float
        How sure it must be where a face is expected.
    detect_every : int
        Whole frames are searched every so many frames; between, faces are followed. In large frames, every second
        search is for faces of at least 48 pixels only: a smaller one that is found late is followed back to where
        it appeared.
    tiny_every : int
        Whole frames are searched for small and for turned faces where a shot begins, and after that part by part within
        so many frames; 0 for never.
    tiny : float
        Side in pixels of the smallest face looked for then.
    presence : float
        Probability below which a mesh is not believed.
    mesh_side : float
        Faces smaller than so many pixels get no mesh.
    brief : float
        Seconds. In frames that follow each other faster, faces that move little are looked at in every second one,
        small ones in every third; between these they move in a straight line. 0 for never.
    again, second : float
        What found again by the detector, or seen by BlazeFace, at least so surely is a face. In 360 photographs of one
        person each, the 281 detections that are none reach 0.78 and 1.13, the 360 people at least 0.88 and 2.09.
    weights, evidence : (float, float, float), float
        A detection whose score and two second opinions, so weighted, come to less is no face. Fitted (logistic
        regression) on half of these photographs and on the same faces small, dark, noisy, tilted or half hidden.
    never_dropped : float
        Score from which on a detection is never dropped, whatever the other opinions say. Of the 281, one reaches it.
    yaw, pitch : float
        Meshes of heads turned further, in degrees, are not believed.
    patience : int
        For how many frames a face may be hidden and still be the same track.
    margin : int
        How many frames before and after a track are filled.
    same_person : float
        Cosine of SFace embeddings above which two tracks are one person.
    threads : int
        How many threads look. The result does not depend on it.
    """

    score: float = 0.6
    doubtful: float = 0.45
    low: float = 0.3
    detect_every: int = 6
    tiny_every: int = 144
    tiny: float = 16.0
    presence: float = PRESENCE
    mesh_side: float = 30.0
    brief: float = 0.045
    again: float = 0.82
    second: float = 2.0
    weights: tuple[float, float, float] = (5.7, 9.9, 1.2)
    evidence: float = 11.0
    never_dropped: float = 0.85
    yaw: float = 55.0
    pitch: float = 45.0
    patience: int = 30
    margin: int = 6
    same_person: float = 0.45
    threads: int = 2

    @property
    def full_every(self) -> int:
        """After how many frames at most a whole frame is searched for smaller faces too."""
        return 2 * self.detect_every

    def __post_init__(self) -> None:
        for name in ("score", "doubtful", "low", "presence", "again"):
            if not 0 < getattr(self, name) <= 1:
                raise parameter_error(name, "Looking", "a number in (0, 1]", getattr(self, name))
        if not self.low <= self.doubtful <= self.score:
            expected = f"between low ({self.low}) and score ({self.score})"
            raise parameter_error("doubtful", "Looking", expected, self.doubtful)
        for name, least in (("detect_every", 1), ("tiny_every", 0), ("patience", 0), ("margin", 0), ("threads", 1)):
            if getattr(self, name) < least:
                raise parameter_error(name, "Looking", f"an integer of at least {least}", getattr(self, name))
        for name in ("tiny", "mesh_side", "yaw", "pitch"):
            if not getattr(self, name) > 0:
                raise parameter_error(name, "Looking", "a number above 0", getattr(self, name))
        if not -1 < self.same_person < 1:
            raise parameter_error("same_person", "Looking", "a cosine in (-1, 1)", self.same_person)
