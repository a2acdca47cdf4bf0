"""One level of the resolution pyramid on which an appearance model is fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.errors import InputError
from ksame.faces.registration import Template, register
from ksame.geometry import Similarity
from ksame.progress import Progress
from ksame.spaces.aam.model import AppearanceModel
from ksame.spaces.aam.raster import barycentric
from ksame.spaces.aam.warp import FloatImage, PiecewiseAffine, as_float
from ksame.spaces.pca import fit_pca

MARGIN = 0.3
"""Width of the surroundings seen around a face, as a share of its base width."""

FLAT_GRADIENT = 0.005
"""Brightness step per pixel below which a neighbourhood counts as flat, and its noise is not blown up."""

_GREY = np.array([0.299, 0.587, 0.114], dtype=np.float32)


def features(grey: FloatImage) -> FloatImage:
    """Describe each pixel by its gradient: right, left, down and up, (height, width, 4), none of them negative.

    Gradients are divided by their local average, so that light, skin tone and contrast hardly matter (normalised
    gradients as in Cootes and Taylor 2001). They are smoothed after they have been split by sign, so that neighbouring
    edges of opposite sign do not cancel and a fit sees them from further away.
    """
    right = cv2.Sobel(grey, cv2.CV_32F, 1, 0, ksize=3, scale=0.125)
    down = cv2.Sobel(grey, cv2.CV_32F, 0, 1, ksize=3, scale=0.125)
    steepness = np.sqrt(right * right + down * down)  # cv2.magnitude rounds as the memory happens to be aligned
    size = cv2.GaussianBlur(steepness, (0, 0), 6.0)
    split = np.stack([right, -right, down, -down], axis=-1).clip(min=0.0)
    smooth = cv2.GaussianBlur(split, (0, 0), 1.0)
    return np.asarray(smooth / (size + FLAT_GRADIENT)[..., None], dtype=np.float32)


def grey_of(image: NDArray[Any]) -> FloatImage:
    """Return the brightness, (height, width), of an image of shape (height, width, 1 or 3)."""
    if image.ndim != 3 or image.shape[2] not in (1, 3):
        raise InputError(f"Expected an image of shape (height, width, 1 or 3). Got {image.shape}.")
    colours = as_float(image)
    return colours[..., 0] if image.shape[2] == 1 else colours @ _GREY


@dataclass(frozen=True, eq=False)
class Level:
    """What fitting needs at one resolution."""

    warp: PiecewiseAffine  # the base at this resolution, a margin around it
    shape_modes: FloatArray  # (n_shape_modes, n_points, 2)
    shape_variances: FloatArray  # (n_shape_modes,): in squared pixels of this level
    template: FloatImage  # (n_values,): mean of the training features inside the mesh
    modes: FloatImage  # (n_modes, n_values): orthonormal; the last one lets the template itself grow and shrink
    noise: float  # variance of one feature value that the modes leave unexplained

    @classmethod
    def train(
        cls,
        model: AppearanceModel,
        images: Sequence[NDArray[Any]] | NDArray[Any],
        landmarks: FloatArray,
        width: int,
        n_modes: int,
        progress: Progress,
    ) -> Level:
        """Learn the features of faces at a base of the given width."""
        scale = width / model.size[1]
        edge = round(MARGIN * width)
        base = (model.mean_shape + 0.5) * scale - 0.5 + edge
        size = (int(np.ceil(model.size[0] * scale)) + 2 * edge, width + 2 * edge)
        warp = PiecewiseAffine(base, model.triangles, size)
        rows = []
        for i in progress(range(len(images)), f"learning to fit at {width} pixels"):
            crop = crop_features(warp, images[i], landmarks[i])
            if crop is None:
                raise InputError(f"The landmarks of image {i} lie outside it.")
            described, transform = crop
            rows.append(normalised(warp.sample(described, transform.apply(landmarks[i]), smooth=False)))
        pca = fit_pca(np.stack(rows).astype(np.float64), min(n_modes, len(rows) - 1))
        basis, _ = np.linalg.qr(np.vstack([pca.components, pca.mean]).T)
        unexplained = max(0.0, pca.total_variance - float(pca.variances.sum()))
        return cls(
            warp,
            model.shape_modes,
            model.shape_variances * scale**2,
            pca.mean.astype(np.float32),
            np.ascontiguousarray(basis.T, dtype=np.float32),
            unexplained / len(pca.mean),
        )

    @cached_property
    def directions(self) -> FloatArray:
        """Scaling, rotation and two shifts of the base, then shape modes: (n_directions, n_points, 2).

        The four similarities are written as four more orthonormal modes (Matthews and Baker 2004, section 4.2).
        """
        centred = self.warp.base - self.warp.base.mean(axis=0)
        turned = np.stack([-centred[:, 1], centred[:, 0]], axis=1)
        shifts = np.broadcast_to(np.eye(2)[:, None, :], (2, *centred.shape))
        pose = np.concatenate([centred[None], turned[None], shifts])
        pose = pose / np.linalg.norm(pose.reshape(4, -1), axis=1)[:, None, None]
        return np.concatenate([pose, self.shape_modes])

    @cached_property
    def jacobian(self) -> FloatImage:
        """How far each value's pixel moves along x and y in each direction: (2, n_directions, n_values)."""
        channels = len(self.template) // self.warp.n_pixels
        moved = np.stack([self.warp.weights @ direction for direction in self.directions])
        return np.ascontiguousarray(np.repeat(moved, channels, axis=1).transpose(2, 0, 1), dtype=np.float32)

    def _gradient(self, values: NDArray[Any]) -> FloatImage:
        """Return the derivatives along x and y, (2, n_values), of feature values laid out on the base."""
        image = self.warp.image(values.reshape(self.warp.n_pixels, -1))
        along = [np.asarray(np.gradient(image, axis=axis)) for axis in (1, 0)]
        return np.stack([d[self.warp.mask].ravel() for d in along]).astype(np.float32)

    @cached_property
    def gradients(self) -> tuple[FloatImage, FloatImage]:
        """Derivatives of the template, (2, n_values), and of each mode, (n_modes, 2 * n_values)."""
        return self._gradient(self.template), np.stack([self._gradient(mode).ravel() for mode in self.modes])

    @cached_property
    def projected_out(self) -> tuple[FloatImage, FloatArray]:
        """Steepest-descent images of the template, free of the modes, and their Gauss-Newton Hessian."""
        descent = self.descent(self.gradients[0])
        descent = descent - (descent @ self.modes.T) @ self.modes
        return descent, (descent @ descent.T).astype(np.float64)

    def descent(self, gradient: FloatImage) -> FloatImage:
        """Return the steepest-descent images, (n_directions, n_values), of a texture with this gradient."""
        return np.asarray(gradient[0] * self.jacobian[0] + gradient[1] * self.jacobian[1])

    @cached_property
    def _corners(self) -> tuple[Any, FloatArray]:
        """A matrix that averages over the triangles at each point by area, and what makes linear maps."""
        from scipy import sparse

        triangles, areas = self.warp.triangles, np.abs(self.warp.base_areas)
        columns = np.repeat(np.arange(len(triangles)), 3)
        shape = (len(self.warp.base), len(triangles))
        share = sparse.csr_array((np.repeat(areas, 3), (triangles.ravel(), columns)), shape=shape)
        total = np.asarray(share.sum(axis=1)).ravel()
        average = sparse.diags_array(1.0 / np.where(total > 0, total, 1.0)) @ share
        return average, barycentric(self.warp.base, triangles)[..., :2]

    def compose(self, points: FloatArray, step: FloatArray) -> FloatArray:
        """Compose the warp to ``points`` with the warp that moves each point of the base by ``step``.

        A point of the base that has moved is taken along by the affine maps of the triangles around it, averaged by
        area (Matthews and Baker 2004, section 4.1.2). A triangle that has folded over or collapsed, as lips and lids
        do, has no map worth following; there the pose of the whole face counts instead.
        """
        average, corners = self._corners
        maps = np.einsum("tkc,tki->tci", points[self.warp.triangles], corners)
        pose = Similarity.estimate(self.warp.base, points)
        turn = pose.matrix[:, :2]
        growth = np.linalg.det(maps) / (pose.a**2 + pose.b**2)
        maps = np.where(((growth < 0.25) | (growth > 4.0))[:, None, None], turn, maps)
        around = (average @ maps.reshape(-1, 4)).reshape(-1, 2, 2)
        return np.asarray(points + np.einsum("pci,pi->pc", around, step))

    def project(self, points: FloatArray, within: float) -> tuple[FloatArray, FloatArray]:
        """Return the nearest shape with no parameter beyond ``within`` deviations, and its parameters."""
        pose = Similarity.estimate(self.warp.base, points)
        rest = pose.inverse().apply(points) - self.warp.base
        limit = within * np.sqrt(self.shape_variances)
        params = np.einsum("kpc,pc->k", self.shape_modes, rest).clip(-limit, limit)
        return pose.apply(self.warp.base + np.einsum("k,kpc->pc", params, self.shape_modes)), params


