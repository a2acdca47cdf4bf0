"""How strong the fine detail is that the finisher is shown.

It learned from sharp photographs and from soft ones, and takes hazy rooms and plain walls for the latter: before them,
heads were out of focus in some frames of a film and not in others. So surroundings with hardly any detail are shown to
it with more.
"""

from __future__ import annotations

import cv2
import numpy as np

from ksame.heads.colour import Image, grey_of

_FINE = 1 / 128
"""Detail is what differs from the mean over about so far, in sides of the square."""
_HAZY, _MAX_GAIN = 0.045, 4.0
"""Mean detail, of values from -1 to 1, and how much stronger it is shown at most. With less than the first, how sharp
new heads were had nothing to do with how sharp the old ones had been, in three clips."""
_SIDE = 128  # pixels of the square in which detail is measured, by choice: for speed


def detail_gain(surroundings: Image, known: Image) -> float:
    """Return how much stronger detail is to be shown.

    Parameters
    ----------
    surroundings : ndarray of shape (size, size, 3)
        From -1 to 1; 0 where nothing is known.
    known : ndarray of shape (size, size)
        Where they are known, 0 or 1.
    """
    shrunk = [
        cv2.resize(plane, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA) for plane in (grey_of(surroundings), known)
    ]
    grey, share = (np.asarray(plane, dtype=np.float32) for plane in shrunk)
    inside = share == 1
    if not inside.any():
        return 1.0
    detail = (grey - _soft(grey, share))[inside]
    return float(np.clip(_HAZY / max(float(np.sqrt(np.square(detail).mean())), 1e-6), 1.0, _MAX_GAIN))


def with_detail(surroundings: Image, known: Image, gain: float) -> Image:
    """Return surroundings with detail so many times as strong; see :func:`detail_gain`."""
    if gain == 1:
        return surroundings
    planes = np.moveaxis(surroundings, 2, 0)
    stronger = np.stack([plane + np.float32(gain - 1) * (plane - _soft(plane, known)) for plane in planes])
    return np.moveaxis(stronger.clip(-1, 1) * known, 0, 2)


def _soft(plane: Image, known: Image) -> Image:
    """Return a plane, (size, size), that is 0 where it is not known, as it is on average round about."""
    sigma = len(plane) * _FINE
    total, weight = (cv2.GaussianBlur(np.ascontiguousarray(part), (0, 0), sigma) for part in (plane, known))
    return np.asarray(total / np.maximum(weight, np.float32(1e-3)), dtype=np.float32)
