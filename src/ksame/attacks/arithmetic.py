"""Attacks by arithmetic on codes: they compare no faces, they add and subtract them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from ksame.arrays import FloatArray, IntArray
from ksame.faces.faceset import subject_means
from ksame.spaces.pca import fit_pca
from ksame.spaces.reference import cross_squared_distances

CLOSE = 0.2
"""Share of the median distance to the nearest other original within which two differences coincide. Rounding to 8 bits
and clipping at black and white disturb a difference by less."""

_PARTNERS = 200
"""Each face is paired with this many of its nearest, which bounds time and memory for large sets."""

_DIRECTIONS = 16
"""Coincidences are sought in the directions of largest variance, which every coding keeps: a face space of the method's
own drops or adds detail in the others."""


def difference_votes(released: FloatArray, originals: FloatArray) -> FloatArray:
    """Count for every released face and original how many other pairs agree with this pair, (n_released, n_originals).

    k-Diff-furthest moves all faces of a cluster by one vector (Sun et al. 2015, eq. 1), so that the difference between
    two released faces is the difference between their originals. The pairing of i with j gets a vote from that of i'
    with j' whenever r_i - r_i' and x_j - x_j' coincide, that is, r_i - x_j and r_i' - x_j' do. ``released`` is of shape
    (n_released, n_features). ``originals`` is of shape (n_originals, n_features).
    """
    votes = np.zeros((len(released), len(originals)))
    if len(released) < 2 or len(originals) < 2:
        return votes
    pca = fit_pca(originals, min(_DIRECTIONS, len(originals) - 1, originals.shape[1]))
    r, x = pca.project(released), pca.project(originals)
    radius = CLOSE * spacing(x)
    i, other_i, _ = _pairs(r)
    j, other_j, apart = _pairs(x)
    telling = apart > 2.0 * radius  # the difference of twins is that of any twins
    j, other_j = j[telling], other_j[telling]
    if not radius > 0 or not len(i) or not len(j):
        return votes
    tree = cKDTree(x[j] - x[other_j])
    near, index = tree.query(r[i] - r[other_i], k=range(1, min(8, len(j)) + 1), distance_upper_bound=radius)
    row, column = np.nonzero(np.isfinite(near))
    np.add.at(votes, (i[row], j[index[row, column]]), 1.0)
    return votes


def spacing(codes: FloatArray) -> float:
    """Return the median distance of a row to the nearest row that differs from it."""
    nearest = _to_others(codes).min(axis=1)
    finite = nearest[np.isfinite(nearest)]
    return float(np.sqrt(np.median(finite))) if len(finite) else 0.0


def _to_others(codes: FloatArray) -> FloatArray:
    """Return squared distances between rows, (n_rows, n_rows); equal rows are infinitely far apart."""
    distances = cross_squared_distances(codes, codes)
    distances[distances <= 1e-9 * distances.max()] = np.inf
    return distances


def _pairs(codes: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return every row with its nearest others: two lists of rows, and how far apart. Equal rows make no pair."""
    distances = _to_others(codes)
    count = min(_PARTNERS, len(codes) - 1)
    others = np.argpartition(distances, count - 1, axis=1)[:, :count].ravel()
    rows = np.repeat(np.arange(len(codes)), count)
    apart = np.sqrt(distances[rows, others])
    kept = np.isfinite(apart)
    return rows[kept], others[kept], apart[kept]


def insider_codes(
    released: FloatArray,
    which: NDArray[np.intp],
    truth: Sequence[str] | NDArray[np.str_],
    originals: FloatArray,
    subjects: ArrayLike,
) -> tuple[FloatArray, IntArray]:
    """Return what an insider computes for every released face: k times the shared face, less the members they know.

    Somebody who knows all members of a k-Same group but one, and their originals, gets the original of the last one up
    to rounding: the mean hides nobody from the others (Newton et al. 2005 promise nothing of the kind). ``released`` is
    of shape (n_released, n_features); ``which`` says which of them are equal, and so form a group; ``truth`` whom each
    stands for. ``originals`` is of shape (n_originals, n_features). Returned are codes of the shape of ``released``,
    and how many people share each face, (n_released,).
    """
    means, who = subject_means(originals, np.asarray(subjects))
    row = {str(subject): i for i, subject in enumerate(who)}
    computed = np.array(released, dtype=np.float64)
    members = np.ones(len(released), dtype=np.intp)
    people = np.asarray(truth)
    for group in np.unique(which):
        inside = np.flatnonzero(which == group)
        shared = [row[subject] for subject in map(str, np.unique(people[inside])) if subject in row]
        total, members[inside] = means[shared].sum(axis=0), len(shared)
        for i in inside:
            if len(shared) > 1 and str(people[i]) in row:
                computed[i] = len(shared) * released[i] - (total - means[row[str(people[i])]])
    return computed, members
