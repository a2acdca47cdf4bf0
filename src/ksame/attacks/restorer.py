"""Networks that restore faces: trained on pairs (published, original) of other people, run on what is published.

What looks hidden to a person may be only scrambled: somebody who can run the anonymisation on photographs of their own
gets as many pairs as they need and trains a network to undo it (Todt, Hanisch and Strufe, "Fantômas: Understanding Face
Anonymization Reversibility", 2022). Any recogniser then compares what the network restored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ksame.arrays import ByteArray, FloatArray
from ksame.attacks.base import Recogniser, Remarking
from ksame.errors import InputError, ModelError
from ksame.faces.faceset import FaceSet
from ksame.files import sha256_of
from ksame.geometry import warp
from ksame.models import Face, FaceDetector
from ksame.models.pictures import as_rgb8
from ksame.models.runtime import session

Box = tuple[float, float, float, float]

CROP = 1.9
"""Side of the square that a restorer sees, in mean sides of the detector's box: the head with its hair line."""

_SCORES = (0.6, 0.3, 0.1)
"""Thresholds of the detector, tried in this order: an attacker who sees a blur lowers it."""

_REDUCED = (2, 3, 4, 6, 8)
"""How many times smaller the copies are that are searched last: reduced so far, a mosaic looks like a face again."""

_SMALLEST_COPY = 32
"""Pixels along the longer side below which no copy is made."""

# Width and height of the detector's box, and how far its centre lies above the mean of the five points, in root mean
# square distances of the points from their mean: medians over frontal portraits.
_BOX_OF_POINTS = (3.5, 4.7, 0.3)


@lru_cache(maxsize=4)
def _restorer_here(file: Path) -> Restorer:
    """Return a restorer that was sent to this process, loaded once."""
    return Restorer(file)


class Restorer:
    """A network in an ONNX file that restores faces.

    The network takes RGB scaled to [-1, 1], of shape (n, 3, side, side): the square of :data:`CROP` mean sides round
    the box of a face, scaled to ``side`` pixels. It answers with the restored square in the same shape and scale.
    Raises ModelError when the file is missing or no network of this kind.
    Reports call it by the file's name, and give the file's ``sha256``.
    """

    def __init__(self, file: Path | str) -> None:
        self._file = Path(file)
        self.name = self._file.stem
        self._session = session(self._file)
        self.sha256 = sha256_of(self._file)
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        shape = list(inputs[0].shape)
        if len(inputs) != 1 or len(outputs) != 1 or not _square(shape):
            raise ModelError(
                f"{self._file}: expected a network with one input of the shape (n, 3, side, side) and one output, got "
                f"{len(inputs)} of the shape {tuple(shape)} and {len(outputs)}. Export it for square faces of one "
                "size, channels first."
            )
        self.side = int(shape[2])
        self.restore(np.full((self.side, self.side, 3), 128, dtype=np.uint8))  # its answer is checked once, here

    def __reduce__(self) -> tuple[Any, ...]:
        return _restorer_here, (self._file.absolute(),)

    def restored(self, picture: NDArray[Any], box: Box) -> ByteArray:
        """Return the picture, (height, width, 3), with the face in ``box`` (left, top, width, height) restored."""
        rgb = as_rgb8(picture)
        to_crop = square_of(box, self.side)
        crop = self.restore(warp(rgb, to_crop, self.side))
        size = (rgb.shape[1], rgb.shape[0])
        pasted = cv2.warpAffine(
            crop, to_crop, size, flags=cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP, borderMode=cv2.BORDER_REPLICATE
        )
        ones = np.ones(crop.shape[:2], dtype=np.uint8)
        inside = cv2.warpAffine(ones, to_crop, size, flags=cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP) > 0
        return np.where(inside[..., None], np.asarray(pasted, dtype=np.uint8), rgb)

    def restore(self, crop: NDArray[Any]) -> ByteArray:
        """Return the restored square, (side, side, 3), 8-bit; one at a time, since files may fix the batch at 1."""
        if crop.shape != (self.side, self.side, 3) or crop.dtype != np.uint8:
            raise InputError(
                f"A restorer needs 8-bit crops of shape {(self.side, self.side, 3)}. Got {crop.dtype}, {crop.shape}."
            )
        data = (crop.astype(np.float32).transpose(2, 0, 1)[None] - 127.5) / 127.5
        try:
            answer = np.asarray(self._session.run(None, {self._session.get_inputs()[0].name: data})[0])
        except Exception as error:  # onnxruntime's own classes have no common base
            raise ModelError(f"{self._file}: the network cannot be run on faces ({error}).") from error
        if answer.shape != data.shape or not np.isfinite(answer).all():
            got = "values that are no numbers" if answer.shape == data.shape else f"the shape {answer.shape}"
            raise ModelError(f"{self._file}: expected an answer of the shape {data.shape}, finite, got {got}.")
        pixels = answer[0].transpose(1, 2, 0) * 127.5 + 127.5
        return np.rint(pixels.clip(0, 255)).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class OnRestored:
    """A recogniser of faces that a network restored; it says so in its name.

    The faces it gets are restored already, see :meth:`Restorer.restored`.
    """

    recogniser: Recogniser
    restorer: Restorer

    @property
    def name(self) -> str:
        """What reports call it: the recogniser and the restorer."""
        return f"{self.recogniser.name} on faces restored by {self.restorer.name}"

    def params(self) -> dict[str, Any]:
        """Return the recogniser's settings and the restorer's hash."""
        return {**self.recogniser.params(), "restorer": self.restorer.name, "restorer_sha256": self.restorer.sha256}

    def fit(self, training: FaceSet) -> OnRestored:
        """Train the recogniser; the restorer stays as it is."""
        return replace(self, recogniser=self.recogniser.fit(training))

    def distances(self, probes: FaceSet, gallery: FaceSet) -> FloatArray:
        """Return the recogniser's distances, (n_probes, n_gallery)."""
        return self.recogniser.distances(probes, gallery)

    def remarks(self, faces: FaceSet) -> tuple[str, ...]:
        """Return the recogniser's notes."""
        return self.recogniser.remarks(faces) if isinstance(self.recogniser, Remarking) else ()


