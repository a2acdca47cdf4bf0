"""Fitting an appearance model to a photograph by inverse composition.

The image is sampled at the current shape; how the *template* must move to look more like the sample is
worked out in the base frame, where derivatives do not change, and the inverse of that movement is composed
with the current warp (Baker and Matthews 2004). Two ways to treat the texture meanwhile:

project-out
    Movement is judged only by what no texture mode can explain. Everything but one product is computed
    beforehand (Matthews and Baker 2004, section 4.2).
simultaneous
    Movement and texture are solved for together, with the derivatives of the texture as it is now (Gross,
    Matthews and Baker 2005). The texture's share of the normal equations is eliminated first, which gives
    the same step for a fraction of the work (Tzimiropoulos and Pantic 2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ksame.arrays import FloatArray
from ksame.errors import InputError, parameter_error
from ksame.progress import Progress, silent
from ksame.spaces.aam.level import Level, crop_features, normalised
from ksame.spaces.aam.model import AppearanceModel, Params
from ksame.spaces.aam.warp import FloatImage

Method = Literal["simultaneous", "project-out"]

ALIKE = 100.0
"""How many neighbouring feature values say the same: counted in full, they would drown what is known of shapes."""

_WITHIN = 3.0  # standard deviations that no shape parameter may pass
STILL = 0.02  # pixels of the level: a round that moves the points by less is the last


@dataclass(frozen=True, eq=False)
class Fit:
    """What came of fitting; false if it failed."""

    params: Params  # of the model, with texture parameters read from the photograph at the points found
    points: FloatArray  # (n_points, 2): in the photograph
    iterations: int  # over all levels
    error: float  # share of the features at the finest level that the model does not explain, from 0 to 1
    reason: str = ""  # why it failed; empty if it converged

    @property
    def converged(self) -> bool:
        """Whether the points came to rest."""
        return not self.reason

    def __bool__(self) -> bool:
        return self.converged


@dataclass(frozen=True, eq=False)
class Fitter:
    """Fits one appearance model to photographs, from coarse to fine."""

    model: AppearanceModel
    levels: tuple[Level, ...]  # from coarse to fine

    @classmethod
    def train(
        cls,
        model: AppearanceModel,
        images: Sequence[NDArray[Any]] | NDArray[Any],
        landmarks: ArrayLike,
        *,
        widths: Sequence[int] = (32, 64),
        shape_modes: int = 20,
        texture_modes: int = 50,
        progress: Progress = silent,
    ) -> Fitter:
        """Learn what faces look like at each level.

        Parameters
        ----------
        images : sequence of n_faces arrays of shape (height, width, 1 or 3)
            Best the photographs that the model was built from.
        landmarks : array of shape (n_faces, n_points, 2)
        widths : sequence of int
            Width in pixels of the face at each level, rising.
        shape_modes, texture_modes : int
            How many to fit, at most; all that the model or the photographs yield if they yield fewer.
        progress : Progress
            Shows progress.
        """
        if not widths or list(widths) != sorted(widths) or widths[0] < 8:
            raise parameter_error("widths", "Fitter", "rising integers of at least 8", widths)
        for name, value in (("shape_modes", shape_modes), ("texture_modes", texture_modes)):
            if value < 1:
                raise parameter_error(name, "Fitter", "an integer of at least 1", value)
        points = np.asarray(landmarks, dtype=np.float64)
        expected = (len(images), *model.mean_shape.shape)
        if points.shape != expected or len(images) < 2:
            raise InputError(f"Expected two faces or more and landmarks {expected}. Got {points.shape}.")
        small = model.truncated(shape=min(shape_modes, len(model.shape_modes)))
        levels = [Level.train(small, images, points, width, texture_modes, progress) for width in widths]
        return cls(model, tuple(levels))

    def fit(
        self, image: NDArray[Any], start: ArrayLike, *, method: Method = "simultaneous", max_rounds: int = 20
    ) -> Fit:
        """Find the face near ``start``.

        Parameters
        ----------
        image : ndarray of shape (height, width, channels)
        start : array of shape (n_points, 2)
            For instance the mean shape at a detected face, or the points of the frame before.
        method : {"simultaneous", "project-out"}
        max_rounds : int
            At each level.
        """
        if method not in ("simultaneous", "project-out"):
            raise parameter_error("method", "Fitter.fit", "'simultaneous' or 'project-out'", method)
        points = np.array(start, dtype=np.float64)
        if points.shape != self.model.mean_shape.shape or not np.isfinite(points).all():
            raise InputError(f"Expected finite start points {self.model.mean_shape.shape}. Got {points.shape}.")
        rounds, error, reason = 0, 1.0, ""
        for level in self.levels:
            crop = crop_features(level.warp, image, points)
            if crop is None:
                reason = "the face lies outside the photograph"
                break
            described, transform = crop
            level_fit = _LevelFit(level, described, method)
            fitted, used, resting = level_fit.run(transform.apply(points), max_rounds)
            points, error = transform.inverse().apply(fitted), level_fit.error
            rounds += used
            reason = "" if resting else f"the points still moved after {max_rounds} rounds"
            if error >= 1.0:
                reason = "the photograph is flat where the face should be"
                break
        return Fit(self.model.params_from_landmarks(image, points), points, rounds, error, reason)


class _LevelFit:
    """The rounds of one level on one photograph."""

    def __init__(self, level: Level, described: FloatImage, method: Method) -> None:
        self.level = level
        self.described = described
        self.method = method
        self.texture: FloatImage | None = None
        self.error = 1.0
        # Likely shapes are those of the training faces (a Gaussian prior); pose is free.
        self.stiffness = np.zeros(len(level.directions))
        self.stiffness[4:] = ALIKE * level.noise / np.maximum(level.shape_variances, 1e-12)

    def run(self, points: FloatArray, max_rounds: int) -> tuple[FloatArray, int, bool]:
        """Return the points, the rounds used, and whether the points came to rest."""
        points, shape = self.level.project(points, _WITHIN)
        for used in range(1, max_rounds + 1):
            move = self._move(points, shape)
            step = -np.tensordot(move, self.level.directions, axes=1)
            moved, shape = self.level.project(self.level.compose(points, step), _WITHIN)
            size = float(np.sqrt(((moved - points) ** 2).sum(axis=1).mean()))
            points = moved
            if size < STILL:
                return points, used, True
        return points, max_rounds, False

    def _move(self, points: FloatArray, shape: FloatArray) -> FloatArray:
        """Return how the template should move, (n_directions,), to look more like the sample."""
        level = self.level
        sample = normalised(level.warp.sample(self.described, points, smooth=False))
        rest = sample - level.template
        explained = level.modes @ rest  # the modes are orthonormal, so this is all that they can explain
        self.error = float(np.sqrt(max(0.0, float(rest @ rest - explained @ explained)))) if sample.any() else 1.0
        if self.method == "project-out":
            descent, hessian = level.projected_out
            return self._solve(hessian, descent @ rest, shape)
        slope, slopes = level.gradients
        texture = explained if self.texture is None else self.texture
        descent = level.descent(slope + (texture @ slopes).reshape(slope.shape))
        shared = descent @ level.modes.T
        move = self._solve(descent @ descent.T - shared @ shared.T, descent @ rest - shared @ explained, shape)
        self.texture = explained - move.astype(np.float32) @ shared
        return move

    def _solve(self, hessian: NDArray[Any], pull: NDArray[Any], shape: FloatArray) -> FloatArray:
        """Take the Gauss-Newton step, drawn towards likely shapes."""
        stiff = self.stiffness + 1e-9 * float(np.trace(hessian)) / len(hessian)
        drawn = pull.astype(np.float64)
        drawn[4:] += self.stiffness[4:] * shape
        return np.asarray(np.linalg.solve(hessian.astype(np.float64) + np.diag(stiff), drawn))
