"""The pixel space: a face is its registered pixels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ksame import scratch
from ksame.arrays import FloatArray
from ksame.errors import InputError
from ksame.faces.faceset import FaceSet
from ksame.spaces.base import Space


@dataclass(frozen=True)
class PixelSpace(Space):
    """Registered pixels, row by row, as in Newton et al. (2005, Definition 2.2)."""

    shape_: tuple[int, int, int] | None = field(default=None, repr=False)

    name = "pixel"

    def fit(self, faces: FaceSet) -> PixelSpace:
        """Remember the image size."""
        return PixelSpace(faces.shape[1:])

    def encode(self, faces: FaceSet) -> FloatArray:
        """Return codes of shape (n_faces, height * width * channels)."""
        return flatten(faces, self._shape())

    def decode(self, codes: FloatArray) -> FloatArray:
        """Return images of shape (n, height, width, channels)."""
        return codes.reshape(len(codes), *self._shape())

    def _shape(self) -> tuple[int, int, int]:
        if self.shape_ is None:
            raise RuntimeError("PixelSpace is not fitted; call fit(faces) first.")
        return self.shape_


def flatten(faces: FaceSet, shape: tuple[int, int, int]) -> FloatArray:
    """Return the pixels of ``faces`` as rows of doubles, after a check that their size is ``shape``."""
    return scratch.doubles(pixel_rows(faces, shape))


def pixel_rows(faces: FaceSet, shape: tuple[int, int, int]) -> NDArray[np.float32]:
    """Return the pixels as rows, (n_faces, height * width * channels), where they lie."""
    if faces.shape[1:] != shape:
        raise InputError(f"Expected faces of shape {shape}, as the space was fitted on. Got {faces.shape[1:]}.")
    return faces.images.reshape(len(faces), -1)
