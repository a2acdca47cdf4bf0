"""What people wear and grow in the face, painted on the base: beards, make-up, eye colour, spectacles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.spaces.facemodel import FaceModel
from ksame.spaces.facemodel.geometry import EYES, IRISES
from ksame.synthetic.people import People

Mask = NDArray[np.float32]
_LIPS = (61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291, 375, 321, 405, 314, 17, 84, 181, 91, 146)
_BROWS = ((70, 63, 105, 66, 107, 55, 65, 52, 53, 46), (300, 293, 334, 296, 336, 285, 295, 282, 283, 276))
_SUB = 4  # fractional bits for OpenCV's drawing


@dataclass(frozen=True, eq=False)
class Places:
    """Where on the base's pixels features lie; each (n_pixels,), in [0, 1]."""

    lips: Mask
    brows: Mask
    irises: Mask
    beard: Mask
    moustache: Mask


def decorate(model: FaceModel, texture: NDArray[np.float32], people: People, i: int) -> None:
    """Paint the features of person ``i`` on a texture of shape (n_pixels, 3), in place."""
    where = places(model)
    hair = people.hair[i]
    _blend(texture, where.brows * people.brow_weight[i], 0.5 * hair + 0.1)
    _blend(texture, where.irises * 0.65, people.irises[i])
    if people.lipstick[i] > 0:
        _blend(texture, where.lips * people.lipstick[i], people.lip_colours[i])
    if people.beard[i] > 0:
        _blend(texture, where.beard * people.beard[i], 0.85 * hair)
    if people.moustache[i] > 0:
        _blend(texture, where.moustache * people.moustache[i], 0.85 * hair)
    if people.spectacles[i].any():
        _blend(texture, _frame(model, people.spectacles[i]), people.frame_colours[i])


def _blend(texture: NDArray[np.float32], share: Mask, colour: FloatArray) -> None:
    rows = np.flatnonzero(share > 0.004)
    texture[rows] += (colour.astype(np.float32) - texture[rows]) * share[rows, None]


@lru_cache(maxsize=2)
def places(model: FaceModel) -> Places:
    """Find the places of the features on the base."""
    base, size = model.base[:, :2], model.size
    eyes = float(np.linalg.norm(base[468] - base[473]))
    y, x = np.mgrid[: size[0], : size[1]].astype(np.float32)
    across = abs(x - (size[1] - 1) / 2) / eyes
    lips = _fill(size, base[list(_LIPS)])
    mouth = cv2.GaussianBlur(cv2.dilate(lips, np.ones((5, 5), np.uint8)), (0, 0), 2.0)
    brows = np.maximum.reduce([_fill(size, base[list(points)]) for points in _BROWS])
    irises = np.zeros(size, dtype=np.float32)
    for lids, (centre, *edge) in zip(EYES, IRISES, strict=True):
        radius = float(np.linalg.norm(base[edge] - base[centre], axis=1).mean())
        distance = np.hypot(x - base[centre, 0], y - base[centre, 1]) / radius
        ring = ((1.0 - distance) / 0.25).clip(0, 1) * ((distance - 0.38) / 0.2).clip(0, 1)
        irises = np.maximum(irises, ring * _fill(size, base[list(lids)]))
    corner, nose = base[61, 1], base[2, 1]
    edge_of_beard = corner + 0.02 * eyes - 0.85 * eyes * ((across - 0.55).clip(0, None) / 0.6) ** 1.3
    grain = 0.62 + 0.76 * np.random.default_rng(7).random(size).astype(np.float32)
    beard = ((y - edge_of_beard) / (0.22 * eyes)).clip(0, 1) * (1 - mouth)
    moustache = ((y - nose - 0.05 * eyes) / (0.08 * eyes)).clip(0, 1) * ((0.50 - across) / 0.12).clip(0, 1)
    moustache *= ((corner + 0.18 * eyes - y) / (0.1 * eyes)).clip(0, 1) * (1 - mouth)
    inside = model.warp.mask

    def rows(image: NDArray[np.float32], blur: float) -> Mask:
        return np.asarray(cv2.GaussianBlur(image.astype(np.float32), (0, 0), blur)[inside])

    return Places(
        rows(lips, 1.2),
        rows(brows * grain, 1.5).clip(0, 1),
        rows(irises, 0.5),
        rows(beard * grain, 0.7).clip(0, 1),
        rows(moustache * grain, 0.7).clip(0, 1),
    )


def _frame(model: FaceModel, form: FloatArray) -> Mask:
    """Draw spectacles: half width, half height, squareness and thickness of the lenses, in eye distances."""
    base = model.base[:, :2]
    left, right = base[468], base[473]
    eyes = float(right[0] - left[0])
    wide, tall, power, thick = form
    angle = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    corner = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    lens = np.sign(corner) * abs(corner) ** (2.0 / power) * [wide * eyes, tall * eyes]
    canvas = np.zeros(model.size, dtype=np.uint8)
    width = max(1, round(float(thick) * eyes))
    noses = []
    for eye, outwards in ((left, -1), (right, 1)):
        middle = eye + np.array([0.02 * outwards, 0.05]) * eyes
        _line(canvas, middle + lens, width, closed=True)
        hinge = middle + np.array([outwards * wide, -0.3 * tall]) * eyes
        _line(canvas, np.stack([hinge, hinge + np.array([outwards, -0.02]) * eyes]), width, closed=False)
        noses.append(eye + np.array([outwards * (0.02 - wide), -0.02]) * eyes)
    bridge = 0.5 * (noses[0] + noses[1]) - np.array([0.0, 0.03]) * eyes
    _line(canvas, np.stack([noses[0], bridge, noses[1]]), width, closed=False)
    return np.asarray(canvas[model.warp.mask], dtype=np.float32) / 255.0


def _line(canvas: NDArray[np.uint8], points: FloatArray, width: int, *, closed: bool) -> None:
    corners = [np.rint(points * (1 << _SUB)).astype(np.int32)]
    cv2.polylines(canvas, corners, closed, 255, width, cv2.LINE_AA, _SUB)


def _fill(size: tuple[int, int], points: FloatArray) -> NDArray[np.float32]:
    canvas = np.zeros(size, dtype=np.uint8)
    cv2.fillPoly(canvas, [np.rint(points * (1 << _SUB)).astype(np.int32)], 1, shift=_SUB)
    return canvas.astype(np.float32)
