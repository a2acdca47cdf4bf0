"""Cutting a large set of codes into leaves of near faces, so that each can be grouped by itself."""

from __future__ import annotations

import numpy as np

from ksame import scratch
from ksame.arrays import FloatArray, IntArray
from ksame.spaces.pca import fit_pca

_SAMPLE = 512  # rows, at least, from which the direction of a cut is learned
_DIGITS = 6  # of a direction; more would depend on the machine and the number of threads


def cut(codes: FloatArray, rows: IntArray, parts: int) -> list[IntArray]:
    """Split rows into ``parts`` leaves of nearly one size, each time across the direction in which they vary most.

    ``rows`` are rising indices into codes of shape (n, n_features), and so are the leaves; at most ``len(rows)`` parts.
    """
    if parts == 1:
        return [rows]
    fewer = parts // 2
    place = _along_main_direction(codes, rows)
    order = np.argsort(place, kind="stable")
    at = len(rows) * fewer // parts
    near, far = np.sort(rows[order[:at]]), np.sort(rows[order[at:]])
    return [*cut(codes, near, fewer), *cut(codes, far, parts - fewer)]


def _along_main_direction(codes: FloatArray, rows: IntArray) -> FloatArray:
    """Return how far along the first principal direction each row lies, rounded, so that ties are ties anywhere."""
    sample = np.asarray(codes[rows[:: max(1, len(rows) // _SAMPLE)]], dtype=np.float64)
    direction = np.round(fit_pca(sample, 1).components[0], _DIGITS)
    place = np.empty(len(rows))
    for part in scratch.blocks(len(rows), codes.shape[1] * 8):
        place[part] = codes[rows[part]] @ direction
    widest = float(np.abs(place).max())
    return place if widest == 0 else np.round(place, decimals=10 - int(np.ceil(np.log10(widest))))
