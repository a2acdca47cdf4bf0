"""Scoring an attacker: ranks, verification, intervals and verdicts. Ties are ties.

k-Same makes exact ties, and matrix products break them falsely: scored by plain argmin a correct release can seem to
exceed 1/k. Everything here takes distances that differ by less than a share of the largest one for the same, and what
an attacker would have to decide at random enters as its expectation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from ksame.arrays import FloatArray
from ksame.errors import InputError, parameter_error

TIE = 1e-7
"""Share of the largest distance below which two distances are the same."""

_ENOUGH = 0.05
"""However small a bound, a rate above this has to be excluded before it is said to hold."""


def _tolerance(distances: FloatArray) -> float:
    finite = distances[np.isfinite(distances)]
    return TIE * max(float(np.abs(finite).max()) if finite.size else 0.0, 1e-300)


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
    tied = distances <= distances.min(axis=1, keepdims=True) + _tolerance(distances)
    right = np.asarray(gallery)[None, :] == np.asarray(probes)[:, None]
    return np.asarray((tied & right).sum(axis=1) / tied.sum(axis=1), dtype=np.float64)


def _places(distances: FloatArray, gallery: ArrayLike, probes: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return for every probe how many subjects are nearer than the right one, and how many tie with it, itself too.

    A subject is as near as its nearest image. Where the right one is not in the gallery, infinitely many are nearer.
    """
    who, index = np.unique(np.asarray(gallery), return_inverse=True)
    nearest = np.full((len(distances), len(who)), np.inf)
    for j, subject in enumerate(index):
        nearest[:, subject] = np.minimum(nearest[:, subject], distances[:, j])
    column = np.searchsorted(who, np.asarray(probes)).clip(max=len(who) - 1)
    in_gallery = who[column] == np.asarray(probes)
    own = nearest[np.arange(len(nearest)), column][:, None]
    tolerance = _tolerance(distances)
    before = (nearest < own - tolerance).sum(axis=1)
    tied = (np.abs(nearest - own) <= tolerance).sum(axis=1)
    return np.where(in_gallery, before, np.inf), np.where(in_gallery, np.maximum(tied, 1), 1).astype(np.float64)


def cmc(distances: FloatArray, gallery: ArrayLike, probes: ArrayLike, max_rank: int = 50) -> FloatArray:
    """Return the cumulative match characteristic, (max_rank,): how often the right subject is among the first r.

    Subjects, not images, are ranked, each by its nearest image; a group of ties is entered in random order.

    Examples
    --------
    >>> cmc(np.array([[0.0, 0.0, 1.0], [2.0, 1.0, 3.0]]), ["ann", "bob", "eve"], ["ann", "eve"], 3)
    array([0.25, 0.5 , 1.  ])
    """
    if max_rank < 1:
        raise parameter_error("max_rank", "cmc", "a positive integer", max_rank)
    before, tied = _places(distances, gallery, probes)
    ranks = np.arange(1, max_rank + 1)
    within = np.clip((ranks[None, :] - before[:, None]) / tied[:, None], 0.0, 1.0)
    return np.asarray(within.mean(axis=0))


@dataclass(frozen=True, eq=False)
class Roc:
    """Verification: pairs of a probe and a gallery face are taken for one person when their distance is small."""

    far: FloatArray  # (n_thresholds + 1,): false accept rate, from 0 to 1, rising
    # (n_thresholds + 1,): true accept rate at the same thresholds. Between two thresholds an attacker may decide at
    # random, so the curve is the straight line between them
    tar: FloatArray

    def eer(self) -> float:
        """Return the equal error rate: where false accepts are as frequent as false rejects."""
        gap = self.far - (1.0 - self.tar)
        after = int(np.argmax(gap >= 0))
        if gap[after] == 0:
            return float(self.far[after])
        weight = gap[after] / (gap[after] - gap[after - 1])
        return float(self.far[after] + weight * (self.far[after - 1] - self.far[after]))

    def tar_at(self, far: float) -> float:
        """Return the true accept rate at a false accept rate."""
        if not 0.0 <= far <= 1.0:
            raise parameter_error("far", "Roc.tar_at", "a rate in [0, 1]", far)
        at = int(np.searchsorted(self.far, far, side="right")) - 1
        if at + 1 == len(self.far) or self.far[at] == far:
            return float(self.tar[at])
        share = (far - self.far[at]) / (self.far[at + 1] - self.far[at])
        return float(self.tar[at] + share * (self.tar[at + 1] - self.tar[at]))


