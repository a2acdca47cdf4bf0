"""Expressions: the face model's directions, and how lips, jaw, lids and brows move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from ksame.arrays import FloatArray
from ksame.spaces.facemodel import FaceModel
from ksame.spaces.facemodel.geometry import LOWER_LIP, UPPER_LIP

_LIDS = ((159, 145), (386, 374))
NEUTRAL: Mapping[str, float] = MappingProxyType(
    {
        "smile": 0.30,
        "upper_lip": 0.02,
        "lower_lip": 0.01,
        "jaw": 0.0,
        "press": 0.08,
        "squint": 0.42,
        "blink": 0.15,
        "brow_down": 0.35,
        "brow_up": 0.01,
        "gaze_down": 0.17,
        "gaze_side": 0.0,
        "yaw": 0.0,
        "pitch": 0.0,
    }
)
"""A face at rest, in the units of the face model's attributes."""


@dataclass(frozen=True, eq=False)
class Expression:
    """What an expression changes."""

    attributes: Mapping[str, float] = field(default_factory=dict)  # of the face model, where they differ from rest
    movements: Mapping[str, float] = field(default_factory=dict)  # movements of the mesh, in eye distances
    lips_part: bool = False  # whether the inside of the mouth shows
    teeth: float = 0.0  # how much of the upper teeth shows where the lips part, in eye distances


EXPRESSIONS: Mapping[str, Expression] = MappingProxyType(
    {
        "neutral": Expression(),
        "smile": Expression(
            {"smile": 0.97, "upper_lip": 0.55, "lower_lip": 0.10, "squint": 0.56}, {}, lips_part=True, teeth=0.3
        ),
        "surprise": Expression(
            {"brow_down": 0.05, "squint": 0.33, "blink": 0.08},
            {"jaw": 0.34, "brows": 0.13, "lids": 0.035, "narrow": 0.06},
            lips_part=True,
            teeth=0.07,
        ),
        "squint": Expression({"squint": 0.70, "blink": 0.34, "brow_down": 0.6}, {"lids": -0.012}),
        "disgust": Expression(
            {"squint": 0.56, "blink": 0.22, "brow_down": 0.9, "smile": 0.05}, {"sneer": 0.09, "brows": -0.03}
        ),
    }
)


def expressed(model: FaceModel, codes: FloatArray, expression: Expression) -> FloatArray:
    """Return codes, (n, n_codes), of people at the model's mean expression with an expression put on."""
    means = dict(zip(model.attributes, model.attribute_means, strict=True))
    target = {**NEUTRAL, **expression.attributes}
    return model.moved(codes, {name: value - float(means[name]) for name, value in target.items()})


def move(model: FaceModel, shapes: FloatArray, expression: Expression) -> FloatArray:
    """Return shapes, (n, 478, 3), with lips closed or parted and the expression's movements added."""
    shapes = shapes.copy()
    eyes = np.linalg.norm(shapes[:, 468] - shapes[:, 473], axis=1)
    if not expression.lips_part or "jaw" in expression.movements:
        upper, lower = list(UPPER_LIP), list(LOWER_LIP)
        shapes[:, upper] = shapes[:, lower] = 0.5 * (shapes[:, upper] + shapes[:, lower])
    for name, amount in expression.movements.items():
        shapes += eyes[:, None, None] * amount * movements(model)[name]
    return shapes


@lru_cache(maxsize=2)
def movements(model: FaceModel) -> Mapping[str, FloatArray]:
    """Return the movements of the mesh, each (478, 3): in units of the largest movement."""
    eyes = model.base[[468, 473]]
    unit = float(np.linalg.norm(eyes[0] - eyes[1]))
    x, y, _ = ((model.base - eyes.mean(axis=0)) / unit).T
    upper, lower, corner = y[13], y[14], abs(x[[61, 291]]).mean()
    brow, chin = y[[66, 296]].mean(), y[152]
    between_lips = _step((y - upper) / (lower - upper))
    below_mouth = _step((y - 0.5 * (upper + lower) + 0.12) / 0.5)
    share = _step((abs(x) - 0.55 * corner) / (0.6 * corner))  # 0 in the middle of the mouth, 1 beside it
    jaw = (between_lips * (1 - share) + below_mouth * share) * (1 - 0.7 * (x / 1.15).clip(-1, 1) ** 2)
    mouth = np.exp(-(((y - upper) / 0.3) ** 2)) * np.exp(-((x / 0.7) ** 4))
    brows = np.exp(-(((y - brow) / np.where(y < brow, 0.45, 0.22)) ** 2)) * np.exp(-((x / 1.1) ** 6))
    brows *= _step((y[[159, 386]].mean() - 0.04 - y) / 0.16)
    lids = np.zeros(len(x))
    for up, low in _LIDS:
        opening = y[low] - y[up]
        near = np.exp(-(((x - x[up]) / 0.2) ** 2))
        above = np.exp(-(((y - y[up]) / 0.07) ** 2)) * (y < y[up] + 0.4 * opening)
        below = np.exp(-(((y - y[low]) / 0.07) ** 2)) * (y > y[low] - 0.4 * opening)
        lids += near * (-above + 0.45 * below)
    lids[468:] = 0.0
    wings = np.exp(-(((y - y[[129, 358]].mean()) / 0.22) ** 2)) * np.exp(-(((abs(x) - 0.22) / 0.2) ** 2))
    lip = np.exp(-(((y - y[0]) / 0.14) ** 2)) * np.exp(-((x / 0.4) ** 4)) * (y < 0.5 * (upper + lower) + 1e-6)
    sneer = np.maximum(wings, 0.8 * lip)
    flat = np.zeros_like(x)
    return MappingProxyType(
        {
            "jaw": np.stack([flat, jaw * (1 + 0.1 * (y > chin)), flat], axis=1),
            "narrow": np.stack([-np.sign(x) * mouth * (abs(x) / corner).clip(0, 1.4), flat, flat], axis=1),
            "brows": np.stack([flat, -brows, flat], axis=1),
            "lids": np.stack([flat, lids, flat], axis=1),
            "sneer": np.stack([flat, -sneer, flat], axis=1),
        }
    )


def _step(x: FloatArray) -> FloatArray:
    """Rise smoothly from 0 at 0 to 1 at 1."""
    t = np.asarray(x).clip(0.0, 1.0)
    return np.asarray(t * t * (3.0 - 2.0 * t))
