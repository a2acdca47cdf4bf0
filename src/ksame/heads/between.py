"""A head between two others of the same person: both are bent to its mesh and mixed, without asking the network."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.faces.faceset import FloatArray
from ksame.models.finisher import Image
from ksame.spaces.facemodel.geometry import EYES

# How far points may move from one of the two to the other, and be off the straight line between them, lids less than
# others, in sides of the square. Beyond, there is something to be seen that neither has: teeth, a lid, another cheek.
_MOVED, _BENT, _BLINKED = 0.05, 0.01, 0.005
_STILL = 0.001  # sides that all points may be away to be where they were: a quarter of a pixel
_LIDS = np.unique([point for ring in EYES for point in ring])
_CELLS = 64  # of the grid on which the bending is reckoned, along a side
_NEAR, _FAR, _TRUST = 0.8, 5.0, 0.02  # cells over which it is smoothed: where there are points, and beyond them


@dataclass(frozen=True, eq=False)
class Made:
    """A head that was made: where its points lay in the square, (478, 2), in sides of it, and the finished square."""

    places: FloatArray
    square: Image


def between(first: Made, places: FloatArray, last: Made, share: float) -> Image | None:
    """Return the square of a head between two others; None where it must be made.

    Parameters
    ----------
    first, last : Made
    places : ndarray of shape (478, 2)
        Where its points lie.
    share : float
        How far it is on the way from the first to the last, in [0, 1].
    """
    if first.square.shape != last.square.shape or not _alike(first.places, places, last.places, share):
        return None
    one, other = (_bent(made, places) for made in (first, last))
    return np.asarray(cv2.addWeighted(one, 1 - share, other, share, 0), dtype=np.float32)


def _alike(first: FloatArray, now: FloatArray, last: FloatArray, share: float) -> bool:
    """Tell whether a head changes little between two frames, and nearly in a straight line."""
    moved = np.hypot(*(last - first).T).max()
    bent = np.hypot(*(now - first - share * (last - first)).T)
    return bool(moved < _MOVED and bent.max() < _BENT and bent[_LIDS].max() < _BLINKED)


def _bent(made: Made, places: FloatArray) -> Image:
    """Return a square with its points moved to ``places``."""
    away = made.places - places
    if np.abs(away).max() < _STILL:
        return made.square
    size = len(made.square)
    x, y = (size * _spread(places, away)).transpose(2, 0, 1)
    x, y = (cv2.resize(np.ascontiguousarray(part), (size, size)) for part in (x, y))
    across = np.arange(size, dtype=np.float32)
    x, y = x + across, y + across[:, None]
    return np.asarray(cv2.remap(made.square, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), dtype=np.float32)


def _spread(places: FloatArray, away: FloatArray) -> NDArray[np.float32]:
    """Spread values at points, both (478, 2), over a grid, (_CELLS, _CELLS, 2); far from all points they fade."""
    cell = (places * _CELLS).astype(np.intp).clip(0, _CELLS - 1)
    at = cell[:, 1] * _CELLS + cell[:, 0]
    columns = (np.ones(len(at)), *away.T)
    sums = np.stack([np.bincount(at, weights, _CELLS**2) for weights in columns], axis=1).astype(np.float32)
    near, far = (cv2.GaussianBlur(sums.reshape(_CELLS, _CELLS, 3), (0, 0), s) for s in (_NEAR, _FAR))
    coarse = far[..., 1:] / (far[..., :1] + np.float32(_TRUST))
    return np.asarray((near[..., 1:] + _TRUST * coarse) / (near[..., :1] + np.float32(_TRUST)), dtype=np.float32)
