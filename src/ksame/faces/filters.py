"""Pixelation and blur: what people hide faces with, and what attackers imitate."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray, IntArray


def block_starts(size: int, p: int, offset: int = 0) -> IntArray:
    """Return where blocks of p pixels begin along an axis, the ragged first one at 0.

    Examples
    --------
    >>> block_starts(10, 4).tolist(), block_starts(10, 4, 3).tolist()
    ([0, 4, 8], [0, 3, 7])
    """
    starts = np.arange(offset % p, size, p)
    return starts if len(starts) and starts[0] == 0 else np.concatenate([[0], starts])


def pixelate(images: NDArray[Any], p: int, offset: tuple[int, int] = (0, 0)) -> FloatArray:
    """Replace blocks of p x p pixels by their mean; ragged blocks at the edge by the mean of what they have.

    Parameters
    ----------
    images : ndarray of shape (n, height, width, channels)
    p : int
    offset : (int, int)
        Where the first whole block begins, x before y.

    Examples
    --------
    >>> pixelate(np.arange(6.0).reshape(1, 2, 3, 1), 2)[0, :, :, 0]
    array([[2. , 2. , 3.5],
           [2. , 2. , 3.5]])
    """
    result = np.asarray(images, dtype=np.float64)
    for axis, first in ((1, offset[1]), (2, offset[0])):
        size = result.shape[axis]
        starts = block_starts(size, p, first)
        lengths = np.diff(np.append(starts, size))
        sums = np.add.reduceat(result, starts, axis=axis)
        shape = [1] * 4
        shape[axis] = -1
        result = np.repeat(sums / lengths.reshape(shape), lengths, axis=axis)
    return result


def blur(images: NDArray[Any], sigma: float) -> FloatArray:
    """Smooth with a Gaussian of standard deviation ``sigma`` pixels, edges mirrored."""
    size = 2 * int(np.ceil(4 * sigma)) + 1
    done: list[NDArray[Any]] = [
        cv2.GaussianBlur(np.asarray(image, dtype=np.float64), (size, size), sigma, borderType=cv2.BORDER_REFLECT)
        for image in images
    ]
    return np.stack(done).reshape(images.shape)
