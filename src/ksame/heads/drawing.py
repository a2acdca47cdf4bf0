"""The drawing of a surrogate: its own shape and texture in the pose and expression of a head, and no pixel of it.

A drawing is what the finisher is told about the face. Irises are discs where the person looks, the mouth is as open as
it is; the light is even. See :class:`ksame.models.Finisher` for what is made of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray, IntArray
from ksame.heads.head import Head, Region, wearing
from ksame.spaces.aam.warp import PiecewiseAffine
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.geometry import EYES, INNER_LIPS, IRISES, with_forehead

# Colours and the radius of a pupil, in radii of the iris, are by choice; the finisher learned with them.
_EYEBALL, _MOUTH, _BLACK = (196, 186, 182), (56, 30, 29), (16, 12, 12)
_PUPIL = 0.42
_FRACTION = 4  # bits of a pixel's fraction in OpenCV's drawing


@dataclass(frozen=True, eq=False)
class Looks:
    """What a face looks like, without expression.

    Attributes
    ----------
    shape : ndarray of shape (478, 3)
        On the base of the face model.
    texture : ndarray of shape (height, width, 3)
        8-bit colours on the base, its light evened.
    iris : tuple of int
        Colour of the irises.
    """

    shape: FloatArray
    texture: ByteArray
    iris: tuple[int, int, int] = (74, 56, 46)


@lru_cache(maxsize=1)
def _mesh() -> tuple[IntArray, PiecewiseAffine, NDArray[np.float32]]:
    """Return the points that span a drawing's triangles, its warp, and the surface's directions on the base."""
    model = face_model()
    with (files("ksame.data") / "canvas.npz").open("rb") as file, np.load(file) as stored:
        picks, triangles = (stored[name].astype(np.intp) for name in ("picks", "triangles"))
    warp = PiecewiseAffine(with_forehead(model.base)[picks, :2], triangles, model.size)
    return picks, warp, model.evener.normals


def draw(looks: Looks, head: Head, neutral: FloatArray, region: Region, size: int) -> NDArray[np.float32]:
    """Draw a face as it lies in the square of a region.

    Parameters
    ----------
    looks : Looks
    head : Head
    neutral : ndarray of shape (478, 3)
        The person's own neutral shape: see :func:`ksame.heads.head.wearing`.
    region : Region
    size : int
        Of the square, in pixels.

    Returns
    -------
    drawing : ndarray of shape (size, size, 6)
        Colours from -1 to 1, where the face is (0 or 1), and the surface's direction: right and down.
    """
    picks, warp, normals = _mesh()
    matrix = region.to_square(size)
    points = head.place(wearing(looks.shape, head, neutral))[:, :2] @ matrix[:, :2].T + matrix[:, 2]
    covered, (base,) = warp.locate(with_forehead(points)[picks], (size, size), warp.base)
    colours = cv2.remap(looks.texture, base[0], base[1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    _features(np.asarray(colours), points, looks.iris)
    directions = cv2.remap(normals, base[0], base[1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    upright = region.matrix[:, :2] * region.side
    turned = np.asarray(directions) @ (upright @ head.turn[:2]).T.astype(np.float32)
    drawing = np.empty((size, size, 6), dtype=np.float32)
    drawing[..., :3] = np.asarray(colours, dtype=np.float32) / np.float32(127.5) - 1
    drawing[..., 3] = 1
    drawing[..., 4:] = turned
    drawing *= covered[..., None]
    return drawing


def _features(picture: ByteArray, points: FloatArray, iris: tuple[int, int, int]) -> None:
    """Draw the eyes and the inside of the mouth, in place; points of shape (478, 2)."""

    def fixed(places: FloatArray) -> NDArray[np.int32]:
        return np.rint(places * (1 << _FRACTION)).astype(np.int32)

    eyes = np.zeros(picture.shape[:2], dtype=np.uint8)
    for ring in EYES:
        cv2.fillPoly(eyes, [fixed(points[list(ring)])], 255, cv2.LINE_AA, _FRACTION)
    balls = np.empty_like(picture)
    balls[:] = _EYEBALL
    for disc in IRISES:
        centre, rim = points[disc[0]], points[list(disc[1:])]
        radius = float(np.linalg.norm(rim - rim.mean(axis=0), axis=1).max())
        for part, colour in ((1.0, iris), (_PUPIL, _BLACK)):
            middle = tuple(fixed(centre).tolist())
            cv2.circle(balls, middle, round(part * radius * (1 << _FRACTION)), colour, -1, cv2.LINE_AA, _FRACTION)
    share = eyes[..., None].astype(np.uint16)
    picture[:] = (picture * (255 - share) + balls * share + 127) // 255
    cv2.fillPoly(picture, [fixed(points[list(INNER_LIPS)])], _MOUTH, cv2.LINE_AA, _FRACTION)
