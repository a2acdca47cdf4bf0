"""Which pixels of a frame must not be published as they were: all of every region, changed or not.

Where these lie, what is written comes from the rendered picture alone; elsewhere the source is taken over with bits
that the renderer never sees. So this has to cover every region that is taken away, and may cover more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray
from ksame.heads.head import filled
from ksame.heads.invention import spread_of, taken_away
from ksame.scene.media import Frame
from ksame.scene.render.filling import outline_of, window_of
from ksame.scene.render.renderer import Renderer

_EDGE = np.ones((7, 7), np.uint8)  # masks round outlines in their own ways, by a pixel or two
_STRIP = 256  # rows that are compared at a time, by choice: large frames take less memory
_MASK_SPREAD = 4  # pixels beyond its outline that a mask may change, the edge included
Part = tuple[tuple[slice, slice], NDArray[np.bool_]]
"""A window of a frame, and the pixels in it that are meant."""


def changed_region(renderer: Renderer, frame: Frame, rendered: ByteArray) -> NDArray[np.bool_]:
    """Return the pixels, (height, width), that a renderer answers for.

    Parameters
    ----------
    rendered : ndarray of shape (height, width, 3)
        What the renderer made of the frame.
    """
    if rendered is frame.pixels:
        return np.zeros(rendered.shape[:2], dtype=bool)
    changed = np.empty(rendered.shape[:2], dtype=bool)
    for top in range(0, len(changed), _STRIP):
        rows = slice(top, top + _STRIP)
        differs = cv2.compare(rendered[rows], frame.pixels[rows], cv2.CMP_NE)
        changed[rows] = cv2.cvtColor(differs, cv2.COLOR_RGB2GRAY)  # 0 only where all colours are; quicker than any()
    outlines = renderer.plan(frame.index, frame.time).outlines
    if outlines:
        changed |= cv2.dilate(taken_away(changed.shape, outlines).view(np.uint8), _EDGE).view(bool)
    return np.asarray(changed)


def owned_parts(renderer: Renderer, frame: Frame) -> Iterator[tuple[str, Part]]:
    """Yield who is changed in a frame, and all pixels that may be changed because of them, or more."""
    plan = renderer.plan(frame.index, frame.time)
    for track, invention in plan.heads.items():
        region = invention.region
        yield renderer.person(track), _grown(frame.pixels.shape, region.outline, spread_of(region.side))
    for face, _ in plan.masked:
        yield face.person, _grown(frame.pixels.shape, outline_of(face)[0], _MASK_SPREAD)


def filled_parts(shape: tuple[int, ...], outlines: Sequence[FloatArray]) -> list[Part]:
    """Return the pixels that may be changed because of outlines that are filled."""
    return [_grown(shape, outline, _MASK_SPREAD) for outline in outlines]


def _grown(shape: tuple[int, ...], outline: FloatArray, spread: int) -> Part:
    window = window_of(outline, shape, margin=spread + 1)
    size = tuple(each.stop - each.start for each in window)
    if not all(size):
        return window, np.zeros(size, dtype=bool)
    inside = filled(size, outline - np.array([window[1].start, window[0].start]))
    return window, cv2.dilate(inside, np.ones((2 * spread + 1, 2 * spread + 1), np.uint8)) > 0
