"""The last look at the bytes: whatever a method promises, it must not release an original.

k people who share one person's photograph are k people by the count, and (epsilon,k)-map with a large weight of change
changes nothing. No promise excludes either, so this guard does, for all methods.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame import scratch
from ksame.arrays import ByteArray, FloatArray, IntArray, members
from ksame.faces.faceset import quantise
from ksame.privacy.models import Evidence, patterns

GREY_LEVELS = 2.0
"""Root mean square difference, of 255, below which a released face is an original: what saving as JPEG changes."""

SHARE = 0.1
"""Share of the distance between people, in the method's own coding, below which a released face is an original."""


def too_near(evidence: Evidence, originals: NDArray[Any]) -> dict[int, str]:
    """Return released faces that are nearly one of the originals they stand for, and why they must not be shown.

    ``originals`` are the images, (n_originals, height, width, channels) in [0, 1]; pixels are compared where they have
    the size of the released faces.
    """
    close = SHARE * 4.0 * evidence.originals.scale()  # a scale is a quarter of the distance between people
    reasons: dict[int, str] = {}
    for shown in members(patterns(evidence.released)):
        copies = shown.tolist()
        sources = np.array(sorted({i for c in copies for i in evidence.sources[c]}), dtype=np.intp)
        face, code = evidence.released[copies[0]], evidence.codes[copies[0]]
        if face.shape == originals.shape[1:] and _grey_levels(originals, sources, face) < GREY_LEVELS:
            reason = f"differs from one original by less than {GREY_LEVELS:g} grey levels"
        elif _distance(evidence.originals.codes, sources, code) < close:
            reason = f"is nearer to one original than {SHARE:g} of the distance between people"
        else:
            continue
        reasons.update(dict.fromkeys(copies, reason))
    return reasons


def _grey_levels(originals: NDArray[Any], sources: IntArray, face: ByteArray) -> float:
    """Return the smallest root mean square difference between a face and its originals."""
    smallest = math.inf
    for part in scratch.blocks(len(sources), face.size * 8):
        difference = quantise(originals[sources[part]]).astype(np.float64) - face
        smallest = min(smallest, float(np.sqrt((difference**2).mean(axis=(1, 2, 3))).min()))
    return smallest


def _distance(codes: FloatArray, sources: IntArray, code: FloatArray) -> float:
    """Return the smallest distance between a code and those of its originals."""
    parts = scratch.blocks(len(sources), scratch.row_size(codes))
    return min(float(np.linalg.norm(codes[sources[part]] - code, axis=1).min()) for part in parts)
