"""How strong the colours are that the finisher is shown.

It learned from photographs in colour and in grey, and takes pale walls for the latter: before them, heads lost their
colour in some frames of a film and not in others. So muted surroundings are shown to it with colours stronger by a
factor. The colours of what it makes are then divided by the square root of that factor: walls are paler than people.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray

Image = NDArray[np.float32]

# Mean differences from grey, of values from -1 to 1. Nearly all portraits that the network learned from have more than
# the first; below the second a picture is grey, by choice, and up to twice of it partly so.
_MUTED, _GREY = 0.045, 0.005


def colour_gain(surroundings: Image, known: Image) -> float:
    """Return how much stronger colours are to be shown.

    Parameters
    ----------
    surroundings : ndarray of shape (size, size, 3)
        From -1 to 1; 0 where nothing is known.
    known : ndarray of shape (size, size)
        Where they are known, 0 or 1.
    """
    apart = np.moveaxis(surroundings, 2, 0) - grey_of(surroundings)
    colour = float(np.abs(apart, out=apart).sum()) / max(3 * float(known.sum()), 1.0)
    share = min(max(colour / _GREY - 1, 0.0), 1.0)
    return 1 + share * max(_MUTED / max(colour, _GREY) - 1, 0.0)


def with_colour(picture: Image, gain: float) -> Image:
    """Return a picture, (height, width, 3), with colours so many times as strong, and as bright as before."""
    if gain == 1:
        return picture
    grey = grey_of(picture)
    stronger = np.moveaxis(picture, 2, 0) - grey
    stronger *= np.float32(gain)
    stronger += grey
    return np.moveaxis(stronger, 0, 2)


def recoloured(picture: ByteArray, gain: float) -> ByteArray:
    """Return the same of a picture in 8-bit colours."""
    planes = np.stack(cv2.split(picture)).astype(np.float32)  # quicker than colours side by side
    return in_bytes(cv2.merge([*np.moveaxis(with_colour(np.moveaxis(planes, 0, 2), gain), 2, 0)]))


def in_bytes(values: Any) -> ByteArray:
    """Round 32-bit values, (height, width, 3), to 8-bit ones."""
    return np.asarray(cv2.addWeighted(values, 1, values, 0, 0, dtype=cv2.CV_8U), dtype=np.uint8)


def grey_of(picture: Image) -> Image:
    """Return the mean of the colours, (height, width); quick where each colour is a plane in memory."""
    return np.asarray((picture[..., 0] + picture[..., 1] + picture[..., 2]) / np.float32(3))
