"""When and where to detect: whole frames at intervals, small parts of them where a face is expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np

from ksame.faces.faceset import ByteArray, FloatArray
from ksame.geometry import around, centre, inside, overlap, side
from ksame.models import Face as Detection
from ksame.models import FaceDetector
from ksame.models.detector import SMALLEST
from ksame.photographs import TURNS
from ksame.scene.looking.options import Looking

STILL = 0.4
"""How sure the detector must be in photographs, where no other frame can tell."""

LEAST = 6.0
"""Side in pixels below which nothing counts as a face: nobody is known from so few, and knitwear is full of them."""

_FACE = 64  # side in pixels to which an expected face is scaled
_REACH = 3.0  # side of the part that is searched, in sides of the face
_TURNED = 40.0  # turned faces are looked for from this side on
_PART, _SMALL = 288, 48  # longest side of the parts that are enlarged, and of the largest face looked for in them
_STILL_PART, _STILL_SMALL = 560, 17.0  # the same in photographs, and the smallest face: enlarged by half, not thrice
_STILL_SMALL_PICTURE = 600_000  # pixels of photographs in which turned faces are looked for as small as upright ones
_COARSE, _WORTH = 48.0, 400  # side from which on coarse searches find faces; frames of fewer pixels get none
_LARGE = 2500  # photographs with a longer side are not enlarged
_ASIDE, _UNLIKE = 0.8, 2.0  # how far off, in sides, and how many times larger or smaller, an expected face may be
_SAME, _INSIDE = 0.3, 0.7  # overlaps from which on two boxes are one face


_Part: TypeAlias = tuple[slice, slice]


@dataclass(frozen=True, eq=False)
class Search:
    """What a search of a whole frame found, the surest first, and the side of the smallest face it looks for."""

    found: list[Detection]
    least: float


@dataclass(frozen=True)
class Share:
    """One of several equal shares of a task, from 0 on."""

    number: int
    of: int


ALL = Share(0, 1)


def search(
    detector: FaceDetector, rgb: ByteArray, options: Looking, *, coarse: bool = False, hard: Share | None = ALL
) -> Search:
    """Search a whole frame of a recording.

    Parameters
    ----------
    detector : FaceDetector
    rgb : ndarray of shape (height, width, 3)
    options : Looking
    coarse : bool
        In large frames, look for larger faces only.
    hard : Share, optional
        How much is done of what takes longest: looking for small faces in all parts of the frame, and for turned ones.
    """
    coarse = coarse and min(rgb.shape[:2]) >= _WORTH
    found = detector.detect(rgb, score=options.low, min_face=_COARSE if coarse else SMALLEST)
    if hard is not None:
        parts = _parts_of(rgb)
        for i, part in enumerate(parts):
            if i * hard.of // len(parts) == hard.number:
                found += _search_small(detector, rgb, part, options.low, options.tiny)
        if hard.number == 0:
            found += detector.detect(rgb, score=options.score, min_face=_TURNED, rotations=TURNS)
        found = distinct(found)
    return Search([one for one in found if one.side >= LEAST], _COARSE if coarse else SMALLEST)


def _parts_of(rgb: ByteArray, longest: int = _PART) -> list[_Part]:
    """Return the parts, which overlap, in which a picture is searched for small faces."""
    return [(rows, columns) for rows in _parts(rgb.shape[0], longest) for columns in _parts(rgb.shape[1], longest)]


def _search_small(detector: FaceDetector, rgb: ByteArray, where: _Part, score: float, least: float) -> list[Detection]:
    """Search a part of a picture for small faces; enlarged as a whole it would take much memory."""
    height, width = rgb.shape[:2]
    rows, columns = where
    part, top, left = rgb[rows, columns], rows.start, columns.start
    high, wide = part.shape[:2]
    found = []
    for one in detector.detect(part, score=score, min_face=least):
        x, y, w, h = one.box
        cut = (
            (left > 0 and x < 1)
            or (top > 0 and y < 1)
            or (left + wide < width and x + w > wide - 1)
            or (top + high < height and y + h > high - 1)
        )
        if not cut and one.side <= _SMALL:
            found.append(Detection((x + left, y + top, w, h), one.landmarks + np.array([left, top]), one.score))
    return found


def _parts(length: int, longest: int = _PART) -> list[slice]:
    """Return equal parts that cover ``length`` and overlap.

    Examples
    --------
    >>> _parts(300), _parts(640)
    ([slice(0, 174, None), slice(126, 300, None)], [slice(0, 246, None), slice(197, 443, None), slice(394, 640, None)])
    """
    count = max(1, -(-(length - _SMALL) // (longest - _SMALL)))
    size = -(-(length + (count - 1) * _SMALL) // count)
    return [slice(start, start + size) for start in np.linspace(0, length - size, count).astype(int).tolist()]


def search_still(detector: FaceDetector, rgb: ByteArray) -> Search:
    """Search a photograph: small faces and turned ones always."""
    found = detector.detect(rgb, score=STILL)
    turned = SMALLEST if rgb.shape[0] * rgb.shape[1] <= _STILL_SMALL_PICTURE else _TURNED
    found += detector.detect(rgb, score=STILL, min_face=turned, rotations=TURNS)
    for part in _parts_of(rgb, _STILL_PART) if max(rgb.shape[:2]) <= _LARGE else ():
        found += _search_small(detector, rgb, part, STILL, _STILL_SMALL)
    return Search(distinct([one for one in found if one.side >= LEAST]), SMALLEST)


def search_near(detector: FaceDetector, rgb: ByteArray, box: FloatArray, roll: float, score: float) -> Detection | None:
    """Look for a face about where it is expected.

    Parameters
    ----------
    detector : FaceDetector
    rgb : ndarray of shape (height, width, 3)
    box : ndarray of shape (4,)
    roll : float
        How far the head was tilted, in radians: the part that is searched is turned upright.
    score : float
    """
    size = max(side(box), 4.0)
    scale, out = _FACE / size, round(_FACE * _REACH)
    cos, sin = np.cos(roll) * scale, np.sin(roll) * scale
    turn = np.array([[cos, sin], [-sin, cos]])
    shift = (out - 1) / 2 - turn @ centre(box)
    matrix = np.column_stack([turn, shift])
    flags = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    part = cv2.warpAffine(rgb, matrix, (out, out), flags=flags, borderMode=cv2.BORDER_CONSTANT)
    back = np.linalg.inv(turn)
    best, nearest = None, np.inf
    for found in detector.detect(np.asarray(part, dtype=np.uint8), score=score):
        x, y, w, h = found.box
        corners = np.array([[x, y], [x + w, y], [x, y + h], [x + w, y + h]])
        middle = (corners.mean(axis=0) - shift) @ back.T
        length = (w + h) / 2 / scale
        off = float(np.hypot(*(middle - centre(box)))) / size
        if off > _ASIDE or not 1 / _UNLIKE < length / size < _UNLIKE:
            continue
        if off + (1 - found.score) < nearest:
            nearest = off + (1 - found.score)
            left, top, wide, high = around((corners - shift) @ back.T)
            if abs(sin) < 0.7 * scale and cos > 0:  # nearly upright: the box itself, not the one about its corners
                left, top, wide, high = middle[0] - w / scale / 2, middle[1] - h / scale / 2, w / scale, h / scale
            best = Detection(
                (float(left), float(top), float(wide), float(high)), (found.landmarks - shift) @ back.T, found.score
            )
    return best


def distinct(found: list[Detection]) -> list[Detection]:
    """Keep the surest of detections that are one face, surest first."""
    kept: list[Detection] = []
    for one in sorted(found, key=lambda d: -d.score):
        if not any(same_face(np.array(one.box), np.array(other.box)) for other in kept):
            kept.append(one)
    return kept


def same_face(a: FloatArray, b: FloatArray) -> bool:
    """Tell whether two boxes are about one face."""
    return bool(overlap(a, b)[0, 0] > _SAME or inside(a, b)[0, 0] > _INSIDE)


def roll_of(points: FloatArray) -> float:
    """Return how far a head is tilted, in radians, from its two eyes, (2 or more, 2)."""
    x, y = points[1] - points[0]
    return float(np.arctan2(y, x)) if abs(x) + abs(y) > 1e-6 else 0.0
