"""Piecewise-affine warps between a base shape and any other (Matthews and Baker 2004, section 2.2).

Everything about the base is computed once: which pixels lie inside the mesh, in which triangle, with which
barycentric weights. Sampling a photograph at the base is then one product of a sparse matrix with the
points and one call of OpenCV. Painting a texture at another shape fills all triangles at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray, IntArray
from ksame.errors import InputError
from ksame.spaces.aam.raster import Spans, barycentric, signed_areas

FloatImage = NDArray[np.float32]
_ROW = 256  # samples are laid out in rows of this length, for OpenCV refuses images of 32768 rows or more
_FLAT = 1e-12  # an area that counts as none
_NEEDLE = 0.05  # height of a triangle, by its longest side, below which it counts as none
_COARSER = 0.6  # below this scale neighbouring pixels are averaged first, so that none is skipped


def as_float(image: NDArray[Any]) -> FloatImage:
    """Return an image as float32; integers are scaled by the largest value of their type."""
    array = np.asarray(image)
    if np.issubdtype(array.dtype, np.integer):
        return np.asarray(array / np.float32(np.iinfo(array.dtype).max), dtype=np.float32)
    return np.asarray(array, dtype=np.float32)


def triangulate(points: FloatArray) -> IntArray:
    """Return the Delaunay triangles, (n_triangles, 3), of points (n_points, 2), all turning the same way."""
    from scipy.spatial import Delaunay, QhullError

    try:
        triangles = np.asarray(Delaunay(points).simplices, dtype=np.intp)
    except (QhullError, ValueError) as error:
        raise InputError("The mean shape cannot be triangulated: its points lie on one line.") from error
    area = signed_areas(points, triangles)
    size = float(np.ptp(points, axis=0).max())
    triangles = np.where((area < 0)[:, None], triangles[:, [0, 2, 1]], triangles)
    return triangles[np.abs(area) > 1e-9 * size**2]


@dataclass(frozen=True, eq=False)
class PiecewiseAffine:
    """The warps between a base shape and other shapes of the same points.

    Examples
    --------
    >>> square = np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 3.0], [0.0, 3.0]])
    >>> warp = PiecewiseAffine(square, triangulate(square), (4, 4))
    >>> picture = np.arange(36, dtype=np.float32).reshape(6, 6, 1)
    >>> warp.to_base(picture, square + 1)[..., 0].astype(int).tolist()
    [[7, 8, 9, 10], [13, 14, 15, 16], [19, 20, 21, 22], [25, 26, 27, 28]]
    """

    base: FloatArray  # (n_points, 2): where the points lie in the base image
    triangles: IntArray  # (n_triangles, 3): indices of points
    size: tuple[int, int]  # height and width of the base image

    def __post_init__(self) -> None:
        if self.triangles.ndim != 2 or self.triangles.shape[1] != 3 or len(self.triangles) == 0:
            raise InputError(f"Triangles must have shape (n_triangles, 3). Got {self.triangles.shape}.")
        if self.triangles.min() < 0 or self.triangles.max() >= len(self.base):
            raise InputError(f"Triangles must name points 0 to {len(self.base) - 1}.")

    @cached_property
    def base_areas(self) -> FloatArray:
        """Twice the signed area of each triangle of the base, (n_triangles,)."""
        return signed_areas(self.base, self.triangles)

    @cached_property
    def _thin(self) -> IntArray:
        """Triangles like needles: they fill the base up to its convex hull, and are no part of a surface."""
        a, b, c = (self.base[self.triangles[:, i]] for i in range(3))
        longest = np.max([((p - q) ** 2).sum(axis=1) for p, q in ((a, b), (b, c), (c, a))], axis=0)
        return np.flatnonzero(np.abs(self.base_areas) < _NEEDLE * longest)

    @cached_property
    def _raster(self) -> tuple[IntArray, IntArray]:
        """Flat indices of the base pixels inside the mesh, in order, and the triangle of each."""
        spans, entry = self._base_spans
        inside = np.flatnonzero(entry.ravel() >= 0)
        return inside, spans.owner[entry.ravel()[inside]]

    @property
    def n_pixels(self) -> int:
        """How many pixels of the base lie inside the mesh."""
        return len(self._raster[0])

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """Which pixels of the base lie inside the mesh, (height, width)."""
        mask = np.zeros(self.size[0] * self.size[1], dtype=bool)
        mask[self._raster[0]] = True
        return mask.reshape(self.size)

    def _shares(self) -> tuple[IntArray, FloatArray]:
        """Return the three corners of each pixel's triangle and how much each counts there, (n_pixels, 3) both."""
        inside, owner = self._raster
        xy = np.stack([inside % self.size[1], inside // self.size[1]], axis=1).astype(np.float64)
        share = barycentric(self.base, self.triangles)[owner]
        return self.triangles[owner], np.einsum("nki,ni->nk", share[..., :2], xy) + share[..., 2]

    def interpolate(self, values: FloatArray) -> FloatArray:
        """Return for each pixel inside, (n_pixels,), what lies between values, (n_points,), at the points."""
        corners, shares = self._shares()
        return np.asarray((values[corners] * shares).sum(axis=1))

    @cached_property
    def weights(self) -> Any:
        """The sparse matrix (n_pixels, n_points) that takes points to the place each pixel comes from."""
        from scipy import sparse  # takes half a second to load, and not everyone needs it

        corners, shares = self._shares()
        rows = np.repeat(np.arange(len(corners)), 3)
        return sparse.csr_array((shares.ravel(), (rows, corners.ravel())), shape=(len(corners), len(self.base)))

    @cached_property
    def _nearest(self) -> IntArray:
        """For each pixel of the base, the row of the nearest pixel inside the mesh, (height, width)."""
        rows = np.zeros(self.size, dtype=np.intp)
        rows[self.mask] = np.arange(self.n_pixels)
        outside = (~self.mask).astype(np.uint8)
        _, labels = cv2.distanceTransformWithLabels(outside, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
        row_of = np.zeros(int(labels.max()) + 1, dtype=np.intp)
        row_of[labels[self.mask]] = rows[self.mask]
        return np.asarray(row_of[labels])

    def image(self, texture: NDArray[Any]) -> FloatImage:
        """Lay texture rows, (n_pixels, channels), out as the base image; the nearest fills the outside."""
        return np.asarray(texture, dtype=np.float32)[self._nearest]

    def sample(self, image: NDArray[Any], points: FloatArray, *, smooth: bool = True) -> FloatImage:
        """Sample ``image`` under the mesh at ``points``: shape-free texture, (n_pixels, channels), float32.

        Integers are scaled by the largest value of their type. Beyond the borders of the image its border repeats. With
        ``smooth``, neighbouring pixels are averaged where the photograph is much finer than the base.
        """
        if smooth:
            source, points = self._reduced(image, points)
        else:
            source = as_float(image)
        where = np.zeros((2, -(-self.n_pixels // _ROW) * _ROW), dtype=np.float32)
        where[:, : self.n_pixels] = (self.weights @ points).T
        x, y = where.reshape(2, -1, _ROW)
        sampled = cv2.remap(source, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(sampled, dtype=np.float32).reshape(where.shape[1], -1)[: self.n_pixels]

    def to_base(self, image: NDArray[Any], points: FloatArray) -> FloatImage:
        """Warp the face at ``points`` to the base: (height, width, channels), zero outside the mesh."""
        texture = self.sample(image, points)
        result = np.zeros((*self.size, texture.shape[1]), dtype=np.float32)
        result[self.mask] = texture
        return result

    def from_base(
        self, texture: NDArray[Any], points: FloatArray, size: tuple[int, int]
    ) -> tuple[FloatImage, NDArray[np.bool_]]:
        """Paint texture rows, (n_pixels, channels), at other points into an image of height and width ``size``.

        Where triangles fold over one another, those that kept their orientation cover those that flipped, and of these
        the ones that grew most cover the rest: they face the camera. Needles are covered by all.

        Returns
        -------
        image : ndarray of shape (height, width, channels), float32
            Zero where the mesh does not reach.
        covered : ndarray of bool of shape (height, width)
        """
        picture = self.image(texture)
        result = np.zeros((*size, picture.shape[2]), dtype=np.float32)
        covered = np.zeros(size, dtype=bool)
        low = np.floor(points.min(axis=0)).clip(0, (size[1], size[0])).astype(int)
        high = np.ceil(points.max(axis=0)).clip(-1, (size[1] - 1, size[0] - 1)).astype(int)
        (left, top), (width, height) = low, (high - low + 1).clip(min=0)
        if width * height == 0:
            return result, covered
        local = points - low
        mask, (where,) = self.locate(local, (height, width), self.base)
        shrink = self.shrinkage(local)
        if shrink < _COARSER:
            picture, moved = _resized(picture, where.reshape(2, -1).T, shrink)
            where = moved.T.reshape(where.shape)
        picked = cv2.remap(picture, where[0], where[1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        window = np.s_[top : top + height, left : left + width]
        result[window] = np.asarray(picked).reshape(height, width, -1) * mask[..., None]
        covered[window] = mask
        return result, covered

    def shrinkage(self, points: FloatArray) -> float:
        """Return how many pixels one pixel of the base becomes at another shape, along a side, on average."""
        area = np.abs(signed_areas(points, self.triangles)).sum()
        return float(np.sqrt(area / np.abs(self.base_areas).sum()))

    def locate(
        self, points: FloatArray, size: tuple[int, int], *others: FloatArray
    ) -> tuple[NDArray[np.bool_], list[FloatImage]]:
        """Find what lies under each pixel of the mesh at ``points`` in other shapes, (n_points, 2), of the same mesh.

        Returns
        -------
        covered : ndarray of bool of shape (height, width)
        places : list of ndarray of shape (2, height, width), float32
            x and y in each of the others; zero where the mesh does not reach.
        """
        growth = signed_areas(points, self.triangles) / self.base_areas
        growth[self._thin] = -np.inf
        spans = Spans.of(points, self.triangles, size, np.argsort(growth, kind="stable"))
        entry = _entries(spans, size)
        return entry >= 0, self._interpolated(spans, entry, *others)

    @cached_property
    def _base_spans(self) -> tuple[Spans, IntArray]:
        spans = Spans.of(self.base, self.triangles, self.size, np.arange(len(self.triangles)))
        return spans, _entries(spans, self.size)

    def _interpolated(self, spans: Spans, entry: IntArray, *others: FloatArray) -> list[FloatImage]:
        """Return what lies under each pixel, by its entry in the spans' list, in other shapes."""
        corners = np.concatenate(others, axis=1).T[:, self.triangles.take(spans.order, axis=0).T]
        values = np.zeros((len(corners), len(spans.pixels) + 1), dtype=np.float32)
        values[:, :-1] = spans.values(corners)
        places = values.take(entry, axis=1, mode="wrap")
        return [places[2 * i : 2 * i + 2] for i in range(len(others))]

    def _reduced(self, image: NDArray[Any], points: FloatArray) -> tuple[FloatImage, FloatArray]:
        """Cut the mesh out of an image and shrink it if it is much finer than the base."""
        last = np.array(image.shape[1::-1]) - 1
        left, top = np.floor(points.min(axis=0) - 1).clip(0, last).astype(int)
        right, bottom = np.ceil(points.max(axis=0) + 1).clip(0, last).astype(int)
        part = as_float(image[top : bottom + 1, left : right + 1])
        local = points - np.array([left, top])
        scale = 1.0 / max(self.shrinkage(points), _FLAT)
        return _resized(part, local, scale) if scale < _COARSER else (part, local)


def _entries(spans: Spans, size: tuple[int, int]) -> IntArray:
    """Return for each pixel its place in the list of all spans' pixels, the last that counts; -1 for none."""
    entry = np.full(size, -1, dtype=np.intp)
    entry.reshape(-1)[spans.pixels] = np.arange(len(spans.pixels))
    return entry


def _resized(image: FloatImage, points: NDArray[Any], scale: float) -> tuple[FloatImage, NDArray[Any]]:
    """Shrink an image by averaging and move ``points`` along, pixel centres being whole numbers in both."""
    height, width = (max(1, round(side * scale)) for side in image.shape[:2])
    small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    factor = np.array([width / image.shape[1], height / image.shape[0]])
    return np.asarray(small), ((points + 0.5) * factor - 0.5).astype(points.dtype)
