"""Portraits: a code of the face model as a whole natural head on a plain background."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from ksame.arrays import ByteArray, FloatArray
from ksame.heads.drawing import Invention, Looks
from ksame.heads.head import Head, Region
from ksame.heads.invention import invent, taken_away
from ksame.heads.surrogate import modelled, skin_of, toned
from ksame.models.finisher import finisher
from ksame.spaces import FaceModelSpace
from ksame.spaces.facemodel import face_model

SIZE = 256
"""Height and width of a portrait, in pixels."""
_FACE = 0.6  # height of the mean face, from chin to hair line, in heights of the picture, by choice
_BACKDROP, _CLOTH = (150, 158, 166), (46, 50, 60)  # colours, by choice


@lru_cache(maxsize=1)
def _studio() -> tuple[Head, ByteArray]:
    """Return the head that every portrait has, and the picture with a hole that it is put into."""
    base = face_model().base
    scale = np.asarray(np.ptp(base[:, 1]) / (_FACE * 0.8 * SIZE))
    head = Head(base, np.eye(3), scale, np.array([SIZE / 2, 0.47 * SIZE]))
    picture = np.empty((SIZE, SIZE, 3), dtype=np.uint8)
    picture[:] = _BACKDROP
    shoulders = np.array([[0.02, 1.05], [0.08, 0.93], [0.33, 0.85], [0.67, 0.85], [0.92, 0.93], [0.98, 1.05]]) * SIZE
    cv2.fillPoly(picture, [np.rint(shoulders * 16).astype(np.int32)], _CLOTH, cv2.LINE_AA, 4)
    return head, picture


@dataclass(frozen=True, eq=False)
class PortraitSpace(FaceModelSpace):
    """The coding of the face model, decoded as whole heads.

    Hair, ears and neck come from the finisher: they are nobody's, and equal codes have equal heads to the bit.
    """

    name = "portrait"

    def decode(self, codes: FloatArray) -> FloatArray:
        """Return pictures of shape (n, SIZE, SIZE, 3)."""
        return np.stack([_portrait(code) for code in codes / self._weights])

    def landmarks(self, codes: FloatArray) -> FloatArray:
        """Return where the points of decoded faces lie, (n, 478, 3)."""
        head, _ = _studio()
        return np.stack([head.place(shape) for shape in self._model.shapes(codes / self._weights)])


def _portrait(code: FloatArray) -> FloatArray:
    head, picture = _studio()
    looks = modelled(code).looks
    looks = Looks(looks.shape, toned(looks.texture, skin_of(looks.texture)), looks.iris)
    worn = Head(looks.shape, head.turn, head.scale, head.centre)  # the expression is in the code
    region = Region.of(head, face_model().base)
    placed = region.in_square(worn.place(looks.shape)[:, :2])
    out = picture.copy()
    invent(out, taken_away(out.shape, [region.outline]), Invention(looks, worn, region, placed), finisher("cpu"))
    return out / 255.0
