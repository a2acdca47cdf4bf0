"""Boxes, similarity transforms and crops.

A box is left, top, width and height in pixels, as an array of shape (4,) or (n, 4).
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import ArrayLike

from ksame.arrays import ByteArray, FloatArray
from ksame.errors import InputError


def side(box: FloatArray) -> float:
    """Return the mean of width and height."""
    return float(box[2] + box[3]) / 2


def centre(box: FloatArray) -> FloatArray:
    """Return the middle, (2,)."""
    return np.asarray(box[:2] + box[2:] / 2)


def grown(boxes: FloatArray, factor: ArrayLike) -> FloatArray:
    """Return boxes grown about their middles.

    Examples
    --------
    >>> grown(np.array([2.0, 2.0, 4.0, 8.0]), 1.5).tolist()
    [1.0, 0.0, 6.0, 12.0]
    """
    boxes = np.asarray(boxes, dtype=np.float64)
    size = boxes[..., 2:] * np.asarray(factor, dtype=np.float64)[..., None]
    return np.concatenate([boxes[..., :2] + (boxes[..., 2:] - size) / 2, size], axis=-1)


def overlap(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return intersection over union of every box of ``a`` with every box of ``b``, (n_a, n_b).

    Examples
    --------
    >>> overlap(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 0, 2, 2], [5, 5, 1, 1]])).round(3).tolist()
    [[0.333, 0.0]]
    """
    common, area_a, area_b = _common(a, b)
    return common / np.maximum(area_a + area_b - common, 1e-9)


def inside(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the share of the smaller box that lies in the larger, for every pair, (n_a, n_b).

    Examples
    --------
    >>> inside(np.array([[0.0, 0, 4, 4]]), np.array([[1.0, 1, 2, 2]])).tolist()
    [[1.0]]
    """
    common, area_a, area_b = _common(a, b)
    return common / np.maximum(np.minimum(area_a, area_b), 1e-9)


def around(points: FloatArray) -> FloatArray:
    """Return the box about points of shape (n_points, 2 or more)."""
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    return np.concatenate([low, high - low])


def _common(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    a, b = np.reshape(a, (-1, 1, 4)), np.reshape(b, (1, -1, 4))
    low = np.maximum(a[..., :2], b[..., :2])
    high = np.minimum(a[..., :2] + a[..., 2:], b[..., :2] + b[..., 2:])
    common = np.prod((high - low).clip(0, None), axis=-1)
    return common, np.prod(a[..., 2:], axis=-1), np.prod(b[..., 2:], axis=-1)


@dataclass(frozen=True)
class Similarity:
    """A rotation, a uniform scale and a shift of the plane: ``x' = a x - b y + tx``, ``y' = b x + a y + ty``.

    Examples
    --------
    >>> turn = Similarity.estimate([[0, 0], [1, 0]], [[2, 1], [2, 3]])
    >>> np.round(turn.apply([[1, 1]]), 6).tolist()
    [[0.0, 3.0]]
    >>> np.round(turn.inverse().apply(turn.apply([[4, 5]])), 6).tolist()
    [[4.0, 5.0]]
    """

    a: float
    b: float
    tx: float
    ty: float

    @classmethod
    def estimate(cls, source: ArrayLike, target: ArrayLike) -> Similarity:
        """Return the least-squares similarity that takes ``source`` to ``target``, both of shape (n_points, 2)."""
        p, q = np.asarray(source, dtype=np.float64), np.asarray(target, dtype=np.float64)
        if p.shape != q.shape or p.ndim != 2 or p.shape[1] != 2 or len(p) < 2:
            raise InputError(f"Registration needs at least two pairs of points. Got shapes {p.shape} and {q.shape}.")
        if not (np.isfinite(p).all() and np.isfinite(q).all()):
            raise InputError("Registration needs finite points.")
        u, v = p - p.mean(axis=0), q - q.mean(axis=0)
        norm = (u**2).sum()
        if norm <= 1e-12:
            raise InputError("Registration needs points that differ; all of them are in one place.")
        a = (u * v).sum() / norm
        b = (u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]).sum() / norm
        shift = q.mean(axis=0) - np.array([[a, -b], [b, a]]) @ p.mean(axis=0)
        return cls(float(a), float(b), float(shift[0]), float(shift[1]))

    @property
    def matrix(self) -> FloatArray:
        """The 2 x 3 matrix that OpenCV uses."""
        return np.array([[self.a, -self.b, self.tx], [self.b, self.a, self.ty]])

    def apply(self, points: ArrayLike) -> FloatArray:
        """Move points of shape (..., 2)."""
        m = self.matrix
        return np.asarray(np.asarray(points, dtype=np.float64) @ m[:, :2].T + m[:, 2])

    def inverse(self) -> Similarity:
        """Return the transform that undoes this one."""
        s = self.a**2 + self.b**2
        if s <= 1e-24:
            raise InputError("A similarity of scale zero has no inverse.")
        a, b = self.a / s, -self.b / s
        return Similarity(a, b, -(a * self.tx - b * self.ty), -(b * self.tx + a * self.ty))


def warp(image: ByteArray, matrix: FloatArray, side: int) -> ByteArray:
    """Cut a square out of a picture.

    Parameters
    ----------
    image : ndarray of shape (height, width, 3)
    matrix : ndarray of shape (2, 3)
        From picture to crop, pixel centres at whole numbers. Outside the picture its edge is repeated.
    side : int
        Size of the crop in pixels.

    Returns
    -------
    crop : ndarray of shape (side, side, 3)
    """
    scale = float(np.hypot(matrix[0, 0], matrix[1, 0]))
    # A warp that shrinks samples too sparsely: cut a larger square and average.
    times = int(np.clip(np.ceil(1.0 / max(scale, 1e-6)), 1, 8))
    larger = matrix * times
    larger[:, 2] += (times - 1) / 2
    size = (side * times, side * times)
    crop = cv2.warpAffine(image, larger, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    if times > 1:
        crop = cv2.resize(crop, (side, side), interpolation=cv2.INTER_AREA)
    return np.asarray(crop, dtype=np.uint8)
