"""Undoing what was done to a picture: maximum a posteriori enhancement, and an inverse learned from examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.attacks.detection import Blurring, Level, Pixelation
from ksame.attacks.spectrum import cosines, frequencies, from_cosines, power, squared_frequencies
from ksame.errors import parameter_error
from ksame.faces.faceset import FaceSet
from ksame.faces.filters import block_starts

NOISE = 1.0 / 255.0
"""Standard deviation assumed for an observed pixel: rounding, and a little more."""

_MAX_STEPS = 200  # of conjugate gradients
Operator = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Prior:
    """A Gaussian random field: what faces look like before anything was seen of this one."""

    # (height, width, channels): None stands for the mean brightness of the picture to be restored
    mean: FloatArray | None
    power: FloatArray  # (height, width): variance of every cosine coefficient around the mean

    @classmethod
    def smooth(cls, height: int, width: int, strength: float = 1e-4) -> Prior:
        """Return the prior of Hardie et al. (1997): a pixel is the mean of its four neighbours, plus noise.

        ``strength``: variance of that noise.
        """
        rows, columns = np.cos(frequencies(height)), np.cos(frequencies(width))
        roughness = 1.0 - (rows[:, None] + columns[None, :]) / 2.0
        roughness[0, 0] = 1e-3  # brightness is left open
        return cls(None, strength / roughness**2)

    @classmethod
    def learn(cls, faces: FaceSet) -> Prior:
        """Learn mean and power from registered faces; the smooth prior where there are fewer than three."""
        if len(faces) < 3:
            return cls.smooth(*faces.shape[1:3])
        mean = faces.images.mean(axis=0, dtype=np.float64)
        return cls(mean, power(faces.images - mean))


def enhance(images: NDArray[Any], level: Level, prior: Prior, noise: float = NOISE) -> FloatArray:
    """Return the likeliest originals of pixelated or blurred images, (n, height, width, channels), in [0, 1].

    The maximum a posteriori estimate of Hardie, Barnard and Armstrong (1997, section III), used by Gross et al. (2006,
    section 6.2.2): observed is a linear function of the original plus noise, originals follow the prior. For a blur all
    is diagonal; for block means the system has one unknown per block and is solved by conjugate gradients. ``noise`` is
    the standard deviation of an observed pixel.
    """
    if not noise > 0:
        raise parameter_error("noise", "enhance", "a positive number", noise)
    seen = np.asarray(images, dtype=np.float64)
    mean = seen.mean(axis=(1, 2), keepdims=True) if prior.mean is None else prior.mean[None]
    centred = seen - level.apply(np.broadcast_to(mean, seen.shape))
    variance = prior.power[None, :, :, None]
    if isinstance(level, Blurring):
        passed = np.exp(-0.5 * level.sigma**2 * squared_frequencies(*seen.shape[1:3]))[None, :, :, None]
        change = cosines(centred) * (variance * passed / (variance * passed**2 + noise**2))
        return np.asarray((mean + from_cosines(change)).clip(0.0, 1.0))
    blocks = _Blocks.of(seen.shape[1:3], level)

    def covariance(values: FloatArray) -> FloatArray:
        spread = blocks.mean(from_cosines(variance * cosines(blocks.transposed(values))))
        return np.asarray(spread + noise**2 * values)

    expected = blocks.power(prior.power)[None, :, :, None] + noise**2
    solved = conjugate_gradients(covariance, blocks.mean(centred), lambda r: from_cosines(cosines(r) / expected))
    change = variance * cosines(blocks.transposed(solved))
    return np.asarray((mean + from_cosines(change)).clip(0.0, 1.0))


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Block means as a linear operator between images and one value per block."""

    starts: tuple[NDArray[np.intp], NDArray[np.intp]]
    lengths: tuple[NDArray[np.intp], NDArray[np.intp]]
    size: tuple[int, int]
    p: int

    @classmethod
    def of(cls, size: tuple[int, ...], level: Pixelation) -> _Blocks:
        height, width = size
        rows, columns = block_starts(height, level.p, level.offset[1]), block_starts(width, level.p, level.offset[0])
        lengths = (np.diff(np.append(rows, height)), np.diff(np.append(columns, width)))
        return cls((rows, columns), lengths, (height, width), level.p)

    @property
    def _areas(self) -> FloatArray:
        return np.asarray(np.outer(*self.lengths), dtype=np.float64)[None, :, :, None]

    def mean(self, images: FloatArray) -> FloatArray:
        """Return block means, (n, rows, columns, channels)."""
        sums = np.add.reduceat(np.add.reduceat(images, self.starts[0], axis=1), self.starts[1], axis=2)
        return np.asarray(sums / self._areas)

    def transposed(self, values: FloatArray) -> FloatArray:
        """Return the transpose of :meth:`mean` of values of shape (n, rows, columns, channels)."""
        return np.repeat(np.repeat(values / self._areas, self.lengths[0], axis=1), self.lengths[1], axis=2)

    def power(self, full: FloatArray) -> FloatArray:
        """Return about the power of block means, (rows, columns), of images of a given power, (height, width).

        Averaging weakens a frequency, and sampling folds it onto another; exact but for ragged blocks.
        """
        passed = np.outer(*(_box(size, self.p) for size in self.size)) ** 2 * full
        for axis, starts in enumerate(self.starts):
            passed = _folded(passed, axis, len(starts), self.p)
        return passed


