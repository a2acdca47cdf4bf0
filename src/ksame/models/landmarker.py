"""The networks in the file ``face_landmarker.task``, and what their numbers mean."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from ksame.arrays import READING, FloatArray, IntArray
from ksame.errors import ModelError

N_POINTS = 478

# fmt: off
BLENDSHAPES = (
    "_neutral", "browDownLeft", "browDownRight", "browInnerUp", "browOuterUpLeft", "browOuterUpRight",
    "cheekPuff", "cheekSquintLeft", "cheekSquintRight", "eyeBlinkLeft", "eyeBlinkRight",
    "eyeLookDownLeft", "eyeLookDownRight", "eyeLookInLeft", "eyeLookInRight", "eyeLookOutLeft",
    "eyeLookOutRight", "eyeLookUpLeft", "eyeLookUpRight", "eyeSquintLeft", "eyeSquintRight",
    "eyeWideLeft", "eyeWideRight", "jawForward", "jawLeft", "jawOpen", "jawRight", "mouthClose",
    "mouthDimpleLeft", "mouthDimpleRight", "mouthFrownLeft", "mouthFrownRight", "mouthFunnel",
    "mouthLeft", "mouthLowerDownLeft", "mouthLowerDownRight", "mouthPressLeft", "mouthPressRight",
    "mouthPucker", "mouthRight", "mouthRollLower", "mouthRollUpper", "mouthShrugLower", "mouthShrugUpper",
    "mouthSmileLeft", "mouthSmileRight", "mouthStretchLeft", "mouthStretchRight", "mouthUpperUpLeft",
    "mouthUpperUpRight", "noseSneerLeft", "noseSneerRight",
)
"""Names of the 52 expression weights, in the network's order; left and right are the person's own."""
# fmt: on


@dataclass(frozen=True, eq=False)
class Landmarker:
    """The three TensorFlow Lite networks of ``face_landmarker.task``."""

    detector: bytes
    mesh: bytes
    blendshapes: bytes


@lru_cache(maxsize=2)
def read_landmarker(file: Path) -> Landmarker:
    """Read the networks of a ``face_landmarker.task`` file, which is a zip archive."""
    parts = ("face_detector.tflite", "face_landmarks_detector.tflite", "face_blendshapes.tflite")
    try:
        with zipfile.ZipFile(file) as archive:
            return Landmarker(*(archive.read(part) for part in parts))
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise ModelError(f"{file}: expected the parts of face_landmarker.task ({error}).") from error


@dataclass(frozen=True, eq=False)
class CanonicalHead:
    """A head without expression that looks at the viewer."""

    points: FloatArray  # (468, 3): in centimetres: x to the right of the picture, y up, z towards the viewer
    weights: FloatArray  # (468,): how much a point says about the pose of the head; 0 for points that expressions move
    triangles: IntArray  # (898, 3): points of the mesh that span its surface
    blendshape_points: IntArray  # (146,): which of the 478 points the expression network reads


@lru_cache(maxsize=1)
def canonical_head() -> CanonicalHead:
    """Return MediaPipe's canonical head, as tools/canonical_head.py took it from ``face_landmarker.task``."""
    packed = files("ksame.data") / "canonical_head.npz"
    with READING, packed.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        points, weights = (stored[name].astype(np.float64) for name in ("points", "weights"))
        triangles, blendshape_points = (stored[name].astype(np.intp) for name in ("triangles", "blendshape_points"))
    for array in (points, weights, triangles, blendshape_points):
        array.flags.writeable = False
    return CanonicalHead(points, weights, triangles, blendshape_points)
