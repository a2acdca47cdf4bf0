"""Where one shot ends and the next begins."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray

_THUMB = (48, 36)
_SPARSE = 4  # of so many rows and columns, one is looked at
_COLOURS = 0.4  # share of the pixels that changed their colour, from which on frames are of different shots
_MOVED = 18.0  # mean difference in grey levels that must go with it
_ALL = 55.0  # mean difference that suffices alone


class CutFinder:
    """Compares every frame with the one before."""

    def __init__(self) -> None:
        self._before: tuple[NDArray[np.float32], NDArray[np.float64]] | None = None

    def is_cut(self, rgb: ByteArray) -> bool:
        """Tell whether a new shot begins with this frame."""
        sparse = np.ascontiguousarray(rgb[::_SPARSE, ::_SPARSE])
        thumb = np.asarray(cv2.resize(sparse, _THUMB, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        levels = (thumb >> 5).reshape(-1, 3).astype(np.intp)
        counts = np.bincount(levels @ [64, 8, 1], minlength=512) / len(levels)
        now = thumb.astype(np.float32), counts
        before, self._before = self._before, now
        if before is None:
            return False
        moved = float(np.abs(now[0] - before[0]).mean())
        recoloured = float(np.abs(now[1] - before[1]).sum()) / 2
        return moved > _ALL or (recoloured > _COLOURS and moved > _MOVED)
