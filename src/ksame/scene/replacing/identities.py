"""Who becomes whom: groups of k people, each with one face of somebody who does not exist.

The theorem of k-Same needs k people to share one face; it does not need that face to be their average. Candidates are
drawn from the face model for each gender, painted into views of every person, and judged by a recogniser against the
person's own original. People are then dealt out to as many candidates as there are groups, every group getting at
least k people where there are that many, so that the recogniser finds the least of anybody in their new face.

Where many people are dealt out, many candidates are first painted into views of a few of them only. What the recogniser
sees in a candidate there, on average, foretells well how much of anybody it will find in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ksame.faces.faceset import ByteArray, FloatArray, IntArray
from ksame.models import Recogniser, five_points
from ksame.progress import Track, silent
from ksame.scene.replacing.face import Reference, fit_surrogate, paint
from ksame.scene.replacing.rim import Cover
from ksame.scene.replacing.surrogate import Surrogate, draw

_AGE = 0.004  # what a year of difference in age costs, in cosines
_SWAPS = 400  # tries to better a choice of candidates
_SHARP = 8.0  # how much more the worst-off count than the others
_FEW = 4  # people by whom candidates are screened
_ABREAST = 2  # candidates that are tried at a time
_GOOD = 0.08  # how far below the recogniser's threshold a cost is good enough


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


@dataclass(eq=False)
class Loop:
    """The recogniser in the loop; about a likeness it is not asked twice.

    Parameters
    ----------
    recogniser : Recogniser
    """

    recogniser: Recogniser

    def __post_init__(self) -> None:
        self._known: dict[tuple[View, Surrogate, Cover], float] = {}

    def likeness(self, view: View, surrogate: Surrogate, cover: Cover) -> float:
        """Return the cosine between a view's original and the view with a surrogate in it."""
        key = (view, surrogate, cover)
        if key not in self._known:
            self._known[key] = float(self.disguised(view, surrogate, cover) @ view.embedding)
        return self._known[key]

    def disguised(self, view: View, surrogate: Surrogate, cover: Cover) -> FloatArray:
        """Return the vector of a view with a surrogate in it."""
        fitted = fit_surrogate(surrogate, view.reference, cover)
        out = view.pixels.copy()
        moved = paint(view.pixels, view.points, fitted, out, cover)
        return self.recogniser.embed(out, five_points(moved))


