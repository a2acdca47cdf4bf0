"""Scoring an attacker: ties are ties."""

import numpy as np
from numpy.typing import ArrayLike

from ksame.faces.faceset import FloatArray

TIE = 1e-7
"""Share of the largest distance below which two distances are the same. k-Same makes exact ties, and matrix products
break them falsely: scored by plain argmin a correct release can seem to exceed 1/k."""


def rank1_scores(distances: FloatArray, gallery: ArrayLike, probes: ArrayLike) -> FloatArray:
    """Return for every probe the chance that its best match is right, (n_probes,).

    A probe whose m nearest gallery faces are equally near, t of them showing the right person, scores t/m.

    Parameters
    ----------
    distances : ndarray of shape (n_probes, n_gallery)
    gallery, probes : array of subjects, of shape (n_gallery,) and (n_probes,)

    Examples
    --------
    >>> rank1_scores(np.array([[0.0, 0.0, 1.0], [2.0, 1.0, 3.0]]), ["ann", "bob", "eve"], ["ann", "bob"])
    array([0.5, 1. ])
    """
    best = distances.min(axis=1, keepdims=True)
    tied = distances <= best + TIE * max(float(distances.max()), 1e-300)
    right = np.asarray(gallery)[None, :] == np.asarray(probes)[:, None]
    return np.asarray((tied & right).sum(axis=1) / tied.sum(axis=1), dtype=np.float64)
