"""What is left of pose, expression and place: a face's mesh before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ksame.errors import InputError
from ksame.models.mesh import Mesh, five_points


@dataclass(frozen=True)
class MeshError:
    """How far the mesh of a face moved, for one pair or on average."""

    # mean distance of the points, in shares of the distance between the eyes before; None where the two pictures
    # have different sizes, so that places cannot be compared
    landmarks: float | None
    # degrees by which the head was turned
    yaw: float
    pitch: float
    roll: float
    blendshapes: float  # mean difference of the 52 expression weights, each in [0, 1]


def mesh_error(before: Mesh, after: Mesh, *, comparable: bool = True) -> MeshError:
    """Compare two meshes of one face; places only where the pictures are ``comparable``: of one size."""
    moved = None
    if comparable:
        points = five_points(before)
        between = float(np.hypot(*(points[1] - points[0])))
        apart = np.hypot(*(after.points[:, :2] - before.points[:, :2]).T)
        moved = float(apart.mean()) / max(between, 1e-9)
    return MeshError(
        landmarks=moved,
        yaw=abs(after.pose.yaw - before.pose.yaw),
        pitch=abs(after.pose.pitch - before.pose.pitch),
        roll=abs((after.pose.roll - before.pose.roll + 180) % 360 - 180),
        blendshapes=float(np.abs(after.blendshapes - before.blendshapes).mean()),
    )


def mean_mesh_error(errors: Sequence[MeshError]) -> MeshError:
    """Average over pairs; landmarks over those that could be compared.

    Examples
    --------
    >>> mean_mesh_error([MeshError(0.1, 2, 0, 0, 0.0), MeshError(None, 4, 0, 0, 0.2)])
    MeshError(landmarks=0.1, yaw=3.0, pitch=0.0, roll=0.0, blendshapes=0.1)
    """
    if not errors:
        raise InputError("There is no pair of meshes to compare.")
    comparable = [error.landmarks for error in errors if error.landmarks is not None]
    mean = {
        name: float(np.mean([getattr(error, name) for error in errors]))
        for name in ("yaw", "pitch", "roll", "blendshapes")
    }
    return MeshError(landmarks=float(np.mean(comparable)) if comparable else None, **mean)
