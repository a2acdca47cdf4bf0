"""Meshing faces where they are expected: pure functions of the pixels of frames and of expected places.

A mesh is taken where the face is expected. Where it is not believed, the detector searches near that place; a face that
it finds and that cannot be meshed keeps its box only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, zip_longest

import numpy as np

from ksame.arrays import ByteArray, FloatArray
from ksame.geometry import Similarity, around, centre, overlap, side
from ksame.models import Face, FaceDetector, FaceMesh, Mesh, five_points
from ksame.scene.observe.config import DetectorConfig
from ksame.scene.observe.confirm import Examiner, Verdict
from ksame.scene.observe.detect import same_face, search_near

# By eye on clips of people who turn, cross and leave; those of bursts are chosen by hand, not measured.
_AGREE = 0.35  # overlap of a mesh with the detection behind it
_JUMP = 0.6  # how far a mesh may move from where it is expected, in sides
_SWELL = 1.5  # how many times larger or smaller it may become
_ELSEWHERE = 0.4  # sides between two expected places, from which on both are searched
_MAX_UNSUPPORTED = 3  # how often in a row the detector may not see what a mesh follows
_SURELY = 1.4  # a search surely finds faces so many times larger than the smallest it searches for
_CALM = 0.1  # sides that a face may move between frames, and stray from its path, or grow, while frames are skipped
_LARGE = 72.0  # side of a face from which on every second frame is meshed, else every third
_BURST = 3  # meshed frames in a row that may be outliers
_OUTLIER = 0.08  # mean distance of the points from their neighbours' interpolation, in sides, from which on they are
_FAR_MORE = 3.0  # times that the neighbours themselves differ


@dataclass(frozen=True, eq=False)
class Decoded:
    """A decoded frame: its number, its pixels, and whether it comes so soon after the last that it may be skipped."""

    index: int
    rgb: ByteArray
    brief: bool


@dataclass(frozen=True, eq=False)
class Expected:
    """Where a track expects a face in a frame: a box, (4,), and the detection that belongs to it, if any."""

    box: FloatArray
    detection: Face | None = None


@dataclass(frozen=True, eq=False)
class Chain:
    """A face on its way from frame to frame."""

    face: Face  # as it was seen last
    frame: int  # where that was
    speed: FloatArray = field(default_factory=lambda: np.zeros(2))  # pixels per frame, in the direction of propagation
    unsupported: int = 0  # how often in a row the detector did not see what the mesh follows

    def expected(self, frame: int) -> FloatArray:
        """Return the box where the face should be."""
        box = np.array(self.face.box)
        box[:2] += self.speed * min(abs(frame - self.frame), 3)
        return box

    def to(self, frame: int, face: Face) -> Chain:
        """Return the chain after the face was seen in another frame."""
        step = (centre(np.array(face.box)) - centre(np.array(self.face.box))) / max(1, abs(frame - self.frame))
        limit = 0.5 * face.side
        return replace(self, face=face, frame=frame, speed=np.clip(0.5 * self.speed + 0.5 * step, -limit, limit))


@dataclass(frozen=True, eq=False)
class Extension:
    """A track propagated beyond its detections: faces by frame, whether it ended, and the number of a track it met."""

    faces: Mapping[int, Face]
    chain: Chain
    ended: bool
    met: int | None = None


class FaceMesher:
    """The networks, and what they tell about one face in one frame. One object may be used from several threads."""

    def __init__(self, config: DetectorConfig) -> None:
        self.config = config
        self.detector = FaceDetector()
        self._mesh = FaceMesh()
        self._examiner = Examiner(self.detector)

    def confirm(self, rgb: ByteArray, face: Face) -> Verdict:
        """Say by second opinions whether a detection is a face."""
        return self._examiner.judge(rgb, face, self.config)

    def fit(self, rgb: ByteArray, detection: Face) -> Face:
        """Return a detected face, with its mesh where one is believed."""
        if detection.side < self.config.mesh_side:
            return detection
        mesh = self._mesh.fit(rgb, detection)
        face = _meshed(mesh, detection.score)
        return face if mesh.presence >= self.config.presence and _agree(face, detection) else detection

    def see(
        self, rgb: ByteArray, last: Face | None, box: FloatArray, detection: Face | None, score: float
    ) -> Face | None:
        """Return a face by the mesh it had last, moved to ``box``; or by a detection of at least ``score`` near it."""
        if last is not None and last.mesh is not None:
            face = self._step(rgb, last.mesh, centre(box) - centre(np.array(last.box)))
            if face is not None and (detection is None or _agree(face, detection)):
                return face if detection is None else replace(face, score=detection.score)
        if detection is None:
            detection = self.near(rgb, box, 0.0 if last is None else last.roll, score)
        return None if detection is None else self.fit(rgb, detection)

    def near(self, rgb: ByteArray, box: FloatArray, roll: float, score: float) -> Face | None:
        """Return a detection near a place."""
        return search_near(self.detector, rgb, box, roll, score)

    def _step(self, rgb: ByteArray, mesh: Mesh, move: FloatArray) -> Face | None:
        shifted = replace(mesh, points=mesh.points + np.append(move, 0.0))
        face = _meshed(self._mesh.follow(rgb, shifted), 0.0)
        before, after = around(shifted.points), np.array(face.box)
        size = side(before)
        sane = 1 / _SWELL < side(after) / size < _SWELL and np.hypot(*(centre(after) - centre(before))) < _JUMP * size
        believed = face.mesh is not None and face.mesh.presence >= self.config.presence
        return face if believed and sane and face.side >= self.config.mesh_side else None


def mesh_path(
    mesher: FaceMesher, frames: Sequence[Decoded], expected: Mapping[int, Expected], start: Chain | None, score: float
) -> dict[int, Face | None]:
    """Mesh a face in frames along the path where it is expected.

    ``start`` is the face in an earlier frame; where the first frame has a detection its mesh is moved there. A
    detection near the expected place must have at least ``score``.
    """
    faces: dict[int, Face | None] = {}
    last = None if start is None else start.face
    before = None if start is None else expected[start.frame].box
    for i, frame in enumerate(frames):
        place = expected[frame.index]
        if i == 0 and last is not None and last.mesh is not None and place.detection is not None:
            last, before = _carried(last, last.mesh, place.detection), place.box
        box = place.box
        if last is not None and before is not None:
            box = np.array(last.box)
            box[:2] += centre(place.box) - centre(before)
        face = mesher.see(frame.rgb, last, box, place.detection, score)
        if face is None and np.hypot(*(centre(box) - centre(place.box))) > _ELSEWHERE * side(place.box):
            face = mesher.see(frame.rgb, None, place.box, None, score)
        faces[frame.index] = face
        if face is not None:
            last, before = face, place.box
    return _without_bursts(mesher, frames, faces, score)


def extend(
    mesher: FaceMesher,
    frames: Iterable[Decoded],
    start: Chain,
    others: Mapping[int, Sequence[tuple[int, FloatArray]]],
    min_sides: Mapping[int, float],
    score: float,
    max_missing: int,
) -> Extension:
    """Propagate a face beyond its first or last detection, until it is gone or meets a face of another track.

    Parameters
    ----------
    mesher : FaceMesher
    frames : iterable of Decoded
        In the order of propagation, forwards or backwards.
    start : Chain
    others : mapping of frame to a sequence of (int, ndarray of shape (4,))
        Numbers and boxes of the other tracks.
    min_sides : mapping of frame to float
        The keyframes, and the smallest side that each was searched for.
    score : float
        Score that a detection near the expected place must have.
    max_missing : int
        Frames for which it may be missing.
    """
    faces: dict[int, Face] = {}
    chain = start
    for frame in frames:
        index = frame.index
        if abs(index - chain.frame) > max_missing + 1:
            return Extension(faces, chain, ended=True)
        face = mesher.see(frame.rgb, chain.face, chain.expected(index), None, score)
        if face is None:
            continue
        box = np.array(face.box)
        met = next((number for number, other in others.get(index, ()) if same_face(box, other)), None)
        if met is not None:
            return Extension(faces, chain, ended=True, met=met)
        if face.score == 0 and face.side >= _SURELY * min_sides.get(index, np.inf):
            near = mesher.near(frame.rgb, box, face.roll, mesher.config.low)
            face = face if near is None else replace(face, score=near.score)
            chain = replace(chain, unsupported=0 if near is not None else chain.unsupported + 1)
            if chain.unsupported > _MAX_UNSUPPORTED:
                return Extension(faces, chain, ended=True)
        faces[index] = face
        chain = chain.to(index, face)
    return Extension(faces, chain, ended=False)


def sampled(frames: Sequence[Decoded], expected: Mapping[int, Expected], since: int | None) -> list[Decoded]:
    """Return the frames in which a face is meshed: all but some of those in which it is expected to be calm.

    Frames with a detection, the last one, and those that do not follow each other fast are never skipped. ``since`` is
    the last frame in which it was meshed before these, if there is one.
    """
    kept: list[Decoded] = []
    for frame, after in zip_longest(frames, frames[1:]):
        place = expected[frame.index]
        step = 2 if side(place.box) >= _LARGE else 3
        skip = frame.brief and place.detection is None and since is not None and frame.index - since < step
        if skip and after is not None:
            move = np.hypot(*(centre(expected[after.index].box) - centre(place.box)))
            skip = bool(move < _CALM * side(place.box))
        if not skip or after is None:
            kept.append(frame)
            since = frame.index
    return kept


def skipped(faces: Mapping[int, Face | None], expected: Mapping[int, Expected]) -> list[int]:
    """Return the frames that may not stay skipped: the face was not calm, or not meshed, before or after them."""

    def calm(a: int, b: int) -> bool:
        before, after = faces[a], faces[b]
        if before is None or after is None or before.mesh is None or after.mesh is None:
            return False
        move = centre(np.array(after.box)) - centre(np.array(before.box))
        astray = move - (centre(expected[b].box) - centre(expected[a].box))
        return bool(np.hypot(*astray) < _CALM * after.side and abs(after.side / before.side - 1) < _CALM)

    return [i for a, b in pairwise(sorted(faces)) if b - a > 1 and not calm(a, b) for i in range(a + 1, b)]


def _without_bursts(
    mesher: FaceMesher, frames: Sequence[Decoded], faces: dict[int, Face | None], score: float
) -> dict[int, Face | None]:
    """Take away meshes that slip for a few frames, unless the detector sees a face just there."""
    pixels = {frame.index: frame.rgb for frame in frames}
    for index, box in outliers(faces).items():
        face = faces[index]
        if face is None or face.score > 0:
            continue
        near = mesher.near(pixels[index], np.array(face.box), face.roll, score)
        if near is None or not _agree(face, near):
            near = mesher.near(pixels[index], box, face.roll, score)
            faces[index] = near if near is None or not _agree(face, near) else face
    return faces


def outliers(faces: Mapping[int, Face | None]) -> dict[int, FloatArray]:
    """Return the frames whose mesh is far from its neighbours' interpolation, and the box that these expect there."""
    meshed = [(index, face.side, face.mesh.points) for index, face in sorted(faces.items()) if face and face.mesh]
    boxes: dict[int, FloatArray] = {}
    for length in range(1, _BURST + 1):
        for first in range(1, len(meshed) - length):
            (a, size, before), (b, _, after) = meshed[first - 1], meshed[first + length]
            inner = meshed[first : first + length]
            if any(index in boxes for index in (a, b, *(index for index, _, _ in inner))):
                continue
            limit = max(_OUTLIER * size, _FAR_MORE * _mean_length(after - before))
            guesses = {index: before + (after - before) * (index - a) / (b - a) for index, _, _ in inner}
            if min(_mean_length(points - guesses[index]) for index, _, points in inner) > limit:
                boxes |= {index: around(guess) for index, guess in guesses.items()}
    return boxes


def _mean_length(vectors: FloatArray) -> float:
    return float(np.hypot(*vectors[:, :2].T).mean())


def _meshed(mesh: Mesh, score: float) -> Face:
    """Return a face by its mesh; a score of 0 says that no detection stands behind it."""
    x, y, width, height = around(mesh.points).tolist()
    return Face((x, y, width, height), five_points(mesh), score, mesh)


def _agree(face: Face, detection: Face) -> bool:
    return bool(overlap(np.array(face.box), np.array(detection.box))[0, 0] > _AGREE)


def _carried(face: Face, mesh: Mesh, detection: Face) -> Face:
    """Return a face of another frame moved to where a detection is, by its five points."""
    points = mesh.points.copy()
    move = Similarity.estimate(face.landmarks, detection.landmarks)
    points[:, :2] = move.apply(points[:, :2])
    points[:, 2] *= np.hypot(move.a, move.b)
    return _meshed(replace(mesh, points=points), face.score)
