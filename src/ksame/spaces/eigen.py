"""The eigenface space: a face is its coefficients on the principal components of a face set."""

from __future__ import annotations

from dataclasses import dataclass, field

from ksame.arrays import FloatArray
from ksame.faces.faceset import FaceSet
from ksame.spaces.base import Space
from ksame.spaces.pca import PCA, component_count, fit_pca
from ksame.spaces.pixel import flatten, pixel_rows


@dataclass(frozen=True)
class EigenSpace(Space):
    """Principal components of registered pixels (Newton et al. 2005, Fig. 3)."""

    n_components: int | float | None = 0.95  # a number, a share of the variance, or all
    pca_: PCA | None = field(default=None, repr=False)
    shape_: tuple[int, int, int] | None = field(default=None, repr=False)

    name = "eigen"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_components", component_count("EigenSpace", self.n_components))

    def fit(self, faces: FaceSet) -> EigenSpace:
        """Learn the components from ``faces``."""
        shape = faces.shape[1:]
        return EigenSpace(self.n_components, fit_pca(flatten(faces, shape), self.n_components), shape)

    @property
    def pca(self) -> PCA:
        """The fitted components."""
        return self._fitted()[0]

    def encode(self, faces: FaceSet) -> FloatArray:
        """Return coefficients of shape (n_faces, n_components)."""
        pca, shape = self._fitted()
        return pca.project(pixel_rows(faces, shape))

    def decode(self, codes: FloatArray) -> FloatArray:
        """Return images of shape (n, height, width, channels)."""
        pca, shape = self._fitted()
        return pca.reconstruct(codes).reshape(len(codes), *shape)

    def _fitted(self) -> tuple[PCA, tuple[int, int, int]]:
        if self.pca_ is None or self.shape_ is None:
            raise RuntimeError("EigenSpace is not fitted; call fit(faces) first.")
        return self.pca_, self.shape_
