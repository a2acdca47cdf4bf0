"""What an attacker sees: the face found in a whole picture, cut out for recognisers.

There are two ways to look. *Photographs* show a face somewhere: a detector finds it, in the original and again in what
was released, and where it finds none there the attacker has nothing to recognise. *Faces* are registered already, of
one size with the eyes in one place: an attacker needs no detector for them and is not stopped by hiding a face from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray
from ksame.attacks.restorer import Restorer, box_of_points, find_altered
from ksame.audit.material import Material, Pair
from ksame.errors import InputError
from ksame.faces.faceset import quantise
from ksame.faces.registration import Template, register
from ksame.geometry import overlap
from ksame.models import Face, FaceDetector, FaceMesh, Mesh
from ksame.models.pictures import as_rgb8
from ksame.photographs import PRESENCE, TURNS
from ksame.scene.certificate import SceneCertificate

View = Literal["faces", "photographs"]

TIGHT = Template.eyes_and_nose()
"""For recognisers of pixels: the face without hair, 99 x 134 as in Newton et al. (2005)."""

WIDE = Template(128, 154, ((44.4, 67.3), (82.6, 67.3), (63.5, 87.5)))
"""For networks: the head, with the eyes as far apart as they need."""

_SAMPLE = 64  # originals that decide the view
_REGISTERED = 0.12  # how far eyes may lie from their median, in distances between the eyes, in registered faces
_CROPPED = 0.25  # least distance between the eyes, in widths of the picture, in registered faces: others show places
_ASTRAY = 0.35  # how far from where it must be a face may be found in a registered picture, likewise
_TALLEST = 256  # larger registered faces are reduced
_OVERLAP = 0.1  # of boxes, for a released face to be the one that was there


@dataclass(frozen=True, eq=False)
class Seen:
    """What is seen in one picture.

    Attributes
    ----------
    shape : tuple of int
        Height and width of the picture.
    detected : bool
        Whether the detector found a face.
    tight : ndarray of shape (height, width, 1), uint8, or None
        The face for recognisers of pixels; None where there is nothing to look at.
    wide : ndarray of shape (height, width, 3), uint8, or None
        The head for networks.
    points : ndarray of shape (5, 2) or None
        Eyes, nose and mouth corners in ``wide``; None where they are not known.
    box : tuple of float or None
        Where the face is in the picture.
    marks : ndarray of shape (5, 2) or None
        The points in the picture itself.
    mesh : Mesh or None
    """

    shape: tuple[int, int]
    detected: bool
    tight: ByteArray | None = None
    wide: ByteArray | None = None
    points: FloatArray | None = None
    box: tuple[float, float, float, float] | None = None
    marks: FloatArray | None = None
    mesh: Mesh | None = None


class Eye:
    """Looks at pictures.

    Parameters
    ----------
    view : {"faces", "photographs"}
    places : ndarray of shape (5, 2), optional
        Where eyes, nose and mouth corners lie in registered faces.
    size : (int, int), optional
        Height and width of registered faces.
    """

    def __init__(self, view: View, places: FloatArray | None = None, size: tuple[int, int] | None = None) -> None:
        self.view: View = view
        self.places = places
        self.size = size
        self._detector = FaceDetector()
        self._mesh = FaceMesh()

    def look(self, picture: NDArray[Any], *, like: Seen | None = None, by_hand: bool = False) -> Seen:
        """Find the face of a picture and cut it out.

        Parameters
        ----------
        picture : ndarray of shape (height, width, 1 or 3), float in [0, 1]
        like : Seen, optional
            The original of a released picture: among several faces, the one in its place is taken.
        by_hand : bool
            Where no face is found, take the place it has in the original, as a patient attacker would.
        """
        rgb = as_rgb8(picture)
        found = self._find(rgb, like)
        mesh = None if found is None else self._mesh.fit(rgb, found)
        if mesh is not None and mesh.presence < PRESENCE:
            mesh = None
        shape = (rgb.shape[0], rgb.shape[1])
        box = None if found is None else found.box
        if self.view == "faces":
            return self._registered(rgb, found, box, mesh)
        points = None if found is None else found.landmarks
        if points is None and by_hand and like is not None and like.shape == shape:
            points = like.marks
        if points is None:
            return Seen(shape, detected=False)
        return _cut_out(rgb, points, box, mesh, detected=found is not None)

    def look_restored(self, picture: NDArray[Any], restorer: Restorer, *, like: Seen, by_hand: bool = False) -> Seen:
        """Restore the face of a released picture, then find it again and cut it out.

        Who has trained a restorer knows that the picture was altered, and looks for its face more patiently than
        :meth:`look` does: see :func:`ksame.attacks.restorer.find_altered`.

        Parameters
        ----------
        picture : ndarray of shape (height, width, 1 or 3), float in [0, 1]
        restorer : Restorer
        like : Seen
            The original: among several faces, the one in its place is taken.
        by_hand : bool
            Where no face is found, restore where the original has it.
        """
        rgb = as_rgb8(picture)
        shape = (rgb.shape[0], rgb.shape[1])
        first = self._choose(find_altered(rgb, self._detector), shape, like)
        if self.view == "faces":
            points = self.places if first is None or self._lost(first) else first.landmarks
            box = None if points is None else box_of_points(points)
            better = rgb if box is None else restorer.restored(rgb, box)
            return self._registered(better, self._find(better, like), box, None)
        box, points = (None, None) if first is None else (first.box, first.landmarks)
        if first is None and by_hand and like.shape == shape:
            points = like.marks
            box = None if points is None else like.box or box_of_points(points)
        if box is None or points is None:
            return Seen(shape, detected=False)
        better = restorer.restored(rgb, box)
        again = self._choose(self._detector.detect(better), shape, like)
        if again is not None and overlap(np.array(again.box), np.array(box))[0, 0] > _OVERLAP:
            box, points = again.box, again.landmarks
        return _cut_out(better, points, box, None, detected=first is not None)

    def _registered(
        self, rgb: ByteArray, found: Face | None, box: tuple[float, float, float, float] | None, mesh: Mesh | None
    ) -> Seen:
        points = self.places if found is None or self._lost(found) else found.landmarks
        wide, scale = _reduced(rgb)
        grey = quantise(wide.mean(axis=2, keepdims=True) / 255)
        marks = None if points is None else np.array(points)
        scaled = None if points is None else (points + 0.5) * scale - 0.5
        return Seen((rgb.shape[0], rgb.shape[1]), found is not None, grey, wide, scaled, box, marks, mesh)

    def _lost(self, found: Face) -> bool:
        """Return whether a face was found where registered faces have none."""
        return self.places is None or _astray(found.landmarks, self.places) >= _ASTRAY

    def _find(self, rgb: ByteArray, like: Seen | None) -> Face | None:
        found = self._detector.detect(rgb)
        if not found and like is None and self.view == "photographs":
            found = self._detector.detect(rgb, tiny=max(rgb.shape[:2]) <= 2500, rotations=TURNS)
        return self._choose(found, (rgb.shape[0], rgb.shape[1]), like)

    @staticmethod
    def _choose(found: Sequence[Face], shape: tuple[int, int], like: Seen | None) -> Face | None:
        """Return the face in the place of the original's, else the largest; None where there is none."""
        if not found:
            return None
        if like is not None and like.box is not None and like.shape == shape:
            shared = overlap(np.array([face.box for face in found]), np.array(like.box))[:, 0]
            here = found[int(shared.argmax())]
            if shared.max() > _OVERLAP:
                return here
        return max(found, key=lambda d: d.side)


