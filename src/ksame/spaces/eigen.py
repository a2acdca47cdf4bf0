"""The eigenface space: a face is its coefficients on the principal components of a face set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ksame.arrays import FloatArray
from ksame.faces.faceset import FaceSet
from ksame.parameters import Parameters
from ksame.spaces.pca import PCA, component_count, fit_pca
from ksame.spaces.pixel import flatten, pixel_rows


@dataclass(frozen=True)
class EigenSpace(Parameters):
    """Principal components of registered pixels (Newton et al. 2005, Fig. 3)."""

    n_components: int | float | None = 0.95  # a number, a share of the variance, or all
    pca_: PCA | None = field(default=None, repr=False)
    shape_: tuple[int, int, int] | None = field(default=None, repr=False)

    name = "eigen"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_components", component_count("EigenSpace", self.n_components))

    def params(self) -> dict[str, Any]:
        """Return the public parameters."""
        return {"n_components": self.n_components}

    def fit(self, faces: FaceSet) -> EigenSpace:
        """Learn the components from ``faces``."""
        shape = faces.shape[1:]
        return EigenSpace(self.n_components, fit_pca(flatten(faces, shape), self.n_components), shape)

    @property
    def pca(self) -> PCA:
        """The fitted components."""
        if self.pca_ is None:
            raise RuntimeError("EigenSpace is not fitted; call fit(faces) first.")
        return self.pca_

    def encode(self, faces: FaceSet) -> FloatArray:
        """Return coefficients of shape (n_faces, n_components)."""
        pca = self.pca
        assert self.shape_ is not None  # noqa: S101 -- set together with pca_
        return pca.project(pixel_rows(faces, self.shape_))

    def landmarks(self, codes: FloatArray) -> None:
        """Return None: pixels have no points."""

    def decode(self, codes: FloatArray) -> FloatArray:
        """Return images of shape (n, height, width, channels)."""
        pca = self.pca
        assert self.shape_ is not None  # noqa: S101 -- set together with pca_
        return pca.reconstruct(codes).reshape(len(codes), *self.shape_)
