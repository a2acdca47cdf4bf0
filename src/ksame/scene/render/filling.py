"""The region that a mask covers, and the plain fill, which keeps nothing of what it covers."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray
from ksame.models import Face
from ksame.spaces.facemodel.geometry import with_forehead

_MESH_REACH = 1.4  # how far a mask reaches beyond the outline of a mesh: the rim alone still names people
_BOX_REACH = 1.35  # how far it reaches beyond a box, which has grown already where it was tracked, by choice
_UNCONFIRMED_REACH = 1.2  # the same where it is perhaps no face: an ellipse that covers all of the box but its corners
_FILL_PIXELS = 24.0  # across the face at which it is filled: coarse, for speed, by choice
_FILL_MARGIN = 0.15  # of its extent about an outline from which it is filled, by choice
Image = NDArray[np.float32]


def outline_of(face: Face) -> tuple[FloatArray, float]:
    """Return the outline, (n, 2), that a mask covers, grown to be safe, and the height of the face.

    What is perhaps no face is covered in its own size.
    """
    if face.mesh is not None and face.confirmed:
        points = with_forehead(face.mesh.points[:, :2])
        hull = cv2.convexHull(points.astype(np.float32))[:, 0].astype(np.float64)  # a turned nose is beyond the rim
        return _grown(hull, _MESH_REACH), float(np.ptp(hull[:, 1]))
    x, y, width, height = face.box
    angle = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    reach = (
        0.5
        * (_BOX_REACH if face.confirmed else _UNCONFIRMED_REACH)
        * np.array([max(width, 0.8 * height), max(height, 0.8 * width)])
    )
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.array([x + width / 2, y + height / 2]) + ring * reach, height


def rectangle(x: float, y: float, width: float, height: float) -> FloatArray:
    """Return the outline, (4, 2), of a rectangle."""
    return np.array([[x, y], [x + width, y], [x + width, y + height], [x, y + height]])


def fill(out: ByteArray, outline: FloatArray) -> None:
    """Fill an outline, (n, 2), smoothly from what surrounds it, in place; nothing inside has any influence."""
    extent = float(np.ptp(outline, axis=0).max())
    window = window_of(outline, out.shape, margin=int(np.ceil(_FILL_MARGIN * extent)) + 2)
    part = out[window]
    if not part.size:
        return
    origin = np.array([window[1].start, window[0].start])
    inside = (inside_outline(part.shape[:2], outline - origin) > 0).astype(np.uint8)
    covered = cv2.dilate(inside, np.ones((3, 3), np.uint8))
    if covered.all():
        part[...] = 128
        return
    scale = min(1.0, _FILL_PIXELS / max(extent, 1.0))
    size = (max(2, round(part.shape[1] * scale)), max(2, round(part.shape[0] * scale)))
    known = 1 - covered
    # one plane at a time: those of a large picture take much memory
    planes = [known, *(cv2.bitwise_and(plane, plane, mask=known) for plane in cv2.split(part))]
    weight, *colours = (cv2.resize(np.float32(plane), size, interpolation=cv2.INTER_AREA) for plane in planes)
    smooth = np.rint(_pull_push(np.dstack(colours), np.asarray(weight, dtype=np.float32))).clip(0, 255).astype(np.uint8)
    cv2.copyTo(cv2.resize(smooth, part.shape[1::-1], interpolation=cv2.INTER_LINEAR), covered, part)


def window_of(outline: FloatArray, shape: tuple[int, ...], margin: int = 0) -> tuple[slice, slice]:
    """Return the rows and columns of a picture in which an outline, (n, 2), lies."""
    low = np.floor(outline.min(axis=0)).astype(int) - margin
    high = np.ceil(outline.max(axis=0)).astype(int) + 1 + margin
    left, top = low.clip(0)
    right, bottom = np.maximum(np.minimum(high, (shape[1], shape[0])), (left, top))
    return slice(int(top), int(bottom)), slice(int(left), int(right))


def inside_outline(shape: tuple[int, ...], outline: FloatArray) -> Image:
    """Return how much of each pixel lies inside an outline, (n, 2): (height, width), in [0, 1]."""
    image = np.zeros(shape, dtype=np.uint8)
    cv2.fillPoly(image, [np.rint(outline * 16).astype(np.int32)], 255, cv2.LINE_AA, 4)
    return np.asarray(image, dtype=np.float32) / np.float32(255)


def _grown(outline: FloatArray, factor: float) -> FloatArray:
    """Return an outline, (n, 2), grown about its middle."""
    centre = 0.5 * (outline.min(axis=0) + outline.max(axis=0))
    return np.asarray(centre + (outline - centre) * factor)


def _pull_push(colour: Image, weight: Image) -> Image:
    """Fill what has no weight from coarser and coarser averages (Gortler et al. 1996)."""
    own = colour / np.maximum(weight, 1e-4)[..., None]
    if min(weight.shape) <= 2:
        return np.asarray(own)
    size = tuple((side + 1) // 2 for side in weight.shape[::-1])
    small: Any = cv2.resize(colour, size, interpolation=cv2.INTER_AREA)
    share: Any = cv2.resize(weight, size, interpolation=cv2.INTER_AREA)
    coarse = cv2.resize(_pull_push(small, share), weight.shape[::-1], interpolation=cv2.INTER_LINEAR)
    trust = weight.clip(0, 1)[..., None]
    return np.asarray(own * trust + coarse * (1 - trust))
