"""Generalised Procrustes alignment: shapes without position, size and rotation (Gower 1975)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.errors import InputError

Complex = NDArray[np.complex128]
MAX_ROUNDS = 200
TOLERANCE = 1e-12


def generalised_procrustes(shapes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Align shapes to their common mean.

    Each shape is turned, scaled and moved by the similarity whose inverse takes the mean onto it with least
    squared error. That is Procrustes alignment followed by projection into the space tangent to the mean
    (Dryden and Mardia 1998, chapter 4; Cootes and Taylor 2004, appendix B) in one step, and it has a useful
    exactness: what is left, ``aligned - mean``, has no component along shift, rotation or scaling of the
    mean. So shape modes learned from it and the four pose parameters never explain the same movement.

    Parameters
    ----------
    shapes : ndarray of shape (n_shapes, n_points, 2)
        At least one shape of at least three points that are not all in one place.

    Returns
    -------
    aligned : ndarray of shape (n_shapes, n_points, 2)
    mean : ndarray of shape (n_points, 2)
        The mean of ``aligned``: centred, of unit norm, turned as the shapes are turned on average.

    Examples
    --------
    >>> corner = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    >>> aligned, mean = generalised_procrustes(np.stack([corner, 3 * corner + 5]))
    >>> np.allclose(aligned[0], aligned[1]), float(np.round(np.linalg.norm(mean), 6))
    (True, 1.0)
    """
    if shapes.ndim != 3 or shapes.shape[2] != 2 or len(shapes) == 0 or shapes.shape[1] < 3:
        raise InputError(f"Shapes must be an array (n_shapes, at least 3 points, 2). Got {shapes.shape}.")
    if not np.isfinite(shapes).all():
        raise InputError("Shapes must be finite.")
    # A point as one complex number makes every similarity of the plane a multiplication and an addition.
    z = shapes[..., 0] + 1j * shapes[..., 1]
    z = z - z.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(z, axis=1, keepdims=True)
    if (norms <= 1e-12).any():
        bad = int(np.flatnonzero(norms[:, 0] <= 1e-12)[0])
        raise InputError(f"All points of shape {bad} are in one place; remove it and run again.")
    z = z / norms
    upright = z.mean(axis=0)
    mean = upright if np.linalg.norm(upright) > 1e-6 else z[0]
    mean = mean / np.linalg.norm(mean)
    for _ in range(MAX_ROUNDS):
        update = _onto(z, mean).mean(axis=0)
        update = update / np.linalg.norm(update)
        moved = np.linalg.norm(update - mean)
        mean = update
        if moved < TOLERANCE:
            break
    aligned = _onto(z, mean)
    return np.stack([aligned.real, aligned.imag], axis=-1), np.stack([mean.real, mean.imag], axis=-1)


def _onto(z: Complex, mean: Complex) -> Complex:
    """Undo the least-squares similarity from the unit-norm ``mean`` to each centred row of ``z``."""
    factor = z @ mean.conj()
    if (np.abs(factor) <= 1e-9).any():
        raise InputError("A shape has nothing in common with the mean of the others; check its landmarks.")
    return np.asarray(z / factor[:, None])
