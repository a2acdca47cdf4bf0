"""The mesh of a face: MediaPipe's 478 points and 52 expression weights, run by LiteRT.

The face is cropped upright in a square, turned by the line between the eyes. The points in that square give a better
square, from which the mesh is taken once more.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray, IntArray
from ksame.errors import InputError
from ksame.geometry import warp
from ksame.models.face import Face, Mesh
from ksame.models.landmarker import BLENDSHAPES, N_POINTS, canonical_head, read_landmarker
from ksame.models.litert import Network
from ksame.models.pictures import as_rgb8
from ksame.models.pose import Pose, estimate_pose
from ksame.models.store import Store

__all__ = ["BLENDSHAPES", "FaceMesh", "Mesh", "Pose", "five_points"]

_SIDE = 256  # of the picture the network takes
_FROM_BOX = 1.4  # side of the first square, in mean sides of the detector's box
_FROM_POINTS = 1.5  # side of the second, in longest sides of the box around the points
_EYE_CORNERS = np.array([[33, 362], [133, 263]])  # of each eye one and the other; left in the picture, then right
_NOSE_AND_MOUTH = np.array([4, 61, 291])


class FaceMesh:
    """MediaPipe's face mesh. One object may be used from several threads; each gets its own interpreters.

    Parameters
    ----------
    store : Store, optional
        Where the weights are; the default store by default.
    """

    def __init__(self, store: Store | None = None) -> None:
        self._file = read_landmarker((store or Store()).path("face-landmarker"))
        self._head = canonical_head()
        self._local = threading.local()

    @property
    def triangles(self) -> IntArray:
        """Corners of the surface's triangles, shape (898, 3), among the first 468 points."""
        return self._head.triangles

    def fit(self, image: NDArray[Any], face: Face) -> Mesh:
        """Mesh a face that a detector found.

        Parameters
        ----------
        image : ndarray of shape (height, width), (height, width, 1) or (height, width, 3)
            8-bit or floating point in [0, 1]; RGB where it has three channels.
        face : Face
            Check the ``presence`` of its mesh: a square without a face gives points too.
        """
        rgb = as_rgb8(image)
        x, y, width, height = face.box
        centre = np.array([x + width / 2, y + height / 2])
        across = np.array([np.cos(face.roll), np.sin(face.roll)])
        first, _ = self._points(rgb, _square(centre, _FROM_BOX * face.side, across))
        return self._from_points(rgb, first)

    def follow(self, image: NDArray[Any], mesh: Mesh) -> Mesh:
        """Mesh a face where it was in the frame before; it may have moved by about a quarter of its size."""
        return self._from_points(as_rgb8(image), mesh.points)

    def locate(self, image: NDArray[Any], points: FloatArray) -> tuple[FloatArray, float]:
        """Return the points of a face, (478, 3), and its presence, about where they should lie, (478, 2 or 3)."""
        return self._points(as_rgb8(image), _square_around(points))

    def _from_points(self, rgb: ByteArray, points: FloatArray) -> Mesh:
        points, presence = self.locate(rgb, points)
        marks = points[self._head.blendshape_points, :2].astype(np.float32)
        blendshapes = self._run("blendshapes", marks)[0]
        pose = estimate_pose(points[: len(self._head.points)], self._head.points, self._head.weights)
        return Mesh(points, presence, blendshapes.reshape(-1).astype(np.float64), pose)

    def _points(self, rgb: ByteArray, to_crop: FloatArray) -> tuple[FloatArray, float]:
        """Return the points, of shape (478, 3), and the presence in the square that ``to_crop`` cuts."""
        crop = warp(rgb, to_crop, _SIDE)
        colours = crop.astype(np.float32)
        colours /= 255
        answer, logit = self._run("mesh", colours)[:2]
        points = answer.reshape(N_POINTS, 3).astype(np.float64)
        points[:, :2] -= 0.5  # the network counts from the corner of the first pixel
        turn, shift = to_crop[:, :2], to_crop[:, 2]
        size = np.hypot(turn[0, 0], turn[1, 0])
        points[:, :2] = (points[:, :2] - shift) @ turn / size**2
        points[:, 2] /= size
        return points, float(1 / (1 + np.exp(-float(logit.reshape(-1)[0]))))

    def _run(self, network: str, data: NDArray[Any]) -> list[NDArray[np.float32]]:
        """Run one of the two networks on one item; its outputs in the order of their names."""
        ready = getattr(self._local, network, None)
        if ready is None:
            ready = Network.of(getattr(self._file, network))
            setattr(self._local, network, ready)
        outputs: list[NDArray[np.float32]] = ready.run(data)
        return outputs


def five_points(mesh: Mesh | FloatArray) -> FloatArray:
    """Return the five points of a mesh, (478, 2 or 3), in the order of :attr:`Face.landmarks`, (5, 2)."""
    points = mesh.points if isinstance(mesh, Mesh) else np.asarray(mesh, dtype=np.float64)
    if points.ndim != 2 or len(points) != N_POINTS or points.shape[1] not in (2, 3):
        raise InputError(f"A mesh must have the shape ({N_POINTS}, 2 or 3). Got {points.shape}.")
    return np.concatenate([_eyes(points), points[_NOSE_AND_MOUTH, :2]])


def _eyes(points: FloatArray) -> FloatArray:
    """Return the middles of the eyes, (2, 2), of a mesh."""
    one, other = points[_EYE_CORNERS, :2]
    return np.asarray(0.5 * (one + other))


def _square(centre: FloatArray, side: float, across: FloatArray) -> FloatArray:
    """Return the matrix, of shape (2, 3), that cuts a square whose x axis runs along ``across``."""
    length = float(np.hypot(*across))
    direction = across / length if length > 1e-6 else np.array([1.0, 0.0])
    scale = _SIDE / max(float(side), 1.0)
    turn = scale * np.array([direction, [-direction[1], direction[0]]])
    return np.column_stack([turn, (_SIDE - 1) / 2 - turn @ centre])


def _square_around(points: FloatArray) -> FloatArray:
    """Return the matrix of the upright square about a mesh."""
    left, right = _eyes(points)
    across = right - left
    turn = _square(np.zeros(2), _SIDE, across)[:, :2]  # a rotation only
    turned = points[:, :2] @ turn.T
    low, high = turned.min(axis=0), turned.max(axis=0)
    return _square((low + high) / 2 @ turn, _FROM_POINTS * float((high - low).max()), across)
