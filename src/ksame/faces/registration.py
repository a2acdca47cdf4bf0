"""Registration: from a still and a few points to a face image of fixed size (Newton et al. 2005, Definition 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ksame.errors import InputError, whole_number
from ksame.geometry import Similarity

LARGEST = 4_096
"""Pixels along the longer side of a registered face."""


@dataclass(frozen=True)
class Template:
    """Where the points of a registered face lie, and how large its image is.

    Parameters
    ----------
    width, height : int
        Size of the face image in pixels.
    points : tuple of (x, y)
        Target positions, in the order of the landmarks that will be registered.
    """

    width: int
    height: int
    points: tuple[tuple[float, float], ...]

    @classmethod
    def eyes_and_nose(cls, width: int = 99, height: int = 134) -> Template:
        """Return a template for the eye on the left of the image, the eye on its right, and the tip of the nose.

        The default size is that of Newton et al. (2005, Example 2.1).
        """
        return cls._at(width, height, ((0.27, 0.36), (0.73, 0.36), (0.5, 0.60)))

    @classmethod
    def portrait(cls, width: int = 176, height: int = 224) -> Template:
        """Return a wider template for the same three points, in which the whole face has room, chin to hair line."""
        return cls._at(width, height, ((0.34, 0.44), (0.66, 0.44), (0.5, 0.575)))

    @classmethod
    def _at(cls, width: int, height: int, shares: tuple[tuple[float, float], ...]) -> Template:
        """Return a template with points at shares of its width and height."""
        for name, value in (("width", width), ("height", height)):
            whole_number(name, "Template", value, 8, LARGEST)
        return cls(width, height, tuple((x * (width - 1), y * (height - 1)) for x, y in shares))


def register(image: NDArray[Any], points: ArrayLike, template: Template) -> tuple[NDArray[np.float32], Similarity]:
    """Cut the face out of ``image`` so that ``points`` come to lie on the template.

    Parameters
    ----------
    image : ndarray of shape (height, width, channels)
    points : array of shape (n_points, 2)
        In the order of ``template.points``; at least two.

    Returns
    -------
    face : ndarray of shape (template.height, template.width, channels)
    transform : Similarity
        From the still to the face; its inverse leads back.

    Raises
    ------
    InputError
        When the points lie so far apart that the whole image would be less than a pixel.
    """
    transform = Similarity.estimate(points, template.points)
    source: NDArray[Any] = np.asarray(image, dtype=np.float32)
    scale = np.hypot(transform.a, transform.b)
    if not scale * max(source.shape[:2]) >= 1:
        raise InputError("The landmarks lie too far apart for this picture.")
    if scale < 0.5:  # a warp that shrinks samples too sparsely: smooth first
        source = cv2.GaussianBlur(source, (0, 0), 0.5 * (1.0 / scale - 1.0))
    size = (template.width, template.height)
    warped = cv2.warpAffine(source, transform.matrix, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return warped.reshape(template.height, template.width, -1).clip(0.0, 1.0), transform
