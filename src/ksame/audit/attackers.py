"""The attackers that an audit knows by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ksame.attacks import Eigenfaces, Mahalanobis
from ksame.attacks.base import Recogniser
from ksame.errors import InputError, UsageError
from ksame.faces.faceset import FaceSet, FloatArray
from ksame.models import DlibResNet, OnnxRecogniser, SFace
from ksame.models import Recogniser as Network


@dataclass(frozen=True)
class Attacker:
    """A recogniser and what it looks at.

    Attributes
    ----------
    name : str
    part : {"tight", "wide"}
        See :func:`ksame.audit.looking.face_sets`.
    build : callable
        Makes the recogniser.
    """

    name: str
    part: str
    build: Callable[[], Recogniser]


@dataclass(frozen=True, eq=False)
class AlignedNetwork:
    """A network that looks at faces by the five points they carry; a face is looked at once.

    Parameters
    ----------
    network : Network
    """

    network: Network
    _seen: dict[bytes, FloatArray] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The network's name."""
        return self.network.name

    def params(self) -> dict[str, Any]:
        """Return what a result should say about it."""
        return {"pretrained": True}

    def fit(self, training: FaceSet) -> AlignedNetwork:
        """Return itself: it was trained by others."""
        return self

    def distances(self, probes: FaceSet, gallery: FaceSet) -> FloatArray:
        """Return distances between unit vectors, (n_probes, n_gallery)."""
        cosine = self._embed(probes) @ self._embed(gallery).T
        return np.sqrt((2.0 - 2.0 * cosine).clip(0.0, None))

    def _embed(self, faces: FaceSet) -> FloatArray:
        if faces.landmarks is None or faces.landmarks.shape[1] != 5:
            raise InputError(f"{self.name} needs to know where eyes, nose and mouth are, and no face was found.")
        return np.stack([self._vector(i, p) for i, p in zip(faces.images, faces.landmarks, strict=True)])

    def _vector(self, image: FloatArray, points: FloatArray) -> FloatArray:
        key = image.tobytes() + points.tobytes()
        if key not in self._seen:
            self._seen[key] = self.network.embed(image, points[:, :2])
        return self._seen[key]


KNOWN: Mapping[str, Attacker] = {
    attacker.name: attacker
    for attacker in (
        Attacker("eigenfaces", "tight", Eigenfaces),
        Attacker("mahalanobis", "tight", Mahalanobis),
        Attacker("sface", "wide", lambda: AlignedNetwork(SFace())),
        Attacker("dlib", "wide", lambda: AlignedNetwork(DlibResNet())),
    )
}
"""All by name; a path to an ONNX file is one as well."""

DEFAULT = ("eigenfaces", "sface")


def attacker(name: str) -> Attacker:
    """Return the attacker called ``name``, or the network in the ONNX file of that name."""
    if name in KNOWN:
        return KNOWN[name]
    if name.lower().endswith(".onnx"):
        return Attacker(Path(name).stem, "wide", lambda: AlignedNetwork(OnnxRecogniser(Path(name))))
    raise UsageError(f"There is no attacker {name!r}. Known: {', '.join(KNOWN)}, or the path of an ONNX file.")
