"""Boxes that were given from outside: filled, unless a head that is replaced or masked there covers them already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ksame.arrays import FloatArray
from ksame.heads.invention import taken_away
from ksame.scene.media.regions import Box
from ksame.scene.render.filling import rectangle

_GRID = 32  # points along a box at which it is looked at
_ENOUGH = 0.9  # of a box: the corners of a face's box are no face


def uncovered(boxes: Iterable[Box], outlines: Sequence[FloatArray]) -> list[FloatArray]:
    """Return the outlines of the boxes of which outlines that are taken away anyway do not cover nine tenths."""
    return [rectangle(*box) for box in boxes if _covered(box, outlines) < _ENOUGH]


def _covered(box: Box, outlines: Sequence[FloatArray]) -> float:
    x, y, width, height = box
    scaled = [(outline - (x, y)) * (_GRID / width, _GRID / height) for outline in outlines]
    near = [o for o in scaled if (o.max(axis=0) > 0).all() and (o.min(axis=0) < _GRID).all()]
    return float(np.mean(taken_away((_GRID, _GRID), near)))
