"""Eigenfaces: the recogniser of the papers (Turk and Pentland 1991; Newton et al. 2005, Fig. 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ksame.faces.faceset import FaceSet, FloatArray
from ksame.spaces.eigen import EigenSpace
from ksame.spaces.reference import cross_squared_distances


@dataclass(frozen=True)
class Eigenfaces:
    """Nearest neighbour among eigenface coefficients.

    Parameters
    ----------
    n_components : int, float in (0, 1] or None
        A number, a share of the variance, or all.
    """

    n_components: int | float | None = None
    space_: EigenSpace | None = None

    name = "eigenfaces"

    def fit(self, training: FaceSet) -> Eigenfaces:
        """Learn the face space from a training set."""
        return Eigenfaces(self.n_components, EigenSpace(self.n_components).fit(training))

    def distances(self, probes: FaceSet, gallery: FaceSet) -> FloatArray:
        """Return distances, (n_probes, n_gallery)."""
        if self.space_ is None:
            raise RuntimeError("Eigenfaces is not fitted; call fit(training) first.")
        return np.sqrt(cross_squared_distances(self.space_.encode(probes), self.space_.encode(gallery)))
