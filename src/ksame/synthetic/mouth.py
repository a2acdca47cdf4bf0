"""The inside of an open mouth: teeth before a dark cavity."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.spaces.facemodel.geometry import INNER_LIPS

_TEETH = np.array([0.80, 0.76, 0.70], dtype=np.float32)
_CAVITY = np.array([0.23, 0.09, 0.08], dtype=np.float32)
_TONGUE = np.array([0.58, 0.27, 0.26], dtype=np.float32)
_UPPER = INNER_LIPS[:11]
_TOOTH = 0.125  # width in eye distances
_SUB = 4  # fractional bits for OpenCV's polygons


def paint_mouth(image: NDArray[np.float32], points: FloatArray, eyes: float, teeth: float, light: float) -> None:
    """Paint the inside of the mouth into ``image``, in place, between the inner lips.

    ``points`` are (478, 2), ``eyes`` is the distance between the eyes in pixels, ``teeth`` how far the upper teeth show
    in eye distances, ``light`` the brightness of the teeth.
    """
    ring = points[list(INNER_LIPS), :2]
    low = np.floor(ring.min(axis=0)).astype(int) - 2
    high = np.ceil(ring.max(axis=0)).astype(int) + 3
    low, high = low.clip(0), np.minimum(high, image.shape[1::-1])
    if (high <= low).any():
        return
    patch = image[low[1] : high[1], low[0] : high[0]]
    alpha = np.zeros(patch.shape[:2], dtype=np.uint8)
    cv2.fillPoly(alpha, [np.rint((ring - low) * (1 << _SUB)).astype(np.int32)], 255, cv2.LINE_AA, _SUB)
    share = cv2.GaussianBlur(alpha.astype(np.float32) / 255.0, (0, 0), 0.012 * eyes + 0.2)[..., None]
    x = np.arange(low[0], high[0])
    top = np.interp(x, points[list(_UPPER), 0], points[list(_UPPER), 1])
    left, right = points[78, 0], points[308, 0]
    across = (x - 0.5 * (left + right)) / max(1.0, 0.5 * (right - left))
    down = (np.arange(low[1], high[1])[:, None] - top[None]) / eyes
    soft = 1.2 / eyes
    band = teeth * (1 - 0.55 * across**2)
    shown = ((band[None] - down) / soft + 0.5).clip(0, 1) * (1 - (abs(across) / 0.96).clip(0, 1) ** 6)[None]
    gaps = 1 - 0.13 * np.exp(-((((((x - 0.5 * (left + right)) / eyes / _TOOTH) + 0.5) % 1 - 0.5) / 0.08) ** 2))
    falloff = (1 - 0.6 * across**2) * gaps
    lip_shadow = 0.62 + 0.38 * (down / 0.05).clip(0, 1)
    enamel = _TEETH * light * (falloff[None] * lip_shadow)[..., None]
    tongue = (((down - 0.20) / 0.16).clip(0, 1) * (1 - across**2).clip(0, 1)[None])[..., None]
    cavity = (_CAVITY * (1 - tongue) + _TONGUE * tongue) * light
    inside = enamel * shown[..., None] + cavity * (1 - shown[..., None])
    patch += (inside.astype(np.float32) - patch) * share
