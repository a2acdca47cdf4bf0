"""How strong the colours are that the finisher is shown.

It learned from photographs in colour and in grey, and takes pale walls for the latter: before them, heads lost their
colour in some frames of a film and not in others. So muted surroundings are shown to it with colours stronger by a
factor. The colours of what it makes are then divided by the square root of that factor: walls are paler than people.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
    grey = surroundings.mean(axis=2, keepdims=True)
    colour = float(np.abs(surroundings - grey).sum()) / max(3 * float(known.sum()), 1.0)
    share = min(max(colour / _GREY - 1, 0.0), 1.0)
    return 1 + share * max(_MUTED / max(colour, _GREY) - 1, 0.0)


def with_colour(picture: Image, gain: float) -> Image:
    """Return a picture, (height, width, 3), with colours so many times as strong, and as bright as before."""
    if gain == 1:
        return picture
    grey = picture.mean(axis=2, keepdims=True)
    return np.asarray(grey + np.float32(gain) * (picture - grey), dtype=np.float32)
