"""YuNet (Wu et al. 2023) on one picture of about its own scale: boxes, five points and scores.

The network measures from the corners of a grid, at three strides. Its answers are decoded as OpenCV's
``FaceDetectorYN`` does, and of boxes that overlap the one with the highest score is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ksame.arrays import ByteArray, FloatArray
from ksame.models.blocked import mended
from ksame.models.runtime import session

SAME = 0.3
"""Overlap (intersection over union) above which two boxes are one face."""
_STRIDES = (8, 16, 32)
_OUTPUTS = [f"{kind}_{stride}" for stride in _STRIDES for kind in ("cls", "obj", "bbox", "kps")]
_MAX_BOXES = 5000  # with the highest scores, that are compared with each other


class YuNet:
    """The network; one object may be used from several threads, each of which works alone."""

    def __init__(self, file: Path) -> None:
        weights = mended(file.read_bytes(), any_size=True)
        self._session: Any = session(weights, threads=1, weights_only=True)

    def detect(self, rgb: ByteArray, score: float) -> FloatArray:
        """Return the faces of a picture, (n_faces, 15): box, five points and score, highest score first.

        Parameters
        ----------
        rgb : ndarray of shape (height, width, 3)
        score : float
            Lowest score that counts.
        """
        missing = [-side % _STRIDES[-1] for side in rgb.shape[:2]]
        if any(missing):
            rgb = np.asarray(cv2.copyMakeBorder(rgb, 0, missing[0], 0, missing[1], cv2.BORDER_CONSTANT))
        answers = self._session.run(_OUTPUTS, {"input": cv2.dnn.blobFromImage(rgb, swapRB=True)})
        rows = [
            _decoded([answer[0] for answer in answers[4 * i : 4 * i + 4]], stride, rgb.shape[1] // stride, score)
            for i, stride in enumerate(_STRIDES)
        ]
        faces = np.concatenate(rows)
        boxes, scores = np.trunc(faces[:, :4]).tolist(), faces[:, 14].tolist()
        return faces[np.array(cv2.dnn.NMSBoxes(boxes, scores, score, SAME, top_k=_MAX_BOXES), dtype=np.intp)]


def _decoded(answers: Sequence[FloatArray], stride: int, columns: int, score: float) -> FloatArray:
    """Return rows, (n, 15), for the places of one grid with a score of at least ``score``."""
    face, object_, box, points = answers
    scores = np.sqrt(face[:, 0].clip(0, 1) * object_[:, 0].clip(0, 1))
    at = np.flatnonzero(scores >= score)
    corner = np.stack([at % columns, at // columns], axis=1)
    size = np.exp(box[at, 2:])
    centre = corner + box[at, :2]
    marks = points[at] + np.tile(corner, 5)
    return np.concatenate([stride * np.concatenate([centre - size / 2, size, marks], axis=1), scores[at, None]], axis=1)


@lru_cache(maxsize=2)
def yunet(file: Path) -> YuNet:
    """Return the network of a file, loaded once."""
    return YuNet(file)
