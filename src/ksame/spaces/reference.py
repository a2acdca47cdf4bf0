"""Reference face models: the people against whom a face is compared."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ksame import scratch
from ksame.arrays import FloatArray
from ksame.faces.faceset import subject_means

_ALL = 2048  # models that are all compared with all
_SOME = 500  # of more models, those that are


@dataclass(frozen=True, eq=False, repr=False)
class FaceModels:
    """One row of codes for each model, and whose it is (Gross and Sweeney 2007, Definition III.1)."""

    codes: FloatArray  # (n_models, n_features)
    subjects: NDArray[np.str_]  # (n_models,)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """A name for every model: its subject, and a running number where a subject has several."""
        _, index, counts = np.unique(self.subjects, return_inverse=True, return_counts=True)
        seen = np.zeros(len(counts), dtype=np.intp)
        keys = []
        for subject, i in zip(self.subjects, index, strict=True):
            seen[i] += 1
            keys.append(str(subject) if counts[i] == 1 else f"{subject}#{seen[i]}")
        return tuple(keys)

    def means(self) -> FaceModels:
        """Return one model for each subject, the mean of its rows."""
        return FaceModels(*subject_means(self.codes, self.subjects))

    def distances(self, codes: FloatArray) -> FloatArray:
        """Return Euclidean distances, (n, n_models), of codes of shape (n, n_features) to every model."""
        return np.sqrt(cross_squared_distances(codes, self.codes))

    def scale(self) -> float:
        """Return the standard deviation assumed for p(image | model).

        A quarter of the median distance from a model to the nearest model of somebody else: at that distance, where
        confusions begin, the likelihood exp(-d² / 2σ²) has fallen to 3e-4. Of many models, the median is that of some,
        spread evenly over them.
        """
        n = len(self.codes)
        some = np.arange(n) if n <= _ALL else np.linspace(0, n - 1, _SOME).astype(np.intp)
        nearest = np.full(len(some), np.inf)
        size = scratch.row_size(self.codes)
        for rows, part in product(scratch.blocks(len(some), size), scratch.blocks(n, size)):
            squares = cross_squared_distances(self.codes[some[rows]], self.codes[part])
            squares[self.subjects[some[rows], None] == self.subjects[None, part]] = np.inf
            nearest[rows] = np.minimum(nearest[rows], np.sqrt(squares.min(axis=1)))
        finite = nearest[np.isfinite(nearest)]
        return float(np.median(finite)) / 4.0 if len(finite) else 0.0


def cross_squared_distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return squared Euclidean distances, (n, m), between rows of ``a`` (n, d) and of ``b`` (m, d)."""
    centre = b.mean(axis=0)
    u, v = a - centre, b - centre
    products = u @ v.T
    return np.maximum((u**2).sum(axis=1)[:, None] + (v**2).sum(axis=1)[None, :] - 2.0 * products, 0.0)
