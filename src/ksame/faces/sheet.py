"""Contact sheets: many faces on one picture."""

import numpy as np

from ksame.arrays import ByteArray

MAX_FACES = 200
"""On one sheet."""


def contact_sheet(faces: ByteArray, *, columns: int | None = None, gap: int = 2) -> ByteArray:
    """Lay up to ``MAX_FACES`` faces, (n, height, width, channels), out on white, by default about as wide as high."""
    shown = faces[:MAX_FACES]
    n, h, w, c = shown.shape
    across = min(n, columns or max(1, int(np.ceil(np.sqrt(n * h / w)))))
    down = -(-n // across)
    sheet = np.full((down * (h + gap) + gap, across * (w + gap) + gap, c), 255, dtype=np.uint8)
    for i, face in enumerate(shown):
        y, x = gap + (i // across) * (h + gap), gap + (i % across) * (w + gap)
        sheet[y : y + h, x : x + w] = face
    return sheet
