"""Recognisers on principal components of registered pixels: Eigenfaces, and PCA with Mahalanobis distances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksame.arrays import FloatArray
from ksame.faces.faceset import FaceSet
from ksame.spaces.eigen import EigenSpace
from ksame.spaces.reference import cross_squared_distances


@dataclass(frozen=True)
class Eigenfaces:
    """Nearest neighbour among eigenface coefficients (Turk and Pentland 1991; Newton et al. 2005, Fig. 3)."""

    n_components: int | float | None = None  # a number, a share of the variance, or all
    space_: EigenSpace | None = None

    name = "eigenfaces"

    def params(self) -> dict[str, Any]:
        """Return the setting and the number of components learned."""
        learned = {} if self.space_ is None else {"components": len(self.space_.pca.variances)}
        return {"n_components": self.n_components, **learned}

    def fit(self, training: FaceSet) -> Eigenfaces:
        """Learn the face space from a training set."""
        return replace(self, space_=EigenSpace(self.n_components).fit(training))

    def encode(self, faces: FaceSet) -> FloatArray:
        """Return eigenface coefficients, (n_faces, n_components)."""
        return self._fitted().encode(faces)

    def distances(self, probes: FaceSet, gallery: FaceSet) -> FloatArray:
        """Return distances, (n_probes, n_gallery)."""
        return np.sqrt(cross_squared_distances(self.encode(probes), self.encode(gallery)))

    def _fitted(self) -> EigenSpace:
        if self.space_ is None:
            raise RuntimeError(f"{self.name} is not fitted; call fit(training) first.")
        return self.space_


@dataclass(frozen=True)
class Mahalanobis(Eigenfaces):
    """Nearest neighbour among whitened eigenface coefficients (Gross et al. 2005, section 3.1).

    The distance is the root of (y - y')ᵀ Λ⁻¹ (y - y'), with the variances Λ of the people who trained the space. Those
    should be others than the ones in the gallery, 20 to 30 % of all: see :mod:`ksame.attacks.protocol`. Directions of
    little variance are mostly noise and count as much as any other, so the default keeps 95 % of the variance.
    """

    n_components: int | float | None = 0.95

    name = "pca-mahalanobis"

    def encode(self, faces: FaceSet) -> FloatArray:
        """Return whitened coefficients, (n_faces, n_components)."""
        space = self._fitted()
        variances = space.pca.variances
        return space.encode(faces) / np.sqrt(np.where(variances > 0, variances, 1.0))
