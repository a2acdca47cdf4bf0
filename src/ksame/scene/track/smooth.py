"""Smoothing landmarks in time without lag.

A point is compared with a parabola through its neighbours in time, before and after alike (Savitzky and Golay 1964):
slow movement passes unchanged and nothing comes late. What the parabola does not explain is taken for noise where it is
small, and kept where it is large, so that blinks and speech survive. Eyelids and lips get shorter parabolas.
"""

from __future__ import annotations

import numpy as np

from ksame.arrays import FloatArray
from ksame.scene.track.tracks import N_POINTS

# fmt: off
_LIPS = (
    0, 11, 12, 13, 14, 15, 16, 17, 37, 38, 39, 40, 41, 42, 61, 62, 72, 73, 74, 76, 77, 78, 80, 81, 82, 84, 85, 86, 87,
    88, 89, 90, 91, 95, 96, 146, 178, 179, 180, 181, 183, 184, 185, 191, 267, 268, 269, 270, 271, 272, 291, 292, 302,
    303, 304, 306, 307, 308, 310, 311, 312, 314, 315, 316, 317, 318, 319, 320, 321, 324, 325, 375, 402, 403, 404, 405,
    407, 408, 409, 415,
)
_EYES = (
    7, 22, 23, 24, 25, 26, 27, 28, 29, 30, 33, 56, 110, 112, 130, 133, 144, 145, 153, 154, 155, 157, 158, 159, 160, 161,
    163, 173, 190, 243, 246, 247, 249, 252, 253, 254, 255, 256, 257, 258, 259, 260, 263, 286, 339, 341, 359, 362, 373,
    374, 380, 381, 382, 384, 385, 386, 387, 388, 390, 398, 414, 463, 466, 467, *range(468, 478),
)
# fmt: on
_QUICK = np.zeros(N_POINTS, dtype=bool)
_QUICK[list(_LIPS + _EYES)] = True
_CALM_HALF, _QUICK_HALF = 3, 2  # frames on either side
_CALM_NOISE, _QUICK_NOISE = 0.012, 0.008  # deviations taken for noise, in distances between the eyes
CONTEXT = _CALM_HALF
"""How many frames on either side of a part are needed to smooth it."""


def smooth(points: FloatArray, *, head: bool = True, tail: bool = True) -> FloatArray:
    """Smooth meshes of consecutive frames, (n_frames, 478, 3), without NaN.

    Without ``head`` or ``tail`` the first or last ``CONTEXT`` frames are context only, and come back unsmoothed.
    """
    eyes = np.hypot(*(points[:, 33, :2] - points[:, 263, :2]).T)[:, None, None]
    depth = np.abs(points[:, 33, 2] - points[:, 263, 2])[:, None, None]
    size = np.hypot(eyes, depth)  # of the head, however it is turned
    out = points.copy()
    for which, half, noise in ((~_QUICK, _CALM_HALF, _CALM_NOISE), (_QUICK, _QUICK_HALF, _QUICK_NOISE)):
        raw = points[:, which]
        even = _parabola(raw, half, head=head, tail=tail)
        rest = raw - even
        far = np.sqrt((rest[..., :2] ** 2).sum(axis=-1, keepdims=True)) / (noise * size)
        out[:, which] = even + rest * np.clip(2 * far - 1, 0, 1)
    return out


def _parabola(values: FloatArray, half: int, *, head: bool, tail: bool) -> FloatArray:
    """Return the middles of least-squares parabolas over 2 half + 1 frames; fewer towards the ends."""
    n = len(values)
    out = values.copy()
    for reach in range(2, half + 1):
        weights = np.linalg.pinv(np.vander(np.arange(-reach, reach + 1), 3))[-1]  # scipy.signal takes 74 MB to load
        low, high = reach, n - reach
        if high <= low:
            break
        ends = [(low, low + 1)] * head + [(high - 1, high)] * tail
        spans = ends if reach < half else [(low, high)]
        for begin, end in spans:
            out[begin:end] = sum(
                w * values[begin + shift : end + shift]
                for w, shift in zip(weights, range(-reach, reach + 1), strict=True)
            )
    return out
