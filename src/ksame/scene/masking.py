"""Masks on faces in frames: the ad-hoc ones of the papers, and the plain fill that stands in where all else fails.

The plain fill keeps nothing of what it covers. The others promise nothing; their levels are those of a face 134 pixels
high, as in the papers, and grow with the face.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from ksame.errors import UsageError
from ksame.faces.faceset import ByteArray, FloatArray
from ksame.methods import AdHoc, BarMask, Blur, FlipNoise, Noise, Pixelate, Threshold, TMask
from ksame.methods.adhoc import LARGEST_BLOCK, LARGEST_SIGMA
from ksame.models import Face
from ksame.scene.outlines import grown, polygon, pull_push
from ksame.spaces.facemodel.geometry import OUTLINE, with_forehead

FILL, BLACKOUT = "fill", "blackout"
_ADHOC: dict[str, type[AdHoc]] = {
    kind.name: kind for kind in (Pixelate, Blur, Threshold, Noise, FlipNoise, BarMask, TMask)
}
MASKS = (FILL, BLACKOUT, *_ADHOC)
"""The masks by name."""
_PAPER_HEIGHT = 134.0  # of the faces for which the papers give levels, in pixels
_PAPER_PIXELS = 134 * 99
_MESH = 1.4  # how far a mask reaches beyond a mesh: the rim alone still names people
_BOX = 1.35  # how far it reaches beyond a box, grown already where it was tracked
_OWN = 1.2  # the same where it is perhaps no face: an ellipse that covers all of the box but its corners
_COARSE = 24.0  # pixels across the face at which it is filled in


@dataclass(frozen=True)
class Mask:
    """One kind of mask.

    Parameters
    ----------
    name : str
        One of ``MASKS``.
    level : float, optional
        Strength, for those that have one: p, sigma or m of a face 134 pixels high.
    """

    name: str = FILL
    level: float | None = None

    def __post_init__(self) -> None:
        if self.name not in MASKS:
            raise UsageError(f"There is no mask {self.name!r}. Choose one of: {', '.join(MASKS)}.")
        if self.level is not None:
            if self.name not in _ADHOC or _ADHOC[self.name].level is None:
                raise UsageError(f"The mask {self.name} has no level. Leave --level out.")
            _ADHOC[self.name]().at(self.level)

    @property
    def needs_mesh(self) -> bool:
        """Whether it can only be put on a face whose eyes are known."""
        return self.name in (BarMask.name, TMask.name)

    def apply(self, onto: ByteArray, face: Face, rng: np.random.Generator) -> None:
        """Mask a face in a frame, in place.

        What is read and what is covered is ``onto`` itself, so that nothing of the original comes back where faces
        overlap.
        """
        outline, height = outline_of(face)
        if self.name == FILL:
            fill(onto, outline)
            return
        window = _window(outline, onto.shape)
        part = onto[window]
        if not part.size:
            return
        origin = np.array([window[1].start, window[0].start])
        if self.name == BLACKOUT:
            changed = np.zeros_like(part)
        else:
            points = None if face.mesh is None else (face.mesh.points[:, :2] - origin)[None]
            adhoc = self._scaled(height, part.shape[0] * part.shape[1])
            pixels = adhoc.apply(part[None].astype(np.float64) / 255, rng, points)[0]
            changed = np.rint(pixels * 255).clip(0, 255).astype(np.uint8)
        inside = polygon(part.shape[:2], outline - origin) > 0.5
        part[inside] = changed[inside]

    def _scaled(self, height: float, pixels: int) -> AdHoc:
        method = _ADHOC[self.name]()
        if self.level is not None:
            method = method.at(self.level)
        factor = height / _PAPER_HEIGHT
        if isinstance(method, Pixelate):
            return replace(method, p=min(LARGEST_BLOCK, max(2, round(method.p * factor))))
        if isinstance(method, Blur):
            return replace(method, sigma=min(LARGEST_SIGMA, max(1.0, method.sigma * factor)))
        if isinstance(method, (Noise, FlipNoise)):
            return replace(method, m=min(pixels, round(method.m * pixels / _PAPER_PIXELS)))
        return method


def outline_of(face: Face) -> tuple[FloatArray, float]:
    """Return the outline, (n, 2), that a mask covers, grown to be safe, and the height of the face.

    What is perhaps no face is covered in its own size.
    """
    if face.mesh is not None and face.confirmed:
        hull = with_forehead(face.mesh.points[:, :2])[list(OUTLINE)]
        return grown(hull, _MESH), float(np.ptp(hull[:, 1]))
    x, y, width, height = face.box
    angle = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    reach = 0.5 * (_BOX if face.confirmed else _OWN) * np.array([max(width, 0.8 * height), max(height, 0.8 * width)])
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.array([x + width / 2, y + height / 2]) + ring * reach, height


def rectangle(x: float, y: float, width: float, height: float) -> FloatArray:
    """Return the outline, (4, 2), of a rectangle."""
    return np.array([[x, y], [x + width, y], [x + width, y + height], [x, y + height]])


def fill(onto: ByteArray, outline: FloatArray) -> None:
    """Fill an outline, (n, 2), smoothly from what surrounds it, in place; nothing inside has any influence."""
    extent = float(np.ptp(outline, axis=0).max())
    window = _window(outline, onto.shape, margin=int(np.ceil(0.15 * extent)) + 2)
    part = onto[window]
    if not part.size:
        return
    origin = np.array([window[1].start, window[0].start])
    inside = polygon(part.shape[:2], outline - origin)
    covered = cv2.dilate((inside > 0).astype(np.uint8), np.ones((3, 3), np.uint8)).astype(bool)
    scale = min(1.0, _COARSE / max(extent, 1.0))
    size = (max(2, round(part.shape[1] * scale)), max(2, round(part.shape[0] * scale)))
    known = (~covered).astype(np.float32)
    if not known.any():
        part[...] = 128
        return
    weight = cv2.resize(known, size, interpolation=cv2.INTER_AREA)
    colour = cv2.resize(part * known[..., None], size, interpolation=cv2.INTER_AREA)
    smooth = cv2.resize(
        pull_push(np.asarray(colour, dtype=np.float32), np.asarray(weight, dtype=np.float32)),
        part.shape[1::-1],
        interpolation=cv2.INTER_LINEAR,
    )
    part[covered] = np.rint(np.asarray(smooth)[covered]).clip(0, 255).astype(np.uint8)


def _window(outline: FloatArray, shape: tuple[int, ...], margin: int = 0) -> tuple[slice, slice]:
    low = np.floor(outline.min(axis=0)).astype(int) - margin
    high = np.ceil(outline.max(axis=0)).astype(int) + 1 + margin
    left, top = low.clip(0)
    right, bottom = np.maximum(np.minimum(high, (shape[1], shape[0])), (left, top))
    return slice(int(top), int(bottom)), slice(int(left), int(right))
