"""What is left of movement: expressions, pose and steadiness of a talking head before and after.

``python -m benchmarks.scene_use ORIGINAL DEIDENTIFIED``. Both are measured anew, frame by frame, by detector and mesh.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ksame.models import BLENDSHAPES, Detector, FaceMesh
from ksame.scene.media import open_media

WATCHED = ("jawOpen", "eyeBlinkLeft", "eyeBlinkRight", "mouthSmileLeft", "mouthSmileRight")


@dataclass(frozen=True, eq=False)
class Movement:
    """One face through a clip; rows are frames."""

    found: np.ndarray  # (n,)
    blendshapes: np.ndarray  # (n, 52)
    poses: np.ndarray  # (n, 3), degrees
    points: np.ndarray  # (n, 468, 2)


@dataclass(frozen=True)
class Kept:
    """What is left of movement."""

    found: float
    """Share of frames in which the detector finds the face afterwards."""
    correlations: dict[str, float]
    pose: tuple[float, float, float]
    """Mean absolute error of yaw, pitch and roll in degrees."""
    jitter: float
    """Mean second difference of the points, by that of the original."""


def measure(path: Path) -> Movement:
    """Follow the largest face of a clip."""
    detector, mesher = Detector(), FaceMesh()
    found, meshes = [], []
    for frame in open_media(path).frames():
        faces = detector.detect(frame.pixels, min_face=48)
        found.append(bool(faces))
        if faces:
            meshes.append(mesher.fit(frame.pixels, max(faces, key=lambda face: face.side)))
        elif meshes:
            meshes.append(mesher.follow(frame.pixels, meshes[-1]))
        else:
            raise SystemExit(f"{path}: no face in the first frame")
    return Movement(
        np.array(found),
        np.array([mesh.blendshapes for mesh in meshes]),
        np.array([(mesh.pose.yaw, mesh.pose.pitch, mesh.pose.roll) for mesh in meshes]),
        np.array([mesh.points[:468, :2] for mesh in meshes]),
    )


def compare(before: Movement, after: Movement) -> Kept:
    """Compare two clips of the same length."""
    columns = [BLENDSHAPES.index(name) for name in WATCHED]
    correlations = {
        name: float(np.corrcoef(before.blendshapes[:, i], after.blendshapes[:, i])[0, 1])
        for name, i in zip(WATCHED, columns, strict=True)
    }
    error = np.abs(before.poses - after.poses).mean(axis=0)
    shakes = [np.linalg.norm(np.diff(one.points, n=2, axis=0), axis=2).mean() for one in (before, after)]
    return Kept(
        float(after.found.mean()),
        correlations,
        (float(error[0]), float(error[1]), float(error[2])),
        float(shakes[1] / shakes[0]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("original", type=Path)
    parser.add_argument("deidentified", type=Path)
    options = parser.parse_args()
    kept = compare(measure(options.original), measure(options.deidentified))
    print(f"face found afterwards in {kept.found:.1%} of frames")
    for name, value in kept.correlations.items():
        print(f"{name:16} correlation {value:.3f}")
    print("pose error, mean: yaw {:.2f}, pitch {:.2f}, roll {:.2f} degrees".format(*kept.pose))
    print(f"jitter of the points: {kept.jitter:.2f} x the original's")


if __name__ == "__main__":
    main()