def find_altered(picture: NDArray[Any], detector: FaceDetector | None = None) -> list[Face]:
    """Detect faces as somebody does who knows that they were altered, highest score first.

    Where the detector finds none, its threshold is lowered. Then it is run on small copies, in which blur and mosaics
    look like faces again.
    """
    detector = detector or FaceDetector()
    rgb = as_rgb8(picture)
    for score in _SCORES:
        if faces := detector.detect(rgb, score=score):
            return faces
    for times in _REDUCED:
        size = (max(1, round(rgb.shape[1] / times)), max(1, round(rgb.shape[0] / times)))
        if max(size) < _SMALLEST_COPY:
            break
        small = np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        if faces := detector.detect(small, score=_SCORES[-1], tiny=True):
            return [_enlarged(face, rgb.shape[1] / size[0], rgb.shape[0] / size[1]) for face in faces]
    return []


def _enlarged(face: Face, across: float, down: float) -> Face:
    scale = np.array([across, down])
    x, y, width, height = face.box
    points = (face.landmarks + 0.5) * scale - 0.5
    corner = (np.array([x, y]) + 0.5) * scale - 0.5
    return Face((float(corner[0]), float(corner[1]), width * across, height * down), points, face.score)


def square_of(box: Box, side: int) -> FloatArray:
    """Return the transform, (2, 3), from picture to the square that a restorer sees, pixel centres at whole numbers.

    Examples
    --------
    >>> square_of((10.0, 20.0, 30.0, 50.0), 38).round(3)
    array([[ 0.5,  0. ,  6. ],
           [ 0. ,  0.5, -4. ]])
    """
    x, y, width, height = box
    scale = side / (CROP * (width + height) / 2)
    middle = (side - 1) / 2
    return np.array([[scale, 0.0, middle - scale * (x + width / 2)], [0.0, scale, middle - scale * (y + height / 2)]])


def box_of_points(points: ArrayLike) -> Box:
    """Return the box that a detector would put round a face with these five points, (5, 2)."""
    five = np.asarray(points, dtype=np.float64)
    x, y = five.mean(axis=0)
    size = float(np.sqrt(((five - (x, y)) ** 2).sum(axis=1).mean()))
    wide, high, above = (part * size for part in _BOX_OF_POINTS)
    return float(x - wide / 2), float(y - above - high / 2), wide, high


def _square(shape: list[Any]) -> bool:
    """Return whether this is the shape of a batch of square RGB pictures; the batch may have any size or be 1."""
    if len(shape) != 4 or shape[1] != 3 or not isinstance(shape[2], int) or shape[2] != shape[3]:
        return False
    return shape[2] >= 16 and (not isinstance(shape[0], int) or shape[0] == 1)
