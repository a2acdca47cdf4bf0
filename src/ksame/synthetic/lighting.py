"""Light on a face: diffuse shading from the side, from above, from the front, or none."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

ILLUMINATIONS: Mapping[str, tuple[float, float, float] | None] = MappingProxyType(
    {
        "flat": None,
        "front": (0.0, -0.15, 1.0),
        "left": (-0.85, -0.2, 0.6),
        "right": (0.85, -0.2, 0.6),
        "top": (0.0, -0.9, 0.55),
    }
)
"""Where the light is: right in the picture, down, towards the viewer; None for everywhere."""
_AMBIENT, _DIFFUSE = 0.52, 0.62
_REFERENCE = np.array([0.0, 0.0, 1.0])


def shading(normals: NDArray[Any], illumination: str) -> NDArray[np.float32]:
    """Return the factor by which the light brightens a surface with unit normals, (..., 3)."""
    towards = ILLUMINATIONS[illumination]
    if towards is None:
        return np.ones(normals.shape[:-1], dtype=np.float32)
    light = np.asarray(towards) / np.linalg.norm(towards)
    facing = (normals @ light.astype(np.float32)).clip(0.0, None)
    straight = float((_REFERENCE @ light).clip(0.0, None))
    exposure = 1.0 / (_AMBIENT + _DIFFUSE * (0.5 + 0.5 * straight))
    return np.asarray(exposure * (_AMBIENT + _DIFFUSE * facing), dtype=np.float32)
