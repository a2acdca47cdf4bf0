"""The masks that people use: they change the picture and promise nothing (Newton et al. 2005, section 5.3).

Those with levels can also drive the epsilon-map.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray, IntArray
from ksame.errors import InputError, whole_number
from ksame.faces.filters import blur, pixelate
from ksame.faces.landmarks import eyes_and_nose
from ksame.methods.base import Outcome, Problem, one_copy_each
from ksame.parameters import Parameters, parameter, specs
from ksame.privacy.models import NoGuarantee, PrivacyModel
from ksame.progress import Progress, silent
from ksame.spaces.pca import fit_pca

LARGEST_BLOCK, LARGEST_SIGMA = 65_535, 1_000.0
"""Pixels of the largest block, and of the widest blur: wider than any face."""
_MOST_PIXELS = 10**9
PAPER_HEIGHT, PAPER_PIXELS = 134.0, 134 * 99
"""Height and number of pixels of the faces for which the papers give levels (Newton et al. 2005, section 5)."""
LUMA = np.array([0.299, 0.587, 0.114])


def threshold(images: NDArray[Any], t: float) -> FloatArray:
    """Turn pixels whose 8-bit brightness is above ``t`` white, the others black."""
    grey = images @ LUMA if images.shape[3] == 3 else images[..., 0]
    return np.repeat((grey * 255.0 > t)[..., None].astype(np.float64), images.shape[3], axis=3)


def _positions(images: FloatArray, method: str, m: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return the rows and columns of ``m`` different pixels."""
    height, width = images.shape[1:3]
    whole_number("m", method, m, 0, height * width)
    rows, columns = np.unravel_index(rng.choice(height * width, size=m, replace=False), (height, width))
    return rows, columns


def cover(images: NDArray[Any], points: FloatArray, *, nose: bool, value: float) -> FloatArray:
    """Paint a bar over the eyes and, with ``nose``, a column down to below the tip of the nose.

    Parameters
    ----------
    points : ndarray of shape (n, 3, 2)
        Left eye, right eye, nose.
    """
    result = np.array(images, dtype=np.float64)
    for image, (left, right, tip) in zip(result, points, strict=True):
        middle, along = (left + right) / 2.0, right - left
        across = np.array([-along[1], along[0]])
        shapes = [_strip(middle, along, across * 0.28, 0.95)]
        if nose:
            reach = 1.25 * float((tip - middle) @ across) / max(float(across @ across), 1e-12)
            shapes.append(_strip(middle + across * reach / 2.0, along, across * abs(reach) / 2.0, 0.26))
        for corners in shapes:
            layer = np.ascontiguousarray(image)
            cv2.fillConvexPoly(layer, np.rint(corners).astype(np.int32), [value] * image.shape[2])
            image[...] = layer.reshape(image.shape)
    return result


def _strip(centre: FloatArray, along: FloatArray, half_height: FloatArray, half_width: float) -> FloatArray:
    left, right = centre - along * half_width, centre + along * half_width
    return np.array([left - half_height, right - half_height, right + half_height, left + half_height])


@dataclass(frozen=True)
class AdHoc(Parameters, ABC):
    """A change of the picture, the same for everyone."""

    name: ClassVar[str]
    selectable: ClassVar[bool] = False
    aligns: ClassVar[bool] = False
    promised: ClassVar[type[PrivacyModel]] = NoGuarantee

    @abstractmethod
    def apply(self, images: NDArray[Any], rng: np.random.Generator, landmarks: FloatArray | None = None) -> FloatArray:
        """Return the altered images, (n, height, width, channels)."""

    @property
    def min_subjects(self) -> int:
        """One face is enough."""
        return 1

    def run(self, problem: Problem, rng: np.random.Generator, progress: Progress = silent) -> Outcome:
        """Alter every image; nothing is promised."""
        images = pixels(problem, self.name)
        codes = self.apply(images, rng, problem.landmarks).reshape(len(problem), -1)
        return Outcome(codes, np.arange(len(problem)), one_copy_each(len(problem)), NoGuarantee())


class Levelled(Protocol):
    """A change of the picture that can be made stronger step by step."""

    @property
    def name(self) -> str:
        """The papers' name."""

    def levels(self, shape: tuple[int, int, int]) -> Sequence[float]:
        """Return the levels from weakest to strongest for images of ``shape``."""

    def apply(self, images: NDArray[Any], rng: np.random.Generator, landmarks: FloatArray | None = None) -> FloatArray:
        """Return the altered images, (n, height, width, channels)."""


M = TypeVar("M")


def at(method: M, level: float) -> M:
    """Return a method with the parameter that makes it stronger set to ``level``."""
    (strength,) = (spec for spec in specs(type(method)).values() if spec.level)
    return replace(method, **{strength.name: strength.read(level)})  # type: ignore[type-var]


def scaled(method: M, height: float, n_pixels: int) -> M:
    """Return a method as strong on a face ``height`` pixels high, in ``n_pixels``, as it is on the papers' faces."""
    changed: dict[str, float] = {}
    for spec in specs(type(method)).values():
        value = getattr(method, spec.name)
        if spec.grows == "height":
            value = max(spec.weakest, value * height / PAPER_HEIGHT)
            changed[spec.name] = min(spec.high or value, round(value) if spec.kind is int else value)
        elif spec.grows == "area":
            changed[spec.name] = min(n_pixels, round(value * n_pixels / PAPER_PIXELS))
    return replace(method, **changed)  # type: ignore[type-var]