def _cut_out(
    rgb: ByteArray,
    points: FloatArray,
    box: tuple[float, float, float, float] | None,
    mesh: Mesh | None,
    *,
    detected: bool,
) -> Seen:
    """Cut a face with these points, (5, 2), out of a photograph."""
    grey = rgb.mean(axis=2, keepdims=True, dtype=np.float32) / 255
    wide, move = register(rgb.astype(np.float32) / 255, points[:3], WIDE)
    tight, _ = register(grey, points[:3], TIGHT)
    shape = (rgb.shape[0], rgb.shape[1])
    return Seen(shape, detected, quantise(tight), quantise(wide), move.apply(points), box, points, mesh)


def choose_eye(material: Material, view: View | None) -> Eye:
    """Return the eye that fits the pictures, looking at a sample of them where ``view`` is None.

    Raises
    ------
    InputError
        When registered faces are asked for and the sizes differ.
    """
    step = max(1, len(material.pairs) // _SAMPLE)
    sample = material.pairs[::step][:_SAMPLE]
    sizes, points = _survey(sample)
    if view is None and isinstance(material.certificate, SceneCertificate):
        view = "photographs"
    elif view is None:
        view = _guess(sizes, points, certified=material.certificate is not None)
    if view == "photographs":
        return Eye("photographs")
    if len(sizes) > 1:
        listed = ", ".join(f"{w}x{h}" for h, w in sorted(sizes)[:5])
        raise InputError(
            f"Registered faces must have one size; found {listed}. Look at them as photographs: --view photographs."
        )
    places = np.median(points, axis=0) if points else None
    return Eye("faces", places, next(iter(sizes), None))


def _survey(sample: Sequence[Pair]) -> tuple[set[tuple[int, int]], list[FloatArray]]:
    """Return all sizes, and the points of the faces found in originals."""
    detector = FaceDetector()
    sizes, points = set(), []
    for pair in sample:
        try:
            before, after = pair.original.load(), pair.released.load()
        except InputError:
            continue  # named later, when it is looked at
        sizes |= {(p.shape[0], p.shape[1]) for p in (before, after)}
        found = detector.detect(before)
        if found:
            points.append(max(found, key=lambda d: d.side).landmarks)
    return sizes, points


def _guess(sizes: set[tuple[int, int]], points: Sequence[FloatArray], *, certified: bool) -> View:
    if len(sizes) != 1:
        return "photographs"
    if not points:
        return "faces" if certified else "photographs"
    places = np.median(points, axis=0)
    aligned = float(np.median([_astray(p, places) for p in points])) < _REGISTERED
    between = float(np.hypot(*(places[1] - places[0]))) / next(iter(sizes))[1]
    return "faces" if aligned and between >= _CROPPED else "photographs"


def _astray(points: FloatArray, places: FloatArray) -> float:
    """Return how far the eyes are from their places, in distances between the eyes."""
    between = float(np.hypot(*(places[1] - places[0])))
    return float(np.hypot(*(points[:2] - places[:2]).T).mean()) / max(between, 1e-9)


def _reduced(rgb: ByteArray) -> tuple[ByteArray, float]:
    """Halve a picture until it is low enough."""
    times = 1
    while rgb.shape[0] / times > _TALLEST:
        times *= 2
    if times == 1:
        return rgb, 1.0
    size = (max(1, rgb.shape[1] // times), max(1, rgb.shape[0] // times))
    return np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), dtype=np.uint8), 1.0 / times
