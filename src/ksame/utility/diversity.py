"""How different the faces of a set are from each other (Sun et al. 2015, section IV-C, Table I and Fig. 8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist

from ksame.arrays import FloatArray
from ksame.errors import InputError, parameter_error

SAME = 1e-9
"""Share of the largest distance below which two faces are the same face."""


@dataclass(frozen=True)
class Diversity:
    """Distances between all pairs of faces of a set."""

    n_faces: int
    zeros: int  # pairs that show the same face: what k-Same makes on purpose
    # over all pairs
    smallest: float
    largest: float
    mean: float
    std: float  # standard deviation over the pairs that differ; the paper leaves repeated faces out here, and only here
    counts: tuple[int, ...]  # histogram over all pairs, in equal bins from 0 to ``edge``
    edge: float  # upper end of the last bin


def diversity(codes: FloatArray, *, bins: int = 24, edge: float | None = None) -> Diversity:
    """Measure how far apart faces are.

    Parameters
    ----------
    codes : ndarray of shape (n_faces, n_features)
        Appearance model parameters in the paper; any coding in which distance means likeness.
    bins : int
        Bins of the histogram.
    edge : float, optional
        Upper end of the last bin, to compare sets; the largest distance by default.

    Examples
    --------
    >>> spread = diversity(np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 4.0]]), bins=2)
    >>> spread.zeros, spread.smallest, spread.largest, round(spread.mean, 3), spread.std, spread.counts
    (1, 0.0, 5.0, 3.333, 0.0, (1, 2))
    """
    rows = np.asarray(codes, dtype=np.float64)
    if rows.ndim != 2 or len(rows) < 2:
        raise InputError(
            f"Diversity needs codes of at least two faces, of shape (n_faces, n_features). Got {rows.shape}."
        )
    if bins < 1:
        raise parameter_error("bins", "diversity", "an integer of at least 1", bins)
    distances = pdist(rows)
    largest = float(distances.max())
    same = distances <= SAME * largest
    distances[same] = 0.0
    end = largest if edge is None else edge
    counts, _ = np.histogram(distances.clip(0.0, end), bins=bins, range=(0.0, end or 1.0))
    apart = distances[~same]
    return Diversity(
        n_faces=len(rows),
        zeros=int(same.sum()),
        smallest=float(distances.min()),
        largest=largest,
        mean=float(distances.mean()),
        std=float(apart.std()) if len(apart) else 0.0,
        counts=tuple(int(count) for count in counts),
        edge=float(end),
    )
