"""Boxes about faces: left, top, width and height in pixels, as arrays of shape (4,) or (n, 4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ksame.faces.faceset import FloatArray


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
