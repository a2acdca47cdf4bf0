"""People to be replaced, and the views by which their surrogates are judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ksame.arrays import ByteArray, FloatArray


@dataclass(frozen=True, eq=False)
class View:
    """A piece of a frame with one person's head.

    Attributes
    ----------
    pixels : ndarray of shape (height, width, 3), or Path
        Or the file that holds them: those of thousands of people do not fit into memory.
    points : ndarray of shape (478, 3)
        In pixels of the piece.
    neutral : ndarray of shape (478, 3)
        The person's neutral shape.
    embedding : ndarray of shape (d,)
        Of the original, by the judging recogniser.
    """

    pixels: ByteArray | Path
    points: FloatArray
    neutral: FloatArray
    embedding: FloatArray

    def picture(self) -> ByteArray:
        """Return a copy of the pixels."""
        return np.array(np.load(self.pixels) if isinstance(self.pixels, Path) else self.pixels, dtype=np.uint8)

    def stored(self, file: Path) -> View:
        """Return the view with its pixels in a file, (``.npy``)."""
        np.save(file, self.picture())
        return replace(self, pixels=file)


@dataclass(frozen=True, eq=False)
class Subject:
    """Somebody to be replaced.

    Attributes
    ----------
    name : str
    woman : bool
    born : float
        Year of birth as read from the face.
    tone : float
        Logarithm of the brightness of the skin.
    code : ndarray of shape (n_codes,)
        Who they are in the face model, without expression.
    views : tuple of View
        At least one.
    confirmed : bool
        Whether this is a person beyond doubt, so that others may be hidden among them and this one.
    """

    name: str
    woman: bool
    born: float
    tone: float
    code: FloatArray
    views: tuple[View, ...]
    confirmed: bool = False
