"""A second opinion on one face: BlazeFace (Bazarevsky et al. 2019), the detector that comes with the face mesh.

It was trained by others on other pictures than YuNet, so that what deceives one rarely deceives both. It detects faces
that fill a fifth of its small picture or more, so it gets crops, not whole photographs.
"""

from __future__ import annotations

import threading

import numpy as np

from ksame.arrays import ByteArray, FloatArray
from ksame.models.landmarker import read_landmarker
from ksame.models.litert import Network
from ksame.models.store import Store

SIDE = 128
"""Side in pixels of the crop that the network takes."""
# Pixels between anchors, and anchors at each place: MediaPipe's face_detection_short_range.
_LAYERS = ((8, 2), (16, 6))


def _anchors() -> FloatArray:
    """Return the places the network measures from, (896, 2), in pixels."""
    places = []
    for stride, count in _LAYERS:
        steps = np.arange(stride / 2, SIDE, stride)
        grid = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
        places.append(np.repeat(grid, count, axis=0))
    return np.concatenate(places)


class BlazeFace:
    """MediaPipe's short-range face detector, its weights from ``store``. Several threads may use one object."""

    def __init__(self, store: Store | None = None) -> None:
        self._content = read_landmarker((store or Store()).path("face-landmarker")).detector
        self._anchors = _anchors()
        self._local = threading.local()

    def detect(self, crop: ByteArray) -> tuple[FloatArray, FloatArray]:
        """Return every box that the network considers and its logit, for an upright RGB crop of shape (128, 128, 3).

        Returns
        -------
        boxes : ndarray of shape (896, 4)
            Left, top, width and height in pixels of the crop.
        logits : ndarray of shape (896,)
            Above 0 where a face is likelier than none.
        """
        network = getattr(self._local, "network", None)
        if network is None:
            network = self._local.network = Network.of(self._content)
        logits, raw = network.run(crop.astype(np.float32) / 127.5 - 1)
        centres = raw[0, :, :2] + self._anchors
        sizes = raw[0, :, 2:4].astype(np.float64)
        return np.concatenate([centres - sizes / 2, sizes], axis=1), logits.reshape(-1).astype(np.float64)
