"""Who becomes whom: groups of k people, each with one face of somebody who does not exist.

The theorem of k-Same needs k people to share one face; it does not need that face to be their average. Candidates are
drawn from the face model for each gender, painted into views of every person, and judged by a recogniser against the
person's own original. People are then dealt out to as many candidates as there are groups, every group getting at
least k people where there are that many, so that the recogniser finds the least of anybody in their new face.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ksame.faces.faceset import ByteArray, FloatArray, IntArray
from ksame.models import Recogniser, five_points
from ksame.progress import Track, silent
from ksame.scene.replacing.face import Reference, fit_surrogate, paint
from ksame.scene.replacing.rim import Cover
from ksame.scene.replacing.surrogate import Surrogate, draw

_AGE = 0.004  # what a year of difference in age costs, in cosines
_SWAPS = 60  # tries to better a choice of candidates


@dataclass(frozen=True, eq=False)
class View:
    """A piece of a frame with one person's face.

    Attributes
    ----------
    pixels : ndarray of shape (height, width, 3)
    points : ndarray of shape (478, 3)
        In pixels of the piece.
    reference : Reference
        Of the track the frame belongs to.
    embedding : ndarray of shape (d,)
        Of the original, by the recogniser of the loop.
    """

    pixels: ByteArray
    points: FloatArray
    reference: Reference
    embedding: FloatArray


@dataclass(frozen=True, eq=False)
class Subject:
    """Somebody to be replaced.

    Attributes
    ----------
    name : str
    woman : bool
    born : float
        Year of birth as read from the face.
    tone : float
        Logarithm of the brightness of the skin.
    code : ndarray of shape (n_codes,)
        Who they are in the face model, without expression.
    views : tuple of View
        By which candidates are judged; at least one.
    """

    name: str
    woman: bool
    born: float
    tone: float
    code: FloatArray
    views: tuple[View, ...]


@dataclass(frozen=True, eq=False)
class Group:
    """People who share one face.

    Attributes
    ----------
    members : tuple of int
        Indices of subjects.
    surrogates : tuple of Surrogate
        Whom each member becomes: the same for all, but with methods that shift a group as a whole.
    """

    members: tuple[int, ...]
    surrogates: tuple[Surrogate, ...]


def likeness(recogniser: Recogniser, view: View, surrogate: Surrogate, cover: Cover) -> float:
    """Return the cosine between a view's original and the view with a surrogate in it."""
    fitted = fit_surrogate(surrogate, view.reference, cover)
    out = view.pixels.copy()
    moved = paint(view.pixels, view.points, fitted, out, cover)
    return float(recogniser.embed(out, five_points(moved)) @ view.embedding)


def choose(
    subjects: Sequence[Subject],
    k: int,
    recogniser: Recogniser,
    rng: np.random.Generator,
    *,
    cover: Cover = Cover.FACE,
    candidates: int = 12,
    workers: int = 2,
    track: Track = silent,
) -> list[Group]:
    """Deal people out to groups of at least ``k`` and give every group a face.

    Where a gender has fewer than ``k`` people, they make one group; whoever counts must say how many of it are real.

    Parameters
    ----------
    candidates : int
        How many candidates are drawn for each gender, beside two for each group.
    """
    groups: list[Group] = []
    for woman in (False, True):
        members = [i for i, subject in enumerate(subjects) if subject.woman is woman]
        if members:
            groups += _choose_among(subjects, members, k, recogniser, rng, cover, candidates, workers, track)
    return groups


def _choose_among(
    subjects: Sequence[Subject],
    members: list[int],
    k: int,
    recogniser: Recogniser,
    rng: np.random.Generator,
    cover: Cover,
    candidates: int,
    workers: int,
    track: Track,
) -> list[Group]:
    people = [subjects[i] for i in members]
    n_groups = max(1, len(people) // k)
    ages = np.quantile([person.born for person in people], rng.random(candidates + 2 * n_groups))
    tone = float(np.median([person.tone for person in people]))
    woman = float(people[0].woman)
    drawn = [draw({"woman": woman, "born": float(age), "tone": tone}, rng) for age in ages]

    def judge(j: int) -> list[float]:
        return [max(likeness(recogniser, view, drawn[j], cover) for view in person.views) for person in people]

    with ThreadPoolExecutor(workers) as pool:
        columns = list(track(_pending(pool, judge, len(drawn)), "looking for other faces"))
    like = np.array([column() for column in columns]).T
    cost = like + _AGE * abs(np.array([person.born for person in people])[:, None] - ages[None])
    chosen, owner = deal(cost, n_groups, rng)
    groups = []
    for g, candidate in enumerate(chosen):
        mine = tuple(members[i] for i in np.flatnonzero(owner == g))
        groups.append(Group(mine, (drawn[candidate],) * len(mine)))
    return groups


def _pending(
    pool: ThreadPoolExecutor, judge: Callable[[int], list[float]], count: int
) -> list[Callable[[], list[float]]]:
    return [pool.submit(judge, j).result for j in range(count)]


def deal(cost: FloatArray, n_groups: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Choose ``n_groups`` columns and deal the rows out to them in equal shares, at the least total cost.

    Parameters
    ----------
    cost : ndarray of shape (n_people, n_candidates)

    Returns
    -------
    chosen : ndarray of shape (n_groups,)
        Columns.
    owner : ndarray of shape (n_people,)
        Index into ``chosen``; each occurs ``n_people // n_groups`` times, some once more.

    Examples
    --------
    >>> cost = np.array([[0.0, 1, 5], [0, 1, 5], [1, 0, 5], [1, 0, 5]])
    >>> chosen, owner = deal(cost, 2, np.random.default_rng(0))
    >>> sorted(chosen.tolist()), chosen[owner].tolist()
    ([0, 1], [0, 0, 1, 1])
    """
    sharp = np.exp(6.0 * cost)  # the worst-off count most
    chosen = np.argsort(sharp.sum(axis=0), kind="stable")[:n_groups]
    total, owner = _dealt(sharp[:, chosen])
    spare = cost.shape[1] - n_groups
    for _ in range(_SWAPS if spare else 0):
        other = np.setdiff1d(np.arange(cost.shape[1]), chosen)
        trial = chosen.copy()
        trial[rng.integers(n_groups)] = rng.choice(other)
        new, who = _dealt(sharp[:, trial])
        if new < total:
            total, owner, chosen = new, who, trial
    return chosen, owner


def _dealt(cost: FloatArray) -> tuple[float, NDArray[np.intp]]:
    n, groups = cost.shape
    slots = np.repeat(np.arange(groups), n // groups)
    rest = n - len(slots)
    order = np.argsort(cost.sum(axis=0), kind="stable")
    slots = np.concatenate([slots, order[:rest]])
    rows, columns = linear_sum_assignment(cost[:, slots])
    owner = np.empty(n, dtype=np.intp)
    owner[rows] = slots[columns]
    return float(cost[rows, slots[columns]].sum()), owner
