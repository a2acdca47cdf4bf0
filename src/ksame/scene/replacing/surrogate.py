"""Surrogates: people who do not exist, drawn from the face model, who can take on any expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ksame.faces.faceset import FloatArray
from ksame.models import BLENDSHAPES
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.preparation import BLENDS

EXPRESSION = tuple(BLENDS)
"""What of an expression the face model can move."""
SHAPE, TEXTURE = 1.8, 1.5
"""How distinctive surrogates are, in standard deviations of people."""
_TRIES, _PLAINLY = 40, 0.2  # somebody distinctive is still plainly a woman or a man: a moustache is not drawn by chance
_FURTHEST = 2.0  # standard deviations along a mode beyond which nobody is drawn
_BRIGHTEST = 1.08  # how much brighter than the cheeks skin may be
_DULLED = 0.75  # how much of what is brighter still is taken away
_INDEX = {name: [BLENDSHAPES.index(part) for part in parts] for name, parts in BLENDS.items()}


def expression_of(blendshapes: FloatArray) -> FloatArray:
    """Return the strength of each of ``EXPRESSION``, (n_expression,), in blendshapes of shape (52,)."""
    return np.array([blendshapes[_INDEX[name]].mean() for name in EXPRESSION])


@dataclass(frozen=True, eq=False)
class Surrogate:
    """Somebody's face as a code of the face model, without expression.

    Attributes
    ----------
    code : ndarray of shape (n_codes,)
    """

    code: FloatArray

    def look(self, expression: FloatArray) -> tuple[FloatArray, NDArray[np.float32]]:
        """Return the frontal shape, (478, 3), and the texture, (n_pixels, 3), with an expression.

        Parameters
        ----------
        expression : ndarray of shape (n_expression,)
            See :func:`expression_of`.
        """
        model = face_model()
        moved = model.moved(self.code[None], dict(zip(EXPRESSION, expression, strict=True)))
        return model.shapes(moved)[0], _without_glare(model.textures(moved)[0].clip(0.0, 1.0))


def without_expression(code: FloatArray, expression: FloatArray) -> FloatArray:
    """Return a code, (n_codes,), with its expression taken away."""
    away = {name: -float(value) for name, value in zip(EXPRESSION, expression, strict=True)}
    return np.asarray(face_model().moved(code[None], away)[0])


def draw(labels: Mapping[str, float], rng: np.random.Generator, *, plain: bool = False) -> Surrogate:
    """Draw somebody who does not exist.

    Parameters
    ----------
    labels : mapping
        ``woman`` (0 or 1), ``born`` (a year) and ``tone`` (logarithm of the brightness of the skin).
    rng : Generator
    plain : bool
        Somebody like most people, instead of somebody distinctive.
    """
    model = face_model()
    neutral = dict.fromkeys((*EXPRESSION, "gaze_side", "yaw", "pitch"), 0.0)
    middle = model.labelled({**neutral, **labels})
    woman = labels.get("woman")
    best, least = Surrogate(middle), np.inf
    for _ in range(_TRIES):
        apart = model.spread @ rng.standard_normal(model.n_codes).clip(-_FURTHEST, _FURTHEST)
        if not plain:
            apart[: model.n_shape] *= SHAPE
            apart[model.n_shape :] *= TEXTURE
        drawn = Surrogate(middle + apart)
        if woman is None:
            return drawn
        off = abs(float(model.predicted(drawn.code[None], "woman")[0]) - woman)
        if off < _PLAINLY:
            return drawn
        if off < least:
            best, least = drawn, off
    return best


def _without_glare(texture: NDArray[np.float32]) -> NDArray[np.float32]:
    """Darken what is much brighter than the cheeks, which no skin is: far modes add up to white lids and lips."""
    model = face_model()
    cheeks = model.evener.cheeks[model.warp.mask]
    limit = np.median(texture[cheeks], axis=0) * np.float32(_BRIGHTEST)
    return np.asarray(texture - _DULLED * (texture - limit).clip(0))
