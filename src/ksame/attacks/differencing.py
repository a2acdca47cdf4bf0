"""Differencing: two releases of the same people, one subtracted from the other.

A group of c people shows their mean r. When one of them leaves and the others get a new mean s, then c r - (c - 1) s is
the original of the one who left, but for rounding. The copies in the two public folders tell c.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.attacks.arithmetic import CLOSE, spacing
from ksame.spaces.reference import cross_squared_distances

_PARTNERS = 8
"""Each face that is gone is compared with this many of the nearest new ones: groups that share people look alike."""


@dataclass(frozen=True, eq=False)
class DistinctFaces:
    """The distinct faces of one release."""

    codes: FloatArray  # (n_distinct, n_features)
    copies: NDArray[np.intp]  # (n_distinct,)
    people: tuple[frozenset[str], ...]  # whom each stands for: the truth, used by scoring only


@dataclass(frozen=True, eq=False)
class Difference:
    """What the difference of two faces says."""

    distances: FloatArray  # (n_originals,): how far each original is from the person who makes the difference
    people: frozenset[str]  # who really makes it; empty where the two faces have nothing to do with each other


def differences(gone: DistinctFaces, new: DistinctFaces, originals: FloatArray) -> list[Difference]:
    """Subtract from each face of ``gone`` the face of ``new`` that best explains that somebody left or joined.

    ``gone`` are faces of the earlier release only, ``new`` of the later one only. Where differences lie close to an
    original, the attacker trusts only those.
    """
    if not len(gone.codes) or not len(new.codes):
        return []
    nearest = np.argsort(cross_squared_distances(gone.codes, new.codes), axis=1)[:, :_PARTNERS]
    best = []
    for row, partners in enumerate(nearest):
        pairs = [_difference(gone, row, new, int(column), originals) for column in partners]
        best.append(min(pairs, key=lambda pair: float(pair.distances.min())))
    close = CLOSE * spacing(originals)
    return [difference for difference in best if difference.distances.min() <= close] or best


def _difference(gone: DistinctFaces, row: int, new: DistinctFaces, column: int, originals: FloatArray) -> Difference:
    before, after = int(gone.copies[row]), int(new.copies[column])
    r, s = gone.codes[row], new.codes[column]
    left, joined = gone.people[row] - new.people[column], new.people[column] - gone.people[row]
    if before != after:
        person = (before * r - after * s) / (before - after)
        return Difference(np.linalg.norm(originals - person, axis=1), left if before > after else joined)
    # as many as before: somebody was exchanged, and before * (r - s) is who left less who joined
    squares = cross_squared_distances(before * (r - s) + originals, originals)
    np.fill_diagonal(squares, np.inf)
    return Difference(np.sqrt(squares.min(axis=0)), left)
