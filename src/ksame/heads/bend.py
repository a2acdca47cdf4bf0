"""Bending finished squares: points of a face are moved to other places, and what surrounds them with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray


@dataclass(frozen=True)
class BendConfig:
    """How squares are bent; by choice.

    Attributes
    ----------
    still : float
        How far all points may be away to be where they were, in sides of the square: a quarter of a pixel of 256.
    cells : int
        Of the grid on which the warp is computed, along a side.
    near, far : float
        Cells over which the warp is smoothed: where there are points, and beyond them.
    trust : float
        Weight of the far warp beside that of one point.
    """

    still: float = 0.001
    cells: int = 64
    near: float = 0.8
    far: float = 5.0
    trust: float = 0.02


BEND = BendConfig()


def bent(squares: Sequence[ByteArray], places: Sequence[FloatArray], points: FloatArray) -> list[ByteArray]:
    """Return squares, all of one size, with their points moved.

    Parameters
    ----------
    squares : sequence of ndarray of shape (size, size, 3)
    places : sequence of ndarray of shape (n, 2)
        Where the points lie in each square, in sides of it.
    points : ndarray of shape (n, 2)
        Where they shall lie.
    """
    squares = list(squares)
    away = [place - points for place in places]
    moved = [i for i in range(len(squares)) if np.abs(away[i]).max() >= BEND.still]
    if not moved:
        return squares
    size = len(squares[0])
    across = np.arange(size, dtype=np.float32)
    spread = size * _spread(points, np.hstack([away[i] for i in moved]))
    for i, x, y in zip(moved, spread[::2], spread[1::2], strict=True):
        x, y = (np.asarray(cv2.resize(part, (size, size))) for part in (x, y))
        x += across
        y += across[:, None]
        warped = cv2.remap(squares[i], x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        squares[i] = np.asarray(warped, dtype=np.uint8)
    return squares


def _spread(points: FloatArray, values: FloatArray) -> NDArray[np.float32]:
    """Spread values, (n, m), at points, (n, 2), over grids, (m, cells, cells); far from all points they fade."""
    n, trust = BEND.cells, np.float32(BEND.trust)
    cell = (points * n).astype(np.intp).clip(0, n - 1)
    weights = np.column_stack([np.ones(len(points)), values])
    at = (cell @ (1, n) * weights.shape[1])[:, None] + np.arange(weights.shape[1])
    sums = np.bincount(at.ravel(), weights.ravel(), n * n * weights.shape[1]).astype(np.float32).reshape(n, n, -1)
    near, far = (np.stack(cv2.split(cv2.GaussianBlur(sums, (0, 0), sigma))) for sigma in (BEND.near, BEND.far))
    coarse = far[1:] / (far[0] + trust)
    return np.asarray((near[1:] + trust * coarse) / (near[0] + trust))
