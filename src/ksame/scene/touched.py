"""Which pixels of a frame must not be published as they were: all of every region, changed or not.

Where these lie, what is written comes from the composed picture alone; elsewhere the source is taken over with bits
that the composer never sees. So this has to cover every region that is taken away, and may cover more.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.faces.faceset import ByteArray, FloatArray
from ksame.heads.head import Head, Region
from ksame.heads.invention import taken_away
from ksame.models import Face
from ksame.scene.composing import Composer, Treatment
from ksame.scene.filling import outline_of
from ksame.scene.media import Frame
from ksame.scene.neutral import neutral_of

_EDGE = np.ones((7, 7), np.uint8)
"""Masks round outlines in their own ways, by a pixel or two."""


class Touched:
    """Tells which pixels of its frames a composer answers for."""

    def __init__(self, composer: Composer) -> None:
        self._composer = composer
        self._tracks = {track.number: track for track in composer.cast.tracks}
        self._neutrals: dict[int, FloatArray | None] = {}

    def of(self, frame: Frame, composed: ByteArray) -> NDArray[np.bool_]:
        """Return the pixels, (height, width), of a frame that was composed."""
        if composed is frame.pixels:
            return np.zeros(composed.shape[:2], dtype=bool)
        red, green, blue = cv2.split(cv2.absdiff(composed, frame.pixels))  # quicker than any() over the last axis
        changed = np.asarray(cv2.bitwise_or(cv2.bitwise_or(red, green), blue)) > 0
        begin, end = self._composer.span
        faces = self._composer.cast.at(frame.index) if begin <= frame.time <= end else []
        outlines = [outline for face in faces for outline in self._outlines(face)]
        if outlines or self._composer.regions:
            hidden = taken_away(changed.shape, [*outlines, *self._composer.regions]).astype(np.uint8)
            changed |= cv2.dilate(hidden, _EDGE).astype(bool)
        return np.asarray(changed)

    def _outlines(self, face: Face) -> list[FloatArray]:
        """Return all that may be taken away for a face: as a head, and as a mask."""
        plan = self._composer.plans[face.person]
        if plan.treatment is Treatment.KEEP:
            return []
        found = [outline_of(face)[0]]
        neutral = self._neutral(face.track)
        if face.mesh is not None and neutral is not None:
            found.append(Region.of(Head.of(face.mesh.points), neutral, plan.cover).outline)
        return found

    def _neutral(self, track: int) -> FloatArray | None:
        if track not in self._neutrals:
            self._neutrals[track] = neutral_of(self._tracks[track])
        return self._neutrals[track]
