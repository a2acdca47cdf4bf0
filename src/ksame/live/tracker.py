"""Following faces without knowing what comes: the detector looks at every frame that is shown.

Whoever was seen stays covered. A face that is not found again keeps its place and grows, until the detector has looked
often enough, and for long enough, and found nobody there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
from numpy.typing import ArrayLike

from ksame.arrays import ByteArray, FloatArray
from ksame.geometry import around, grown
from ksame.live.config import LiveConfig
from ksame.models import Face, Source
from ksame.scene.media import Frame
from ksame.scene.observe.detect import Search, same_face, search
from ksame.scene.observe.mesh import Chain, FaceMesher
from ksame.scene.observe.portraits import N_LOOK, look_of
from ksame.scene.track.associate import Association, Tracklet

_MAX_UNSUPPORTED = 3  # frames in a row in which the detector may not see what a mesh follows, by choice
_TURNED = 1.3  # how far the box about the mesh of a turned head is grown: noses lie beyond it, by eye
_WHOLE = Search(share=None)


@dataclass(eq=False)
class LiveTrack:
    """A face on its way."""

    number: int
    tracklet: Tracklet  # by which detections are assigned to it
    chain: Chain  # as it was seen last
    seen: float  # when that was
    looks: int = 0  # how often in a row the detector has looked since and found nobody there
    unsupported: int = 0  # how often in a row there was a mesh without a detection

    def box(self, frame: int, time: float, config: LiveConfig) -> FloatArray:
        """Return where the face may be by now, (4,): from where it was to where it was going, and grown since."""
        last, ahead = np.array(self.chain.face.box), self.chain.expected(frame)
        both = around(np.concatenate([_corners(last), _corners(ahead)]))
        growth = min(config.max_growth, 1 + config.growth * max(0.0, time - self.seen))
        return grown(both, growth)

    def forget(self) -> None:
        """Forget all detections but the first and the last two: a track may last for hours."""
        del self.tracklet.frames[1:-2], self.tracklet.rows[1:-2]


@dataclass(eq=False)
class LiveTracker:
    """Finds and follows everyone, frame by frame."""

    config: LiveConfig
    mesher: FaceMesher  # the networks
    tracks: list[LiveTrack] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._association = Association(self.mesher.config, self.config.job.tracker)
        self._numbers = count(1)

    def step(self, frame: Frame, out_of_time: Callable[[], bool] = lambda: False) -> list[Face]:
        """Return everyone who must be covered in a frame, the nearest to the camera (largest box) last.

        The detector looks at this frame, whose ``time`` is that of the clock. Where time runs out faces are not meshed:
        they have a box only.
        """
        detections, _ = search(self.mesher.detector, frame.pixels, _WHOLE, self.mesher.config)
        self._assign(frame, detections)
        faces: list[Face] = []
        seen: list[Face] = []
        matched = {
            id(track): detections[track.tracklet.rows[-1]] for track in self.tracks if _is_at(track, frame.index)
        }
        for track in sorted(self.tracks, key=lambda track: id(track) not in matched):  # those with a detection first
            detection = matched.get(id(track))
            face = self._see(frame, track, detection, out_of_time)
            taken = face is not None and detection is None and _is_among(face.box, seen)
            faces += self._covered(track, frame, None if taken else face, seen, detection)
            seen = [face for face in faces if face.source is Source.DETECTED]
        self.tracks = [track for track in self.tracks if track.looks >= 0]
        return sorted(faces, key=lambda face: face.box[2] * face.box[3])

    def search_share(self, pixels: ByteArray, number: int, of: int) -> list[Face]:
        """Search a share of a frame for small faces and, in the first share, all of it for turned ones.

        It takes several times as long as the search that every frame gets.
        """
        return search(self.mesher.detector, pixels, Search(share=(number, of)), self.mesher.config)[0]

    def add(self, faces: Iterable[Face], frame: Frame, covered: Iterable[Face]) -> None:
        """Take faces that another search found in a frame, which may be an earlier one.

        Those whom :meth:`step` ``covered`` in that frame are known, wherever they are by now.
        """
        known = [np.array(box) for box in (*(t.chain.face.box for t in self.tracks), *(f.box for f in covered))]
        for face in faces:
            if not any(same_face(np.array(face.box), box) for box in known):
                look = np.asarray(look_of(frame.pixels, face.landmarks), dtype=np.float64)
                tracklet = Tracklet([frame.index], [-1], face.score, [np.array(face.box)], look, look)
                self._association.active.append(tracklet)
                self._begin(tracklet, face, frame)

    def _assign(self, frame: Frame, detections: list[Face]) -> None:
        """Give detections to tracks, and begin new ones."""
        boxes = np.array([face.box for face in detections]).reshape(-1, 4)
        scores = np.array([face.score for face in detections])
        looks = np.array([look_of(frame.pixels, face.landmarks) for face in detections], dtype=np.float64)
        self._association.step(frame.index, boxes, scores, looks.reshape(-1, N_LOOK))
        known = {id(track.tracklet) for track in self.tracks}
        for tracklet in self._association.active:
            if id(tracklet) not in known:
                self._begin(tracklet, detections[tracklet.rows[-1]], frame)

    def _begin(self, tracklet: Tracklet, face: Face, frame: Frame) -> None:
        chain = Chain(face, frame.index)
        self.tracks.append(LiveTrack(next(self._numbers), tracklet, chain, frame.time))

    def _see(
        self, frame: Frame, track: LiveTrack, detection: Face | None, out_of_time: Callable[[], bool]
    ) -> Face | None:
        """Return a face where it is expected; None where neither the detector nor a mesh sees it."""
        if out_of_time():
            return detection
        last, low = track.chain.face, self.mesher.config.low
        box = track.chain.expected(frame.index) if detection is None else np.array(detection.box)
        face = self.mesher.see(frame.pixels, last, box, detection, low)
        if face is None or face.score > 0:
            track.unsupported = 0
            return face
        track.unsupported += 1
        if track.unsupported > _MAX_UNSUPPORTED:  # a mesh may follow a hand or a pattern for ever
            near = self.mesher.near(frame.pixels, np.array(face.box), face.roll, low)
            track.unsupported = 0 if near is not None else track.unsupported
            return None if near is None else replace(face, score=near.score)
        return face

    def _covered(
        self, track: LiveTrack, frame: Frame, face: Face | None, others: list[Face], detection: Face | None
    ) -> list[Face]:
        """Return what is to be covered for a track, if anything; ``looks`` becomes -1 where it has ended.

        ``others`` are those who were seen in this frame, and are covered already.
        """
        if face is not None:
            if not _is_at(track, frame.index):  # found near its place; the search of the whole frame missed it
                track.tracklet.add(frame.index, -1, face.score, np.array(face.box), track.tracklet.look)
            track.chain, track.seen, track.looks = track.chain.to(frame.index, face), frame.time, 0
            track.forget()
            return [self._believed(replace(face, track=track.number, confirmed=self._sure(track)), detection)]
        track.looks += 1
        box = track.box(frame.index, frame.time, self.config)
        gone = track.looks > self.config.hold_looks and frame.time - track.seen > self.config.hold
        if gone or _is_among(track.chain.face.box, others):
            track.looks = -1  # nobody is there, or somebody who is covered already
            self._association.active = [t for t in self._association.active if t is not track.tracklet]
            return []
        x, y, width, height = box.tolist()
        place = (x, y, width, height)
        return [Face(place, confirmed=self._sure(track), source=Source.INTERPOLATED, track=track.number)]

    def _sure(self, track: LiveTrack) -> bool:
        """Tell whether a track was ever surely a face; what was not is masked in its own size."""
        return track.tracklet.score >= self.mesher.config.score

    def _believed(self, face: Face, detection: Face | None) -> Face:
        """Return a face without its mesh where the head is turned so far that the mesh leaves parts of it out."""
        limits, pose = self.config.job.tracker, None if face.mesh is None else face.mesh.pose
        if pose is None or (abs(pose.yaw) <= limits.yaw and abs(pose.pitch) <= limits.pitch):
            return face
        corners = [_corners(grown(np.array(face.box), _TURNED)), *([_corners(detection.box)] if detection else [])]
        x, y, width, height = around(np.concatenate(corners)).tolist()
        return replace(face, box=(x, y, width, height), mesh=None)


def _is_at(track: LiveTrack, frame: int) -> bool:
    """Tell whether the search of the whole frame gave this track a detection."""
    return track.tracklet.frames[-1] == frame and track.tracklet.rows[-1] >= 0


def _is_among(box: ArrayLike, faces: Iterable[Face]) -> bool:
    """Tell whether a box is that of one of some faces."""
    return any(same_face(np.asarray(box), np.array(face.box)) for face in faces)


def _corners(box: ArrayLike) -> FloatArray:
    """Return the first and the last corner of a box, (2, 2)."""
    left, top, width, height = np.asarray(box)
    return np.array([[left, top], [left + width, top + height]])
