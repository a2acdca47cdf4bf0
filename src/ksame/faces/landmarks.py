"""Which landmark is which, for every point scheme the package knows."""

import numpy as np

from ksame.arrays import FloatArray
from ksame.errors import InputError

EYES_AND_NOSE = ("left_eye", "right_eye", "nose")
"""The three points of Newton et al. (2005, section 5.1); left and right as seen in the image."""

# For each scheme, known by its number of points: the points whose mean is the left eye, the right eye, the nose tip.
_SCHEMES: dict[int, tuple[list[int], list[int], list[int]]] = {
    3: ([0], [1], [2]),
    68: (list(range(36, 42)), list(range(42, 48)), [30]),
    468: ([33, 133], [362, 263], [1]),
    478: ([33, 133], [362, 263], [1]),
}


def eyes_and_nose(landmarks: FloatArray) -> FloatArray:
    """Reduce landmarks of shape (n_faces, n_points, 2 or 3) to left eye, right eye and nose, (n_faces, 3, 2)."""
    scheme = _SCHEMES.get(landmarks.shape[1])
    if scheme is None:
        raise InputError(
            f"Landmarks must have one of {sorted(_SCHEMES)} points to find eyes and nose. Got {landmarks.shape[1]}."
        )
    return np.stack([landmarks[:, index, :2].mean(axis=1) for index in scheme], axis=1)
