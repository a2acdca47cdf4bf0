"""People to be replaced, and the views by which their surrogates are judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ksame.arrays import READING, ByteArray, FloatArray
from ksame.heads.surrogate import Skin


class Piece(NamedTuple):
    """A piece of a frame with one person's head."""

    pixels: ByteArray  # (height, width, 3)
    points: FloatArray  # (478, 3): in pixels of the piece
    neutral: FloatArray  # (478, 3): the person's neutral shape


@dataclass(frozen=True, eq=False)
class View:
    """What is known of a person from one frame."""

    piece: Piece | Path  # or the file that holds it: those of thousands of people do not fit into memory
    embedding: FloatArray  # (d,): of the original, by the judging recogniser
    code: FloatArray  # (n_codes,): who they are in the face model, without expression; secret
    woman: float  # above 0 where a woman is likelier than a man
    skin: Skin

    def load(self) -> Piece:
        """Return the piece, its pixels copied."""
        if isinstance(self.piece, Path):
            with READING, np.load(self.piece) as stored:
                return Piece(*(stored[name] for name in Piece._fields))
        return self.piece._replace(pixels=self.piece.pixels.copy())

    def stored(self, file: Path) -> View:
        """Return the view with its piece in a file (``.npz``)."""
        np.savez(file, **self.load()._asdict())
        return replace(self, piece=file)


@dataclass(frozen=True, eq=False)
class Subject:
    """Somebody to be replaced."""

    name: str
    woman: bool
    born: float  # year of birth as read from the face
    skin: Skin  # as in the views, on average
    code: FloatArray
    views: tuple[View, ...]  # at least one
    confirmed: bool = False  # a person beyond doubt, so that others may be hidden among them and this one
