"""Learning an appearance model from photographs and landmarks (Gross et al. 2006, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ksame.arrays import FloatArray
from ksame.errors import InputError, parameter_error
from ksame.progress import Progress, silent
from ksame.spaces.aam.model import AppearanceModel
from ksame.spaces.aam.procrustes import generalised_procrustes
from ksame.spaces.aam.warp import FloatImage, PiecewiseAffine, triangulate
from ksame.spaces.pca import fit_pca

MARGIN = 2
"""Pixels between the mean shape and the border of the base image."""


def build(
    images: Sequence[NDArray[Any]] | NDArray[Any],
    landmarks: ArrayLike,
    *,
    shape: int | float | None = 0.98,
    texture: int | float | None = 0.95,
    width: int = 128,
    triangles: ArrayLike | None = None,
    progress: Progress = silent,
) -> AppearanceModel:
    """Learn shape and texture modes.

    Parameters
    ----------
    images : sequence of n_faces arrays of shape (height, width, channels)
        Photographs or face images, of any sizes, all grey or all colour.
    landmarks : array of shape (n_faces, n_points, 2)
        In pixels of each image; any scheme of at least three points.
    shape, texture : int, float in (0, 1] or None
        A number of modes, a share of the variance to keep, or all modes.
    width : int
        Width of the base image in pixels; its height follows from the mean shape.
    triangles : array of shape (n_triangles, 3), optional
        Indices of points; by default the Delaunay triangles of the mean shape.
    progress : Progress
        Shows progress.
    """
    points = np.asarray(landmarks, dtype=np.float64)
    if points.ndim != 3 or points.shape[2] != 2 or len(points) != len(images):
        raise InputError(f"Expected landmarks of shape ({len(images)}, n_points, 2). Got {points.shape}.")
    if len(images) < 2:
        raise InputError(f"An appearance model needs at least two faces. Got {len(images)}.")
    if width < 8:
        raise parameter_error("width", "build", "an integer of at least 8", width)
    aligned, mean = generalised_procrustes(points)
    base, size, scale = _place(mean, width)
    mesh = triangulate(base) if triangles is None else np.asarray(triangles, dtype=np.intp)
    warp = PiecewiseAffine(base, mesh, size)
    shapes = fit_pca((aligned - mean).reshape(len(points), -1) * scale, shape)
    rows = sample_textures(warp, images, points, progress=progress)
    textures = fit_pca(rows, texture)  # float32, to halve the memory of large sets
    channels = rows.shape[1] // warp.n_pixels
    return AppearanceModel(
        mean_shape=base,
        shape_modes=shapes.components.reshape(-1, *base.shape),
        shape_variances=shapes.variances,
        shape_total=shapes.total_variance,
        triangles=mesh,
        size=size,
        mean_texture=textures.mean.reshape(-1, channels).astype(np.float32),
        texture_modes=textures.components.reshape(-1, warp.n_pixels, channels).astype(np.float32),
        texture_variances=textures.variances.astype(np.float64),
        texture_total=textures.total_variance,
    )


def sample_textures(
    warp: PiecewiseAffine,
    images: Sequence[NDArray[Any]] | NDArray[Any],
    landmarks: FloatArray,
    *,
    progress: Progress = silent,
) -> FloatImage:
    """Warp every face to the base: rows of shape (n_faces, n_pixels * channels), float32."""
    channels = {image.shape[2] if image.ndim == 3 else 0 for image in images}
    if len(channels) != 1 or not channels <= {1, 3}:
        raise InputError("Images must have shape (height, width, channels), all with 1 or all with 3 channels.")
    rows = np.empty((len(images), warp.n_pixels * channels.pop()), dtype=np.float32)
    for i in progress(range(len(images)), "warping faces to the base"):
        rows[i] = warp.sample(images[i], landmarks[i]).ravel()
    return rows


def _place(mean: FloatArray, width: int) -> tuple[FloatArray, tuple[int, int], float]:
    """Scale and shift the mean shape into an image of this width; return shape, (height, width), scale."""
    extent = np.ptp(mean, axis=0)
    if extent.min() <= 1e-6 * extent.max():
        raise InputError("The mean shape has no area: its points lie on one line.")
    scale = float((width - 1 - 2 * MARGIN) / extent[0])
    base = (mean - mean.min(axis=0)) * scale + MARGIN
    height = int(np.ceil(base[:, 1].max())) + MARGIN + 1
    return base, (height, width), scale
