"""The last look at the bytes: whatever a method promises, it must not release an original.

k people who share one person's photograph are k people by the count, and (epsilon,k)-map with a large price of change
changes nothing. No promise speaks of either, so one guard does for all of them.
"""

from __future__ import annotations

import numpy as np

from ksame.arrays import ByteArray
from ksame.privacy.models import Evidence, patterns

GREY_LEVELS = 2.0
"""Root mean square difference, of 255, below which a released face is an original: what saving as JPEG changes."""

SHARE = 0.1
"""Share of the distance between people in the method's own coding below which it is; people are as far apart as the
median distance from an original to the nearest one of somebody else."""


def too_near(evidence: Evidence, originals: ByteArray) -> dict[int, str]:
    """Return released faces that are nearly one of the originals they stand for, and why they must not be shown.

    Parameters
    ----------
    originals : ndarray of shape (n_originals, height, width, channels), uint8
        The images themselves; bytes are compared where they have the size of the released faces.
    """
    pattern = patterns(evidence.released)
    close = SHARE * 4.0 * evidence.originals.scale()
    found: dict[int, str] = {}
    for p in range(int(pattern.max()) + 1):
        copies = np.flatnonzero(pattern == p).tolist()
        sources = sorted({i for c in copies for i in evidence.sources[c]})
        face = evidence.released[copies[0]]
        reason = None
        if face.shape == originals.shape[1:]:
            difference = originals[sources].astype(np.float64) - face
            if np.sqrt((difference**2).mean(axis=(1, 2, 3))).min() < GREY_LEVELS:
                reason = f"differs from one original by less than {GREY_LEVELS:g} grey levels"
        apart = np.linalg.norm(evidence.originals.codes[sources] - evidence.codes[copies[0]], axis=1).min()
        if reason is None and apart < close:
            reason = f"is nearer to one original than {SHARE:g} of the distance between people"
        if reason is not None:
            found.update(dict.fromkeys(copies, reason))
    return found
