"""Outlines in frames, (n, 2): grown, filled, and filled in from what surrounds them."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.faces.faceset import FloatArray

Image = NDArray[np.float32]


def grown(outline: FloatArray, factor: float) -> FloatArray:
    """Return an outline, (n, 2), grown about its middle."""
    low, high = outline.min(axis=0), outline.max(axis=0)
    centre = 0.5 * (low + high)
    return np.asarray(centre + (outline - centre) * factor)


def polygon(shape: tuple[int, ...], points: FloatArray) -> Image:
    """Return how much of each pixel lies inside an outline, (height, width), in [0, 1]."""
    image = np.zeros(shape, dtype=np.uint8)
    cv2.fillPoly(image, [np.rint(points * 16).astype(np.int32)], 255, cv2.LINE_AA, 4)
    return np.asarray(image, dtype=np.float32) / np.float32(255)


def pull_push(colour: Image, weight: Image) -> Image:
    """Fill what has no weight from coarser and coarser averages (Gortler et al. 1996)."""
    if min(weight.shape) <= 2:
        return np.asarray(colour / np.maximum(weight, 1e-4)[..., None])
    size = tuple((side + 1) // 2 for side in weight.shape[::-1])
    small: Any = cv2.resize(colour, size, interpolation=cv2.INTER_AREA)
    share: Any = cv2.resize(weight, size, interpolation=cv2.INTER_AREA)
    coarse = pull_push(small, share)
    up = cv2.resize(coarse, weight.shape[::-1], interpolation=cv2.INTER_LINEAR)
    trust = weight.clip(0, 1)[..., None]
    own = colour / np.maximum(weight, 1e-4)[..., None]
    return np.asarray(own * trust + up * (1 - trust))
