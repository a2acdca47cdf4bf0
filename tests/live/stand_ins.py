"""Stand-ins for live tests: a clock that is set by hand, and a detector that finds what it is told."""

from dataclasses import dataclass, field, replace

import numpy as np

from ksame.geometry import centre
from ksame.live.config import LiveConfig
from ksame.live.tracker import LiveTracker
from ksame.models import Face
from ksame.scene.media import Frame
from ksame.scene.observe import DetectorConfig

SIZE = (160, 120)


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def face_at(x, y, side=24.0, score=0.9):
    eyes = np.array([[0.3, 0.4], [0.7, 0.4], [0.5, 0.6], [0.35, 0.8], [0.65, 0.8]])
    return Face((x, y, side, side), eyes * side + (x, y), score)


@dataclass
class Mesher:
    """Sees no mesh; near a place it finds what the detector finds there, unless it is blind."""

    config: DetectorConfig = field(default_factory=DetectorConfig)
    faces: list = field(default_factory=list)
    meshed: int = 0
    searched: int = 0
    on_search: object = lambda: None

    @property
    def detector(self):
        return self

    def detect(self, rgb, **_):
        self.searched += 1
        self.on_search()
        return list(self.faces)

    def see(self, rgb, last, box, detection, score):
        self.meshed += 1
        return detection if detection is not None else self.near(rgb, box, 0.0, score)

    def near(self, rgb, box, roll, score):
        near = [f for f in self.faces if np.hypot(*(centre(np.array(f.box)) - centre(box))) < 0.8 * f.side]
        return replace(near[0]) if near else None


def frame_at(index, time, size=SIZE):
    rng = np.random.default_rng(index)
    return Frame(index, time, rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))


def tracker(**options):
    mesher = Mesher()
    return LiveTracker(LiveConfig(**options), mesher), mesher
