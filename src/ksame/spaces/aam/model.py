"""The appearance model: a face is a shape and a shape-free texture, each a mean plus modes.

Gross et al. 2006, section 4.2; Matthews and Baker 2004, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ksame.arrays import FloatArray, IntArray
from ksame.errors import InputError, parameter_error
from ksame.geometry import Similarity
from ksame.spaces.aam.warp import FloatImage, PiecewiseAffine


@dataclass(frozen=True, eq=False)
class Params:
    """One face in an appearance model."""

    shape: FloatArray  # (n_shape_modes,)
    texture: FloatArray  # (n_texture_modes,)
    pose: Similarity  # from the base image to the photograph


@dataclass(frozen=True, eq=False, repr=False)
class AppearanceModel:
    """Mean and modes of shape and texture: ``s = s0 + sum p_i s_i``, ``A = A0 + sum lambda_i A_i``."""

    mean_shape: FloatArray  # (n_points, 2): in pixels of the base image
    shape_modes: FloatArray  # (n_shape_modes, n_points, 2): orthonormal, and orthogonal to every similarity
    shape_variances: FloatArray  # (n_shape_modes,)
    shape_total: float  # variance of the training shapes, all directions together
    triangles: IntArray  # (n_triangles, 3)
    size: tuple[int, int]  # height and width of the base image
    mean_texture: FloatImage  # (n_pixels, channels): the base pixels inside the mesh, eyes and mouth included
    texture_modes: FloatImage  # (n_texture_modes, n_pixels, channels): orthonormal
    texture_variances: FloatArray  # (n_texture_modes,)
    texture_total: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                array = np.ascontiguousarray(value).view()  # one memory layout gives the same bits
                array.flags.writeable = False
                object.__setattr__(self, name, array)
        points, pixels, channels = len(self.mean_shape), *self.mean_texture.shape
        expected = {
            "mean_shape": (points, 2),
            "shape_modes": (len(self.shape_variances), points, 2),
            "mean_texture": (self.warp.n_pixels, channels),
            "texture_modes": (len(self.texture_variances), pixels, channels),
        }
        for name, shape in expected.items():
            if (got := getattr(self, name).shape) != shape:
                raise InputError(f"The {name} of an appearance model must have shape {shape}. Got {got}.")

    @cached_property
    def warp(self) -> PiecewiseAffine:
        """The warps between the base and other shapes."""
        return PiecewiseAffine(self.mean_shape, self.triangles, self.size)

    @property
    def channels(self) -> int:
        """1 for grey, 3 for colour."""
        return int(self.mean_texture.shape[1])

    @property
    def _texture_rows(self) -> FloatImage:
        return self.texture_modes.reshape(len(self.texture_modes), self.mean_texture.size)

    def truncated(self, shape: int | None = None, texture: int | None = None) -> AppearanceModel:
        """Return the model with only its first ``shape`` and ``texture`` modes; None keeps all."""
        for name, value, modes in (("shape", shape, self.shape_modes), ("texture", texture, self.texture_modes)):
            if value is not None and not 0 <= value <= len(modes):
                raise parameter_error(name, "AppearanceModel.truncated", f"an integer in [0, {len(modes)}]", value)
        return replace(
            self,
            shape_modes=self.shape_modes[:shape],
            shape_variances=self.shape_variances[:shape],
            texture_modes=self.texture_modes[:texture],
            texture_variances=self.texture_variances[:texture],
        )

    # Analysis: from a photograph to parameters

    def shape_params(self, points: ArrayLike) -> tuple[FloatArray, Similarity]:
        """Return shape parameters and pose of points, (n_points, 2), in closed form.

        Pose is the similarity that takes the mean shape closest to the points. No shape mode moves the mean shape like
        a similarity, so points made by the model give back exactly their parameters.
        """
        landmarks = np.asarray(points, dtype=np.float64)
        if landmarks.shape != self.mean_shape.shape:
            raise InputError(f"Expected landmarks of shape {self.mean_shape.shape}. Got {landmarks.shape}.")
        pose = Similarity.estimate(self.mean_shape, landmarks)
        rest = pose.inverse().apply(landmarks) - self.mean_shape
        return np.einsum("kpc,pc->k", self.shape_modes, rest), pose

    def texture_params(self, texture: NDArray[Any]) -> FloatArray:
        """Return the coefficients, (n_texture_modes,), of texture rows of shape (n_pixels, channels)."""
        rest = (np.asarray(texture, dtype=np.float32) - self.mean_texture).ravel()
        return np.asarray(self._texture_rows @ rest, dtype=np.float64)

    def params_from_landmarks(self, image: NDArray[Any], points: ArrayLike) -> Params:
        """Return the parameters of the face at ``points`` in an image, in closed form."""
        self._check_channels(image)
        shape, pose = self.shape_params(points)
        texture = self.warp.sample(image, np.asarray(points, dtype=np.float64))
        return Params(shape, self.texture_params(texture), pose)

    # Synthesis: from parameters to pictures

    def shape(self, params: FloatArray) -> FloatArray:
        """Return the points, (n_points, 2), of shape parameters, in pixels of the base image."""
        return np.asarray(self.mean_shape + np.einsum("k,kpc->pc", params, self.shape_modes))

    def points(self, params: Params) -> FloatArray:
        """Return the points, (n_points, 2), of a face where it lies in the photograph."""
        return params.pose.apply(self.shape(params.shape))

    def texture(self, params: FloatArray) -> FloatImage:
        """Return the texture rows, (n_pixels, channels), of texture parameters, not clipped."""
        rows = np.asarray(params, dtype=np.float32) @ self._texture_rows
        return np.asarray(rows.reshape(self.mean_texture.shape) + self.mean_texture)

    def render(self, params: Params, size: tuple[int, int], *, background: float = 0.5) -> FloatImage:
        """Paint a face on a plain background of brightness in [0, 1]: (height, width, channels), not clipped."""
        face, covered = self.warp.from_base(self.texture(params.texture), self.points(params), size)
        return np.where(covered[..., None], face, np.float32(background))

    def _check_channels(self, image: NDArray[Any]) -> None:
        if image.ndim != 3 or image.shape[2] != self.channels:
            raise InputError(f"Expected an image of shape (height, width, {self.channels}). Got {image.shape}.")
