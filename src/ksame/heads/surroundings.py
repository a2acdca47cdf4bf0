"""What surrounds a head, as the finisher is shown it: what is known of the square about a region, and where."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray
from ksame.heads.colour import Image

Mask = NDArray[np.bool_]


def surroundings_of(part: ByteArray, unknown: Mask, matrix: FloatArray, size: int, strip: int) -> tuple[Image, Image]:
    """Return what is known of a square, (size, size, 3) from -1 to 1 and 0 elsewhere, and where it is known, 0 or 1.

    Parameters
    ----------
    part : ndarray of shape (height, width, 3)
        Of a frame, about the square.
    unknown : ndarray of shape (height, width)
        Which of its pixels are not read.
    matrix : ndarray of shape (2, 3)
        From there to the square.
    size : int
        Of the square, in pixels.
    strip : int
        Rows that are worked on at a time.
    """
    shrink = max(1, int(1 / np.sqrt(abs(np.linalg.det(matrix[:, :2])))))
    if shrink > 1:
        stacked = _reduced(part, unknown, shrink, strip)
        matrix = matrix.copy()
        matrix[:, 2] += matrix[:, :2].sum(axis=1) * (0.5 * shrink - 0.5)
        matrix[:, :2] *= shrink
    else:
        stacked = _with_known(part, unknown)
    warped = cv2.warpAffine(stacked, matrix, (size, size), flags=cv2.INTER_LINEAR)
    planes = np.stack(cv2.split(warped))  # as the network takes them
    known = (planes[3] == 255).astype(np.float32)
    colours = planes[:3].astype(np.float32)
    colours *= np.float32(1 / 127.5)
    colours -= 1
    colours *= known
    return colours.transpose(1, 2, 0), known


def _with_known(part: ByteArray, unknown: Mask) -> ByteArray:
    """Return a part of a frame, 0 where it is unknown, and as a fourth channel where it is known, 0 or 255."""
    stacked = cv2.cvtColor(part, cv2.COLOR_RGB2RGBA)
    return np.asarray(cv2.bitwise_and(stacked, stacked, mask=(~unknown).view(np.uint8)), dtype=np.uint8)


def _reduced(part: ByteArray, unknown: Mask, shrink: int, strip: int) -> ByteArray:
    """Return the same at a whole fraction of the size, unknown beyond the edge; in strips, to take little memory."""
    small = np.empty((*(-(-length // shrink) for length in part.shape[:2]), 4), dtype=np.uint8)
    high = max(1, strip // shrink)
    for top in range(0, len(small), high):
        rows = slice(top * shrink, (top + high) * shrink)
        given, into = _with_known(part[rows], unknown[rows]), small[top : top + high]
        missing = [shrink * length - there for length, there in zip(into.shape, given.shape[:2], strict=False)]
        padded = cv2.copyMakeBorder(given, 0, missing[0], 0, missing[1], cv2.BORDER_CONSTANT)
        cv2.resize(padded, into.shape[1::-1], dst=into, interpolation=cv2.INTER_AREA)
    return small
