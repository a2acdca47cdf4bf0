"""Deep recognisers as attackers: faces are detected, embedded and compared; nothing is embedded twice."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray
from ksame.faces.faceset import FaceSet, quantise
from ksame.models import Recogniser as Network
from ksame.models import detect, five_points
from ksame.models.landmarker import N_POINTS

# Where eyes, nose and mouth corners lie in a face cut out by eyes and nose, as shares of its width and height.
_PLACE = ((0.27, 0.36), (0.73, 0.36), (0.5, 0.60), (0.33, 0.77), (0.67, 0.77))

_N_FIVE = len(_PLACE)


@dataclass(frozen=True, eq=False)
class Embedding:
    """A pretrained network as a recogniser: the distance is that between unit vectors, the root of 2 - 2 cos.

    The five points a network wants are those that faces carry, or come from their mesh, else from a detector on the
    picture. Where none is found, as on a mask or a black square, the face is taken to be where faces of the training
    set are found.
    """

    # :class:`~ksame.models.SFace`, :class:`~ksame.models.DlibResNet` or :class:`~ksame.models.OnnxRecogniser`
    network: Network
    place_: FloatArray | None = None
    # by a hash of the picture, and shared by all copies of this recogniser
    vectors_: dict[str, FloatArray] = field(default_factory=dict)
    points_: dict[str, FloatArray | None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What reports call it: the network's name."""
        return self.network.name

    def params(self) -> dict[str, Any]:
        """Return the network's threshold for one person, as a cosine."""
        return {"threshold": self.network.threshold}

    def fit(self, training: FaceSet) -> Embedding:
        """Learn where faces lie in the pictures; the network itself stays as it is."""
        located = [points for points in map(self._points, *_split(training)) if points is not None]
        size = np.array([training.shape[2], training.shape[1]], dtype=np.float64)
        return replace(self, place_=np.median(located, axis=0) / size if located else None)

    def vectors(self, faces: FaceSet) -> FloatArray:
        """Return unit vectors, (n_faces, n_numbers)."""
        place = np.array(_PLACE) if self.place_ is None else self.place_
        rows = []
        for image, mesh in zip(*_split(faces), strict=True):
            points = self._points(image, mesh)
            if points is None:
                points = place * [image.shape[1], image.shape[0]]
            key = _key(self.network.name, image, points)
            if key not in self.vectors_:
                self.vectors_[key] = self.network.embed(image, points)
            rows.append(self.vectors_[key])
        return np.stack(rows)

    def distances(self, probes: FaceSet, gallery: FaceSet) -> FloatArray:
        """Return distances, (n_probes, n_gallery)."""
        cosine = self.vectors(probes) @ self.vectors(gallery).T
        return np.sqrt(np.maximum(2.0 - 2.0 * cosine, 0.0))

    def remarks(self, faces: FaceSet) -> tuple[str, ...]:
        """Say in how many faces no face was found."""
        lost = sum(points is None for points in map(self._points, *_split(faces)))
        if not lost:
            return ()
        return (f"no face found in {lost} of {len(faces)} pictures; it was taken to be where faces usually are",)

    def _points(self, image: ByteArray, mesh: FloatArray | None) -> FloatArray | None:
        """Return the five points, (5, 2), from the mesh or from a detector; None where there is no face."""
        if mesh is not None:
            return mesh[:, :2] if len(mesh) == _N_FIVE else five_points(mesh)
        key = _key("points", image)
        if key not in self.points_:
            faces = detect(image)
            self.points_[key] = max(faces, key=lambda face: face.side).landmarks if faces else None
        return self.points_[key]


def _split(faces: FaceSet) -> tuple[ByteArray, list[FloatArray | None]]:
    """Return 8-bit images and the mesh, or the five points, of each; None where faces carry neither."""
    marks = faces.landmarks
    meshed = marks is not None and marks.shape[1] in (_N_FIVE, N_POINTS)
    return quantise(faces.images), list(marks) if meshed and marks is not None else [None] * len(faces)


def _key(what: str, image: NDArray[Any], points: FloatArray | None = None) -> str:
    digest = hashlib.sha256(f"{what} {image.shape}".encode())
    digest.update(np.ascontiguousarray(image).tobytes())
    if points is not None:
        digest.update(np.round(points, 3).tobytes())
    return digest.hexdigest()
