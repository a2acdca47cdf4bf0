"""A head in a frame: where it is, how it is turned, what it does, and the region round it that is invented anew.

Nothing here looks at a pixel. The region is that of the mean face in the head's place, pose and expression, so that
its border tells nothing of the contour that it hides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.heads.covers import HEAD, Cover
from ksame.models import BLENDSHAPES
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.geometry import EYE_CORNERS, IRISES, LIDS, LOWER_LIP, OUTLINE, UPPER_LIP, with_forehead
from ksame.spaces.facemodel.labels import BLENDS

CONTEXT = 1.8
"""Side of the square that the finisher sees, in outlines of the face: what it learned with."""
_FRONTAL_WIDTH = 0.72  # of an outline, in heights: turned heads get a region as wide; by choice
_FLIP_DEPTH = np.array([1.0, 1.0, -1.0])  # depth grows away from the viewer in a mesh, towards them in the face model
_OUTLINE = np.array(OUTLINE)
_CORNERS = np.array(EYE_CORNERS)
_IRISES = np.array([list(iris) for iris in IRISES])
_LIPS = np.array([UPPER_LIP, LOWER_LIP])
_ROUND_LIPS = np.array([[185, 40, 39, 37, 0, 267, 269, 270, 409], [146, 91, 181, 84, 17, 314, 405, 321, 375]])
_PAIRS = np.array([[*LIDS[0][i], *LIDS[1][i], *_LIPS[i]] for i in (0, 1)])
"""Points that open and shut, upper and lower: 7 pairs of each eye, then those of the lips."""
_N_LIDS = 14
_WIDEST = 2.0  # how far open eyes are drawn at most, in shares of the neutral face, which may have half-shut ones
_INDEX = {name: [BLENDSHAPES.index(part) for part in parts] for name, parts in BLENDS.items()}
EXPRESSION = tuple(BLENDS)
"""What of an expression the face model can move."""
_BROW_UP = EXPRESSION.index("brow_up")


@dataclass(frozen=True)
class EyesConfig:
    """How eyes and brows are drawn, beside what the mesh tells.

    The finisher opens half-shut eyes, turns a gaze less far, and paints brows lower, so that lids and brows merge.

    All by ``benchmarks.scene_use`` on a talking head, with the surrogates of four seeds (brows: two).
    """

    opened: float = 1.45  # how far open lids are apart, in shares of how far they are
    closing: float = 1.0  # how much sooner they close: exponent of how far they are open, in shares of the neutral face
    sideways: float = 1.4  # how far the irises are from the middle of the eye, likewise
    upwards: float = 2.4
    brows: float = 0.1  # how much higher brows are, as a strength of the face model's ``brow_up``


EYES_DRAWN = EyesConfig()


def expression_of(blendshapes: FloatArray) -> FloatArray:
    """Return the strength of each of ``EXPRESSION``, (n_expression,), in blendshapes of shape (52,)."""
    return np.array([blendshapes[_INDEX[name]].mean() for name in EXPRESSION])


@lru_cache(maxsize=1)
def _moves() -> FloatArray:
    """Return how each of ``EXPRESSION`` moves the mean face, (n_expression, 478, 3)."""
    model = face_model()
    steps = np.stack([model.direction(name) for name in EXPRESSION])
    return np.asarray(model.shapes(steps) - model.base)


@lru_cache(maxsize=1)
def _base() -> tuple[FloatArray, FloatArray]:
    """Return the mean face about its middle, (478, 3), and that middle, (3,)."""
    base = face_model().base
    return base - base.mean(axis=0), base.mean(axis=0)


@dataclass(frozen=True, eq=False)
class Head:
    """The place, pose and expression of one head in one frame, or of several heads: a stack of them."""

    aligned: FloatArray  # (..., 478, 3): the mesh on the base of the face model: frontal, of its size, z to the viewer
    turn: FloatArray  # (..., 3, 3): from the frame to the base
    scale: FloatArray  # (...): pixels of the base for a pixel of the frame
    centre: FloatArray  # (..., 2): middle of the mesh in the frame

    @classmethod
    def of(cls, points: FloatArray) -> Head:
        """Align meshes, (..., 478, 3), as they come from :class:`ksame.models.FaceMesh` (Umeyama 1991)."""
        base, middle = _base()
        seen = points * _FLIP_DEPTH
        centre = seen.mean(axis=-2, keepdims=True)
        centred = seen - centre
        u, s, vt = np.linalg.svd(centred.swapaxes(-1, -2) @ base)
        flip = np.where(np.linalg.det(u @ vt) < 0, -1.0, 1.0)
        u[..., 2] *= flip[..., None]
        s[..., 2] *= flip
        turn = u @ vt
        scale = s.sum(axis=-1) / np.square(centred).sum(axis=(-2, -1))
        return cls(scale[..., None, None] * (centred @ turn) + middle, turn, scale, centre[..., 0, :2])

    def __getitem__(self, which: Any) -> Head:
        """Return some heads of a stack; by ``None`` a stack of this one."""
        return Head(self.aligned[which], self.turn[which], self.scale[which], self.centre[which])

    def place(self, shape: FloatArray) -> FloatArray:
        """Return where shapes on the base, (..., n, 3), lie in the frame: the same shape, z towards the viewer."""
        placed = (shape - _base()[1]) @ (self.turn.swapaxes(-1, -2) / self.scale[..., None, None])
        placed[..., :2] += self.centre[..., None, :]
        return np.asarray(placed)

    @cached_property
    def roll(self) -> FloatArray:
        """How far heads are tilted in the frame, (...), in radians."""
        return np.asarray(np.arctan2(self.turn[..., 1, 0], self.turn[..., 0, 0]))

    @property
    def yaw(self) -> FloatArray:
        """How far heads are turned to a side, (...), in degrees."""
        return np.asarray(np.degrees(np.arcsin(np.clip(self.turn[..., 2, 0], -1, 1))))


def neutral_shape(aligned: FloatArray, expression: FloatArray) -> FloatArray:
    """Return a shape, (478, 3), without its expression, (n_expression,)."""
    return np.asarray(aligned - np.tensordot(expression, _moves(), axes=1))


def wearing(shape: FloatArray, head: Head, neutral: FloatArray, eyes: EyesConfig = EYES_DRAWN) -> FloatArray:
    """Return neutral shapes of surrogates, (..., 478, 3), with the expression of a head, or each with that of its own.

    The expression is how far a head's mesh is from the person's own neutral shape, (..., 478, 3). The mouth opens as
    far as it does. The surrogate's own eyes open by as much as the person's do; eyes and brows as they must be drawn to
    look alike once they are finished (``EyesConfig``).
    """
    now = head.aligned
    worn = shape + (now - neutral) + eyes.brows * _moves()[_BROW_UP]
    corners, seen_corners = worn[..., _CORNERS, :], now[..., _CORNERS, :]
    wide = _lengths(corners) / np.maximum(_lengths(seen_corners), 1e-6)  # of each eye, beside the person's
    lips = worn[..., _LIPS, :]
    pairs, (upper, lower), (own_upper, own_lower) = worn[..., _PAIRS, :], _ends(now), _ends(shape)
    apart = np.broadcast_to(upper - lower, pairs[..., 0, :, :].shape).copy()
    share = _lids_apart(upper - lower) / np.maximum(_lids_apart(np.subtract(*_ends(neutral))), 1e-6)
    share = np.minimum(share, _WIDEST)
    opened = np.repeat(eyes.opened * share * np.minimum(share, 1) ** eyes.closing, _N_LIDS // 2, axis=-1)
    apart[..., :_N_LIDS, :] = opened[..., None] * (own_upper - own_lower)[..., :_N_LIDS, :]
    middle, half = 0.5 * (pairs[..., 0, :, :] + pairs[..., 1, :, :]), 0.5 * apart
    worn[..., _PAIRS[0], :], worn[..., _PAIRS[1], :] = middle + half, middle - half
    looks_from = now[..., _IRISES, :] - seen_corners.mean(axis=-2, keepdims=True)
    more = np.array([eyes.sideways - 1, eyes.upwards - 1, 0.0])
    looks_from += looks_from[..., :1, :] * more  # an iris moves as a whole
    worn[..., _IRISES, :] = corners.mean(axis=-2, keepdims=True) + wide[..., None, None] * looks_from
    worn[..., _ROUND_LIPS, :] += worn[..., _LIPS, :] - lips
    return worn


def _ends(shape: FloatArray) -> FloatArray:
    """Return the upper and the lower of ``_PAIRS``, (2, ..., n, 3), of shapes, (..., 478, 3)."""
    return np.moveaxis(shape[..., _PAIRS, :], -3, 0)


def _lids_apart(apart: FloatArray) -> FloatArray:
    """Return how far the lids of each eye are apart, (..., 2), from the differences of ``_PAIRS``, (..., n, 3)."""
    lengths = np.linalg.norm(apart[..., :_N_LIDS, :], axis=-1)
    return np.asarray(lengths.reshape(*lengths.shape[:-1], 2, -1).mean(axis=-1))


def _lengths(ends: FloatArray) -> FloatArray:
    """Return how far pairs of points, (..., 2, 3), are apart."""
    return np.asarray(np.sqrt(np.square(ends[..., 0, :] - ends[..., 1, :]).sum(axis=-1)))


@dataclass(frozen=True, eq=False)
class Region:
    """What is taken away and invented anew, and the square about it that the finisher sees."""

    outline: FloatArray  # (n, 2): in pixels of the frame
    matrix: FloatArray  # (2, 3): from the frame to the square, upright, whose side is 1
    side: float  # of the square, in pixels of the frame

    @classmethod
    def of(cls, head: Head, neutral: FloatArray, cover: Cover = HEAD) -> Region:
        """Return the region of a head; ``neutral`` is the person's own shape, (478, 3)."""
        return cls.all(head[None], neutral[None], [cover])[0]

    @classmethod
    def all(cls, heads: Head, neutrals: FloatArray, covers: Sequence[Cover]) -> list[Region]:
        """Return the regions of a stack of heads; ``neutrals`` are the people's own shapes, (n, 478, 3)."""
        means = face_model().base + (heads.aligned - neutrals)  # as worn, but for eyes and lips
        rims = with_forehead(heads.place(means)[..., :2])[:, _OUTLINE]
        cos, sin = np.cos(heads.roll), np.sin(heads.roll)
        uprights = np.stack([cos, sin, -sin, cos], axis=-1).reshape(-1, 2, 2)
        turned = rims @ uprights.swapaxes(-1, -2)
        lows, highs = turned.min(axis=1), turned.max(axis=1)
        hulls = (cv2.convexHull(rim)[:, 0].astype(np.float64) for rim in turned.astype(np.float32))
        return [cls._about(*each) for each in zip(hulls, lows, highs, uprights, covers, strict=True)]

    @classmethod
    def _about(cls, hull: FloatArray, low: FloatArray, high: FloatArray, upright: FloatArray, cover: Cover) -> Region:
        """Return the region about a hull, (n, 2), that is turned upright, and reaches from ``low`` to ``high``."""
        middle, (width, height) = 0.5 * (low + high), high - low
        side = CONTEXT * float(max(width, height))
        grow = cover.reach * np.array([max(1.0, _FRONTAL_WIDTH * height / max(width, 1e-6)), 1.0])
        outline = (middle + (hull - middle) * grow) @ upright
        matrix = np.column_stack([upright / side, 0.5 - middle / side])
        return cls(outline, matrix, side)

    def in_square(self, points: FloatArray) -> FloatArray:
        """Return where points of the frame, (n, 2), lie in the square, in sides of it."""
        return np.asarray(points @ self.matrix[:, :2].T + self.matrix[:, 2])

    def to_square(self, size: int) -> FloatArray:
        """Return the matrix, (2, 3), from pixels of the frame to those of the square drawn with ``size`` pixels."""
        matrix = size * self.matrix
        matrix[:, 2] -= 0.5
        return np.asarray(matrix)


def filled(shape: tuple[int, ...], outline: FloatArray) -> NDArray[np.uint8]:
    """Return a picture, (height, width), of 255 on every pixel that an outline, (n, 2), touches, and 0 elsewhere."""
    image = np.zeros(shape[:2], dtype=np.uint8)
    fill(image, outline, 255)
    return image


def fill(image: NDArray[np.uint8], outline: FloatArray, value: int) -> None:
    """Set every pixel that an outline, (n, 2), touches, in place."""
    cv2.fillPoly(image, [np.rint(outline).astype(np.int32)], value)
