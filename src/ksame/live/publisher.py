"""One frame after the other: found, followed, planned and composed before it may be shown, or not shown at all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from ksame.arrays import ByteArray
from ksame.heads.invention import FinishedHead
from ksame.live.background import Background, Change
from ksame.live.config import LiveConfig
from ksame.live.heads import HeadStore
from ksame.live.people import LivePeople
from ksame.live.statistics import Statistics
from ksame.live.tracker import LiveTracker
from ksame.models import Face
from ksame.scene.decide import Decision, Treatment
from ksame.scene.media import Frame
from ksame.scene.render import FramePlan, Mask

WAITING = "not told from others, or not judged yet"
NOT_READY = "its head was not invented in time"
ASKED = "asked for"
_SHARES = 3  # into which the thorough search is divided


@dataclass(eq=False)
class Publisher:
    """Makes of captured frames what may be shown."""

    config: LiveConfig
    tracker: LiveTracker
    people: LivePeople
    heads: HeadStore | None  # None where everyone is masked
    searching: Background  # where small and turned faces are searched for
    statistics: Statistics
    now: Callable[[], float] = time.monotonic  # the clock of the captured frames
    seed: int = 0  # for masks with noise

    def __post_init__(self) -> None:
        job = self.config.job
        self._mask = Mask(job.masking, job.level)
        self._size: tuple[int, int] | None = None
        self._searched, self._share = -np.inf, 0

    def publish(self, captured: Frame) -> ByteArray | None:
        """Return a frame as it may be shown, (height, width, 3); None where it came to be too late.

        Everyone whom the detector finds in this very frame is covered in it, and everyone who was there lately.
        """
        frame = self._prepared(captured)
        self.people.settle()
        faces = self.tracker.step(frame, lambda: self._age(frame) > self.config.mesh_share * self.config.latency)
        faces = [self.people.named(face) for face in faces]
        wished = self._wished(faces)
        self._begin_work(frame, faces)
        finished = self._heads(frame, faces, wished)
        missing = wished.heads.keys() - finished.keys()
        plan = wished.masking([(face, NOT_READY) for face in faces if face.track in missing])
        out = plan.compose(
            frame.pixels,
            finished,
            self._mask,
            lambda face: np.random.default_rng((self.seed, frame.index, face.track)),
        )
        if self._age(frame) > self.config.latency:
            self.statistics.late += 1
            return None
        self.statistics.replaced += len(plan.heads)
        self.statistics.masked.update(reason or ASKED for _, reason in plan.masked)
        return out

    def _prepared(self, captured: Frame) -> Frame:
        """Return a frame of the size that is published: that of the first one, reduced where it is large, and even."""
        pixels = captured.pixels
        if self._size is None:
            height, width = pixels.shape[:2]
            scale = min(1.0, self.config.max_side / max(height, width))
            self._size = max(2, round(width * scale) // 2 * 2), max(2, round(height * scale) // 2 * 2)
        if pixels.shape[1::-1] != self._size:
            pixels = np.asarray(cv2.resize(pixels, self._size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        return Frame(captured.index, captured.time, pixels)

    def _wished(self, faces: Sequence[Face]) -> FramePlan:
        """Return what becomes of everyone, whether their heads are there in time or not."""
        if self.heads is None:
            return self._planned(faces, {"": Decision(Treatment.MASK)})
        decisions = self.people.decisions
        known = [face for face in faces if face.person in decisions]
        waiting = [(face, WAITING) for face in faces if face.person not in decisions]
        return self._planned(known, decisions).masking(waiting)

    def _planned(self, faces: Sequence[Face], decisions: Mapping[str, Decision]) -> FramePlan:
        return FramePlan.of([faces], decisions, self.people.neutral, self._mask)[0]

    def _heads(self, frame: Frame, faces: Sequence[Face], wished: FramePlan) -> dict[int, FinishedHead]:
        """Return the heads that are there in time."""
        if self.heads is None:
            return {}
        self.heads.forget([face.track for face in faces])
        return self.heads.heads(frame, wished, self.config.head_share * self.config.latency - self._age(frame))

    def _begin_work(self, frame: Frame, faces: Sequence[Face]) -> None:
        """Let people be told apart, and small faces be searched for, beside the picture."""
        self.people.watch(frame, faces)
        if self.config.thorough > 0 and self.searching.free and frame.time - self._searched >= self.config.thorough:
            number, self._share, self._searched = self._share, (self._share + 1) % _SHARES, frame.time

            def work() -> Change:
                detections = self.tracker.search_share(frame.pixels, number, _SHARES)
                return lambda: self.tracker.add(detections, frame, faces)

            self.searching.start(work)

    def _age(self, frame: Frame) -> float:
        return self.now() - frame.time
