"""Detect what was done to a picture from the picture itself: pixelation by run lengths, blur by its spectrum.

The automatic parrot (Gross et al. 2006, section 6.2.1) needs to know how strongly a face was pixelated or blurred, and
finds it in the face itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.attacks.spectrum import cosines, power, squared_frequencies
from ksame.faces.faceset import FaceSet
from ksame.faces.filters import blur, pixelate

CONTRAST = 1.5
"""How much stronger changes on the lines of the grid must be than elsewhere. Portraits that are not pixelated, JPEG or
not, masked, blurred or noisy, stay below 1.4; pixelated ones exceed 1.7 from p = 4 on after JPEG of quality 80."""

MIN_SIGMA = 0.7
"""Blur below which a picture counts as sharp, in pixels."""

_NOISES = tuple(times / 12.0 / 255.0**2 for times in (1.0, 2.0, 4.0, 8.0))
"""Variances of noise that are tried: rounding to 8 bits, and more."""


@dataclass(frozen=True)
class Pixelation:
    """Block means: the side of the blocks, and where the first whole one begins, x before y."""

    p: int
    offset: tuple[int, int] = (0, 0)

    def apply(self, images: NDArray[Any]) -> FloatArray:
        """Pixelate images of shape (n, height, width, channels) in the same way."""
        return pixelate(images, self.p, self.offset)

    def __str__(self) -> str:
        return f"pixelation by {self.p} pixels"


@dataclass(frozen=True)
class Blurring:
    """A Gaussian blur of standard deviation ``sigma`` pixels."""

    sigma: float

    def apply(self, images: NDArray[Any]) -> FloatArray:
        """Blur images of shape (n, height, width, channels) in the same way."""
        return blur(images, self.sigma)

    def __str__(self) -> str:
        return f"blur of {self.sigma:.3g} pixels"


Level = Pixelation | Blurring


def detect_pixelation(image: NDArray[Any]) -> Pixelation | None:
    """Find the size and the position of the blocks a picture is made of, or None.

    A run of near-identical pixels ends where two neighbours differ. Every row votes, by how much they differ, for the
    columns at which its runs end, and every column for rows. The block size is the period at which votes on the lines
    of the grid exceed the others most: a multiple of it leaves strong votes beside its lines, a divisor puts lines
    where there are no votes, and compression adds a little everywhere. ``image`` is of shape (height, width, channels),
    float in [0, 1].

    Examples
    --------
    >>> picture = np.random.default_rng(0).random((1, 40, 30, 1))
    >>> detect_pixelation(pixelate(picture, 5, (2, 0))[0])
    Pixelation(p=5, offset=(2, 0))
    >>> detect_pixelation(picture[0]) is None
    True
    """
    votes = [np.abs(np.diff(np.asarray(image, dtype=np.float64), axis=axis)) for axis in (1, 0)]
    profiles = [votes[0].mean(axis=(0, 2)), votes[1].mean(axis=(1, 2))]
    best, pixelation = CONTRAST, None
    for p in range(2, min(image.shape[:2]) // 4 + 1):
        contrast, offset = _contrast(profiles, p)
        if contrast > best:
            best, pixelation = contrast, Pixelation(p, offset)
    return pixelation


def _contrast(profiles: list[FloatArray], p: int) -> tuple[float, tuple[int, int]]:
    """Return how far votes on the best grid of p pixels exceed the root mean square of the others, and its offset."""
    on: list[FloatArray] = []
    off: list[FloatArray] = []
    offsets = []
    for profile in profiles:
        first = int(np.argmax([_lower_third(profile[start::p]) for start in range(p)]))
        line = np.zeros(len(profile), dtype=bool)
        line[first::p] = True
        on.append(profile[line])
        off.append(profile[~line])
        offsets.append((first + 1) % p)
    beside = float(np.sqrt((np.concatenate(off) ** 2).mean()))
    return _lower_third(np.concatenate(on)) / (beside + 1e-3), (offsets[0], offsets[1])


def _lower_third(votes: FloatArray) -> float:
    """Return what two thirds of the votes reach: the edges of a mask are strong lines too, but few."""
    return float(np.sort(votes)[(len(votes) - 1) // 3])


@dataclass(frozen=True, eq=False)
class BlurDetector:
    """Estimates how strongly a face was blurred, from how faces' spectra look when they were not.

    A Gaussian blur multiplies the cosine coefficient at frequency w by exp(-sigma² w² / 2). Coefficients of faces are
    taken as normal with the power learned from sharp ones, plus white noise from rounding to 8 bits and a little
    compression; sigma and noise are what makes a picture likeliest. Strong compression, which is not white, misleads.
    """

    power: FloatArray  # (height, width): mean square of the coefficients of sharp faces

    @classmethod
    def learn(cls, sharp: FaceSet) -> BlurDetector:
        """Learn the spectrum of sharp faces, anybody's, of the size of those to come."""
        return cls(power(sharp.images))

    @cached_property
    def _steps(self) -> FloatArray:
        """Logarithms of the sigmas that are tried first, (n_steps,)."""
        return np.linspace(np.log(0.2), np.log(max(self.power.shape)), 30)

    @cached_property
    def _table(self) -> tuple[FloatArray, NDArray[np.float32]]:
        """For every first sigma and noise: the sum of log variances, and all inverse variances, (n_tried, n_pixels)."""
        constants, inverses = [], []
        for step in self._steps:
            for noise in _NOISES:
                variance = self._variance(float(step), noise)[1:]
                constants.append(np.log(variance).sum())
                inverses.append((1.0 / variance).astype(np.float32))
        return np.array(constants), np.stack(inverses)

    def _variance(self, log_sigma: float, noise: float) -> FloatArray:
        """Return the variance of every coefficient of a face blurred by sigma, (n_pixels,)."""
        frequency = squared_frequencies(*self.power.shape)
        return np.asarray(self.power * np.exp(-np.exp(2.0 * log_sigma) * frequency) + noise).ravel()

    def sigma(self, image: NDArray[Any]) -> float:
        """Return the estimated sigma, in pixels, of an image of shape (height, width, channels)."""
        from scipy.optimize import minimize_scalar

        # the first coefficient is the overall brightness, which says nothing about blur
        squares = (cosines(image[None])[0] ** 2).mean(axis=2).ravel()[1:]
        constants, inverses = self._table
        at, noise = divmod(int(np.argmin(constants + inverses @ squares.astype(np.float32))), len(_NOISES))

        def surprise(log_sigma: float) -> float:
            variance = self._variance(log_sigma, _NOISES[noise])[1:]
            return float((np.log(variance) + squares / variance).sum())

        around = (float(self._steps[max(at - 1, 0)]), float(self._steps[min(at + 1, len(self._steps) - 1)]))
        return float(np.exp(minimize_scalar(surprise, bounds=around, method="bounded", options={"xatol": 5e-3}).x))

    def detect(self, image: NDArray[Any]) -> Blurring | None:
        """Return the blur found in an image of shape (height, width, channels); None where it is sharp or empty."""
        if image.max() == image.min():
            return None
        sigma = self.sigma(image)
        return Blurring(sigma) if sigma >= MIN_SIGMA else None


def detect_levels(images: NDArray[Any], sharp: FaceSet) -> list[Level | None]:
    """Detect what was done to each image.

    All blurred images get the median blur: a set of faces is usually blurred by one level, and a few levels are quicker
    to imitate than many. ``images`` is of shape (n, height, width, channels). ``sharp``: untouched faces of the same
    size, anybody's.
    """
    detector = BlurDetector.learn(sharp)
    blocks = [detect_pixelation(image) for image in images]
    blurs = [None if block else detector.detect(image) for image, block in zip(images, blocks, strict=True)]
    sigmas = [blur.sigma for blur in blurs if blur]
    common = Blurring(float(np.median(sigmas))) if sigmas else None
    return [block or (common if blur else None) for block, blur in zip(blocks, blurs, strict=True)]
