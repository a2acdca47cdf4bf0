"""The pose of a head, in closed form from the points of its mesh."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ksame.arrays import FloatArray


@dataclass(frozen=True)
class Pose:
    """A turn of the head in degrees; all zero for somebody upright who looks at the camera."""

    yaw: float  # positive when the face is turned towards the right of the picture
    pitch: float  # positive when it looks up
    roll: float  # positive when the head is tilted clockwise in the picture


def rotation(pose: Pose) -> FloatArray:
    """Return the matrix, of shape (3, 3), that turns a head by ``pose``: pitch first, then yaw, then roll.

    Axes as in the canonical head: x to the right of the picture, y up, z towards the viewer.
    """
    yaw, pitch, roll = np.radians([pose.yaw, pose.pitch, pose.roll])
    about_x = np.array([[1, 0, 0], [0, np.cos(pitch), np.sin(pitch)], [0, -np.sin(pitch), np.cos(pitch)]])
    about_y = np.array([[np.cos(yaw), 0, np.sin(yaw)], [0, 1, 0], [-np.sin(yaw), 0, np.cos(yaw)]])
    about_z = np.array([[np.cos(roll), np.sin(roll), 0], [-np.sin(roll), np.cos(roll), 0], [0, 0, 1]])
    return np.asarray(about_z @ about_y @ about_x)


def estimate_pose(points: FloatArray, head: FloatArray, weights: FloatArray) -> Pose:
    """Return the pose that takes a canonical head closest to the points of a mesh.

    The rotation is that of a weighted Procrustes fit (Kabsch 1976): scale and position do not matter.

    Parameters
    ----------
    points : ndarray of shape (n_points, 3)
        In the picture: x to the right, y down, z away from the viewer, all in pixels.
    head : ndarray of shape (n_points, 3)
        The same points of a head that looks at the viewer: x to the right, y up, z towards the viewer.
    weights : ndarray of shape (n_points,)
        How much each point counts; not negative.

    Examples
    --------
    >>> head = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    >>> turned = head @ rotation(Pose(yaw=20, pitch=-5, roll=10)).T * [1, -1, -1]
    >>> pose = estimate_pose(40 * turned + 7, head, np.ones(4))
    >>> round(pose.yaw, 6), round(pose.pitch, 6), round(pose.roll, 6)
    (20.0, -5.0, 10.0)
    """
    share = weights / weights.sum()
    turned = points * [1, -1, -1]
    turned = turned - share @ turned
    model = head - share @ head
    u, _, vt = np.linalg.svd((turned * share[:, None]).T @ model)
    r = u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt
    # The angles follow from multiplying out `rotation`.
    yaw = np.arcsin(np.clip(-r[2, 0], -1, 1))
    pitch = np.arctan2(-r[2, 1], r[2, 2])
    roll = np.arctan2(-r[1, 0], r[0, 0])
    return Pose(*(float(np.degrees(angle)) for angle in (yaw, pitch, roll)))
