"""What the network paints is measured, and moved to where it was drawn.

The network paints eyes, brows and lips nearly where they are drawn. What is missing is as much as a brow moves in
ordinary speech. So the mesh is fitted to the painted face, and the square is bent until its eyes, brows and lips
lie where the drawing has them. Only what the network made is looked at.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ksame.arrays import ByteArray, FloatArray
from ksame.heads.bend import bent
from ksame.models.mesh import FaceMesh
from ksame.spaces.facemodel.geometry import BROWS, EYES, INNER_LIPS, IRISES, OUTER_LIPS

MATCHED_FROM = 256
"""Size of the square from which on it is done, in pixels: of smaller heads a brow moves by less than a pixel."""
_MIN_PRESENCE = 0.5
_MAX_OFF = 0.08  # in sides of the square: a mesh that is further off does not fit
_UNDER_BROWS = (46, 53, 52, 65, 55, 285, 295, 282, 283, 276)
_FEATURES = np.unique([*BROWS, *_UNDER_BROWS, *sum(EYES, ()), *sum(IRISES, ()), *INNER_LIPS, *OUTER_LIPS])
"""Points that tell an expression. With all points, those of the contour too, a face is less the same in all frames."""


@lru_cache(maxsize=1)
def _mesher() -> FaceMesh:
    return FaceMesh()


def matched(square: ByteArray, points: FloatArray) -> ByteArray:
    """Return a finished square with its features where they were drawn; as it is where no mesh fits it.

    Parameters
    ----------
    square : ndarray of shape (size, size, 3)
    points : ndarray of shape (478, 2)
        Where they were drawn, in sides of the square.
    """
    size = len(square)
    painted, presence = _mesher().locate(square, size * points - 0.5)
    if presence < _MIN_PRESENCE:
        return square
    at, wanted = (painted[_FEATURES, :2] + 0.5) / size, points[_FEATURES]
    return square if np.abs(at - wanted).max() > _MAX_OFF else bent([square], [at], wanted)[0]
