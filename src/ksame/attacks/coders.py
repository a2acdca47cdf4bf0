"""Recognisers that compare codes: eigenface coefficients, appearance parameters, and posterior probabilities."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ksame.arrays import FloatArray
from ksame.attacks.base import Coder
from ksame.faces.faceset import FaceSet, subject_means
from ksame.spaces.base import FaceSpace
from ksame.spaces.eigen import EigenSpace
from ksame.spaces.facemodel.space import FaceModelSpace
from ksame.spaces.reference import FaceModels, cross_squared_distances

Space = TypeVar("Space", bound=FaceSpace)


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
        return _fitted(self.space_, self.name).encode(faces)

    def distances(self, probes: FaceSet, gallery: FaceSet) -> FloatArray:
        """Return distances, (n_probes, n_gallery)."""
        return euclidean(self, probes, gallery)


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
        space = _fitted(self.space_, self.name)
        variances = space.pca.variances
        return space.encode(faces) / np.sqrt(np.where(variances > 0, variances, 1.0))


@dataclass(frozen=True, eq=False)
class ModelNeighbour:
    """Nearest neighbour among appearance parameters (Sun et al. 2015, section IV-B; Gross and Sweeney 2007, Fig. 5).

    Needs faces with landmarks.
    """

    # the shipped face model by default. ``AamSpace(zero_first_texture=True)`` learns a model of its own, and sets
    # overall brightness, which says little about who it is, to zero
    space: FaceSpace = field(default_factory=FaceModelSpace)
    space_: FaceSpace | None = None

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"{self.space.name}-nearest"

    def params(self) -> dict[str, Any]:
        """Return the settings of the space."""
        return self.space.params()

    def fit(self, training: FaceSet) -> ModelNeighbour:
        """Learn the coding from a training set."""
        return replace(self, space_=self.space.fit(training))

    def encode(self, faces: FaceSet) -> FloatArray:
        """Return appearance parameters, (n_faces, n_codes)."""
        return _fitted(self.space_, self.name).encode(faces)

    def distances(self, probes: FaceSet, gallery: FaceSet) -> FloatArray:
        """Return distances, (n_probes, n_gallery)."""
        return euclidean(self, probes, gallery)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The recogniser of Gross and Sweeney (2007, Definition III.3): p(model | probe), all models equally likely.

    A model is the mean code of a subject's gallery images, p(probe | model) a normal density of one scale for all. The
    scale is the spread of a person's images around their mean, where the training set has several of somebody, and
    otherwise :meth:`ksame.spaces.FaceModels.scale`. The distance returned is the root of -2 log p, so that
    adding squares over a set of one subject's images gives the posterior of the set.
    """

    space: FaceSpace = field(default_factory=EigenSpace)  # the coding; eigenfaces with 95 % of the variance by default
    space_: FaceSpace | None = None
    scale_: float = 1.0

    name = "posterior"

    def params(self) -> dict[str, Any]:
        """Return the coding, its settings and the scale learned."""
        learned = {} if self.space_ is None else {"scale": self.scale_}
        return {"coding": self.space.name, **self.space.params(), **learned}

    def fit(self, training: FaceSet) -> Posterior:
        """Learn the coding and the scale from a training set."""
        space = self.space.fit(training)
        codes = space.encode(training)
        return replace(self, space_=space, scale_=_scale(codes, training.subjects) or 1.0)

    def posteriors(self, probes: FaceSet, gallery: FaceSet) -> tuple[FloatArray, NDArray[np.str_]]:
        """Return log p(model | probe), (n_probes, n_subjects), and the subjects, sorted."""
        space = _fitted(self.space_, self.name)
        means, who = subject_means(space.encode(gallery), gallery.subjects)
        likelihood = -0.5 * cross_squared_distances(space.encode(probes), means) / self.scale_**2
        return likelihood - logsumexp(likelihood, axis=1, keepdims=True), who

    def distances(self, probes: FaceSet, gallery: FaceSet) -> FloatArray:
        """Return distances, (n_probes, n_gallery); those of one subject's images are equal."""
        log, who = self.posteriors(probes, gallery)
        column = np.searchsorted(who, gallery.subjects)
        return np.asarray(np.sqrt(np.maximum(-2.0 * log, 0.0))[:, column])


def _scale(codes: FloatArray, subjects: NDArray[np.str_]) -> float:
    means, who = subject_means(codes, subjects)
    if len(who) == len(codes):
        return FaceModels(codes, subjects).scale()
    within = codes - means[np.searchsorted(who, subjects)]
    _, counts = np.unique(subjects, return_counts=True)
    return float(np.sqrt((within**2).sum() / (within.shape[1] * (counts - 1).sum())))


def _fitted(space: Space | None, name: str) -> Space:
    if space is None:
        raise RuntimeError(f"{name} is not fitted; call fit(training) first.")
    return space


def euclidean(coder: Coder, probes: FaceSet, gallery: FaceSet) -> FloatArray:
    """Return the distances between codes, (n_probes, n_gallery)."""
    return np.sqrt(cross_squared_distances(coder.encode(probes), coder.encode(gallery)))
