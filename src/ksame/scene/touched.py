"""Which pixels of a frame must not be published as they were: all of every region, changed or not.

Where these lie, what is written comes from the composed picture alone; elsewhere the source is taken over with bits
that the composer never sees. So this has to cover every region that is taken away, and may cover more.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.faces.faceset import ByteArray, FloatArray
from ksame.heads.invention import taken_away
from ksame.models import Face
from ksame.scene.composing import Composer, Treatment
from ksame.scene.filling import outline_of
from ksame.scene.media import Frame

_EDGE = np.ones((7, 7), np.uint8)
"""Masks round outlines in their own ways, by a pixel or two."""


class Touched:
    """Tells which pixels of its frames a composer answers for."""

    def __init__(self, composer: Composer) -> None:
        self._composer = composer

    def of(self, frame: Frame, composed: ByteArray) -> NDArray[np.bool_]:
        """Return the pixels, (height, width), of a frame that was composed."""
        if composed is frame.pixels:
            return np.zeros(composed.shape[:2], dtype=bool)
        none = (0.0, 0.0, 0.0)
        changed = np.asarray(cv2.inRange(cv2.absdiff(composed, frame.pixels), none, none)) == 0  # quicker than any()
        begin, end = self._composer.span
        faces = self._composer.cast.at(frame.index) if begin <= frame.time <= end else []
        outlines = [outline for face in faces for outline in self._outlines(face, frame.index)]
        if outlines or self._composer.regions:
            hidden = taken_away(changed.shape, [*outlines, *self._composer.regions])
            changed |= cv2.dilate(hidden.view(np.uint8), _EDGE).view(bool)
        return np.asarray(changed)

    def _outlines(self, face: Face, frame: int) -> list[FloatArray]:
        """Return all that may be taken away for a face: as a head, and as a mask."""
        plan = self._composer.plans[face.person]
        if plan.treatment is Treatment.KEEP:
            return []
        found = [outline_of(face)[0]]
        placed = self._composer.placed(face.track, frame)
        return [*found, placed[1].outline] if placed is not None else found
