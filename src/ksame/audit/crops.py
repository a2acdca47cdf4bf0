"""Detect the face of a picture and crop it for recognisers.

There are two views. *Photographs* show a face somewhere: a detector finds it, in the original and again in the released
picture. Where it finds none there, the attacker has nothing to recognise. *Faces* are registered already, of one size
with the eyes in one place: an attacker needs no detector for them and is not stopped by hiding a face from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray
from ksame.attacks.restorer import Restorer, box_of_points, find_altered
from ksame.audit.pairing import AuditInput, Pair
from ksame.errors import InputError
from ksame.faces.faceset import quantise
from ksame.faces.registration import Template, register
from ksame.geometry import overlap
from ksame.models import Face, FaceDetector, FaceMesh, Source
from ksame.models.pictures import as_rgb8
from ksame.photographs import PRESENCE, TURNS
from ksame.scene.certificate import SceneCertificate

View = Literal["faces", "photographs"]

TIGHT = Template.eyes_and_nose()
"""For recognisers of pixels: the face without hair, 99 x 134 as in Newton et al. (2005)."""

WIDE = Template(128, 154, ((44.4, 67.3), (82.6, 67.3), (63.5, 87.5)))
"""For networks: the head, with the eyes as far apart as they need."""

_SAMPLE = 64  # originals that decide the view
# How far the eyes are from their places, in distances between the eyes:
_REGISTERED = 0.12  # below, by the median: the faces are registered
_MISPLACED = 0.35  # from here on: what the detector found in a registered face is not that face
_MIN_EYES_APART = 0.25  # of the picture's width, in registered faces; less shows a whole place
_MAX_HEIGHT = 256  # taller registered faces are reduced
_MIN_OVERLAP = 0.1  # of boxes, for a released face to be the one of the original


@dataclass(frozen=True, eq=False)
class FaceCrops:
    """The face of one picture, and its crops."""

    shape: tuple[int, int]  # height and width of the picture
    # the face in the picture; its source is ``ADDED`` where its place comes from the original. Its mesh is set only
    # where it is believed
    face: Face | None = None
    tight: ByteArray | None = None  # (height, width, 1): crop for recognisers of pixels; None where there is no face
    wide: ByteArray | None = None  # (height, width, 3): crop of the head for networks
    points: FloatArray | None = None  # (5, 2): eyes, nose and mouth corners in ``wide``

    @property
    def empty(self) -> bool:
        """Whether there is nothing to compare."""
        return self.tight is None

    @property
    def detected(self) -> bool:
        """Whether the detector found a face."""
        return self.face is not None and self.face.source is Source.DETECTED


class FaceCropper:
    """Detects and crops faces.

    Of registered faces it knows the ``places`` of eyes, nose and mouth corners, (5, 2), and the ``size``, height first.
    """

    def __init__(self, view: View, places: FloatArray | None = None, size: tuple[int, int] | None = None) -> None:
        self.view: View = view
        self.places = places
        self.size = size
        self._detector = FaceDetector()
        self._mesh = FaceMesh()

    def __reduce__(self) -> tuple[Any, ...]:
        places = None if self.places is None else tuple(map(tuple, self.places.tolist()))
        return _cropper_here, (self.view, places, self.size)

    def crop(self, picture: NDArray[Any], *, original: FaceCrops | None = None, by_hand: bool = False) -> FaceCrops:
        """Detect the face of a picture, (height, width, 1 or 3), float in [0, 1], and crop it.

        Among several faces of a released picture, the one in the place of the ``original`` is taken. Where none is
        found, ``by_hand`` takes that place, as a patient attacker would.
        """
        rgb = as_rgb8(picture)
        face = self._detect(rgb, original)
        if face is not None:
            mesh = self._mesh.fit(rgb, face)
            face = replace(face, mesh=mesh if mesh.presence >= PRESENCE else None)
        if self.view == "faces":
            return self._registered(rgb, face)
        return _cropped(rgb, face or _same_place(original, rgb, by_hand))

    def crop_restored(
        self, picture: NDArray[Any], restorer: Restorer, *, original: FaceCrops, by_hand: bool = False
    ) -> FaceCrops:
        """Restore the face of a released picture, then detect it again and crop it.

        Somebody who has trained a restorer knows that the picture was altered, and searches longer than :meth:`crop`
        does: see :func:`ksame.attacks.restorer.find_altered`. Parameters as there.
        """
        rgb = as_rgb8(picture)
        face = _choose(find_altered(rgb, self._detector), rgb.shape[:2], original)
        if self.view == "faces":
            points = self.places if face is None or self._misplaced(face) else face.landmarks
            better = rgb if points is None else restorer.restored(rgb, box_of_points(points))
            return self._registered(better, self._detect(better, original))
        face = face or _same_place(original, rgb, by_hand)
        if face is None:
            return FaceCrops(_size(rgb))
        better = restorer.restored(rgb, face.box)
        again = _choose(self._detector.detect(better), rgb.shape[:2], original)
        if again is not None and overlap(np.array(again.box), np.array(face.box))[0, 0] > _MIN_OVERLAP:
            face = replace(again, source=face.source)
        return _cropped(better, face)

    def _registered(self, rgb: ByteArray, face: Face | None) -> FaceCrops:
        points = self.places if face is None or self._misplaced(face) else face.landmarks
        wide, scale = _reduced(rgb)
        grey = quantise(wide.mean(axis=2, keepdims=True) / 255)
        return FaceCrops(_size(rgb), face, grey, wide, None if points is None else (points + 0.5) * scale - 0.5)

    def _misplaced(self, face: Face) -> bool:
        """Return whether a face was found where registered faces have none."""
        return self.places is None or _displacement(face.landmarks, self.places) >= _MISPLACED

    def _detect(self, rgb: ByteArray, original: FaceCrops | None) -> Face | None:
        faces = self._detector.detect(rgb)
        if not faces and original is None and self.view == "photographs":
            faces = self._detector.detect(rgb, tiny=max(rgb.shape[:2]) <= 2500, rotations=TURNS)
        return _choose(faces, rgb.shape[:2], original)


@lru_cache(maxsize=1)
def _cropper_here(
    view: View, places: tuple[tuple[float, ...], ...] | None, size: tuple[int, int] | None
) -> FaceCropper:
    """Return a cropper that was sent to this process, whose networks are loaded once."""
    return FaceCropper(view, None if places is None else np.array(places), size)


def _choose(faces: Sequence[Face], shape: tuple[int, ...], original: FaceCrops | None) -> Face | None:
    """Return the face in the place of the original's, else the largest; None where there is none."""
    if not faces:
        return None
    if original is not None and original.face is not None and original.shape == shape:
        shared = overlap(np.array([face.box for face in faces]), np.array(original.face.box))[:, 0]
        if shared.max() > _MIN_OVERLAP:
            return faces[int(shared.argmax())]
    return max(faces, key=lambda face: face.side)


