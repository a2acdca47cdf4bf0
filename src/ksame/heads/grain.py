"""The noise of a picture, and grain that looks like it."""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray
from ksame.spaces.facemodel.light import LUMA

GRAIN_SIDE = 256
"""Pixels after which grain repeats itself; by choice."""


def noise_of(part: ByteArray, hidden: NDArray[np.bool_], strip: int) -> float:
    """Estimate the standard deviation of the noise about a head, in 8-bit steps (Immerkær 1996).

    Parameters
    ----------
    part : ndarray of shape (height, width, 3)
    hidden : ndarray of shape (height, width)
        Which pixels count nothing.
    strip : int
        Rows that are worked on at a time.
    """
    values = np.concatenate(
        [
            _noise_response(part[rows], hidden[rows])
            for start in range(0, len(part), strip)
            for rows in [slice(max(0, start - 1), start + strip + 1)]
        ]
    )
    return float(np.quantile(values, 0.35)) / 0.4538 / 6.0 if values.size else 0.0


def _noise_response(part: ByteArray, hidden: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return what a filter leaves that only noise passes, where nothing is hidden; a quarter of the rows is enough."""
    grey = np.asarray(cv2.transform(part.astype(np.float32), LUMA[None]))
    rows = grey[:-2:4] - 2 * grey[1:-1:4] + grey[2::4]
    unknown = hidden[:-2:4] | hidden[1:-1:4] | hidden[2::4]
    response = rows[:, :-2] - 2 * rows[:, 1:-1] + rows[:, 2:]
    unknown = unknown[:, :-2] | unknown[:, 1:-1] | unknown[:, 2:]  # whatever has a hidden pixel in it
    return np.abs(np.asarray(response[~unknown]))


@lru_cache(maxsize=1)
def _tile() -> NDArray[np.float32]:
    """Return grain, (side, side, 3), the same in all colours."""
    tile = np.random.default_rng(0).standard_normal((GRAIN_SIDE, GRAIN_SIDE)).astype(np.float32)
    return np.repeat(tile[..., None], 3, axis=2)


def grain_of(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return grain of unit standard deviation, (height, width, 3), that repeats itself."""
    more = [max(0, length - GRAIN_SIDE) for length in shape[:2]]
    grain = cv2.copyMakeBorder(_tile(), 0, more[0], 0, more[1], cv2.BORDER_WRAP) if any(more) else _tile()
    return np.asarray(grain, dtype=np.float32)[: shape[0], : shape[1]]
