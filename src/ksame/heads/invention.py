"""Inventing a head: the region round it is taken away, and what the finisher makes of a drawing is put there.

What is written inside a region depends on the surrogate, on the place, pose and expression of the head, and on pixels
outside all regions that are taken away. No pixel inside one is ever read: ``tests/scene/test_invention.py`` fills them
with noise and compares the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.faces.faceset import ByteArray, FloatArray
from ksame.heads.drawing import Looks, draw
from ksame.heads.head import Head, Region, filled
from ksame.models.finisher import SIZES, Finisher
from ksame.spaces.facemodel.light import LUMA

_ENLARGED = 1.25  # a square may be so much larger in the frame than the size at which it is finished
_BAND = 1 / 64  # width of the band round a region in which old and new are mixed, in sides of the square
_CRISP, _CRISP_FROM = 0.7, 256  # how much photographs are sharpened, and from which size on: by benchmarks.naturalness
# on portraits that the finisher learned from, then by eye; films would flicker
_REPEAT = 256  # pixels after which grain repeats itself
_GRAIN = 1.3  # of the noise of the surroundings, which is estimated from their smoothest third
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Invention:
    """A head to be invented.

    Attributes
    ----------
    looks : Looks
        Of the surrogate.
    head : Head
    neutral : ndarray of shape (478, 3)
        The person's neutral shape.
    region : Region
    """

    looks: Looks
    head: Head
    neutral: FloatArray
    region: Region


def taken_away(shape: tuple[int, ...], outlines: Sequence[FloatArray]) -> Mask:
    """Return which pixels of a frame, (height, width), lie in any of some outlines, each (n, 2)."""
    hidden = np.zeros(shape[:2], dtype=np.uint8)
    for outline in outlines:
        window = _window(outline, shape)
        hidden[window] |= filled(hidden[window].shape, outline - _origin(window))
    return np.asarray(hidden, dtype=bool)


def invent(
    onto: ByteArray,
    hidden: Mask,
    invention: Invention,
    finisher: Finisher,
    *,
    size: int | None = None,
    still: bool = True,
    made: NDArray[np.float32] | None = None,
) -> NDArray[np.float32] | None:
    """Put an invented head into a frame, in place.

    Parameters
    ----------
    onto : ndarray of shape (height, width, 3)
        Its hidden pixels are not read.
    hidden : ndarray of shape (height, width)
        What is taken away and not yet invented; the pixels of this head's region are struck off.
    invention : Invention
    finisher : Finisher
    size : int, optional
        At which the head is finished; by default by its size in the frame.
    still : bool
        Whether it is a photograph, and not a frame of a film.
    made : ndarray of shape (size, size, 3), optional
        The finished square, where it is known; of another size it is not used.

    Returns
    -------
    made : ndarray of shape (size, size, 3) or None
        The finished square; None where the head lies outside the frame.
    """
    region = invention.region
    size = size or next((s for s in SIZES if region.side <= _ENLARGED * s), SIZES[-1])
    matrix = region.to_square(size)
    square = np.array([[0, 0], [size, 0], [size, size], [0, size]]) - 0.5
    corners = (square - matrix[:, 2]) @ np.linalg.inv(matrix[:, :2]).T
    window = _window(corners, onto.shape)
    part, unknown = onto[window], hidden[window]
    if not part.size:
        return None
    shifted = matrix.copy()
    shifted[:, 2] += matrix[:, :2] @ _origin(window)
    inside = filled(part.shape, region.outline - _origin(window))
    hole = unknown | (inside > 0)  # also where another head, invented before, reaches into this region
    if made is None or len(made) != size:
        surroundings, known = _square(part, hole, shifted, size)
        drawing = draw(invention.looks, invention.head, invention.neutral, region, size)
        made = finisher.finish(drawing, surroundings, known)
    crisp = _crisp(made) if still and size >= _CRISP_FROM else made
    share = _share(inside, region.side)
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    new = cv2.warpAffine(crisp, shifted, part.shape[1::-1], flags=flags, borderMode=cv2.BORDER_REPLICATE)
    new = (np.asarray(new) + 1) * np.float32(127.5)
    new += _GRAIN * _noise_of(part, hole) * _grain(part.shape[:2])[..., None]
    old = np.where(unknown[..., None], np.uint8(0), part)  # hidden pixels are not read, even where they count nothing
    mixed = new * share[..., None] + old * (1 - share[..., None])
    change = (share > 0) & (~unknown | (inside > 0))
    np.copyto(part, np.rint(mixed).clip(0, 255).astype(np.uint8), where=change[..., None])
    unknown[inside > 0] = False
    return made


def _crisp(made: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sharpen a finished square: networks that learn from differences paint a little softly."""
    soft = np.asarray(cv2.GaussianBlur(made, (0, 0), 1.0), dtype=np.float32)
    return made + np.float32(_CRISP) * (made - soft)


