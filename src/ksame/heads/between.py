"""A head between two others of the same person: both are warped to its mesh and mixed, without asking the network."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.models.finisher import Image
from ksame.spaces.facemodel.geometry import EYES


@dataclass(frozen=True)
class BetweenConfig:
    """When a head may be interpolated, and how; lengths in sides of the square.

    Beyond the limits there is something to be seen that neither head has: teeth, a lid, another cheek. Limits
    are by choice. On a synthetic talking head, two seeds, blinks correlated 0.76 and 0.83 at 0.005 for lids, 0.80 and
    0.86 at 0.0025, 0.78 and 0.86 without interpolation (``benchmarks.scene_use``); one seed repeated differed by 0.03.

    Attributes
    ----------
    max_move : float
        How far points may move from one head to the other.
    max_bend, max_lid_bend : float
        How far points, and those of the lids, may be off the straight line between the two.
    still : float
        How far all points may be away to be where they were: a quarter of a pixel of 256.
    cells : int
        Of the grid on which the warp is computed, along a side.
    near, far : float
        Cells over which the warp is smoothed: where there are points, and beyond them. By choice.
    trust : float
        Weight of the far warp beside that of one point. By choice.
    """

    max_move: float = 0.05
    max_bend: float = 0.01
    max_lid_bend: float = 0.0025
    still: float = 0.001
    cells: int = 64
    near: float = 0.8
    far: float = 5.0
    trust: float = 0.02


BETWEEN = BetweenConfig()
_LIDS = np.unique([point for ring in EYES for point in ring])


@dataclass(frozen=True, eq=False)
class FinishedHead:
    """A finished head.

    Attributes
    ----------
    points : ndarray of shape (478, 2)
        Where its points lie in the square, in sides of it.
    square : ndarray of shape (size, size, 3)
        From -1 to 1.
    """

    points: FloatArray
    square: Image


def between(first: FinishedHead, points: FloatArray, last: FinishedHead, share: float) -> Image | None:
    """Return the square, (size, size, 3), of a head between two others; None where the network must make it.

    Parameters
    ----------
    first, last : FinishedHead
    points : ndarray of shape (478, 2)
        Where its points lie.
    share : float
        How far it is on the way from the first to the last, in [0, 1].
    """
    if first.square.shape != last.square.shape or not _alike(first.points, points, last.points, share):
        return None
    start, end = (_warped(head, points) for head in (first, last))
    return np.asarray(cv2.addWeighted(start, 1 - share, end, share, 0), dtype=np.float32)


def _alike(first: FloatArray, now: FloatArray, last: FloatArray, share: float) -> bool:
    """Tell whether a head changes little between two frames, and nearly in a straight line."""
    moved = np.hypot(*(last - first).T).max()
    bent = np.hypot(*(now - first - share * (last - first)).T)
    limits = (BETWEEN.max_move, BETWEEN.max_bend, BETWEEN.max_lid_bend)
    return all(value < limit for value, limit in zip((moved, bent.max(), bent[_LIDS].max()), limits, strict=True))


def _warped(head: FinishedHead, points: FloatArray) -> Image:
    """Return a square with its points moved to ``points``."""
    away = head.points - points
    if np.abs(away).max() < BETWEEN.still:
        return head.square
    size = len(head.square)
    x, y = (size * _spread(points, away)).transpose(2, 0, 1)
    x, y = (cv2.resize(np.ascontiguousarray(part), (size, size)) for part in (x, y))
    across = np.arange(size, dtype=np.float32)
    x, y = x + across, y + across[:, None]
    return np.asarray(cv2.remap(head.square, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), dtype=np.float32)


def _spread(points: FloatArray, away: FloatArray) -> NDArray[np.float32]:
    """Spread values at points, both (478, 2), over a grid, (cells, cells, 2); far from all points they fade."""
    n, trust = BETWEEN.cells, np.float32(BETWEEN.trust)
    cell = (points * n).astype(np.intp).clip(0, n - 1)
    at = cell[:, 1] * n + cell[:, 0]
    columns = (np.ones(len(at)), *away.T)
    sums = np.stack([np.bincount(at, weights, n**2) for weights in columns], axis=1).astype(np.float32)
    near, far = (cv2.GaussianBlur(sums.reshape(n, n, 3), (0, 0), sigma) for sigma in (BETWEEN.near, BETWEEN.far))
    coarse = far[..., 1:] / (far[..., :1] + trust)
    return np.asarray((near[..., 1:] + trust * coarse) / (near[..., :1] + trust), dtype=np.float32)
