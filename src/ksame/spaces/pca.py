"""Principal components on bare arrays."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame import scratch
from ksame.arrays import FloatArray
from ksame.errors import parameter_error, whole_number

RANDOMISED_ABOVE = 3000
"""Rows and columns beyond which a few components are found by randomised SVD instead of the full Gram matrix."""
_OVERSAMPLED, _ITERATIONS = 10, 5  # directions beyond those wanted, and rounds: as scikit-learn has them


@dataclass(frozen=True)
class PCA:
    """Mean, principal directions and their variances."""

    mean: FloatArray  # (n_features,)
    components: (
        FloatArray  # (n_components, n_features): orthonormal, by falling variance, each's largest entry positive
    )
    variances: FloatArray  # (n_components,)
    total_variance: float  # of the training rows, all directions together

    def __repr__(self) -> str:
        """Return the sizes, not the numbers."""
        return f"PCA({len(self.components)} components of {self.components.shape[1]} values)"

    def project(self, rows: NDArray[Any]) -> FloatArray:
        """Return the coefficients, (n, n_components), of rows of shape (n, n_features)."""
        kind = np.result_type(rows, self.mean, self.components)
        coefficients = scratch.empty((len(rows), len(self.components)), kind)
        for part in scratch.blocks(len(rows), 8 * rows.shape[1]):
            coefficients[part] = (rows[part] - self.mean) @ self.components.T
        return coefficients

    def reconstruct(self, coefficients: FloatArray) -> FloatArray:
        """Return the rows, (n, n_features), that have these coefficients."""
        kind = np.result_type(coefficients, self.components, self.mean)
        rows = scratch.empty((len(coefficients), len(self.mean)), kind)
        for part in scratch.blocks(len(rows), scratch.row_size(rows)):
            rows[part] = coefficients[part] @ self.components + self.mean
        return rows

    def truncated(self, n_components: int) -> PCA:
        """Return the same subspace with only its first directions."""
        return PCA(self.mean, self.components[:n_components], self.variances[:n_components], self.total_variance)


def component_count(owner: str, n: object) -> int | float | None:
    """Return a number of components, a share of the variance or None as a plain Python value, or refuse it."""
    if n is None:
        return None
    if isinstance(n, Integral):
        return whole_number("n_components", owner, n, 1)
    if isinstance(n, Real) and 0.0 < float(n) <= 1.0:
        return float(n)
    raise parameter_error("n_components", owner, "an integer or a share of variance in (0, 1]", n)


def fit_pca(rows: NDArray[Any], n_components: int | float | None = None, *, seed: int = 0) -> PCA:
    """Learn principal components.

    With fewer rows than features, the eigenvectors of the small n x n Gram matrix lead to those of the covariance
    (Newton et al. 2005, Fig. 3; Turk and Pentland 1991). Very large problems of which few components are wanted take a
    randomised SVD.

    Parameters
    ----------
    rows : ndarray of shape (n, n_features)
    n_components : int, float in (0, 1] or None
        A number of components, a share of the variance to keep, or all that carry variance (at most n - 1).
    seed : int
        For the randomised SVD only.
    """
    n, d = rows.shape
    max_count = max(1, min(n - 1, d))
    wanted = component_count("PCA", n_components)
    share = wanted if isinstance(wanted, float) else None
    count = wanted if isinstance(wanted, int) else max_count
    if count > max_count:
        expected = f"an integer in [1, {max_count}] for {n} rows of {d} values"
        raise parameter_error("n_components", "PCA", expected, count)
    mean = rows.mean(axis=0)
    centred = scratch.empty(rows.shape, rows.dtype)
    total = 0.0
    for part in scratch.blocks(n, scratch.row_size(centred)):
        centred[part] = rows[part] - mean
        total += float((centred[part] ** 2).sum())
    total /= max(1, n - 1)
    if share is None and min(n, d) > RANDOMISED_ABOVE and count * 10 <= min(n, d):
        components, squares = _randomised(centred, count, seed)
    else:
        components, squares = _exact(centred, count)
    variances = squares / max(1, n - 1)
    if share is not None and total > 0:
        reached = np.cumsum(variances) >= share * total * (1 - 1e-12)
        count = int(np.argmax(reached)) + 1 if reached.any() else len(variances)
        components, variances = components[:count], variances[:count]
    sign = np.sign(components[np.arange(len(components)), np.abs(components).argmax(axis=1)])
    return PCA(mean, components * np.where(sign == 0, 1.0, sign)[:, None], variances, total)


def _exact(centred: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Return components and squared singular values from the smaller of the two Gram matrices."""
    n, d = centred.shape
    gram = centred @ centred.T if n <= d else centred.T @ centred
    squares, vectors = np.linalg.eigh(gram)
    keep = np.argsort(squares)[::-1][:count]
    keep = keep[squares[keep] > max(squares.max(), 0.0) * 1e-12]
    if not len(keep):
        keep = np.array([len(squares) - 1])
    squares, vectors = squares[keep].clip(min=0.0), vectors[:, keep]
    if n > d:
        return vectors.T.copy(), squares
    directions = centred.T @ vectors
    norms = np.linalg.norm(directions, axis=0)
    return (directions / np.where(norms > 0, norms, 1.0)).T, squares


def _randomised(centred: FloatArray, count: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return components and squared singular values by subspace iteration (Halko et al. 2011, Algorithm 4.4)."""
    from scipy.linalg import lu, qr, svd

    tall = centred if len(centred) >= centred.shape[1] else centred.T
    shape = (tall.shape[1], count + _OVERSAMPLED)
    basis = np.random.RandomState(seed).normal(size=shape).astype(tall.dtype)
    for _ in range(_ITERATIONS):  # LU keeps the columns apart, which powers alone would not
        basis = lu(tall.T @ lu(tall @ basis, permute_l=True)[0], permute_l=True)[0]
    basis = qr(tall @ basis, mode="economic")[0]
    left, values, right = svd(basis.T @ tall, full_matrices=False)
    directions = right if tall is centred else (basis @ left).T
    return np.asarray(directions[:count]), np.asarray(values[:count]) ** 2
