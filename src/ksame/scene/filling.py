"""The region that a mask covers, and the plain fill, which keeps nothing of what it covers."""

from __future__ import annotations

import cv2
import numpy as np

from ksame.faces.faceset import ByteArray, FloatArray
from ksame.models import Face
from ksame.scene.outlines import grown, polygon, pull_push
from ksame.spaces.facemodel.geometry import OUTLINE, with_forehead

_MESH = 1.4  # how far a mask reaches beyond a mesh: the rim alone still names people
_BOX = 1.35  # how far it reaches beyond a box, grown already where it was tracked
_OWN = 1.2  # the same where it is perhaps no face: an ellipse that covers all of the box but its corners
_COARSE = 24.0  # pixels across the face at which it is filled in


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
    window = window_of(outline, onto.shape, margin=int(np.ceil(0.15 * extent)) + 2)
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


def window_of(outline: FloatArray, shape: tuple[int, ...], margin: int = 0) -> tuple[slice, slice]:
    """Return the rows and columns of a picture in which an outline, (n, 2), lies."""
    low = np.floor(outline.min(axis=0)).astype(int) - margin
    high = np.ceil(outline.max(axis=0)).astype(int) + 1 + margin
    left, top = low.clip(0)
    right, bottom = np.maximum(np.minimum(high, (shape[1], shape[0])), (left, top))
    return slice(int(top), int(bottom)), slice(int(left), int(right))
