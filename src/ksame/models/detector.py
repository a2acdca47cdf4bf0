"""Detect faces: YuNet (Wu et al. 2023) over several scales, in tiles, and on turned pictures where asked.

The network detects faces of about 24 to 300 pixels. Smaller ones are enlarged first, larger ones are detected in
a reduced copy. Measured at 1920 x 1080 with the picture enlarged 1 / 2 / 3 times, the share of faces found is
.12 / .91 / .99 for faces of 12 pixels, .53 / 1 / 1 for 16 and .98 / 1 / 1 for 24.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray
from ksame.errors import parameter_error
from ksame.geometry import inside, overlap
from ksame.models.face import Face
from ksame.models.pictures import as_rgb8
from ksame.models.store import Store
from ksame.models.yunet import SAME, yunet

SMALLEST = 24  # side in pixels of the smallest face that the network finds almost always
TINY = 12  # side in pixels with `tiny`
# Sides up to which pictures are searched whole, and of tiles: memory stays bounded. What the network holds of a tile,
# 16 x 608 x 608 numbers, is just below what ``ksame.scene.memory`` lets the C library keep.
_WHOLE, _TILE = 1920, 1216
_MAX_FACE = 320  # above, the network sees parts; the next reduced copy has such a face at a quarter of the size
_REDUCE = 4
_ROTATE = {90: cv2.ROTATE_90_COUNTERCLOCKWISE, 180: cv2.ROTATE_180, 270: cv2.ROTATE_90_CLOCKWISE}
_OVERLAP = 128  # of tiles, in pixels: a face cut by a tile's edge is smaller or found in the reduced copy
_INSIDE = 0.7  # share of the smaller box inside the larger above which two boxes are one face


class FaceDetector:
    """YuNet, its weights from ``store``, run by ONNX Runtime. One object may be used from several threads."""

    def __init__(self, store: Store | None = None) -> None:
        self._network = yunet((store or Store()).path("yunet"))

    def detect(
        self,
        image: NDArray[Any],
        *,
        min_face: float = SMALLEST,
        score: float = 0.6,
        tiny: bool = False,
        rotations: Sequence[int] = (),
        map: Callable[..., Iterable[Any]] = map,
    ) -> list[Face]:
        """Find the faces of a picture.

        Parameters
        ----------
        image : ndarray of shape (height, width), (height, width, 1) or (height, width, 3)
            8-bit or floating point in [0, 1]; RGB where it has three channels.
        min_face : float
            Side in pixels of the smallest face to look for. Below 24 the picture is enlarged, at most three
            times, which costs time by the square; above 24 it is reduced and the search is faster.
        score : float
            Lowest score that counts, in (0, 1]. Low values find more faces, and more that are none.
        tiny : bool
            Look for faces down to 12 pixels: ``min_face=12``.
        rotations : sequence of int
            Quarter turns in degrees (90, 180, 270) in which the picture is searched as well, for heads that
            are not upright. Each costs as much as the upright search.
        map : callable
            Searches the tiles of a large picture; an executor's for several at a time.

        Returns
        -------
        faces : list of Face
            Highest score first; empty when there is no face.
        """
        if not min_face >= 1:
            raise parameter_error("min_face", "detect", "a number of at least 1", min_face)
        if not 0 < score <= 1:
            raise parameter_error("score", "detect", "a number in (0, 1]", score)
        if any(turn not in (0, 90, 180, 270) for turn in rotations):
            raise parameter_error("rotations", "detect", "quarter turns out of 90, 180 and 270", tuple(rotations))
        rgb = as_rgb8(image)
        scale = _enlargement(min(min_face, TINY) if tiny else min_face)
        turns = sorted({0, *rotations})
        rows = [np.empty((0, 15))]
        picture = _resized(rgb, _size_at(rgb, scale))
        while True:
            last = max(rgb.shape[:2]) * scale <= SMALLEST * _REDUCE
            for turn in turns:
                turned = picture if turn == 0 else np.asarray(cv2.rotate(picture, _ROTATE[turn]), dtype=np.uint8)
                faces = self._search(np.ascontiguousarray(turned), score, map)
                if not last:
                    faces = faces[faces[:, 2:4].max(axis=1) <= _MAX_FACE]
                rows.append(_turn_back(_rescale(faces, 1 / scale), turn, rgb.shape))
            if last:
                break
            scale /= _REDUCE
            # a large picture takes long to read: a copy of it is made from the copy before
            again = max(rgb.shape) > _WHOLE and picture.size < rgb.size
            picture = _resized(picture if again else rgb, _size_at(rgb, scale))
        return [_face(row) for row in _suppress(np.concatenate(rows))]

    def _search(self, rgb: ByteArray, score: float, map: Callable[..., Iterable[Any]]) -> FloatArray:
        """Search a picture as it is, in tiles; rows of shape (n_faces, 15)."""

        def search_tile(tile: _Tile) -> FloatArray:
            faces = self._network.detect(tile.rgb, score)
            faces = faces[~_cut(faces, tile.rgb.shape, tile.inner)]
            faces[:, :14:2] += tile.left
            faces[:, 1:14:2] += tile.top
            faces[:, 2:4] -= (tile.left, tile.top)  # width and height do not shift
            return faces

        return np.concatenate([np.empty((0, 15)), *map(search_tile, _tiles(rgb))])


def detect(image: NDArray[Any], **options: Any) -> list[Face]:
    """Find the faces of a picture with the default store's YuNet; options are those of :meth:`FaceDetector.detect`."""
    return FaceDetector().detect(image, **options)