def choose(
    subjects: Sequence[Subject],
    k: int,
    loop: Loop,
    rng: np.random.Generator,
    *,
    cover: Cover = Cover.FACE,
    candidates: int = 16,
    workers: int = 2,
    track: Track = silent,
) -> list[Group]:
    """Deal people out to groups of at least ``k`` and give every group a face.

    Where a gender has fewer than ``2 k`` people, they make one group; if they are fewer than ``k``, whoever counts must
    say how many of it are real.

    Parameters
    ----------
    candidates : int
        How many candidates are tried where a gender makes one group; where it makes several, twice as many and twelve
        for each group are drawn, and some of them tried. With 1, nobody is asked and the first drawn are taken.
    """
    groups: list[Group] = []
    with ThreadPoolExecutor(workers) as pool:
        for woman in (False, True):
            members = [i for i, subject in enumerate(subjects) if subject.woman is woman]
            if members:
                search = _Search([subjects[i] for i in members], loop, cover, rng, pool, track)
                found = (
                    search.one(candidates) if len(members) < 2 * k else search.several(len(members) // k, candidates)
                )
                groups += [Group(tuple(members[i] for i in mine), (face,) * len(mine)) for mine, face in found]
    return groups


@dataclass(eq=False)
class _Search:
    """A search for the faces of one gender."""

    people: list[Subject]
    loop: Loop
    cover: Cover
    rng: np.random.Generator
    pool: ThreadPoolExecutor
    track: Track

    def draw(self, count: int) -> tuple[list[Surrogate], FloatArray]:
        """Draw candidates with the ages that the people have, and return those ages too."""
        ages = np.quantile([person.born for person in self.people], self.rng.random(count))
        tone = float(np.median([person.tone for person in self.people]))
        woman = float(self.people[0].woman)
        return [draw({"woman": woman, "born": float(age), "tone": tone}, self.rng) for age in ages], ages

    def cost(self, person: Subject, surrogate: Surrogate, age: float) -> float:
        """Return how little a surrogate suits a person: its likeness, and the years between them."""
        return self.loop.likeness(person.views[0], surrogate, self.cover) + _AGE * abs(person.born - age)

    def one(self, candidates: int) -> list[tuple[tuple[int, ...], Surrogate]]:
        """Find one face for all: the first, two at a time, that suits everyone well, or the best of all."""
        drawn, ages = self.draw(candidates)
        good = self.loop.recogniser.threshold - _GOOD
        best, worst = 0, np.inf
        order = list(range(len(self.people)))
        for start in range(0, candidates if candidates > 1 else 0, _ABREAST):
            now = range(start, min(start + _ABREAST, candidates))
            tried = [(order, drawn[j], float(ages[j]), worst) for j in now]
            for j, (value, who) in zip(now, self.pool.map(lambda one: self._worst(*one), tried), strict=True):
                order = [who, *(i for i in order if i != who)]  # who is hard to suit is asked first
                if value < worst:
                    best, worst = j, value
            if worst <= good:
                break
        return [(tuple(range(len(self.people))), drawn[best])]

    def _worst(self, order: Sequence[int], surrogate: Surrogate, age: float, limit: float) -> tuple[float, int]:
        """Return the highest cost of a surrogate over everyone, and whose it is; infinity once it is above a limit."""
        worst, who = -np.inf, 0
        for i in order:
            cost = self.cost(self.people[i], surrogate, age)
            if cost > limit:
                return np.inf, i
            if cost > worst:
                worst, who = cost, i
        return worst, who

    def several(self, n_groups: int, candidates: int) -> list[tuple[tuple[int, ...], Surrogate]]:
        """Deal people out to several faces: many are foretold, some of them tried on everyone."""
        drawn, ages = self.draw(2 * candidates + 12 * n_groups if candidates > 1 else n_groups)
        kept: IntArray = np.arange(len(drawn))
        if len(drawn) > n_groups:
            foretold = self._foretold(drawn) + _AGE * np.abs(np.subtract.outer([p.born for p in self.people], ages))
            kept = np.sort(deal(foretold, candidates // 2 + 3 * n_groups // 2, self.rng)[0])

        def row(person: Subject) -> list[float]:
            return [self.cost(person, drawn[j], float(ages[j])) for j in kept]

        cost = np.array(list(self.track(self.pool.map(row, self.people), "looking for other faces")))
        chosen, owner = deal(cost, n_groups, self.rng)
        return [
            (tuple(np.flatnonzero(owner == g).tolist()), drawn[kept[candidate]]) for g, candidate in enumerate(chosen)
        ]

    def _foretold(self, drawn: Sequence[Surrogate]) -> FloatArray:
        """Foretell the likeness of everyone to everyone drawn, (n_people, n_drawn), from a few views."""
        few = [self.people[i].views[0] for i in np.linspace(0, len(self.people) - 1, _FEW).round().astype(int)]

        def looks(surrogate: Surrogate) -> FloatArray:
            mean = sum(self.loop.disguised(view, surrogate, self.cover) for view in few)
            return np.asarray(mean / np.linalg.norm(mean))

        seen = list(self.track(self.pool.map(looks, drawn), "drawing faces"))
        return np.stack([person.views[0].embedding for person in self.people]) @ np.stack(seen).T


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
    sharp = np.exp(_SHARP * cost)
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
    from scipy.optimize import linear_sum_assignment

    n, groups = cost.shape
    slots = np.repeat(np.arange(groups), n // groups)
    rest = n - len(slots)
    order = np.argsort(cost.sum(axis=0), kind="stable")
    slots = np.concatenate([slots, order[:rest]])
    rows, columns = linear_sum_assignment(cost[:, slots])
    owner = np.empty(n, dtype=np.intp)
    owner[rows] = slots[columns]
    return float(cost[rows, slots[columns]].sum()), owner
