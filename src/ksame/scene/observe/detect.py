"""Searching for faces: whole keyframes, photographs, and small parts of a frame where a face is expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import cv2
import numpy as np

from ksame.arrays import ByteArray, FloatArray
from ksame.geometry import around, centre, inside, overlap, side
from ksame.models import Face, FaceDetector
from ksame.models.detector import SMALLEST
from ksame.photographs import TURNS
from ksame.scene.observe.config import DetectorConfig

MIN_SIDE = 6.0
"""Side in pixels below which nothing counts as a face: nobody is known from so few, and knitwear is full of them."""

_FACE = 64  # side in pixels to which an expected face is scaled
_REACH = 3.0  # side of the part that is searched, in sides of the face
_TURNED = 40.0  # turned faces are searched for from this side on
_PART, _SMALL = 288, 48  # longest side of the parts that are enlarged, and of the largest face kept from them
_STILL_PART, _STILL_SMALL = 560, 17.0  # the same in photographs, and the smallest face: enlarged by half, not thrice
_STILL_SMALL_PICTURE = 600_000  # pixels of photographs in which turned faces are searched for as small as upright ones
_COARSE, _WORTH = 48.0, 400  # side from which on coarse searches find faces; smaller frames get no coarse search
_LARGE = 2500  # photographs with a longer side are not enlarged
_ASIDE, _UNLIKE = 0.8, 2.0  # how far off, in sides, and how many times larger or smaller, an expected face may be
_SAME, _INSIDE = 0.3, 0.7  # overlaps from which on two boxes are one face
_SHARES = 3  # into which the search for small and turned faces is divided, lest one keyframe takes very long

_Part: TypeAlias = tuple[slice, slice]
Map: TypeAlias = Callable[..., Iterable[Any]]
"""Applies a function to independent items, in order: the built-in ``map``, or an executor's."""


@dataclass(frozen=True)
class Search:
    """How a keyframe is searched."""

    coarse: bool = False  # in large frames, for larger faces only
    share: tuple[int, int] | None = (0, 1)  # which share, and of how many, of the search for small and turned faces
    still: bool = False  # a photograph: everything at once


