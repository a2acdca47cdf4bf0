"""Read from a frame what a surrogate must match: somebody's gender, skin, and the code that tells their age.

Gender is read by a linear reader from the code in the face model and SFace's embedding together. It learned from
pictures that were made small, soft, dark or bright, as people are in films (``tools/train_gender_reader.py``).
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import READING, ByteArray, FloatArray
from ksame.heads.head import EXPRESSION, expression_of
from ksame.heads.surrogate import Skin, brightness_of, lit, tone_of
from ksame.models import Mesh
from ksame.spaces.facemodel import face_model


class Reading(NamedTuple):
    """What one frame tells of somebody; see :class:`ksame.scene.decide.View`."""

    code: FloatArray
    woman: float
    skin: Skin


def read(pixels: ByteArray, mesh: Mesh, embedding: FloatArray) -> Reading:
    """Read somebody from a mesh in a frame and from SFace's embedding, (128,), there."""
    code, lit_code, brightness = codes_of(pixels, mesh)
    woman = float(_gender_reader() @ [*lit_code, *embedding, 1.0])
    return Reading(code, woman, Skin(brightness, tone_of(lit_code)))


def codes_of(pixels: ByteArray, mesh: Mesh) -> tuple[FloatArray, FloatArray, float]:
    """Return the code of a face, that of the face as bright as most portraits, and the brightness of its skin.

    Codes, (n_codes,), are without expression.
    """
    model = face_model()
    rows = model.texture_of(pixels, mesh.points)
    brightness = brightness_of(255 * model.warp.image(rows))
    away = dict(zip(EXPRESSION, -expression_of(mesh.blendshapes), strict=True))

    def code(texture: NDArray[np.float32]) -> FloatArray:
        return model.moved(model.encode(mesh.points * [1.0, 1.0, -1.0], texture)[None], away)[0]

    return code(rows), code(lit(rows, brightness)), brightness


@lru_cache(maxsize=1)
def _gender_reader() -> FloatArray:
    """Return the weights, (n_codes + 128 + 1,)."""
    with READING, (files("ksame.data") / "gender_reader.npy").open("rb") as file:
        return np.asarray(np.load(file), dtype=np.float64)
