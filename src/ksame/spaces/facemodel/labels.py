"""Labels read from codes and from blendshapes: gender, age band, skin tone, expression.

Measured on the portraits behind the model (docs/model-card.md): gender right for 99 % of people left out in ten-fold
cross-validation and for 97 % of 185 whose textures the model never saw; year of birth off by 7 years on average.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.spaces.facemodel.model import FaceModel

GENDERS = ("F", "M")
AGE_BANDS: Mapping[str, tuple[float, float]] = {
    "under 40": (26.0, 39.0), "40-59": (40.0, 59.0), "60 and over": (60.0, 80.0)
}  # fmt: skip
SKIN_TONES: Mapping[str, tuple[float, float]] = {
    "dark": (-0.92, -0.76), "medium": (-0.70, -0.57), "light": (-0.50, -0.34)
}  # fmt: skip
"""Logarithm of the brightness of the cheeks, light evened."""
BLENDS = {
    "smile": ("mouthSmileLeft", "mouthSmileRight"),
    "upper_lip": ("mouthUpperUpLeft", "mouthUpperUpRight"),
    "lower_lip": ("mouthLowerDownLeft", "mouthLowerDownRight"),
    "jaw": ("jawOpen",),
    "press": ("mouthPressLeft", "mouthPressRight"),
    "squint": ("eyeSquintLeft", "eyeSquintRight"),
    "blink": ("eyeBlinkLeft", "eyeBlinkRight"),
    "brow_down": ("browDownLeft", "browDownRight"),
    "brow_up": ("browInnerUp", "browOuterUpLeft", "browOuterUpRight"),
    "gaze_down": ("eyeLookDownLeft", "eyeLookDownRight"),
}
"""Attributes of the expression: each the mean of the blendshapes named."""
PORTRAIT_YEAR = 2015.0
"""About when the portraits behind the model were taken; they say only when a person was born."""
ACCURACY: Mapping[str, str] = {
    "gender": "right for 99 % of the 600 portraits behind the face model and 93 % of 300 synthetic pictures",
    "age_band": "right for 68 % of the 600 portraits behind the face model and 59 % of 300 synthetic pictures",
    "skin_tone": "right for 87 % of 300 synthetic pictures",
    "expression": "right for 91 % of 300 synthetic pictures (smile 98 %, neutral 95 %, disgust 90 %, surprise 88 %, "
    "squint 83 %)",
}
"""How often each label is read correctly, by ``python -m benchmarks.label_accuracy PORTRAITS``."""
WOMAN = 0.43
"""Reading from which on a face counts as a woman's."""


def genders(model: FaceModel, codes: FloatArray) -> NDArray[np.str_]:
    """Return F or M, (n,), for codes of shape (n, n_codes)."""
    return np.where(model.predicted(codes, "woman") > WOMAN, *GENDERS)


def age_bands(model: FaceModel, codes: FloatArray) -> NDArray[np.str_]:
    """Return age bands, (n,), for codes of shape (n, n_codes)."""
    age = PORTRAIT_YEAR - model.predicted(codes, "born")
    return np.asarray(np.array(list(AGE_BANDS))[(age[:, None] >= [40.0, 60.0]).sum(axis=1)])


def skin_tones(model: FaceModel, codes: FloatArray) -> NDArray[np.str_]:
    """Return skin tones, (n,), for codes of shape (n, n_codes)."""
    brightness = model.predicted(codes, "tone")
    return np.asarray(np.array(list(SKIN_TONES))[(brightness[:, None] >= [-0.73, -0.535]).sum(axis=1)])


def expression(blendshapes: Mapping[str, float]) -> str:
    """Name the expression of a face by its blendshapes: smile, surprise, squint, disgust or neutral.

    Examples
    --------
    >>> expression({"mouthSmileLeft": 0.9, "mouthSmileRight": 0.8})
    'smile'
    """

    def both(name: str) -> float:
        return 0.5 * (blendshapes.get(f"{name}Left", 0.0) + blendshapes.get(f"{name}Right", 0.0))

    if blendshapes.get("jawOpen", 0.0) > 0.22 and both("mouthSmile") < 0.5:
        return "surprise"
    if both("mouthSmile") > 0.5:
        return "smile"
    if both("eyeSquint") > 0.55 and both("eyeBlink") > 0.22:
        return "squint"
    if both("browDown") > 0.3 and both("eyeSquint") > 0.5 and both("mouthSmile") < 0.1:
        return "disgust"
    return "neutral"