def schedule(number: int, config: DetectorConfig) -> Search:
    """Return how keyframe ``number`` of a shot, from 0, is searched; the last one of a shot must not be coarse.

    Examples
    --------
    >>> [schedule(i, DetectorConfig()).coarse for i in range(4)]
    [False, True, False, True]
    >>> [schedule(i, DetectorConfig()).share for i in (0, 4, 8, 16, 24)]
    [(0, 1), None, (1, 3), (2, 3), (0, 3)]
    """
    share = None
    if config.tiny_every > 0:
        shares = max(1, min(_SHARES, config.tiny_every // config.detect_every))
        every = max(1, config.tiny_every // (config.detect_every * shares))
        if number == 0:
            share = (0, 1)
        elif number % every == 0:
            share = (number // every % shares, shares)
    return Search(number % 2 == 1 and share is None, share)


def search(
    detector: FaceDetector, rgb: ByteArray, how: Search, config: DetectorConfig, map: Map = map
) -> tuple[list[Face], float]:
    """Search a whole frame, (height, width, 3); return the faces, surest first, and the smallest side searched for.

    The parts of a photograph go through ``map``.
    """
    if how.still:
        return _search_still(detector, rgb, config, map), SMALLEST
    min_side = _COARSE if how.coarse and min(rgb.shape[:2]) >= _WORTH else SMALLEST
    faces = detector.detect(rgb, score=config.low, min_face=min_side)
    if how.share is not None:
        number, of = how.share
        parts = _parts_of(rgb, _PART)
        for i, part in enumerate(parts):
            if i * of // len(parts) == number:
                faces += _search_small(detector, rgb, part, config.low, config.tiny)
        if number == 0:
            faces += detector.detect(rgb, score=config.score, min_face=_TURNED, rotations=TURNS)
    return distinct(faces), min_side


def _search_still(detector: FaceDetector, rgb: ByteArray, config: DetectorConfig, map: Map) -> list[Face]:
    """Search a photograph: small faces and turned ones always."""
    faces = detector.detect(rgb, score=config.still, map=map)
    turned = SMALLEST if rgb.shape[0] * rgb.shape[1] <= _STILL_SMALL_PICTURE else _TURNED
    faces += detector.detect(rgb, score=config.still, min_face=turned, rotations=TURNS, map=map)
    parts = _parts_of(rgb, _STILL_PART) if max(rgb.shape[:2]) <= _LARGE else []
    for found in map(lambda part: _search_small(detector, rgb, part, config.still, _STILL_SMALL), parts):
        faces += found
    return distinct(faces)


def _parts_of(rgb: ByteArray, longest: int) -> list[_Part]:
    """Return the parts, which overlap, in which a picture is searched for small faces."""
    return [(rows, columns) for rows in _parts(rgb.shape[0], longest) for columns in _parts(rgb.shape[1], longest)]


def _search_small(detector: FaceDetector, rgb: ByteArray, where: _Part, score: float, min_side: float) -> list[Face]:
    """Search a part of a picture for small faces; enlarged as a whole it would take much memory."""
    height, width = rgb.shape[:2]
    rows, columns = where
    part, top, left = rgb[rows, columns], rows.start, columns.start
    high, wide = part.shape[:2]
    faces = []
    for face in detector.detect(part, score=score, min_face=min_side):
        x, y, w, h = face.box
        cut = (
            (left > 0 and x < 1)
            or (top > 0 and y < 1)
            or (left + wide < width and x + w > wide - 1)
            or (top + high < height and y + h > high - 1)
        )
        if not cut and face.side <= _SMALL:
            faces.append(Face((x + left, y + top, w, h), face.landmarks + np.array([left, top]), face.score))
    return faces


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


def search_near(detector: FaceDetector, rgb: ByteArray, box: FloatArray, roll: float, score: float) -> Face | None:
    """Search for a face about a box, (4,); the part that is searched is turned upright by ``roll``, in radians."""
    size = max(side(box), 4.0)
    scale, out = _FACE / size, round(_FACE * _REACH)
    cos, sin = np.cos(roll) * scale, np.sin(roll) * scale
    turn = np.array([[cos, sin], [-sin, cos]])
    shift = (out - 1) / 2 - turn @ centre(box)
    part = cv2.warpAffine(rgb, np.column_stack([turn, shift]), (out, out), borderMode=cv2.BORDER_CONSTANT)
    back = np.linalg.inv(turn).T
    best, nearest = None, np.inf
    for face in detector.detect(np.asarray(part, dtype=np.uint8), score=score):
        x, y, w, h = face.box
        corners = np.array([[x, y], [x + w, y], [x, y + h], [x + w, y + h]])
        middle = (corners.mean(axis=0) - shift) @ back
        length, off = (w + h) / 2 / scale, float(np.hypot(*(middle - centre(box)))) / size
        if off > _ASIDE or not 1 / _UNLIKE < length / size < _UNLIKE or off + (1 - face.score) >= nearest:
            continue
        nearest = off + (1 - face.score)
        left, top, wide, high = around((corners - shift) @ back).tolist()
        if abs(sin) < 0.7 * scale and cos > 0:  # nearly upright: the box itself, not the one about its corners
            left, top, wide, high = middle[0] - w / scale / 2, middle[1] - h / scale / 2, w / scale, h / scale
        best = Face((float(left), float(top), wide, high), (face.landmarks - shift) @ back, face.score)
    return best


def distinct(faces: list[Face]) -> list[Face]:
    """Keep the surest of detections that are one face, surest first; none that is smaller than ``MIN_SIDE``."""
    kept: list[Face] = []
    for face in sorted((face for face in faces if face.side >= MIN_SIDE), key=lambda face: -face.score):
        if not any(same_face(np.array(face.box), np.array(other.box)) for other in kept):
            kept.append(face)
    return kept


def same_face(a: FloatArray, b: FloatArray) -> bool:
    """Tell whether two boxes are about one face."""
    return bool(overlap(a, b)[0, 0] > _SAME or inside(a, b)[0, 0] > _INSIDE)
