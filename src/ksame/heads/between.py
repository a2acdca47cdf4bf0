"""A head between two others of the same person: these are bent to its own points and mixed, without the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray
from ksame.heads.invention import FinishedHead
from ksame.spaces.facemodel.geometry import EYES


@dataclass(frozen=True)
class BetweenConfig:
    """When a head may be interpolated, and how; lengths in sides of the square.

    Beyond the limits there is something to be seen that neither head has: teeth, a lid, another cheek. Limits are by
    choice; that of the lids by a synthetic talking head, whose blinks correlated 0.77 at 0.005, 0.85 at 0.003 and 0.85
    at 0.002 (``benchmarks.scene_use``, mean of three surrogates).

    Attributes
    ----------
    max_move : float
        How far points may move from one head to the other.
    max_bend, max_lid_bend : float
        How far points, and those of the lids, may be off the straight line between the two.
    bend_pixels, lid_pixels : float
        The same in pixels of the frame; the wider limit holds. Meshes of small heads tremble by as much.
    still : float
        How far all points may be away to be where they were: a quarter of a pixel of 256.
    cells : int
        Of the grid on which the warp is computed, along a side.
    near, far : float
        Cells over which the warp is smoothed: where there are points, and beyond them. By choice.
    trust : float
        Weight of the far warp beside that of one point. By choice.
    """

    max_move: float = 0.1
    max_bend: float = 0.016
    max_lid_bend: float = 0.003
    bend_pixels: float = 2.0
    lid_pixels: float = 0.75
    still: float = 0.001
    cells: int = 64
    near: float = 0.8
    far: float = 5.0
    trust: float = 0.02


BETWEEN = BetweenConfig()
_LIDS = np.unique([point for ring in EYES for point in ring])


def keyframes(points: Sequence[FloatArray], side: float) -> list[int]:
    """Choose which of consecutive heads the network must make; the others lie nearly on a line between two of these.

    The first and the last are always chosen, and between two the one that is furthest off their line
    (Douglas & Peucker 1973).

    Parameters
    ----------
    points : sequence of ndarray of shape (478, 2)
        Of each head, in sides of the square.
    side : float
        Of the square, in pixels of the frame.
    """
    heads = np.stack(points).astype(np.float32)
    limits = np.full(heads.shape[1], max(BETWEEN.max_bend, BETWEEN.bend_pixels / side))
    limits[_LIDS] = max(BETWEEN.max_lid_bend, BETWEEN.lid_pixels / side)

    def split(first: int, last: int) -> list[int]:
        if last - first < 2:
            return []
        way = heads[last] - heads[first]
        share = np.arange(1, last - first, dtype=np.float32)[:, None, None] / (last - first)
        off = heads[first + 1 : last] - heads[first] - share * way
        bent = (np.hypot(off[..., 0], off[..., 1]) / limits).max(axis=1)
        if bent.max() >= 1:
            middle = first + 1 + int(bent.argmax())
        elif np.hypot(*way.T).max() >= BETWEEN.max_move:
            middle = (first + last) // 2
        else:
            return []
        return [*split(first, middle), middle, *split(middle, last)]

    last = len(heads) - 1
    return [0, *split(0, last), last] if last else [0]


def between(first: FinishedHead, points: FloatArray, last: FinishedHead, share: float) -> FinishedHead | None:
    """Return a head between two others; None where these are of different sizes, so that the network must make it.

    Parameters
    ----------
    first, last : FinishedHead
    points : ndarray of shape (478, 2)
        Where its points lie, in sides of the square.
    share : float
        How far it is on the way from the first to the last, in [0, 1].
    """
    if first is last:
        return first
    if first.square.shape != last.square.shape:
        return None
    start, end = (carried(head, points).square for head in (first, last))
    square = np.asarray(cv2.addWeighted(start, 1 - share, end, share, 0), dtype=np.uint8)
    return FinishedHead(points, square, (1 - share) * first.grain + share * last.grain)


def carried(head: FinishedHead, points: FloatArray) -> FinishedHead:
    """Return a head with its points moved to ``points``, (478, 2), in sides of the square."""
    return FinishedHead(points, _warped(head, points), head.grain)


def _warped(head: FinishedHead, points: FloatArray) -> ByteArray:
    """Return a square with its points moved to ``points``."""
    away = head.points - points
    if np.abs(away).max() < BETWEEN.still:
        return head.square
    size = len(head.square)
    x, y = (size * _spread(points, away)).transpose(2, 0, 1)
    x, y = (cv2.resize(np.ascontiguousarray(part), (size, size)) for part in (x, y))
    across = np.arange(size, dtype=np.float32)
    x, y = x + across, y + across[:, None]
    return np.asarray(cv2.remap(head.square, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE))


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
