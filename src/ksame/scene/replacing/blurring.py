"""Arithmetic on pictures and points without its price: blurs as wide as a feature, weights for all channels."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.faces.faceset import ByteArray, FloatArray

_COARSE = 1.5  # least width of a blur, in pixels of a coarser copy


def blurred(image: NDArray[Any], sigma: float) -> NDArray[np.float32]:
    """Blur an image, (height, width) or (height, width, channels), at a coarser scale where nobody can tell."""
    shrink = max(1, int(sigma / _COARSE))
    size = tuple(-(-side // shrink) for side in image.shape[1::-1])
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA) if shrink > 1 else image
    soft = cv2.GaussianBlur(small, (0, 0), sigma / shrink, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(cv2.resize(soft, image.shape[1::-1], interpolation=cv2.INTER_LINEAR), dtype=np.float32)


def in_colour(grey: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return one channel, (height, width), as three: products of equal shapes take a fraction of the time."""
    return np.asarray(cv2.cvtColor(grey, cv2.COLOR_GRAY2RGB), dtype=np.float32)


def mixed(one: NDArray[np.float32], other: NDArray[np.float32], share: NDArray[np.float32]) -> ByteArray:
    """Mix two pictures, (height, width, 3): each pixel takes its share, (height, width), of ``one``."""
    both: Any = cv2.blendLinear(one, other, share, 1 - share)
    return np.asarray(cv2.convertScaleAbs(both.clip(0, 255, out=both)), dtype=np.uint8)


def extent(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest of each column of points, (n, 2): column by column, a tenth of the time."""
    columns = np.ascontiguousarray(points.T)
    return columns.min(axis=1), columns.max(axis=1)
