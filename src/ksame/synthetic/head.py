"""What is around the face: hair, ears, neck, clothes and a plain background, painted from a few numbers.

Positions are in eye distances from the point between the eyes: x to the right of the picture, y down. Nothing
here is learned from portraits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.synthetic.people import People

Image = NDArray[np.float32]
BACKGROUND = np.array([0.62, 0.66, 0.70], dtype=np.float32)
_NOISE_SIDE = 256
_STRANDS = 34.0  # strands of hair around half the head, in cells of the noise


@dataclass(frozen=True, eq=False)
class Canvas:
    """Where each pixel of a picture lies; arrays of shape (height, width)."""

    x: Image
    y: Image

    @cached_property
    def side(self) -> Image:
        """Distance from the middle of the face."""
        return abs(self.x)

    @property
    def soft(self) -> float:
        """How wide the edges of things are painted."""
        return 1.5 * float(self.x[0, 1] - self.x[0, 0])

    @cached_property
    def normals(self) -> Image:
        """Normals, (height, width, 3), of a smooth head, for shading."""
        flat = np.stack([self.x / 1.5, (self.y + 0.2) / 2.4], axis=-1)
        flat = flat / np.maximum(1.0, np.linalg.norm(flat, axis=-1, keepdims=True) / 0.95)
        towards = np.sqrt(1 - (flat**2).sum(axis=-1, keepdims=True))
        return np.concatenate([flat, towards], axis=-1).astype(np.float32)

    @cached_property
    def background(self) -> Image:
        """The plain background, (height, width, 3)."""
        fall = 1.06 - 0.05 * (self.y - self.y.min()) / np.ptp(self.y)
        return np.asarray(BACKGROUND * fall[..., None], dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Surround:
    """A head without a face."""

    behind: Image  # (height, width, 3): background, clothes, neck, ears and the hair behind the face
    front: Image  # (height, width, 3): hair before the face
    cover: Image  # (height, width, 1): how much the front covers, in [0, 1]
    person: Image  # (height, width, 1): 1 where light falls on the person, 0 on the background


def surround(
    people: People, i: int, cheeks: NDArray[Any], crown: NDArray[Any], mesh: FloatArray, canvas: Canvas
) -> Surround:
    """Paint what is around the face of person ``i``.

    ``cheeks`` and ``crown`` are colours of the skin, (3,), and ``mesh`` is the face at rest, (478, 3).
    """
    x, y, side, soft = canvas.x, canvas.y, canvas.side, canvas.soft
    half_width, chin = float(np.ptp(mesh[[234, 454], 0]) / 2), float(mesh[152, 1])
    # Plain floats, so that arithmetic stays in single precision.
    volume, length, line, parting, curtain = (
        float(column[i])
        for column in (people.hair_volume, people.hair_length, people.hair_line, people.parting, people.curtain)
    )
    long = length > 0.6
    cheeks, crown = cheeks.astype(np.float32), crown.astype(np.float32)
    strands = _strands(x, y, parting, int(people.grain[i]))
    hair = people.hair[i].astype(np.float32)
    grained = 0.80 + 0.42 * strands
    ragged = (strands - 0.5) * 0.06
    skull = _skull(side, y, half_width, volume, length) + ragged
    behind, person = canvas.background, np.zeros_like(x)
    if long:
        person = _fade(-skull, soft)
        behind = _over(behind, hair * (0.62 * grained)[..., None], person)
    behind, person = _bust(people, i, cheeks, half_width, chin, canvas, behind, person)
    if not long:
        round_ear = np.hypot((side - half_width - 0.02) / 0.15, (y - 0.16) / 0.34)
        ears = _fade(1 - round_ear, 3 * soft)
        behind = _over(behind, cheeks * (0.72 + 0.2 * round_ear.clip(0, 1))[..., None], ears)
        person = np.maximum(person, ears)
    window = _window(x, y, half_width, line, parting, curtain) + ragged
    cover = _fade(-skull, soft) * _fade(window, 2.5 * soft)
    outline = _skull(side, y, half_width, 0.0, 0.0)
    dome = _fade(-outline, soft) * (y < 0)
    behind = _over(behind, crown * (0.80 + 0.2 * (-outline / 0.35).clip(0, 1))[..., None], dome)
    if people.baldness[i] > 0.5:
        person = np.maximum(person, dome)
        cover = cover * _fade(y + 0.55 + 0.25 * (side - half_width), 0.25)
    sheen = 1.0 + 0.15 * np.exp(-(((np.hypot(x, y + 0.5) - 1.15) / 0.25) ** 2))
    edge = 0.70 + 0.30 * (-skull / 0.3).clip(0, 1)
    front = (hair * (grained * sheen * edge)[..., None]).clip(0, 1).astype(np.float32)
    return Surround(behind, front, cover[..., None], np.maximum(person, cover)[..., None])


def _bust(
    people: People, i: int, skin: Image, half_width: float, chin: float, canvas: Canvas, behind: Image, person: Image
) -> tuple[Image, Image]:
    """Paint neck and clothes."""
    x, y, side, soft = canvas.x, canvas.y, canvas.side, canvas.soft
    shoulders = _fade(y - (chin + 0.62 + 0.16 * side**2), soft)
    width = (0.66 if people.genders[i] == "M" else 0.54) * half_width
    neck = _fade(width + 0.12 * (y - chin).clip(0, None) ** 2 - side, 2 * soft) * _fade(y - 0.4, soft)
    neckline = _fade(1 - np.hypot(x / 0.62, (y - chin - 0.45) / 0.42), 2 * soft)
    shadow = (0.60 + 0.28 * ((y - chin) / 0.7).clip(0, 1)) * (1 - 0.22 * (side / width).clip(0, 1.2) ** 2)
    behind = _over(behind, skin * shadow[..., None], neck)
    folds = 0.9 + 0.1 * np.cos(3 * x)
    behind = _over(behind, people.clothes[i].astype(np.float32) * folds[..., None], shoulders * (1 - neckline))
    return behind, np.maximum.reduce([person, neck, shoulders])


def _skull(side: Image, y: Image, half_width: float, volume: float, length: float) -> Image:
    """Return a signed measure that is negative inside the outline of the hair."""
    wide = half_width + 0.02 + volume * (0.9 if length > 0.6 else np.where(y > -0.4, 0.45, 0.9))
    tall = 1.22 + volume
    above = np.hypot(side / wide, (y + 0.62).clip(None, 0) / tall) - 1
    narrowing = 0.25 * ((y - 0.3).clip(0, None) / max(length, 0.5)) ** 2
    below = np.maximum(side / wide - 1 + (narrowing if length > 0.6 else 0.3 * (y + 0.3).clip(0, None)), y - length)
    return np.asarray(np.where(y < -0.62, above, below))


def _window(x: Image, y: Image, half_width: float, line: float, parting: float, curtain: float) -> Image:
    """Return a signed measure that is negative where hair leaves the face free."""
    wide = half_width - curtain
    top = line + parting * x - 0.05 * np.cos(2.5 * x)
    arch = (abs(x / wide) ** 2.6 + (y.clip(None, 0) / np.asarray(top).clip(0.3, None)) ** 2) ** 0.5 - 1
    return np.asarray(np.where(y < 0, arch, abs(x) / wide - 1))


def _strands(x: Image, y: Image, parting: float, grain: int) -> Image:
    """Return noise in [0, 1] drawn out along lines that run from the crown outwards and down."""
    across, down = x + parting, y + 1.75
    angle = np.arctan2(across, down) / np.pi
    radius = np.hypot(across, down)
    u = (angle * 3 * _STRANDS + 4 * radius + grain % _NOISE_SIDE) % (_NOISE_SIDE - 1)
    v = (radius * 2.4 + grain // _NOISE_SIDE) % (_NOISE_SIDE - 1)
    return np.asarray(cv2.remap(_noise(), u.astype(np.float32), v.astype(np.float32), cv2.INTER_LINEAR))


@lru_cache(maxsize=1)
def _noise() -> Image:
    rng = np.random.default_rng(20)
    fine = rng.random((_NOISE_SIDE, _NOISE_SIDE)).astype(np.float32)
    noise = 0.6 * cv2.GaussianBlur(fine, (0, 0), 0.8) + 0.4 * cv2.GaussianBlur(fine, (0, 0), 3.0)
    return np.asarray(((noise - noise.mean()) / (4 * noise.std()) + 0.5).clip(0, 1), dtype=np.float32)


def _fade(inside: Any, soft: float) -> Image:
    """Return 1 well inside, 0 well outside and a smooth step in between."""
    return np.asarray((0.5 + inside / (2 * soft)).clip(0, 1), dtype=np.float32)


def _over(below: Image, above: NDArray[Any], alpha: Image) -> Image:
    return np.asarray(below + (np.asarray(above, dtype=np.float32) - below) * alpha[..., None])
