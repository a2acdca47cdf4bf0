"""Recognisers: networks that turn a face into a vector, so that one person's vectors lie close together.

Every recogniser answers with a unit vector, and two faces are compared by the cosine between their vectors.
Each cuts the face out itself, by the five points that a detector or, better, a mesh gives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ksame.arrays import FloatArray
from ksame.errors import InputError, ModelError, parameter_error
from ksame.geometry import Similarity, warp
from ksame.models.blocked import mended
from ksame.models.catalogue import CATALOGUE
from ksame.models.pictures import as_rgb8
from ksame.models.runtime import session
from ksame.models.store import Store
from ksame.registry import Registry

# Where eyes, nose and mouth corners lie in the 112 x 112 pictures that ArcFace and its kin were trained on.
_ARCFACE = ((38.29, 51.70), (73.53, 51.50), (56.03, 71.74), (41.55, 92.37), (70.73, 92.20))

# Where these points lie, on average over frontal portraits, in the 150 x 150 pictures that dlib cuts itself.
_DLIB = ((47.9, 46.5), (99.1, 46.5), (73.5, 75.4), (46.5, 98.6), (100.5, 98.6))


@runtime_checkable
class Recogniser(Protocol):
    """Turns faces into vectors."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    @property
    def threshold(self) -> float:
        """The cosine above which two faces are taken for one person."""
        ...

    def embed(self, image: NDArray[Any], points: ArrayLike) -> FloatArray:
        """Return the vector of a face.

        Parameters
        ----------
        image : ndarray of shape (height, width), (height, width, 1) or (height, width, 3)
            8-bit or floating point in [0, 1]; RGB where it has three channels.
        points : array of shape (5, 2)
            Eyes, tip of the nose and corners of the mouth, as in :attr:`Face.landmarks`.

        Returns
        -------
        vector : ndarray of shape (d,), of length 1
        """
        ...


class SFace:
    """SFace (Zhong et al. 2021), run by ONNX Runtime: 128 numbers.

    One object may be used from several threads. The network takes about 100 MB; it is loaded when it is first needed.

    Faces are cut out as OpenCV's ``FaceRecognizerSF`` does, and its threshold is the one that OpenCV's authors give for
    the Labeled Faces in the Wild. Weights come from ``store``, by default the default one.
    """

    name = "sface"
    threshold = 0.363

    def __init__(self, store: Store | None = None) -> None:
        self._file = (store or Store()).path("sface")
        self._lock = threading.Lock()
        self._network: Any = None

    def embed(self, image: NDArray[Any], points: ArrayLike) -> FloatArray:
        """Return the vector of a face; see :meth:`Recogniser.embed`."""
        matrix = Similarity.estimate(_checked(points), _ARCFACE).matrix
        crop = cv2.warpAffine(as_rgb8(image), matrix, (112, 112))
        with self._lock:
            if self._network is None:
                self._network = session(mended(self._file.read_bytes()), threads=1, weights_only=True)
            network = self._network
        return _unit(network.run(None, {"data": np.asarray(crop, dtype=np.float32).transpose(2, 0, 1)[None]})[0])

    def forget(self) -> None:
        """Give the network's memory back until it is needed again."""
        with self._lock:
            self._network = None


