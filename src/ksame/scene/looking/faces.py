"""One face that is being followed, and its best pictures."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.faces.faceset import ByteArray, FloatArray
from ksame.geometry import Similarity, around, centre, grown, side, warp
from ksame.models import Face as Detection
from ksame.models import Mesh, five_points
from ksame.scene.looking.confirming import Verdict
from ksame.scene.looking.detecting import roll_of
from ksame.scene.looking.storage import BLENDSHAPES, BOX, POINTS, POSE, WIDTH, Spool

N_BEST = 5  # pictures kept of a track
_APART = 12  # frames between two of them
_CROP = 160  # longest side of such a picture
_FULL = 112.0  # side of a face from which on more pixels do not help to recognise it
_PATCH = 32  # side of the registered pictures that are compared
_PLACES = _PATCH * np.array([[0.36, 0.46], [0.64, 0.46], [0.5, 0.6], [0.4, 0.74], [0.6, 0.74]])
_SHARP = 60.0  # variance of the Laplacian of a face that is sharp enough


@dataclass(frozen=True, eq=False)
class Found:
    """A face in one frame: where, by what mesh if one is believed, and which detection stands behind it."""

    box: FloatArray
    mesh: Mesh | None
    detection: Detection | None

    @property
    def roll(self) -> float:
        """How far the head is tilted, in radians."""
        if self.mesh is not None:
            return roll_of(five_points(self.mesh))
        return 0.0 if self.detection is None else roll_of(self.detection.landmarks)


def found_by(mesh: Mesh | None, detection: Detection | None) -> Found:
    """Return a face by its mesh, or by its detection where there is no mesh."""
    if mesh is not None:
        return Found(around(mesh.points), mesh, detection)
    assert detection is not None  # noqa: S101 - callers have one of the two
    return Found(np.array(detection.box), None, detection)


def row_of(found: Found | None) -> NDArray[np.float32]:
    """Return the row that is kept of a frame, (WIDTH,); all NaN where nothing was found."""
    row = np.full(WIDTH, np.nan, dtype=np.float32)
    if found is None:
        return row
    row[BOX] = found.box
    if found.mesh is not None:
        pose = found.mesh.pose
        row[POSE] = pose.yaw, pose.pitch, pose.roll
        row[BLENDSHAPES] = found.mesh.blendshapes
        row[POINTS] = found.mesh.points.ravel()
    return row


@dataclass(frozen=True, eq=False)
class Picture:
    """A face cut out of its frame for a recogniser."""

    frame: int
    quality: float
    pixels: ByteArray
    points: FloatArray


@dataclass(eq=False)
class Face:
    """A face that is being followed.

    Attributes
    ----------
    number : int
        In the order in which faces were found.
    first : int
        Number of the first frame.
    spool : Spool
        What was kept of every frame since.
    last : Found
        Where it was seen last.
    speed : ndarray of shape (2,)
        Pixels a frame.
    missing : int
        For how many frames it has not been seen.
    unsupported : int
        How often in a row the detector did not see what the mesh follows.
    n_seen : int
    sure : float
        The highest score of a detection; 1 once a mesh was believed.
    best : list of Picture
    guessed : int
        In how many of the last frames its place was guessed, not seen; their rows wait until it is known.
    verdict : Verdict
        The best that second opinions came to so far.
    """

    number: int
    first: int
    spool: Spool
    last: Found
    speed: FloatArray = field(default_factory=lambda: np.zeros(2))
    missing: int = 0
    unsupported: int = 0
    n_seen: int = 0
    sure: float = 0.0
    best: list[Picture] = field(default_factory=list)
    guessed: int = 0
    verdict: Verdict = Verdict.NO_FACE

    @property
    def length(self) -> int:
        """Number of frames from the first to the last in which it was seen."""
        return len(self.spool) - self.missing

    def expected(self) -> FloatArray:
        """Return the box where it should be in the next frame."""
        box = self.last.box.copy()
        box[:2] += self.speed * min(self.missing + self.guessed + 1, 3)
        return box

    def ahead(self) -> Face:
        """Return a copy that may be followed further without this one being touched."""
        return replace(self, spool=Spool(None), best=[])

    def stands_as(self, other: Face) -> bool:
        """Tell whether following this face and following ``other``, a copy of it, would go the same way."""
        same_place = self.last.box is other.last.box and self.last.mesh is other.last.mesh
        counts = ("missing", "guessed", "n_seen", "sure")
        return same_place and all(getattr(self, name) == getattr(other, name) for name in counts)

    def rest(self) -> Found:
        """Let a frame go by without looking: the face is where it should be, until a later frame tells better."""
        box, mesh = self.expected(), self.last.mesh
        self.guessed += 1
        if mesh is not None:
            move = np.append(centre(box) - centre(self.last.box), 0.0)
            mesh = Mesh(mesh.points + move, mesh.presence, mesh.blendshapes, mesh.pose)
        return Found(box, mesh, None)

    def write(self, found: Found | None) -> None:
        """Take down a frame, and those before it in which the place was guessed."""
        row = row_of(found)
        steps = self.guessed + 1
        before = row_of(self.last) if self.guessed else row
        for i in range(1, steps):  # between two frames that were seen; without the second it was not seen either
            self.spool.append(before + (row - before) * np.float32(i / steps))
        self.spool.append(row)
        self.guessed = 0
        if found is None:
            self.missing += steps
            return
        step = (centre(found.box) - centre(self.last.box)) / (self.missing + steps)
        limit = 0.5 * side(found.box)
        self.speed = np.clip(0.5 * self.speed + 0.5 * step, -limit, limit)
        self.last, self.missing = found, 0
        self.n_seen += steps
        score = 0.0 if found.detection is None else found.detection.score
        self.sure = max(self.sure, score, 0.0 if found.mesh is None else 1.0)

    def likeness(self, rgb: ByteArray, found: Found) -> float:
        """Return how much a face as found looks like its best pictures, at most 1; 0 where it cannot be told.

        It is the correlation of small registered pictures: enough to tell apart two people in the light of one shot.
        """
        if found.mesh is None or not self.best:
            return 0.0
        now = _patch(rgb, five_points(found.mesh))
        return max(float(now @ _patch(p.pixels, p.points)) for p in self.best)

    def portray(self, frame: int, rgb: ByteArray, found: Found) -> None:
        """Keep the picture of this frame if it is one of the best."""
        if found.mesh is None:
            return
        near = [p for p in self.best if abs(p.frame - frame) < _APART]
        rival = near[0] if near else min(self.best, key=lambda p: p.quality) if len(self.best) >= N_BEST else None
        pose = found.mesh.pose
        facing = max(0.0, np.cos(np.radians(pose.yaw))) ** 3 * max(0.0, np.cos(np.radians(pose.pitch))) ** 2
        quality = float(found.mesh.presence * facing * min(1.0, side(found.box) / _FULL))
        if rival is not None and quality <= 1.05 * rival.quality:
            return
        picture = _cut(frame, rgb, found, quality)
        if rival is not None and picture.quality <= 1.05 * rival.quality:
            return
        self.best = sorted([p for p in self.best if p is not rival] + [picture], key=lambda p: (-p.quality, p.frame))


def _patch(rgb: ByteArray, points: FloatArray) -> NDArray[np.float32]:
    """Return a face as a vector of unit length, registered by its five points, without its mean colour's level."""
    crop = warp(rgb, Similarity.estimate(points, _PLACES).matrix, _PATCH).astype(np.float32)
    crop = np.asarray(cv2.GaussianBlur(crop, (0, 0), 1.5), dtype=np.float32)
    crop -= (crop.mean(axis=(0, 1)) + crop.mean()) / 2
    return np.asarray(crop.ravel() / max(float(np.linalg.norm(crop)), 1e-6))


def _cut(frame: int, rgb: ByteArray, found: Found, quality: float) -> Picture:
    left, top, wide, high = grown(found.box, 1.6)
    x = min(max(0, int(left)), rgb.shape[1] - 2)
    y = min(max(0, int(top)), rgb.shape[0] - 2)
    part = rgb[y : max(y + 2, int(top + high)), x : max(x + 2, int(left + wide))]
    scale = min(1.0, _CROP / max(part.shape[:2]))
    points = five_points(found.mesh) if found.mesh is not None else np.zeros((5, 2))
    points = (points - (x, y) + 0.5) * scale - 0.5
    if scale < 1:
        size = (max(1, round(part.shape[1] * scale)), max(1, round(part.shape[0] * scale)))
        part = np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    grey = cv2.cvtColor(part, cv2.COLOR_RGB2GRAY)
    sharpness = float(cv2.Laplacian(grey, cv2.CV_32F).var())
    return Picture(frame, quality * (0.3 + 0.7 * min(1.0, sharpness / _SHARP)), np.array(part), points)