def _same_place(original: FaceCrops | None, rgb: ByteArray, by_hand: bool) -> Face | None:
    """Return the original's face as one that was put in by hand."""
    if not by_hand or original is None or original.face is None or original.shape != _size(rgb):
        return None
    return replace(original.face, mesh=None, source=Source.ADDED)


def _cropped(rgb: ByteArray, face: Face | None) -> FaceCrops:
    """Crop a face out of a photograph."""
    if face is None:
        return FaceCrops(_size(rgb))
    points = face.landmarks
    grey = rgb.mean(axis=2, keepdims=True, dtype=np.float32) / 255
    wide, move = register(rgb.astype(np.float32) / 255, points[:3], WIDE)
    tight, _ = register(grey, points[:3], TIGHT)
    return FaceCrops(_size(rgb), face, quantise(tight), quantise(wide), move.apply(points))


def _size(rgb: ByteArray) -> tuple[int, int]:
    return rgb.shape[0], rgb.shape[1]


def choose_cropper(pictures: AuditInput, view: View | None) -> FaceCropper:
    """Return the cropper that fits the pictures; a sample of them decides where ``view`` is None.

    Raises InputError when registered faces are asked for and the sizes differ.
    """
    step = max(1, len(pictures.pairs) // _SAMPLE)
    sample = pictures.pairs[::step][:_SAMPLE]
    sizes, points = _survey(sample)
    if view is None and isinstance(pictures.certificate, SceneCertificate):
        view = "photographs"
    elif view is None:
        view = _guess(sizes, points, certified=pictures.certificate is not None)
    if view == "photographs":
        return FaceCropper("photographs")
    if len(sizes) > 1:
        listed = ", ".join(f"{w}x{h}" for h, w in sorted(sizes)[:5])
        raise InputError(
            f"Registered faces must have one size; found {listed}. Audit them as photographs: --view photographs."
        )
    places = np.median(points, axis=0) if points else None
    return FaceCropper("faces", places, next(iter(sizes), None))


def _survey(sample: Sequence[Pair]) -> tuple[set[tuple[int, int]], list[FloatArray]]:
    """Return all sizes, and the points of the faces found in originals."""
    detector = FaceDetector()
    sizes, points = set(), []
    for pair in sample:
        try:
            before, after = pair.original.load(), pair.released.load()
        except InputError:
            continue  # named later, when it is cropped
        sizes |= {(p.shape[0], p.shape[1]) for p in (before, after)}
        faces = detector.detect(before)
        if faces:
            points.append(max(faces, key=lambda face: face.side).landmarks)
    return sizes, points


def _guess(sizes: set[tuple[int, int]], points: Sequence[FloatArray], *, certified: bool) -> View:
    if len(sizes) != 1:
        return "photographs"
    if not points:
        return "faces" if certified else "photographs"
    places = np.median(points, axis=0)
    aligned = float(np.median([_displacement(p, places) for p in points])) < _REGISTERED
    between = float(np.hypot(*(places[1] - places[0]))) / next(iter(sizes))[1]
    return "faces" if aligned and between >= _MIN_EYES_APART else "photographs"


def _displacement(points: FloatArray, places: FloatArray) -> float:
    """Return how far the eyes are from their places, in distances between the eyes."""
    between = float(np.hypot(*(places[1] - places[0])))
    return float(np.hypot(*(points[:2] - places[:2]).T).mean()) / max(between, 1e-9)


def _reduced(rgb: ByteArray) -> tuple[ByteArray, float]:
    """Reduce a picture by a power of two until it is low enough; return the scale too."""
    times = 1
    while rgb.shape[0] / times > _MAX_HEIGHT:
        times *= 2
    if times == 1:
        return rgb, 1.0
    size = (max(1, rgb.shape[1] // times), max(1, rgb.shape[0] // times))
    return np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), dtype=np.uint8), 1.0 / times
