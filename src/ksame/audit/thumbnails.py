"""Small pictures for the report, as data URIs."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ksame.arrays import ByteArray
from ksame.audit.pairs import PairCrops
from ksame.audit.result import Exposed, Thumbnails
from ksame.models.pictures import as_rgb8

SIDE = 168
"""Longest side in pixels."""


def thumbnails(exposed: Sequence[Exposed], pairs: Sequence[PairCrops]) -> dict[str, Thumbnails]:
    """Return pictures of the exposed by released name: before, after, and the crop that networks get.

    Where faces were restored, the crop is a restored one.
    """
    by_name = {pair.pair.released.name: pair for pair in pairs}
    pictures = {}
    for face in exposed:
        pair = by_name[face.released]
        wide = [crops.wide for crops in (*pair.restored.values(), pair.after) if crops.wide is not None]
        pictures[face.released] = Thumbnails(
            original=data_uri(pair.pair.original.load()),
            released=data_uri(pair.pair.released.load()),
            seen=data_uri(wide[0] if wide else np.full((8, 8, 3), 127, dtype=np.uint8)),
        )
    return pictures


def data_uri(picture: NDArray[Any]) -> str:
    """Return a small JPEG of a picture of shape (height, width, 1 or 3) that a page can hold."""
    rgb: ByteArray = as_rgb8(picture)
    image = Image.fromarray(rgb)
    image.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG", quality=82, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
