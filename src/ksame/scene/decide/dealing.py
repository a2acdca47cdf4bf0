"""Deal people out to faces: how surrogates are searched for, and who gets which at the least cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class SearchConfig:
    """How surrogates are searched for; all by choice."""

    year: float = 0.004  # what a year of difference in age costs, in cosines
    skin: float = 0.15  # and one unit of the skin's brightness, or of its tone
    sharpness: float = 8.0  # how much more the worst-off count than the others: the exponent of costs that are added
    swaps: int = 300  # tries to better a choice of candidates
    screened: int = 3  # people in whose views candidates are screened
    block: int = 6  # groups that are searched for together
    candidates: int = 12  # drawn for every group, and again for a group whose members are still recognised
    draws: int = 8  # of candidates for a group at most, before somebody in it is moved or masked
    tries: int = 16  # faces that are judged for a group out of each draw
    distance: float = 0.1  # in cosines below the judge's limit that a likeness should be
    at_a_time: int = 4  # people who are judged before a face is given up for good
    exchanges: int = 8  # people who are asked to take the place of somebody who leaves a group


SEARCH = SearchConfig()


def deal(cost: FloatArray, n_groups: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Choose columns of ``cost``, (n_people, n_candidates), and deal the rows out to them, at the least total cost.

    Returned are the columns, (n_groups,), and for each row an index into them, (n_people,); each index occurs
    ``n_people // n_groups`` times, a few once more.

    Examples
    --------
    >>> cost = np.array([[0.0, 1, 5], [0, 1, 5], [1, 0, 5], [1, 0, 5]])
    >>> chosen, owner = deal(cost, 2, np.random.default_rng(0))
    >>> sorted(chosen.tolist()), chosen[owner].tolist()
    ([0, 1], [0, 0, 1, 1])
    """
    weights = np.exp(SEARCH.sharpness * cost)
    chosen = np.argsort(weights.sum(axis=0), kind="stable")[:n_groups]
    total, owner = _assign(weights[:, chosen])
    for _ in range(SEARCH.swaps if cost.shape[1] > n_groups else 0):
        trial = chosen.copy()
        trial[rng.integers(n_groups)] = rng.choice(np.setdiff1d(np.arange(cost.shape[1]), chosen))
        new_total, new_owner = _assign(weights[:, trial])
        if new_total < total:
            total, owner, chosen = new_total, new_owner, trial
    return chosen, owner


def _assign(cost: FloatArray) -> tuple[float, NDArray[np.intp]]:
    """Deal rows out to all columns in equal shares; return the total cost and the column of each row."""
    from scipy.optimize import linear_sum_assignment

    n, groups = cost.shape
    slots = np.repeat(np.arange(groups), n // groups)
    order = np.argsort(cost.sum(axis=0), kind="stable")
    slots = np.concatenate([slots, order[: n - len(slots)]])
    rows, columns = linear_sum_assignment(cost[:, slots])
    owner = np.empty(n, dtype=np.intp)
    owner[rows] = slots[columns]
    return float(cost[rows, slots[columns]].sum()), owner
