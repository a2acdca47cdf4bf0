"""The dense mesh of the face model: its mirror image, its forehead, its alignment in space, its regions.

Points are the 478 of MediaPipe's face mesh: x to the right of the picture, y down, and z. The network gives a
z that falls towards the viewer; here z grows towards the viewer.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray, IntArray

N_POINTS = 478
CROWN = (127, 162, 21, 54, 103, 67, 109, 10, 338, 297, 332, 284, 251, 389, 356)
"""The upper rim of the mesh, from the temple on the left of the picture to the other."""
# fmt: off
OVAL = (
    *CROWN, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377,
    152, 148, 176, 149, 150, 136, 172, 58, 132, 93, 234,
)
# fmt: on
"""The whole rim, clockwise in the picture."""
UPPER_LIP, LOWER_LIP = (191, 80, 81, 82, 13, 312, 311, 310, 415), (95, 88, 178, 87, 14, 317, 402, 318, 324)
"""The inner edges of the lips from left to right, without the corners."""
INNER_LIPS = (78, *UPPER_LIP, 308, *LOWER_LIP[::-1])
EYES = (
    (33, 246, 161, 160, 159, 158, 157, 173, 133, 155, 154, 153, 145, 144, 163, 7),
    (263, 466, 388, 387, 386, 385, 384, 398, 362, 382, 381, 380, 374, 373, 390, 249),
)
EYE_CORNERS = tuple((ring[0], ring[8]) for ring in EYES)
LIDS = tuple((ring[1:8], ring[:8:-1]) for ring in EYES)
"""For each eye, the points of the upper and of the lower lid that meet when it is shut."""
IRISES = ((468, 469, 470, 471, 472), (473, 474, 475, 476, 477))
"""The centre of each iris and four points on its edge."""
BROWS = (70, 63, 105, 66, 107, 9, 336, 296, 334, 293, 300)
"""The upper edge of the brows, from left to right."""
OUTER_LIPS = (61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291, 375, 321, 405, 314, 17, 84, 181, 91, 146)
CHEEKS = ((50, 101, 118, 117, 123, 187, 205), (280, 330, 347, 346, 352, 411, 425))
_REACH = 0.34  # how far the forehead goes beyond the mesh, as a share of the way from nose bridge to rim
_TAPER = np.sin(np.linspace(0.0, np.pi, len(CROWN)))[1:-1, None] ** 0.7
_TOP = np.array(CROWN[1:-1])
RING = len(_TOP)
N_EXTENDED = N_POINTS + 2 * RING
OUTLINE = (CROWN[0], *range(N_EXTENDED - RING, N_EXTENDED), CROWN[-1], *OVAL[len(CROWN) :])
"""The edge of the mesh with its forehead, clockwise, among its 504 points."""
_RAISE = (4.0, 14.0)  # how far the two rings of the forehead fall back, in 1/176 of the base's width


def with_forehead(points: FloatArray) -> FloatArray:
    """Add two rings of points above a mesh, (..., 478, 2 or 3), up to about the hair line: (..., 504, 2 or 3).

    Linear in the points, so that it commutes with means and with shape modes.
    """
    bridge, top = points[..., 168:169, :], points[..., _TOP, :]
    outward = 0.5 * (top - bridge) + 0.5 * (points[..., 10:11, :] - bridge)
    step = outward * (_REACH * _TAPER)
    return np.concatenate([points, top + 0.5 * step, top + step], axis=-2)


def align(points: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Turn, scale and move meshes, (n_faces, n_points, 3), onto one mesh, by least squares (Umeyama 1991).

    Returns the aligned meshes and the rotations, (n_faces, 3, 3):
    ``aligned = scale * centred_points @ rotation + centre of target``.
    """
    centred = points - points.mean(axis=1, keepdims=True)
    goal = target - target.mean(axis=0)
    u, s, vt = np.linalg.svd(np.einsum("nij,ik->njk", centred, goal))
    flip = np.sign(np.linalg.det(u @ vt))
    u[:, :, 2] *= flip[:, None]
    s[:, 2] *= flip
    rotations = u @ vt
    scale = s.sum(axis=1) / (centred**2).sum(axis=(1, 2))
    return scale[:, None, None] * (centred @ rotations) + target.mean(axis=0), rotations


def polygon(size: tuple[int, int], points: FloatArray) -> NDArray[np.bool_]:
    """Fill the convex hull of points of shape (n, 2) in an image of ``size`` (height, width)."""
    canvas = np.zeros(size, dtype=np.uint8)
    cv2.fillConvexPoly(canvas, cv2.convexHull(np.rint(points).astype(np.int32)), 1)
    return canvas.astype(bool)


def surface_depth(points: FloatArray) -> FloatArray:
    """Return the depth, (504,), of a base mesh (478, 3) and its forehead, which curves back to the crown."""
    unit = np.ptp(points[:, 0]) / 164.0
    rim = points[list(CROWN[1:-1]), 2]
    rings = [rim - unit * fall * _TAPER[:, 0] for fall in _RAISE]
    return np.concatenate([points[:, 2], *rings])


def half_rows(mask: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Return for each pixel of a symmetric mask its row in the left half, and 1 for the left or -1 for the right half.

    Both of shape (n_pixels,), in the order of the pixels; a pixel of the right half has the row of its mirror image.
    """
    half = mask.shape[1] // 2
    number = np.full(mask.shape, -1, dtype=np.intp)
    number[:, :half][mask[:, :half]] = np.arange(int(mask[:, :half].sum()))
    number[:, -half:] = number[:, :half][:, ::-1]
    side = np.broadcast_to(np.where(np.arange(mask.shape[1]) < half, 1, -1), mask.shape)
    return number[mask], side[mask]
