"""What a face space is, and what ours share."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from ksame.arrays import FloatArray
from ksame.faces.faceset import FaceSet
from ksame.parameters import Parameters


@runtime_checkable
class FaceSpace(Protocol):
    """A coding of faces: images to rows of numbers and back.

    ``name`` and ``params()`` are public: together with the faces it was fitted on they rebuild the space.
    """

    name: str

    def params(self) -> dict[str, Any]:
        """Return the public parameters, ready for JSON."""

    def fit(self, faces: FaceSet) -> FaceSpace:
        """Learn the coding from a face set and return it fitted; the space itself is left as it was."""

    def encode(self, faces: FaceSet) -> FloatArray:
        """Return codes of shape (n_faces, n_features)."""

    def landmarks(self, codes: FloatArray) -> FloatArray | None:
        """Return where the points of decoded faces lie, (n, n_points, 2 or 3); None where a coding has no points."""

    def decode(self, codes: FloatArray) -> FloatArray:
        """Return images of shape (n, height, width, channels) for codes of shape (n, n_features), not yet clipped."""


class Space(Parameters):
    """A face space whose parameters are all public; its codes have no points unless it says so."""

    def params(self) -> dict[str, Any]:
        """Return the public parameters, ready for JSON."""
        return self.get_params()

    def landmarks(self, codes: FloatArray) -> FloatArray | None:
        """Return None: there are no points."""
        return None
