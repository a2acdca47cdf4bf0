"""Grouping of codes: beside the exact greedy run, and how it grows with their number."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import IntArray
from ksame.bench.base import Comparison, Settings, compare, timed
from ksame.methods.grouping import Neighbours, partition, sse

FEATURES = 59
K = 10
_MAX_EXACT = 20_000  # codes that are grouped exactly: the time grows with the square of their number


def draw_codes(n: int, *, even: bool = False, seed: int = 0) -> NDArray[Any]:
    """Return codes, (n, 59), like those of portraits; ``even`` ones have no structure, which is the worst case.

    Standard deviations of the eigenfaces of portraits fall like i^-0.6 (600 portraits, 59 components). Among even codes
    every one is nearly as far from every other.
    """
    rng = np.random.default_rng(seed)
    spread = np.arange(1, FEATURES + 1) ** (0.0 if even else -0.6)
    codes = np.empty((n, FEATURES), dtype=np.float32)
    for start in range(0, n, 10_000):
        rows = codes[start : start + 10_000]
        rows[:] = rng.standard_normal(rows.shape) * spread
    return codes


def grouped(codes: NDArray[Any], k: int = K, strategy: str = "greedy") -> IntArray:
    """Return the groups of codes, (n,), as k-Same forms them."""
    return partition(Neighbours(codes), k, strategy, np.random.default_rng(0))


def exact_greedy(codes: NDArray[Any], k: int = K) -> IntArray:
    """Return the groups of Newton et al. (2005, Fig. 4), (n,), every group from all faces that are left: no leaves."""
    rng = np.random.default_rng(0)
    points = codes.astype(np.float64)
    squares = (points**2).sum(axis=1)
    left, labels = np.arange(len(points)), np.empty(len(points), dtype=np.intp)
    group = 0
    while len(left):
        size = len(left) if len(left) < 2 * k else k
        centre = rng.integers(len(left))
        apart = squares - 2.0 * (points @ points[centre])
        apart[centre] = -np.inf
        chosen = np.argpartition(apart, size - 1)[:size]
        labels[left[chosen]] = group
        group += 1
        stay = np.ones(len(left), dtype=bool)
        stay[chosen] = False
        n_left = len(left) - size  # gaps are filled from the end: quicker than to copy everything
        gaps, movers = chosen[chosen < n_left], n_left + np.flatnonzero(stay[n_left:])
        for array in (left, points, squares):
            array[gaps] = array[movers]
        left, points, squares = left[:n_left], points[:n_left], squares[:n_left]
    return labels


def grouping(settings: Settings) -> Iterator[Comparison]:
    """Group rising numbers of codes. Where the exact run takes too long, the yardstick is ten tenths, one by one."""
    for n in settings.codes:
        codes = draw_codes(n)
        what, ours = f"Grouping {n:,} codes of {FEATURES} numbers, k = {K}", timed(partial(grouped, codes))
        if n <= _MAX_EXACT:
            exact, figures = timed(partial(exact_greedy, codes)), partial(_losses, codes)
            yield compare(what, "the exact greedy run", ours, exact, rounds=settings.rounds, figures=figures)
        else:
            yield compare(what, "a tenth of them, ten times", ours, timed(partial(_in_tenths, codes)), rounds=1)


def _in_tenths(codes: NDArray[Any]) -> list[IntArray]:
    return [grouped(part) for part in np.array_split(codes, 10)]


def _losses(codes: NDArray[Any], ours: IntArray, exact: IntArray) -> dict[str, float]:
    return {"loss (exact run: 1)": sse(codes, ours) / sse(codes, exact)}
