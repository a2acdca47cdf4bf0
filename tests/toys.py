"""A method, a cover and a recogniser of their own: what somebody writes who adds one of each.

``python tests/toys.py release ...`` is ``ksame release ...`` with them.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ksame.heads.covers import COVERS, Cover
from ksame.methods import AdHoc
from ksame.models import RECOGNISERS, RecogniserEntry
from ksame.parameters import parameter
from ksame.recipes import METHODS, Entry, InScenes


@dataclass(frozen=True)
class Dusk(AdHoc):
    """Darken, after some pixels at the left were painted over."""

    light: float = parameter(0.5, "share of the light that is left", low=0, high=1, level=True)
    wide: int = parameter(2, "columns at the left that go dark", low=0, high=20, grows="height", weakest=1)
    name: ClassVar[str] = "dusk"

    def apply(self, images, rng, landmarks=None):
        """Return darker images."""
        dark = images * self.light
        dark[:, :, : self.wide] = 0
        return dark


class Glance:
    """Recognises people by the mean colours of four quarters of a picture."""

    name = "glance"
    threshold = 0.9

    def embed(self, image, points):
        """Return twelve numbers, of length 1."""
        pixels = np.asarray(image, dtype=np.float64).reshape(*image.shape[:2], -1)
        quarters = [part.mean(axis=(0, 1)) for half in np.array_split(pixels, 2) for part in np.array_split(half, 2, 1)]
        vector = np.concatenate(quarters) + 1e-6
        return vector / np.linalg.norm(vector)


def add() -> None:
    """Add them: one line each."""
    METHODS.add(Entry("dusk", "darker", "nothing", "none", "-", "by hand", Dusk, scenes=InScenes()))
    COVERS.add(Cover("bonnet", 1.2, "face and brow", "Ears stay."))
    RECOGNISERS.add(RecogniserEntry("glance", Glance, "mean colours of four quarters"))


def remove() -> None:
    """Take them out again."""
    for registry, name in ((METHODS, "dusk"), (COVERS, "bonnet"), (RECOGNISERS, "glance")):
        registry.remove(name)


if __name__ == "__main__":
    add()
    from ksame.app.cli import main

    main()