def _box(size: int, p: int) -> FloatArray:
    """Return by how much the mean of p neighbours weakens every frequency, (size,)."""
    half = frequencies(size)[1:] / 2.0
    return np.concatenate([[1.0], np.sin(p * half) / (p * np.sin(half))])


def _folded(full: FloatArray, axis: int, count: int, p: int) -> FloatArray:
    """Add the power of frequencies that look alike in ``count`` samples, one in p, along an axis."""
    moved = np.moveaxis(full, axis, 0)
    place = np.arange(len(moved)) % (2 * count)
    place = np.where(place > count, 2 * count - place, place)
    kept = place < count
    sums = np.zeros((count, moved.shape[1]))
    np.add.at(sums, place[kept], moved[kept])
    return np.moveaxis(sums, 0, axis) / p


def conjugate_gradients(
    apply: Operator, target: FloatArray, precondition: Operator, tolerance: float = 1e-4
) -> FloatArray:
    """Solve symmetric positive definite systems, one per row of ``target``, by preconditioned conjugate gradients.

    ``apply`` multiplies by the matrix and ``precondition`` approximately by its inverse, row by row. Ends when every
    residual has fallen to ``tolerance`` times its first length, or after ``_MAX_STEPS``.
    """

    def inner(a: FloatArray, b: FloatArray) -> FloatArray:
        return (a * b).reshape(len(a), -1).sum(axis=1).reshape(-1, *[1] * (a.ndim - 1))

    solution, residual = np.zeros_like(target), target.copy()
    direction = precondition(residual)
    length = first = inner(residual, direction)
    for _ in range(_MAX_STEPS):
        if (length <= tolerance**2 * first).all():
            break
        image = apply(direction)
        step = length / np.maximum(inner(direction, image), 1e-300)
        solution, residual = solution + step * direction, residual - step * image
        better = precondition(residual)
        longer = inner(residual, better)
        direction = better + longer / np.maximum(length, 1e-300) * direction
        length = longer
    return solution


@dataclass(frozen=True, eq=False)
class RidgeInverse:
    """A linear inverse learned from pairs by ridge regression: the linear worst case of Todt et al. (2024)."""

    # (n_pixels,)
    seen_mean: FloatArray
    wanted_mean: FloatArray
    seen: FloatArray  # (n_pairs, n_pixels): de-identified examples around their mean
    weights: FloatArray  # (n_pairs, n_pixels)
    penalty: float  # chosen by leaving out one pair at a time

    @classmethod
    def learn(cls, seen: FloatArray, wanted: FloatArray) -> RidgeInverse:
        """Learn from pairs.

        ``seen`` and ``wanted`` are of shape (n_pairs, n_pixels); de-identified faces and the originals behind them.
        """
        seen_mean, wanted_mean = seen.mean(axis=0), wanted.mean(axis=0)
        x, y = seen - seen_mean, wanted - wanted_mean
        values, vectors = np.linalg.eigh(x @ x.T)
        values = values.clip(min=0.0)
        gram = vectors.T @ (y @ y.T) @ vectors

        def left_out(penalty: float) -> float:
            """Sum the squared errors on pairs that are left out in turn, in closed form."""
            kept = values / (values + penalty)
            rest = vectors * (1.0 - kept)
            errors = ((rest @ gram) * rest).sum(axis=1)
            influence = 1.0 / len(x) + (vectors**2) @ kept
            return float((errors / np.maximum(1.0 - influence, 1e-6) ** 2).sum())

        penalties = max(float(values.max()), 1e-12) * np.geomspace(1e-7, 1e3, 31)
        penalty = float(min(penalties, key=left_out))
        return cls(seen_mean, wanted_mean, x, (vectors / (values + penalty)) @ (vectors.T @ y), penalty)

    def apply(self, seen: FloatArray) -> FloatArray:
        """Return estimates of the originals, (n, n_pixels), not yet clipped."""
        return np.asarray(((seen - self.seen_mean) @ self.seen.T) @ self.weights + self.wanted_mean)