def pixels(problem: Problem, name: str) -> FloatArray:
    """Return the codes as images, or say that the method needs pixels."""
    if problem.shape is None:
        raise InputError(f"{name} works on pixels; use --coding pixel.")
    return problem.codes.reshape(len(problem), *problem.shape)


@dataclass(frozen=True)
class Pixelate(AdHoc):
    """Blocks of p x p pixels."""

    p: int = parameter(
        15, "side of a block in pixels", low=1, high=LARGEST_BLOCK, level=True, grows="height", weakest=2
    )
    name: ClassVar[str] = "pixelate"

    def levels(self, shape: tuple[int, int, int]) -> Sequence[float]:
        """Every size from 2 to 32 pixels, then by steps of a tenth, up to one block for the whole image."""
        largest = max(shape[:2])
        coarse = {round(32 * 1.1**i) for i in range(1, 80)}
        return sorted({*range(2, min(32, largest) + 1), *(p for p in coarse if p < largest), largest})

    def apply(self, images: NDArray[Any], rng: np.random.Generator, landmarks: FloatArray | None = None) -> FloatArray:
        """Return block means."""
        return pixelate(images, self.p)


@dataclass(frozen=True)
class Blur(AdHoc):
    """A Gaussian blur."""

    sigma: float = parameter(
        8.0, "width of the blur in pixels", low=1e-3, high=LARGEST_SIGMA, level=True, grows="height", weakest=1
    )
    name: ClassVar[str] = "blur"

    def levels(self, shape: tuple[int, int, int]) -> Sequence[float]:
        """Twenty steps, by equal factors, from 1 pixel to the size of the image."""
        return list(np.geomspace(1.0, float(max(shape[:2])), 20))

    def apply(self, images: NDArray[Any], rng: np.random.Generator, landmarks: FloatArray | None = None) -> FloatArray:
        """Return smoothed images."""
        return blur(images, self.sigma)


@dataclass(frozen=True)
class Threshold(AdHoc):
    """Black and white by brightness."""

    t: float = parameter(118.0, "brightness above which a pixel is white", low=0, high=255, level=True)
    name: ClassVar[str] = "threshold"

    def apply(self, images: NDArray[Any], rng: np.random.Generator, landmarks: FloatArray | None = None) -> FloatArray:
        """Return black-and-white images."""
        return threshold(images, self.t)


@dataclass(frozen=True)
class Noise(AdHoc):
    """Random values at the same m positions of every image."""

    m: int = parameter(6000, "pixels of random value", low=0, high=_MOST_PIXELS, level=True, grows="area")
    name: ClassVar[str] = "noise"

    def levels(self, shape: tuple[int, int, int]) -> Sequence[float]:
        """Twenty equal steps up to every pixel."""
        return [round(share * shape[0] * shape[1]) for share in np.linspace(0.05, 1.0, 20)]

    def apply(self, images: NDArray[Any], rng: np.random.Generator, landmarks: FloatArray | None = None) -> FloatArray:
        """Return images with values of 0 to 255 drawn for some pixels."""
        result = np.array(images, dtype=np.float64)
        rows, columns = _positions(result, self.name, self.m, rng)
        result[:, rows, columns] = rng.integers(0, 256, size=(len(result), self.m, result.shape[3])) / 255.0
        return result


@dataclass(frozen=True)
class FlipNoise(AdHoc):
    """Black and white, then the same m positions flipped."""

    m: int = parameter(3000, "pixels that are flipped", low=0, high=_MOST_PIXELS, level=True, grows="area")
    t: float = parameter(65.0, "brightness above which a pixel is white", low=0, high=255)
    name: ClassVar[str] = "noise-bw"

    def apply(self, images: NDArray[Any], rng: np.random.Generator, landmarks: FloatArray | None = None) -> FloatArray:
        """Return black-and-white images with some pixels flipped."""
        result = threshold(images, self.t)
        rows, columns = _positions(result, self.name, self.m, rng)
        result[:, rows, columns] = 1.0 - result[:, rows, columns]
        return result


@dataclass(frozen=True)
class EigenReduce(AdHoc):
    """Only the first e principal components (Phillips 2005)."""

    e: int = parameter(10, "components that are kept", low=1, high=_MOST_PIXELS, level=True)
    name: ClassVar[str] = "eigen-reduce"

    @property
    def min_subjects(self) -> int:
        """Components need more faces than there are components."""
        return self.e + 1

    def apply(self, images: NDArray[Any], rng: np.random.Generator, landmarks: FloatArray | None = None) -> FloatArray:
        """Return images rebuilt from the first components of the set."""
        rows = np.asarray(images, dtype=np.float64).reshape(len(images), -1)
        pca = fit_pca(rows, self.e)
        return pca.reconstruct(pca.project(rows)).reshape(images.shape)


@dataclass(frozen=True)
class BarMask(AdHoc):
    """A bar over the eyes."""

    value: float = parameter(0.0, "grey value, 0 black to 1 white", low=0, high=1, level=True)
    name: ClassVar[str] = "bar-mask"
    nose: ClassVar[bool] = False

    def apply(self, images: NDArray[Any], rng: np.random.Generator, landmarks: FloatArray | None = None) -> FloatArray:
        """Return masked images."""
        if landmarks is None:
            raise InputError(
                f"{self.name} needs to know where eyes and nose are. Give labels.csv the columns left_eye_x, "
                "left_eye_y, right_eye_x, right_eye_y, nose_x, nose_y."
            )
        return cover(images, eyes_and_nose(landmarks), nose=self.nose, value=self.value)


@dataclass(frozen=True)
class TMask(BarMask):
    """A bar over the eyes and a column over the nose."""

    name: ClassVar[str] = "t-mask"
    nose: ClassVar[bool] = True
