"""What the networks accept as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray
from ksame.errors import InputError


def as_rgb8(image: NDArray[Any]) -> ByteArray:
    """Return ``image`` as 8-bit RGB of shape (height, width, 3); an image that is so already is not copied.

    Parameters
    ----------
    image : ndarray of shape (height, width), (height, width, 1) or (height, width, 3)
        8-bit, or floating point in [0, 1].

    Examples
    --------
    >>> as_rgb8(np.full((1, 2), 0.5)).tolist()
    [[[128, 128, 128], [128, 128, 128]]]
    """
    array = np.asarray(image)
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or array.shape[2] not in (1, 3) or 0 in array.shape:
        raise InputError(
            "A picture must have the shape (height, width), (height, width, 1) or (height, width, 3). "
            f"Got {array.shape}."
        )
    if array.dtype != np.uint8:
        if not np.issubdtype(array.dtype, np.floating):
            raise InputError(f"A picture must be 8-bit, or floating point in [0, 1]. Got {array.dtype}.")
        low, high = float(array.min()), float(array.max())
        if not (low >= -1e-3 and high <= 1 + 1e-3):  # also true of NaN
            raise InputError(f"A floating-point picture must lie in [0, 1]. Got values from {low:.3g} to {high:.3g}.")
        array = (array.clip(0, 1) * 255 + 0.5).astype(np.uint8)
    if array.shape[2] == 1:
        array = np.repeat(array, 3, axis=2)
    return np.ascontiguousarray(array)