class OnnxRecogniser:
    """Any recogniser in an ONNX file that takes faces of 112 x 112 pixels as ArcFace does (Deng et al. 2019).

    Parameters
    ----------
    file : Path
        The network: one input of shape (n, 3, 112, 112), RGB scaled to [-1, 1]; one vector per face.
    threshold : float
        The cosine above which two faces are taken for one person; ask whoever trained the network.
    name : str, optional
        What reports call it; by default the file's name.
    """

    def __init__(self, file: Path | str, *, threshold: float = 0.3, name: str | None = None) -> None:
        if not -1 < threshold < 1:
            raise parameter_error("threshold", "OnnxRecogniser", "a cosine in (-1, 1)", threshold)
        self.threshold = threshold
        self._file = Path(file)
        self.name = self._file.stem if name is None else name
        self._session = session(self._file)
        shape = list(self._session.get_inputs()[0].shape)
        if len(shape) != 4 or shape[1:] != [3, 112, 112]:
            raise ModelError(
                f"{self._file}: expected a network whose input has the shape (n, 3, 112, 112), got "
                f"{tuple(shape)}. Export it for faces of 112 x 112 pixels, channels first."
            )

    def embed(self, image: NDArray[Any], points: ArrayLike) -> FloatArray:
        """Return the vector of a face; see :meth:`Recogniser.embed`."""
        crop = warp(as_rgb8(image), Similarity.estimate(_checked(points), _ARCFACE).matrix, 112)
        data = (crop.astype(np.float32).transpose(2, 0, 1)[None] - 127.5) / 127.5
        return _unit(self._session.run(None, {self._session.get_inputs()[0].name: data})[0])


class DlibResNet:
    """dlib's residual network (King 2017): 128 numbers. Needs the extra ``dlib``.

    dlib's own rule is a Euclidean distance below 0.6 between vectors whose length is about 1.45. The
    threshold here is the cosine that agrees with that rule best: on 9,200 pairs of portraits, in 99.7 %. Weights come
    from ``store``, by default the default one.
    """

    name = "dlib-resnet"
    threshold = 0.917

    def __init__(self, store: Store | None = None) -> None:
        try:
            import dlib
        except ImportError as error:
            raise ModelError("DlibResNet needs dlib. Install it with `pip install 'ksame[dlib]'`.") from error
        self._network = dlib.face_recognition_model_v1(str((store or Store()).path("dlib-resnet")))
        self._lock = threading.Lock()  # the network keeps its layers' outputs inside

    def embed(self, image: NDArray[Any], points: ArrayLike) -> FloatArray:
        """Return the vector of a face; see :meth:`Recogniser.embed`."""
        return _unit(self.descriptor(image, points))

    def descriptor(self, image: NDArray[Any], points: ArrayLike) -> FloatArray:
        """Return dlib's own vector of a face, of shape (128,), not of unit length."""
        crop = warp(as_rgb8(image), Similarity.estimate(_checked(points), _DLIB).matrix, 150)
        with self._lock:
            return np.array(self._network.compute_face_descriptor(crop), dtype=np.float64)


def _checked(points: ArrayLike) -> FloatArray:
    array = np.asarray(points, dtype=np.float64)
    if array.shape != (5, 2) or not np.isfinite(array).all():
        raise InputError(f"A recogniser needs five finite points of shape (5, 2). Got shape {array.shape}.")
    return array


def _unit(vector: ArrayLike) -> FloatArray:
    flat = np.asarray(vector, dtype=np.float64).ravel()
    length = float(np.linalg.norm(flat))
    if not length > 0:
        raise InputError("The recogniser gave no vector for this face: it is all zero or not a number.")
    return np.asarray(flat / length)


@dataclass(frozen=True)
class RecogniserEntry:
    """A recogniser that the command line, audits and the loop in scenes know by name."""

    name: str
    build: Callable[[], Recogniser]  # makes it
    summary: str  # what it is
    model: str | None = None  # its weights in the catalogue; None where it has none

    @property
    def licence(self) -> str:
        """Licence and size of its weights, in a few words."""
        if self.model is None:
            return "no weights"
        weights = CATALOGUE[self.model]
        return f"{weights.licence}, {weights.size / 1e6:.0f} MB{', optional' if weights.optional else ''}"


RECOGNISERS: Registry[RecogniserEntry] = Registry("recogniser")
"""All recognisers by name."""

RECOGNISERS.add(RecogniserEntry("sface", SFace, "SFace (Zhong et al. 2021), 128 numbers", "sface"))
RECOGNISERS.add(RecogniserEntry("dlib", DlibResNet, "dlib's residual network (King 2017), 128 numbers", "dlib-resnet"))
