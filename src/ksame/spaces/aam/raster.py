"""Filling all triangles of a mesh at once, span by span, without a loop over triangles or pixels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray, IntArray

_FLAT = 1e-12  # an area or a slope that counts as none
_EDGE = 1e-9  # pixel centres this close to an edge belong to both triangles, so that no gap opens between them


def signed_areas(points: FloatArray, triangles: IntArray) -> FloatArray:
    """Return twice the signed area, (n_triangles,), of each triangle."""
    x, y = points.T[:, triangles.T]
    return np.asarray((x[1] - x[0]) * (y[2] - y[0]) - (y[1] - y[0]) * (x[2] - x[0]))


def barycentric(points: FloatArray, triangles: IntArray) -> FloatArray:
    """Return (n_triangles, 3, 3): row k of a triangle takes (x, y, 1) to the weight of its corner k.

    The rows of a triangle without area are zero.
    """
    return _weights(*points.T[:, triangles.T]).transpose(2, 1, 0)


def _weights(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return what x, y and 1 add to the weight of each corner, (3, 3, n_triangles), of corners (3, n_triangles)."""
    (x1, x2), (y1, y2) = ((corner[[1, 2, 0]], corner[[2, 0, 1]]) for corner in (x, y))
    raw = np.array([y1 - y2, x2 - x1, x1 * y2 - y1 * x2])
    area = raw[2].sum(axis=0)
    area[np.abs(area) < _FLAT] = np.inf
    raw /= area
    return raw


@dataclass(frozen=True, eq=False)
class Spans:
    """The pixel rows of all triangles at once."""

    order: IntArray  # (n_triangles,): the triangles; later ones cover earlier ones
    # (n_spans,): of each span: which in ``order``, row, first column and number of pixels
    triangle: IntArray
    row: IntArray
    first: IntArray
    length: IntArray
    width: int  # of the image
    weights: FloatArray  # (3, 3, n_triangles): what x, y and 1 add to the weight of each corner, in ``order``

    @classmethod
    def of(cls, points: FloatArray, triangles: IntArray, size: tuple[int, int], order: IntArray) -> Spans:
        """Find the spans of ``triangles`` in an image of ``size``; later in ``order`` covers earlier."""
        height, width = size
        x, y = points.T[:, triangles.take(order, axis=0).T]
        weights = _weights(x, y)
        top = np.ceil(y.min(axis=0) - _EDGE).clip(0, height).astype(np.intp)
        bottom = np.floor(y.max(axis=0) + _EDGE).clip(-1, height - 1).astype(np.intp)
        rows = (bottom - top + 1).clip(min=0)
        rows[~weights.any(axis=(0, 1))] = 0
        triangle = np.repeat(np.arange(len(order)), rows)
        row = top.take(triangle) + _count_up(rows)
        # Inside means that all three weights, linear in x along a row, are not negative.
        slope, by_row, rest = weights.take(triangle, axis=2)
        level = by_row * row + rest
        never = np.where(level < -_EDGE, np.inf, -np.inf)
        root = np.divide(-level, slope, out=never, where=np.abs(slope) > _FLAT)
        falls = slope < -_FLAT
        left = np.where(falls, -np.inf, root).max(axis=0)
        right = np.where(falls, root, np.inf).min(axis=0)
        first = np.ceil((left - _EDGE).clip(0, width)).astype(np.intp)
        last = np.floor((right + _EDGE).clip(-1, width - 1)).astype(np.intp)
        return cls(order, triangle, row, first, (last - first + 1).clip(min=0), width, weights)

    @cached_property
    def _span(self) -> IntArray:
        """Which span every pixel belongs to."""
        return np.repeat(np.arange(len(self.row)), self.length)

    @cached_property
    def _place(self) -> IntArray:
        """How many pixels of its span come before every pixel."""
        return _count_up(self.length)

    @cached_property
    def pixels(self) -> IntArray:
        """Flat index of every pixel of every span."""
        return np.asarray(self._place + (self.row * self.width + self.first).take(self._span))

    @property
    def owner(self) -> IntArray:
        """Triangle of every pixel of every span."""
        return self.order.take(self.triangle).take(self._span)

    def values(self, corners: FloatArray) -> NDArray[np.float32]:
        """Interpolate values, (n_values, 3, n_triangles), at the corners in ``order``: (n_values, n_pixels)."""
        affine = (self.weights[:, None] * corners).sum(axis=2)
        step, by_row, rest = affine.take(self.triangle, axis=2)
        start = (step * self.first + by_row * self.row + rest).astype(np.float32)
        values = step.astype(np.float32).take(self._span, axis=1)
        values *= self._place.astype(np.float32)
        values += start.take(self._span, axis=1)
        return np.asarray(values)


def _count_up(lengths: IntArray) -> IntArray:
    """Return 0, 1, ..., length - 1 for each length, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
