"""A head between two others of the same person: these are bent to its own points and mixed, without the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.heads.bend import bent
from ksame.heads.invention import FinishedHead
from ksame.spaces.facemodel.geometry import BROWS, EYE_CORNERS, IRISES, LIDS


@dataclass(frozen=True)
class BetweenConfig:
    """When a head may be interpolated, and how; lengths in sides of the square.

    Beyond the limits there is something to be seen that neither head has: teeth, a lid, another cheek. Limits are by
    choice; that of expressions by ``benchmarks.scene_use`` on a clip of 288 frames. The network made 51 of them with a
    limit for lids alone, 70 with one of 0.002 for all, 92 at 0.0015: looking sideways correlated 0.91, 0.94 and 0.94,
    and 0.94 where it made all; the face flickered 0.94, 0.98 and 0.99 times as much as the original, and 1.14 times.
    With the clip at half its size, limits of 0.75 and 2, 1.25 and 2.5, 1.25 and 3 pixels kept movements alike (gaze
    0.92, 0.92 and 0.92, blinks 0.95, 0.94 and 0.94); round the face it flickered 0.95, 0.85 and 0.85 times as much.

    Attributes
    ----------
    max_move : float
        How far points may move from one head to the other.
    max_bend : float
        How far points may be off the straight line between the two.
    max_change : float
        The same for what tells an expression: how far lids are open, where irises and brows are beside the eyes.
    bend_pixels, change_pixels : float
        Both in pixels of the frame; the wider limit holds. Meshes of small heads tremble by as much.
    """

    max_move: float = 0.1
    max_bend: float = 0.016
    max_change: float = 0.0015
    bend_pixels: float = 3.0
    change_pixels: float = 1.25


BETWEEN = BetweenConfig()
_LIDS = np.array(LIDS)
_CORNERS = np.array(EYE_CORNERS)
_MIDDLES = np.array([iris[0] for iris in IRISES])
_BROWS = np.array([BROWS[:5], BROWS[6:]])


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
    expressions = _expressions(heads)
    max_bend = max(BETWEEN.max_bend, BETWEEN.bend_pixels / side)
    max_change = max(BETWEEN.max_change, BETWEEN.change_pixels / side)

    def split(first: int, last: int) -> list[int]:
        if last - first < 2:
            return []
        bent = np.linalg.norm(_off_line(heads[first : last + 1]), axis=-1).max(axis=1) / max_bend
        changed = np.abs(_off_line(expressions[first : last + 1])).max(axis=1) / max_change
        worst = np.maximum(bent, changed)
        if worst.max() >= 1:
            middle = first + 1 + int(worst.argmax())
        elif np.linalg.norm(heads[last] - heads[first], axis=-1).max() >= BETWEEN.max_move:
            middle = (first + last) // 2
        else:
            return []
        return [*split(first, middle), middle, *split(middle, last)]

    last = len(heads) - 1
    return [0, *split(0, last), last] if last else [0]


def _expressions(heads: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what tells the expressions of heads, (n, 478, 2): lengths, (n, 10). Means of points tremble less."""
    upper, lower = heads[:, _LIDS].transpose(2, 0, 1, 3, 4)
    opened = np.linalg.norm(upper - lower, axis=-1).mean(axis=-1)
    eyes = heads[:, _CORNERS].mean(axis=2)
    gaze, brows = heads[:, _MIDDLES] - eyes, heads[:, _BROWS].mean(axis=2) - eyes
    return np.concatenate([opened, *(part.reshape(len(heads), -1) for part in (gaze, brows))], axis=1)


def _off_line(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how far the inner ones of consecutive values, (n, ...), are off the line from the first to the last."""
    share = np.linspace(0, 1, len(values), dtype=np.float32)[1:-1].reshape(-1, *(1,) * (values.ndim - 1))
    return values[1:-1] - (1 - share) * values[0] - share * values[-1]


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
    start, end = bent([first.square, last.square], [first.points, last.points], points)
    square = np.asarray(cv2.addWeighted(start, 1 - share, end, share, 0), dtype=np.uint8)
    return FinishedHead(points, square, (1 - share) * first.grain + share * last.grain)


def carried(head: FinishedHead, points: FloatArray) -> FinishedHead:
    """Return a head with its points moved to ``points``, (478, 2), in sides of the square."""
    (square,) = bent([head.square], [head.points], points)
    return FinishedHead(points, square, head.grain)
