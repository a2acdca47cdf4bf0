"""Surrogates: people who do not exist, drawn from the face model, who can take on any expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.faces.faceset import FloatArray
from ksame.models import BLENDSHAPES
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.preparation import BLENDS

EXPRESSION = tuple(BLENDS)
"""What of an expression the face model can move."""
_FURTHEST = 2.0  # standard deviations along a mode beyond which nobody is drawn
_AROUND = 9.0  # what counts as surroundings, in pixels of the base
_BRIGHTEST = 1.12  # how much brighter than its surroundings skin may be
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


def draw(labels: Mapping[str, float], rng: np.random.Generator, strength: float = 1.0) -> Surrogate:
    """Draw somebody who does not exist.

    Parameters
    ----------
    labels : mapping
        ``woman`` (0 or 1), ``born`` (a year) and ``tone`` (logarithm of the brightness of the skin).
    rng : Generator
    strength : float
        How many standard deviations people differ: above 1 they are more distinctive than most.
    """
    model = face_model()
    neutral = dict.fromkeys((*EXPRESSION, "gaze_side", "yaw", "pitch"), 0.0)
    middle = model.labelled({**neutral, **labels})
    steps = rng.standard_normal(model.n_codes).clip(-_FURTHEST, _FURTHEST)
    return Surrogate(middle + strength * (model.spread @ steps))


def _without_glare(texture: NDArray[np.float32]) -> NDArray[np.float32]:
    """Darken what is much brighter than its surroundings, which no skin is: far modes add up to white lids and lips."""
    warp = face_model().warp
    image = warp.image(texture)
    around = cv2.GaussianBlur(image, (0, 0), _AROUND)
    limit = around * _BRIGHTEST
    over = (image - limit).clip(0)
    return np.asarray((image - 0.85 * over)[warp.mask])
