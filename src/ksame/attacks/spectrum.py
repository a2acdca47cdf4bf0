"""Cosine spectra of faces: what an attacker knows about faces in general.

Mirrored at its edges, a picture is diagonalised by the cosine transform under every symmetric filter, a Gaussian blur
among them. Everything here works on arrays of shape (n, height, width, channels).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dctn, idctn
from scipy.ndimage import uniform_filter

from ksame.arrays import FloatArray


def cosines(images: NDArray[Any]) -> FloatArray:
    """Return orthonormal cosine coefficients, of the shape of ``images``."""
    return np.asarray(dctn(np.asarray(images, dtype=np.float64), axes=(1, 2), norm="ortho"))


def from_cosines(coefficients: FloatArray) -> FloatArray:
    """Return the images that have these coefficients."""
    return np.asarray(idctn(coefficients, axes=(1, 2), norm="ortho"))


def frequencies(size: int) -> FloatArray:
    """Return the frequency of every coefficient along an axis of ``size`` pixels, in radians per pixel, (size,)."""
    return np.pi * np.arange(size) / size


def squared_frequencies(height: int, width: int) -> FloatArray:
    """Return the squared length of every frequency, (height, width)."""
    return np.asarray(frequencies(height)[:, None] ** 2 + frequencies(width)[None, :] ** 2)


def power(images: NDArray[Any]) -> FloatArray:
    """Return the mean square of every cosine coefficient, (height, width), smoothed over its neighbours.

    Smoothing takes the geometric mean of 3 x 3 coefficients, so that a few faces are enough to learn from.
    """
    squares = (cosines(images) ** 2).mean(axis=(0, 3))
    return np.exp(uniform_filter(np.log(squares + 1e-10), 3, mode="nearest"))
