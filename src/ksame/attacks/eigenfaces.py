"""Recognisers on principal components of registered pixels: Eigenfaces, and PCA with Mahalanobis distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ksame.arrays import FloatArray
from ksame.faces.faceset import FaceSet
from ksame.spaces.eigen import EigenSpace
from ksame.spaces.reference import cross_squared_distances


@dataclass(frozen=True)
class Eigenfaces:
    """Nearest neighbour among eigenface coefficients (Turk and Pentland 1991; Newton et al. 2005, Fig. 3).

    Parameters
    ----------
    n_components : int, float in (0, 1] or None
        A number, a share of the variance, or all.
    """

    n_components: int | float | None = None
    space_: EigenSpace | None = None

    name = "eigenfaces"

    def params(self) -> dict[str, Any]:
        """Return the setting and the number of components learned."""
        return _params(self.n_components, self.space_)

    def fit(self, training: FaceSet) -> Eigenfaces:
        """Learn the face space from a training set."""
        return Eigenfaces(self.n_components, EigenSpace(self.n_components).fit(training))

    def encode(self, faces: FaceSet) -> FloatArray:
        """Return eigenface coefficients, (n_faces, n_components)."""
        return _fitted(self.space_, self.name).encode(faces)

    def distances(self, probes: FaceSet, gallery: FaceSet) -> FloatArray:
        """Return distances, (n_probes, n_gallery)."""
        return np.sqrt(cross_squared_distances(self.encode(probes), self.encode(gallery)))


@dataclass(frozen=True)
class Mahalanobis:
    """Nearest neighbour among whitened eigenface coefficients (Gross et al. 2005, section 3.1).

    The distance is the root of (y - y')ᵀ Λ⁻¹ (y - y'), with the variances Λ of the people who trained the space. Those
    should be others than the ones in the gallery, 20 to 30 % of all: see :mod:`ksame.attacks.protocol`.

    Parameters
    ----------
    n_components : int, float in (0, 1] or None
        A number, a share of the variance, or all. Directions of little variance are mostly noise, and count as much
        as any other here.
    """

    n_components: int | float | None = 0.95
    space_: EigenSpace | None = None

    name = "pca-mahalanobis"

    def params(self) -> dict[str, Any]:
        """Return the setting and the number of components learned."""
        return _params(self.n_components, self.space_)

    def fit(self, training: FaceSet) -> Mahalanobis:
        """Learn the face space and its variances from a training set."""
        return Mahalanobis(self.n_components, EigenSpace(self.n_components).fit(training))

    def encode(self, faces: FaceSet) -> FloatArray:
        """Return whitened coefficients, (n_faces, n_components)."""
        space = _fitted(self.space_, self.name)
        variances = space.pca.variances
        return space.encode(faces) / np.sqrt(np.where(variances > 0, variances, 1.0))

    def distances(self, probes: FaceSet, gallery: FaceSet) -> FloatArray:
        """Return distances, (n_probes, n_gallery)."""
        return np.sqrt(cross_squared_distances(self.encode(probes), self.encode(gallery)))


def _params(n_components: int | float | None, space: EigenSpace | None) -> dict[str, Any]:
    learned = {} if space is None else {"components": len(space.pca.variances)}
    return {"n_components": n_components, **learned}


def _fitted(space: EigenSpace | None, name: str) -> EigenSpace:
    if space is None:
        raise RuntimeError(f"{name} is not fitted; call fit(training) first.")
    return space