def roc(distances: FloatArray, gallery: ArrayLike, probes: ArrayLike) -> Roc:
    """Return the verification curve over all pairs of a probe and a gallery face.

    Raises InputError when no pair shows one person, or none shows two.

    Examples
    --------
    >>> curve = roc(np.array([[0.0, 2.0], [1.0, 3.0]]), ["ann", "bob"], ["ann", "bob"])
    >>> curve.far, curve.tar
    (array([0. , 0. , 0.5, 1. , 1. ]), array([0. , 0.5, 0.5, 0.5, 1. ]))
    >>> curve.eer(), curve.tar_at(0.25)
    (0.5, 0.5)
    """
    same = (np.asarray(gallery)[None, :] == np.asarray(probes)[:, None]).ravel()
    n_same, n_other = int(same.sum()), int((~same).sum())
    if not n_same or not n_other:
        raise InputError(
            f"Verification needs pairs of one person and pairs of two. Got {n_same} and {n_other}; "
            "add faces of more people, or of the same people."
        )
    flat = distances.ravel()
    order = np.argsort(flat, kind="stable")
    new = np.diff(flat[order]) > _tolerance(distances)
    ends = np.append(np.flatnonzero(new), len(flat) - 1)
    right = np.cumsum(same[order])[ends]
    tar = np.concatenate([[0.0], right / n_same])
    far = np.concatenate([[0.0], (ends + 1 - right) / n_other])
    return Roc(far, tar)


def clopper_pearson(successes: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact binomial interval of a rate (Clopper and Pearson 1934).

    Parameters
    ----------
    successes : float
        In [0, n]; ties make it a fraction, for which the beta distribution interpolates.
    level : float
        How often the interval covers the true rate, at least.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 10)
    >>> low, round(high, 4)
    (0.0, 0.3085)
    """
    from scipy.stats import beta

    if n < 1:
        raise parameter_error("n", "clopper_pearson", "a positive integer", n)
    if not -1e-9 <= successes <= n + 1e-9:
        raise parameter_error("successes", "clopper_pearson", f"a number in [0, {n}]", successes)
    if not 0.0 < level < 1.0:
        raise parameter_error("level", "clopper_pearson", "a share in (0, 1)", level)
    tail = (1.0 - level) / 2.0
    low = 0.0 if successes <= 1e-9 else float(beta.ppf(tail, successes, n - successes + 1.0))
    high = 1.0 if successes >= n - 1e-9 else float(beta.ppf(1.0 - tail, successes + 1.0, n - successes))
    return low, high


class Verdict(str, Enum):
    """What a measured rate says about a promised bound."""

    HOLDS = "holds"
    BROKEN = "broken"
    TOO_FEW = "too few faces to say"


def verdict(rate: float, n: int, bound: float | None) -> Verdict | None:
    """Judge a rate measured on n faces against a promised bound; None where nothing was promised.

    *Broken* when the whole 95 % interval lies above the bound. *Holds* when the rate is not above the bound and the
    interval excludes the rate that two guesses in place of one would reach, 1 - (1 - bound)² (5 % where the bound is
    smaller than that allows): a rate that meets its bound exactly, as k-Same's do, can never have its interval below
    it. *Too few* otherwise.

    Examples
    --------
    >>> verdict(0.2, 100, 0.2).value, verdict(0.4, 100, 0.2).value, verdict(0.2, 5, 0.2).value
    ('holds', 'broken', 'too few faces to say')
    """
    if bound is None:
        return None
    low, high = clopper_pearson(rate * n, n)
    if low > bound + 1e-9:
        return Verdict.BROKEN
    if rate <= bound + 1e-9 and high <= max(1.0 - (1.0 - bound) ** 2, _ENOUGH):
        return Verdict.HOLDS
    return Verdict.TOO_FEW
