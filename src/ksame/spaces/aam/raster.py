"""Filling all triangles of a mesh at once, span by span, without a loop over triangles or pixels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ksame.faces.faceset import FloatArray, IntArray

_FLAT = 1e-12  # an area or a slope that counts as none
_EDGE = 1e-9  # pixel centres this close to an edge belong to both triangles, so that no gap opens between them


def signed_areas(points: FloatArray, triangles: IntArray) -> FloatArray:
    """Return twice the signed area, (n_triangles,), of each triangle."""
    a, b, c = (points[triangles[:, i]] for i in range(3))
    u, v = b - a, c - a
    return np.asarray(u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0])


def barycentric(points: FloatArray, triangles: IntArray) -> FloatArray:
    """Return (n_triangles, 3, 3): row k of a triangle takes (x, y, 1) to the weight of its corner k.

    The rows of a triangle without area are zero.
    """
    a, b, c = (points[triangles[:, i]] for i in range(3))
    area = signed_areas(points, triangles)
    rows = [
        np.stack([p[:, 1] - q[:, 1], q[:, 0] - p[:, 0], p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0]], axis=1)
        for p, q in ((b, c), (c, a), (a, b))
    ]
    flat = np.abs(area) < _FLAT
    inverse = np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, area))
    return np.stack(rows, axis=1) * inverse[:, None, None]


@dataclass(frozen=True)
class Spans:
    """The pixel rows of all triangles at once: triangle, row, first column and length of each span."""

    triangle: IntArray
    row: IntArray
    first: IntArray
    length: IntArray
    width: int

    @classmethod
    def of(
        cls,
        points: FloatArray,
        triangles: IntArray,
        size: tuple[int, int],
        order: IntArray,
        weights: FloatArray | None = None,
    ) -> Spans:
        """Find the spans of ``triangles`` in an image of ``size``; later in ``order`` covers earlier.

        ``weights`` are what :func:`barycentric` gives, where the caller has them already.
        """
        if weights is None:
            weights = barycentric(points, triangles)
        height, width = size
        a, b, c = (points[:, 1].take(corner) for corner in triangles[order].T)
        lowest, highest = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
        top = np.ceil(lowest - _EDGE).clip(0, height).astype(np.intp)
        bottom = np.floor(highest + _EDGE).clip(-1, height - 1).astype(np.intp)
        rows = (bottom - top + 1).clip(min=0)
        rows[np.abs(signed_areas(points, triangles[order])) < _FLAT] = 0
        triangle = np.repeat(order, rows)
        row = np.repeat(top, rows) + _count_up(rows)
        left, right = np.zeros(len(row)), np.full(len(row), width - 1.0)
        # Inside means that all three weights, linear in x along a row, are not negative.
        for slope, by_row, rest in weights.transpose(1, 2, 0):
            tilt = slope.take(triangle)
            level = by_row.take(triangle) * row + rest.take(triangle)
            steep = np.abs(tilt) > _FLAT
            root = np.where(steep, -level / np.where(steep, tilt, 1.0), np.where(level < -_EDGE, np.inf, -np.inf))
            falls = steep & (tilt < 0)
            np.maximum(left, root, out=left, where=~falls)
            np.minimum(right, root, out=right, where=falls)
        first = np.ceil((left - _EDGE).clip(max=width)).astype(np.intp)
        last = np.floor((right + _EDGE).clip(min=-1.0)).astype(np.intp)
        return cls(triangle, row, first, (last - first + 1).clip(min=0), width)

    @cached_property
    def _span(self) -> IntArray:
        """Which span every pixel belongs to."""
        return np.repeat(np.arange(len(self.row)), self.length)

    @cached_property
    def _column(self) -> IntArray:
        """Column of every pixel."""
        return _count_up(self.length) + self.first.take(self._span)

    @cached_property
    def pixels(self) -> IntArray:
        """Flat index of every pixel of every span."""
        return np.asarray(self._column + (self.row * self.width).take(self._span))

    @property
    def owner(self) -> IntArray:
        """Triangle of every pixel of every span."""
        return self.triangle.take(self._span)

    def values(self, affine: FloatArray) -> FloatArray:
        """Evaluate one affine function, (n_triangles, 3), for each triangle at its pixels."""
        by_column, by_row, rest = affine.T
        start = by_row.take(self.triangle) * self.row + rest.take(self.triangle)
        step = by_column.take(self.triangle)
        return np.asarray(step.take(self._span) * self._column + start.take(self._span))


def _count_up(lengths: IntArray) -> IntArray:
    """Return 0, 1, ..., length - 1 for each length, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
