"""Which pixels of a frame must not be published as they were: all of every region, changed or not.

Where these lie, what is written comes from the rendered picture alone; elsewhere the source is taken over with bits
that the renderer never sees. So this has to cover every region that is taken away, and may cover more.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray
from ksame.heads.invention import taken_away
from ksame.scene.media import Frame
from ksame.scene.render.renderer import Renderer

_EDGE = np.ones((7, 7), np.uint8)  # masks round outlines in their own ways, by a pixel or two
_STRIP = 256  # rows that are compared at a time, by choice: large frames take less memory


def changed_region(renderer: Renderer, frame: Frame, rendered: ByteArray) -> NDArray[np.bool_]:
    """Return the pixels, (height, width), that a renderer answers for.

    Parameters
    ----------
    rendered : ndarray of shape (height, width, 3)
        What the renderer made of the frame.
    """
    if rendered is frame.pixels:
        return np.zeros(rendered.shape[:2], dtype=bool)
    none = (0.0, 0.0, 0.0)
    changed = np.empty(rendered.shape[:2], dtype=bool)
    for top in range(0, len(changed), _STRIP):
        rows = slice(top, top + _STRIP)
        # quicker than any()
        np.equal(cv2.inRange(cv2.absdiff(rendered[rows], frame.pixels[rows]), none, none), 0, out=changed[rows])
    outlines = renderer.plan(frame.index, frame.time).outlines
    if outlines:
        changed |= cv2.dilate(taken_away(changed.shape, outlines).view(np.uint8), _EDGE).view(bool)
    return np.asarray(changed)