def _enlargement(min_face: float) -> float:
    """Return the scale at which faces of ``min_face`` pixels are found almost always.

    Examples
    --------
    >>> [_enlargement(side) for side in (8, 12, 16, 18, 24, 48)]
    [3.0, 3.0, 2.0, 1.3333333333333333, 1.0, 0.5]
    """
    if min_face > 16:
        return SMALLEST / min_face
    return 2.0 if min_face == 16 else 3.0


def _size_at(rgb: ByteArray, scale: float) -> tuple[int, ...]:
    """Return width and height of a picture at a scale."""
    return tuple(max(1, round(side * scale)) for side in rgb.shape[1::-1])


def _resized(rgb: ByteArray, size: tuple[int, ...]) -> ByteArray:
    """Enlarge or reduce a picture."""
    if size == rgb.shape[1::-1]:
        return rgb
    interpolation = cv2.INTER_AREA if 3 * size[0] * size[1] < rgb.size else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(rgb, size, interpolation=interpolation), dtype=np.uint8)


class _Tile(NamedTuple):
    """A part of a picture, where it begins, and which of its edges (l, t, r, b) lie inside the picture."""

    left: int
    top: int
    rgb: ByteArray
    inner: tuple[bool, bool, bool, bool]


def _tiles(rgb: ByteArray) -> Iterator[_Tile]:
    """Yield equal tiles of a picture."""
    height, width = rgb.shape[:2]
    tile = _WHOLE if max(height, width) <= _WHOLE else _TILE
    for top, bottom in _spans(height, tile):
        for left, right in _spans(width, tile):
            inner = (left > 0, top > 0, right < width, bottom < height)
            yield _Tile(left, top, rgb[top:bottom, left:right], inner)


def _spans(length: int, tile: int) -> list[tuple[int, int]]:
    """Return begin and end of the fewest tiles, of equal size, that cover ``length`` and overlap.

    Examples
    --------
    >>> _spans(800, 1920), _spans(3000, 1920)
    ([(0, 800)], [(0, 1564), (1436, 3000)])
    """
    count = max(1, -(-(length - _OVERLAP) // (tile - _OVERLAP)))
    side = -(-(length + _OVERLAP * (count - 1)) // count)
    return [(start, start + side) for start in (round(s) for s in np.linspace(0, length - side, count))]


def _cut(rows: FloatArray, shape: tuple[int, ...], inner: tuple[bool, bool, bool, bool]) -> NDArray[np.bool_]:
    """Tell which boxes touch an edge where the picture goes on: another tile or scale has them whole."""
    left, top = rows[:, 0], rows[:, 1]
    right, bottom = left + rows[:, 2], top + rows[:, 3]
    touches = [left < 2, top < 2, right > shape[1] - 2, bottom > shape[0] - 2]
    return np.asarray(np.any([touch & at for touch, at in zip(touches, inner, strict=True)], axis=0))


def _rescale(rows: FloatArray, factor: float) -> FloatArray:
    """Scale positions about the outer corner of the first pixel, whose centre is at (0, 0)."""
    rows = rows.copy()
    shift = (factor - 1) / 2
    rows[:, :14] *= factor
    rows[:, :2] += shift
    rows[:, 4:14] += shift
    return rows


def _turn_back(rows: FloatArray, turn: int, shape: tuple[int, ...]) -> FloatArray:
    """Take rows found in a picture turned counter-clockwise back to the picture of ``shape``."""
    if turn == 0:
        return rows
    height, width = shape[:2]
    corner = rows[:, :2] + rows[:, 2:4]
    points = np.concatenate([rows[:, :2], corner, rows[:, 4:14]], axis=1).reshape(len(rows), 7, 2)
    x, y = points[..., 0], points[..., 1]
    if turn == 90:
        points = np.stack([width - 1 - y, x], axis=-1)
    elif turn == 180:
        points = np.stack([width - 1 - x, height - 1 - y], axis=-1)
    else:
        points = np.stack([y, height - 1 - x], axis=-1)
    low, high = points[:, :2].min(axis=1), points[:, :2].max(axis=1)
    return np.concatenate([low, high - low, points[:, 2:].reshape(len(rows), 10), rows[:, 14:]], axis=1)


def _suppress(rows: FloatArray) -> FloatArray:
    """Keep the box with the highest score of every set of boxes that overlap, highest score first."""
    rows = rows[np.argsort(-rows[:, 14], kind="stable")]
    same = (overlap(rows[:, :4], rows[:, :4]) > SAME) | (inside(rows[:, :4], rows[:, :4]) > _INSIDE)
    kept: list[int] = []
    for i in range(len(rows)):
        if not same[i, kept].any():
            kept.append(i)
    return rows[kept]


def _face(row: FloatArray) -> Face:
    x, y, width, height = (float(value) for value in row[:4])
    return Face((x, y, width, height), row[4:14].reshape(5, 2), float(row[14]))
