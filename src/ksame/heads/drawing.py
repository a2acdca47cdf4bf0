"""The drawing of a surrogate: its own shape and texture in the pose and expression of a head, and no pixel of it.

A drawing is what the finisher is told about the face. Irises are discs where the person looks, the mouth is as open as
it is; the light is even. See :class:`ksame.models.Finisher` for what is made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import READING, ByteArray, FloatArray, IntArray
from ksame.heads.covers import HEAD, Cover
from ksame.heads.head import EYES_DRAWN, EyesConfig, Head, Region, wearing
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


@dataclass(frozen=True, eq=False)
class Invention:
    """A head to be invented.

    Attributes
    ----------
    looks : Looks
        Of the surrogate.
    head : Head
        The place, pose and expression.
    region : Region
    points : ndarray of shape (478, 2)
        Where the surrogate's points lie in the region's square, in sides of it.
    """

    looks: Looks
    head: Head
    region: Region
    points: FloatArray

    @classmethod
    def of(
        cls, looks: Looks, head: Head, neutral: FloatArray, cover: Cover = HEAD, eyes: EyesConfig = EYES_DRAWN
    ) -> Invention:
        """Place a surrogate in a head's region; ``neutral`` is the person's own shape, (478, 3)."""
        return cls.all([looks], head[None], neutral[None], [cover], eyes)[0]

    @classmethod
    def all(
        cls,
        looks: Sequence[Looks],
        heads: Head,
        neutrals: FloatArray,
        covers: Sequence[Cover],
        eyes: EyesConfig = EYES_DRAWN,
    ) -> list[Invention]:
        """Place surrogates in the regions of a stack of heads; ``neutrals`` are the people's shapes, (n, 478, 3)."""
        placed = heads.place(wearing(np.stack([one.shape for one in looks]), heads, neutrals, eyes))
        regions = Region.all(heads, neutrals, covers)
        points = [region.in_square(each[:, :2]) for region, each in zip(regions, placed, strict=True)]
        return [cls(looks[i], heads[i], regions[i], points[i]) for i in range(len(looks))]


@lru_cache(maxsize=1)
def _mesh() -> tuple[IntArray, PiecewiseAffine, NDArray[np.float32]]:
    """Return the points that span a drawing's triangles, its warp, and the surface's directions on the base."""
    model = face_model()
    with READING, (files("ksame.data") / "canvas.npz").open("rb") as file, np.load(file) as stored:
        picks, triangles = (stored[name].astype(np.intp) for name in ("picks", "triangles"))
    warp = PiecewiseAffine(with_forehead(model.base)[picks, :2], triangles, model.size)
    return picks, warp, model.evener.normals


def draw(invention: Invention, size: int) -> NDArray[np.float32]:
    """Draw a face as it lies in the square of its region.

    Parameters
    ----------
    invention : Invention
    size : int
        Of the square, in pixels.

    Returns
    -------
    drawing : ndarray of shape (size, size, 6)
        Colours from -1 to 1, where the face is (0 or 1), and the surface's direction: right and down.
    """
    picks, warp, normals = _mesh()
    looks, head, region = invention.looks, invention.head, invention.region
    points = size * invention.points - 0.5
    drawing = np.zeros((6, size, size), dtype=np.float32)  # as the network takes it
    placed = with_forehead(points)[picks]
    covered, (base,) = warp.locate(placed, (size, size), warp.base)
    left, top = np.floor(placed.min(axis=0)).astype(int).clip(0, size)  # nothing is drawn beyond these
    right, bottom = np.ceil(placed.max(axis=0)).astype(int).clip(-1, size - 1) + 1
    if left >= right or top >= bottom:
        return drawing.transpose(1, 2, 0)
    window = np.s_[top:bottom, left:right]
    x, y = base[0][window], base[1][window]
    colours = cv2.remap(looks.texture, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    _features(np.asarray(colours), points - (left, top), looks.iris)
    directions = cv2.remap(normals, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    upright = region.matrix[:, :2] * region.side
    turned = cv2.transform(directions, (upright @ head.turn[:2]).astype(np.float32))
    part = drawing[:, top:bottom, left:right]
    part[:3] = cv2.split(colours)
    part[:3] *= np.float32(1 / 127.5)
    part[:3] -= 1
    part[3] = 1
    part[4:] = cv2.split(turned)
    part *= covered[window]
    return drawing.transpose(1, 2, 0)


def _features(picture: ByteArray, points: FloatArray, iris: tuple[int, int, int]) -> None:
    """Draw the eyes and the inside of the mouth, in place; points of shape (478, 2)."""

    def fixed(places: FloatArray) -> NDArray[np.int32]:
        return np.rint(places * (1 << _FRACTION)).astype(np.int32)

    for ring, disc in zip(EYES, IRISES, strict=True):
        lids = points[list(ring)]
        left, top = (np.floor(lids.min(axis=0)).astype(int) - 1).clip(0)
        right, bottom = np.ceil(lids.max(axis=0)).astype(int) + 2
        part = picture[top : max(bottom, top), left : max(right, left)]
        if not part.size:
            continue
        origin = np.array([left, top])
        eye = np.zeros(part.shape[:2], dtype=np.uint8)
        cv2.fillPoly(eye, [fixed(lids - origin)], 255, cv2.LINE_AA, _FRACTION)
        ball = np.empty_like(part)
        ball[:] = _EYEBALL
        rim = points[list(disc[1:])]
        radius = float(np.linalg.norm(rim - rim.mean(axis=0), axis=1).max())
        middle = tuple(fixed(points[disc[0]] - origin).tolist())
        for size, colour in ((radius, iris), (_PUPIL * radius, _BLACK)):
            cv2.circle(ball, middle, round(size * (1 << _FRACTION)), colour, -1, cv2.LINE_AA, _FRACTION)
        share = cv2.merge([eye] * 3).astype(np.uint16)
        part[:] = (part * (255 - share) + ball * share + 127) // 255
    cv2.fillPoly(picture, [fixed(points[list(INNER_LIPS)])], _MOUTH, cv2.LINE_AA, _FRACTION)