def crop_features(
    warp: PiecewiseAffine, image: NDArray[Any], points: FloatArray
) -> tuple[FloatImage, Similarity] | None:
    """Crop the face at ``points``, upright and at the size of the base, and describe it.

    Returns features of shape (height, width, 4) and the transform from photograph to crop; None where there is no
    photograph under the points.
    """
    reach = np.ptp(points, axis=0).max() * 2.0 * MARGIN
    size = image.shape[1::-1]
    low = np.floor(points.min(axis=0) - reach).clip(0, size).astype(int)
    high = np.ceil(points.max(axis=0) + reach + 1).clip(0, size).astype(int)
    if (high - low < 2).any():
        return None
    template = Template(warp.size[1], warp.size[0], tuple(map(tuple, warp.base.tolist())))
    window = grey_of(image[low[1] : high[1], low[0] : high[0]])
    face, move = register(window[..., None], points - low, template)
    shift = Similarity(move.a, move.b, *(float(v) for v in move.apply(-low)))
    return features(face[..., 0]), shift


def normalised(texture: FloatImage) -> FloatImage:
    """Return feature values as one row without mean and of unit length; zeros if they are all the same."""
    row = texture.ravel() - texture.mean()
    length = float(np.linalg.norm(row))
    return row / length if length > 1e-6 else np.zeros_like(row)
