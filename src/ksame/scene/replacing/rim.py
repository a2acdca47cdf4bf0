"""What lies round a replaced face: left alone, softened, or dissolved.

Forehead, hair and the line of the jaw still name people when the face itself is somebody else's. The ring between the
face and 1.35 times its outline can be softened like a lens a little out of focus, or far out of focus.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.faces.faceset import ByteArray, FloatArray
from ksame.scene.replacing.blurring import blurred, extent, in_colour, mixed
from ksame.spaces.facemodel.geometry import OUTLINE

REACH = 1.35
"""How far the ring goes, in outlines of the face."""
_SOFT, _FAR = 0.055, 0.12  # width of the blur of a ring that is softened, and dissolved, in widths of the face
_EDGE = 0.05  # over which the ring's outer edge fades, in widths of the face
_OUTLINE = np.array(OUTLINE)
_TRACE = 1e-3  # what counts of the face
Image = NDArray[np.float32]


class Cover(str, Enum):
    """How much round the face is changed."""

    FACE = "face"
    SOFT = "soft"
    HEAD = "head"


def ring_window(points: FloatArray, shape: tuple[int, ...]) -> tuple[slice, slice]:
    """Return the part of a frame of ``shape`` that a ring about ``points``, (504, 2), may change."""
    low, high = extent(points[_OUTLINE])
    middle, half = 0.5 * (low + high), 0.5 * REACH * (high - low) + 3 * _EDGE * float((high - low).max())
    low, high = np.floor(middle - half).astype(int).clip(0), np.ceil(middle + half).astype(int) + 1
    return slice(low[1], max(low[1], min(high[1], shape[0]))), slice(low[0], max(low[0], min(high[0], shape[1])))


def cover_rim(painted: ByteArray, alpha: Image, points: FloatArray, cover: Cover) -> ByteArray:
    """Change the ring round a new face.

    Parameters
    ----------
    painted : ndarray of shape (height, width, 3)
        A window of the frame with the new face in it.
    alpha : ndarray of shape (height, width)
        Where the new face is.
    points : ndarray of shape (504, 2)
        In pixels of the window.
    cover : Cover
    """
    if cover is Cover.FACE or min(painted.shape[:2]) < 2:
        return painted
    outline = points[_OUTLINE]
    low, high = extent(outline)
    width = float((high - low).max())
    disc = polygon(alpha.shape, grown(outline, REACH))
    outer = blurred(disc, max(_EDGE * width, 0.5))
    inner: Any = cv2.GaussianBlur(cv2.erode(alpha, np.ones((3, 3), np.uint8)), (0, 0), max(0.008 * width, 0.5))
    ring = (outer - 0.5 * inner).clip(0, 1) * (1 - inner)
    picture = painted.astype(np.float32)
    if cover is Cover.SOFT:
        other = blurred(picture, max(_SOFT * width, 1.0))
    else:
        other = _dissolved(picture, alpha, max(_FAR * width, 1.0))
    return mixed(other, picture, ring)


def grown(outline: FloatArray, factor: float) -> FloatArray:
    """Return an outline, (n, 2), grown about its middle."""
    low, high = extent(outline)
    centre = 0.5 * (low + high)
    return np.asarray(centre + (outline - centre) * factor)


def polygon(shape: tuple[int, ...], points: FloatArray) -> Image:
    """Return how much of each pixel lies inside an outline, (height, width), in [0, 1]."""
    image = np.zeros(shape, dtype=np.uint8)
    cv2.fillPoly(image, [np.rint(points * 16).astype(np.int32)], 255, cv2.LINE_AA, 4)
    return np.asarray(image, dtype=np.float32) / np.float32(255)


def _dissolved(image: Image, alpha: Image, sigma: float) -> Image:
    """Blur what is not the face, the face not counting: it would shine into hair and background."""
    outside = (1 - alpha).clip(_TRACE, 1)
    return np.asarray(blurred(image * in_colour(outside), sigma) / in_colour(blurred(outside, sigma)))


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
