"""The best pictures of a face, for a recogniser, and a small one by which faces of one shot are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray
from ksame.geometry import Similarity, grown, warp
from ksame.models import Face

N_BEST = 5
"""Pictures kept of a track."""

N_LOOK = 8 * 8 * 3
"""Numbers of a look."""

_APART = 12  # frames between two of the best pictures
_CROP = 160  # longest side of such a picture
_FULL = 112.0  # side of a face from which on more pixels do not help to recognise it: what SFace takes
_PATCH = 32  # side of the registered pictures that are compared
_PLACES = _PATCH * np.array([[0.36, 0.46], [0.64, 0.46], [0.5, 0.6], [0.4, 0.74], [0.6, 0.74]])
_SHARP = 60.0  # variance of the Laplacian of a face that is sharp enough; by eye
_BETTER = 1.05  # times that a picture must be better than the one it replaces


@dataclass(frozen=True, eq=False)
class Portrait:
    """A face cut out of its frame for a recogniser; ``points`` are its five landmarks."""

    frame: int
    quality: float
    pixels: ByteArray
    points: FloatArray


def look_of(rgb: ByteArray, landmarks: FloatArray) -> NDArray[np.float32]:
    """Return a face as a vector of unit length, (N_LOOK,), registered by its five points.

    The product of two says how alike they look, at most 1: enough to tell apart two people in the light of one shot.
    """
    crop = warp(rgb, Similarity.estimate(landmarks, _PLACES).matrix, _PATCH)
    small = np.asarray(cv2.resize(crop, (8, 8), interpolation=cv2.INTER_AREA), dtype=np.float32)
    small = small - (small.mean(axis=(0, 1)) + small.mean()) / 2  # half of its own colour
    return np.asarray(small.ravel() / max(float(np.linalg.norm(small)), 1e-6))


def with_portrait(best: Sequence[Portrait], frame: int, rgb: ByteArray, face: Face) -> list[Portrait]:
    """Return the best pictures of a track, the best first, after one more frame."""
    if face.mesh is None:
        return list(best)
    near = [portrait for portrait in best if abs(portrait.frame - frame) < _APART]
    rival = near[0] if near else min(best, key=lambda p: p.quality) if len(best) >= N_BEST else None
    pose = face.mesh.pose
    facing = max(0.0, np.cos(np.radians(pose.yaw))) ** 3 * max(0.0, np.cos(np.radians(pose.pitch))) ** 2
    quality = float(face.mesh.presence * facing * min(1.0, face.side / _FULL))
    if rival is not None and quality <= _BETTER * rival.quality:
        return list(best)
    portrait = _cut(frame, rgb, face, quality)
    if rival is not None and portrait.quality <= _BETTER * rival.quality:
        return list(best)
    kept = [other for other in best if other is not rival] + [portrait]
    return sorted(kept, key=lambda p: (-p.quality, p.frame))


def _cut(frame: int, rgb: ByteArray, face: Face, quality: float) -> Portrait:
    left, top, wide, high = grown(np.array(face.box), 1.6)
    x = min(max(0, int(left)), rgb.shape[1] - 2)
    y = min(max(0, int(top)), rgb.shape[0] - 2)
    part = rgb[y : max(y + 2, int(top + high)), x : max(x + 2, int(left + wide))]
    scale = min(1.0, _CROP / max(part.shape[:2]))
    points = (face.landmarks - (x, y) + 0.5) * scale - 0.5
    if scale < 1:
        size = (max(1, round(part.shape[1] * scale)), max(1, round(part.shape[0] * scale)))
        part = np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    grey = cv2.cvtColor(part, cv2.COLOR_RGB2GRAY)
    sharpness = float(cv2.Laplacian(grey, cv2.CV_32F).var())
    return Portrait(frame, quality * (0.3 + 0.7 * min(1.0, sharpness / _SHARP)), np.array(part), points)