def _share(inside: NDArray[np.uint8], side: float) -> NDArray[np.float32]:
    """Return how much of the new head shows: all of it inside its region, fading beyond."""
    reach = max(1, round(_BAND * side))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, 2 * reach + 1))
    grown = cv2.dilate(inside, kernel).astype(np.float32) / np.float32(255)
    soft = cv2.GaussianBlur(grown, (0, 0), max(0.5, reach / 2), borderType=cv2.BORDER_REPLICATE)
    return np.maximum(soft, inside > 0, dtype=np.float32)


def _square(
    part: ByteArray, unknown: Mask, matrix: FloatArray, size: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return what is known of a square, (size, size, 3) from -1 to 1 and 0 elsewhere, and where it is known."""
    shrink = max(1, int(1 / np.sqrt(abs(np.linalg.det(matrix[:, :2])))))
    seen = (~unknown).astype(np.float32)
    picture = part.astype(np.float32) * np.float32(1 / 127.5) - 1
    stacked = np.dstack([np.where(unknown[..., None], np.float32(0), picture), seen])
    if shrink > 1:
        small = tuple(-(-side // shrink) for side in part.shape[1::-1])
        padded = np.zeros((small[1] * shrink, small[0] * shrink, 4), dtype=np.float32)
        padded[: part.shape[0], : part.shape[1]] = stacked
        stacked = np.asarray(cv2.resize(padded, small, interpolation=cv2.INTER_AREA))
        matrix = matrix.copy()
        matrix[:, 2] += matrix[:, :2].sum(axis=1) * (0.5 * shrink - 0.5)
        matrix[:, :2] *= shrink
    warped = np.asarray(cv2.warpAffine(stacked, matrix, (size, size), flags=cv2.INTER_LINEAR), dtype=np.float32)
    known = (warped[..., 3] > 0.999).astype(np.float32)
    return warped[..., :3] * known[..., None], known


def _noise_of(part: ByteArray, hidden: Mask) -> float:
    """Estimate the standard deviation of the noise about a head, in 8-bit steps (Immerkær 1996)."""
    kernel = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], dtype=np.float32)
    grey = np.where(hidden, np.float32(0), part.astype(np.float32) @ LUMA)
    response = np.abs(np.asarray(cv2.filter2D(np.asarray(grey), cv2.CV_32F, kernel)))
    use = cv2.dilate(hidden.astype(np.uint8), np.ones((3, 3), np.uint8)) == 0
    use[[0, -1]] = use[:, [0, -1]] = False
    if not use.any():
        return 0.0
    return float(np.quantile(response[use], 0.35)) / 0.4538 / 6.0


@lru_cache(maxsize=2)
def _tile(side: int) -> NDArray[np.float32]:
    """Return grain, (side, side), that repeats itself after ``_REPEAT`` pixels."""
    tile = np.random.default_rng(0).standard_normal((_REPEAT, _REPEAT)).astype(np.float32)
    return np.pad(tile, (0, side - _REPEAT), mode="wrap")


def _grain(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return grain of unit standard deviation."""
    side = _REPEAT * (1 + -(-max(shape) // _REPEAT))
    return _tile(side)[: shape[0], : shape[1]]


def _window(outline: FloatArray, shape: tuple[int, ...]) -> tuple[slice, slice]:
    """Return the part of a frame of ``shape`` about an outline, (n, 2)."""
    low = np.floor(outline.min(axis=0)).astype(int) - 1
    high = np.ceil(outline.max(axis=0)).astype(int) + 2
    left, top = low.clip(0, (shape[1], shape[0]))
    right, bottom = high.clip((left, top), (shape[1], shape[0]))
    return slice(int(top), int(bottom)), slice(int(left), int(right))


def _origin(window: tuple[slice, slice]) -> FloatArray:
    return np.array([window[1].start, window[0].start], dtype=np.float64)
