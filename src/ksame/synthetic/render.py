"""Painting synthetic people: mesh and texture from the face model, the rest of the head around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.spaces.facemodel import FaceModel
from ksame.spaces.facemodel.geometry import with_forehead
from ksame.synthetic.expressions import EXPRESSIONS, Expression, expressed, move
from ksame.synthetic.features import decorate
from ksame.synthetic.head import Canvas, Surround, surround
from ksame.synthetic.lighting import ILLUMINATIONS, shading
from ksame.synthetic.mouth import paint_mouth
from ksame.synthetic.people import People

_EYE_LEVEL = 0.46  # of the height of the picture
_PER_HEIGHT, _PER_WIDTH = 5.0, 3.7  # eye distances that fit into the picture
_RIM = 0.07  # width of the soft edge of the face, in eye distances
_NOISE = 0.012  # standard deviation of the sensor's noise
_SHIFTS = 64
CHUNK = 16  # people painted together; always the same, so that a person does not depend on how many follow


@dataclass(frozen=True)
class Shot:
    """How one picture of a person is taken."""

    expression: Expression
    illumination: str = "flat"
    turn: tuple[float, ...] = (0.0, 0.0, 0.0)  # yaw, pitch and roll in radians
    grain: int = 0  # which noise the picture has


@dataclass(frozen=True, eq=False)
class Painter:
    """Paints people at one size."""

    model: FaceModel
    size: tuple[int, int]  # height and width of a picture

    @property
    def eyes(self) -> float:
        """Distance between the eyes of the mean face, in pixels of the picture."""
        return min(self.size[0] / _PER_HEIGHT, self.size[1] / _PER_WIDTH)

    @cached_property
    def _canvas(self) -> Canvas:
        y, x = np.mgrid[: self.size[0], : self.size[1]].astype(np.float32)
        middle = self._middle.astype(np.float32)
        return Canvas((x - middle[0]) / np.float32(self.eyes), (y - middle[1]) / np.float32(self.eyes))

    @property
    def _middle(self) -> FloatArray:
        return np.array([(self.size[1] - 1) / 2, _EYE_LEVEL * self.size[0]])

    @cached_property
    def _light(self) -> dict[str, tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """For each illumination, the shading of texture (n_pixels, 1) and picture (height, width, 1)."""
        surface = self.model.evener.normals[self.model.warp.mask]
        return {
            name: (shading(surface, name)[..., None], shading(self._canvas.normals, name)[..., None])
            for name in ILLUMINATIONS
        }

    def paint(
        self, people: People, shots: Sequence[Sequence[Shot]]
    ) -> Iterator[tuple[NDArray[np.float32], FloatArray]]:
        """Paint people one after the other, as the shots of each say.

        Yields
        ------
        images : ndarray of shape (n_shots, height, width, 3)
        landmarks : ndarray of shape (n_shots, 478, 2)
        """
        for start in range(0, len(people), CHUNK):
            rows = range(start, min(start + CHUNK, len(people)))
            codes = np.zeros((CHUNK, self.model.n_codes))
            codes[: len(rows)] = people.codes[rows.start : rows.stop]
            around = self._surrounds(codes, people, rows)
            worn = dict.fromkeys(shot.expression for i in rows for shot in shots[i])
            faces = {expression: self._faces(codes, expression) for expression in worn}
            for (_, textures), (j, i) in product(faces.values(), enumerate(rows)):
                decorate(self.model, textures[j], people, i)
            for j, (i, surrounding) in enumerate(zip(rows, around, strict=True)):
                painted = []
                for shot in shots[i]:
                    shapes, textures = faces[shot.expression]
                    painted.append(self._shoot(shapes[j], textures[j], surrounding, shot))
                yield np.stack([image for image, _ in painted]), np.stack([points for _, points in painted])

    def film(self, people: People, shots: Iterable[Shot]) -> Iterator[NDArray[np.float32]]:
        """Paint the first of ``people`` shot after shot; yields pictures of shape (height, width, 3)."""
        around = next(self._surrounds(people.codes[:1], people, range(1)))
        for shot in shots:
            shapes, textures = self._faces(people.codes[:1], shot.expression)
            decorate(self.model, textures[0], people, 0)
            yield self._shoot(shapes[0], textures[0], around, shot)[0]

    def _surrounds(self, codes: FloatArray, people: People, rows: range) -> Iterator[Surround]:
        """Paint what is around the faces of some people, at rest, one after the other."""
        rest = expressed(self.model, codes, EXPRESSIONS["neutral"])
        frames = self._frames(rest, EXPRESSIONS["neutral"])
        parts = self.model.evener.cheeks, self.model.evener.crown
        cheeks, crowns = (self.model.mean_colours(rest, part) for part in parts)
        for j, i in enumerate(rows):
            yield surround(people, i, cheeks[j], crowns[j], frames[j], self._canvas)

    def _frames(self, codes: FloatArray, expression: Expression) -> FloatArray:
        """Return meshes, (n, 478, 3), in eye distances of the mean face about the point between the eyes."""
        shapes = move(self.model, self.model.shapes(codes), expression)
        unit = np.linalg.norm(self.model.base[468] - self.model.base[473])
        return np.asarray((shapes - shapes[:, [468, 473]].mean(axis=1, keepdims=True)) / unit)

    def _faces(self, codes: FloatArray, expression: Expression) -> tuple[FloatArray, NDArray[np.float32]]:
        """Return meshes and textures of people with an expression put on."""
        codes = expressed(self.model, codes, expression)
        return self._frames(codes, expression), self.model.textures(codes).clip(0.0, 1.0)

    def _shoot(
        self, shape: FloatArray, texture: NDArray[np.float32], around: Surround, shot: Shot
    ) -> tuple[NDArray[np.float32], FloatArray]:
        turned = (with_forehead(shape) - _PIVOT) @ _rotation(shot.turn) + _PIVOT
        points = turned[:, :2] * self.eyes + self._middle
        on_face, on_head = self._light[shot.illumination]
        lit = texture * on_face
        face, covered = self.model.warp.from_base(lit, points, self.size)
        if shot.expression.lips_part:
            brightness = float(lit[::50].mean())
            paint_mouth(face, points, self.eyes, shot.expression.teeth, 0.35 + 1.05 * brightness)
        behind = around.behind * (1 + (on_head - 1) * around.person)
        image = behind + (face - behind) * _soft_edge(covered, _RIM * self.eyes)
        image += (around.front * on_head - image) * around.cover
        image += _grain(self.size, shot.grain)
        return image.clip(0.0, 1.0), points[: len(shape)]


_PIVOT = np.array([0.0, 0.5, -1.0])  # about where a head turns


def _rotation(turn: Sequence[float]) -> FloatArray:
    """Return the matrix (3, 3) that turns row vectors by roll, pitch and yaw."""
    (cy, sy), (cp, sp), (cr, sr) = ((np.cos(a), np.sin(a)) for a in turn)
    yaw = np.array([[cy, 0, -sy], [0, 1, 0], [sy, 0, cy]])
    pitch = np.array([[1, 0, 0], [0, cp, -sp], [0, sp, cp]])
    roll = np.array([[cr, sr, 0], [-sr, cr, 0], [0, 0, 1]])
    return np.asarray(roll @ pitch @ yaw)


def _soft_edge(covered: NDArray[np.bool_], width: float) -> NDArray[np.float32]:
    """Return 1 well inside, falling to about 0 at the edge over ``width`` pixels; (height, width, 1)."""
    inside = cv2.distanceTransform(np.pad(covered, 1).astype(np.uint8), cv2.DIST_L2, 5)[1:-1, 1:-1]
    ramp = ((inside - 0.5) / max(1.0, width)).clip(0, 1).astype(np.float32)
    smooth = cv2.GaussianBlur(ramp, (0, 0), max(0.6, 0.35 * width)) * covered
    return np.asarray(smooth[..., None])


def _grain(size: tuple[int, int], which: int) -> NDArray[np.float32]:
    """Return the noise of a sensor, (height, width, 3); pictures differ in where it is taken from."""
    noise = _noise(max(size) + _SHIFTS)
    top, left = which % _SHIFTS, which // _SHIFTS % _SHIFTS
    return noise[top : top + size[0], left : left + size[1]]


@lru_cache(maxsize=4)
def _noise(side: int) -> NDArray[np.float32]:
    return np.random.default_rng(11).normal(0.0, _NOISE, (side, side, 3)).astype(np.float32)
