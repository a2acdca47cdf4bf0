"""Who becomes whom: groups of k people, each with one face of somebody who does not exist.

The theorem of k-Same needs k people to share one face; it does not need that face to be their average. People of a
gender are put in order of age and skin tone and cut into blocks, so that the cost grows with their number only. For
each block, candidates are invented into views of a few people; what the recogniser sees in a candidate there foretells
how much of anybody it will find in it. People are dealt out to the candidates in groups of at least k, and every
group's face is judged on the published picture of every member; a face that gives somebody away is exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ksame.faces.faceset import ByteArray, FloatArray, IntArray
from ksame.heads.covers import HEAD, Cover
from ksame.heads.head import Head, Region, wearing
from ksame.heads.invention import Invention, invent, taken_away
from ksame.heads.surrogate import Surrogate, draw_surrogate
from ksame.models import Recogniser, five_points
from ksame.models.finisher import Finisher
from ksame.progress import Track, silent

MARGIN = 0.05
"""How far below the recogniser's own threshold a likeness must be."""
_JUDGED = 128  # size at which heads are finished to be judged
_AGE, _TONE = 0.006, 0.3  # what a year of difference in age costs, and one unit of skin tone, in cosines
_SWAPS = 300  # tries to better a choice of candidates
_SHARP = 8.0  # how much more the worst-off count than the others
_FEW = 3  # people by whom candidates are screened
_BLOCK = 6  # groups that are chosen for together
_CANDIDATES = 12  # that are screened for every group
_TRIES = 16  # faces that a group may get before somebody in it is masked


@dataclass(frozen=True, eq=False)
class View:
    """A piece of a frame with one person's head.

    Attributes
    ----------
    pixels : ndarray of shape (height, width, 3)
    points : ndarray of shape (478, 3)
        In pixels of the piece.
    neutral : ndarray of shape (478, 3)
        The person's neutral shape.
    embedding : ndarray of shape (d,)
        Of the original, by the recogniser of the loop.
    """

    pixels: ByteArray
    points: FloatArray
    neutral: FloatArray
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
    confirmed : bool
        Whether this surely is a person, so that others may be hidden among them and this one.
    """

    name: str
    woman: bool
    born: float
    tone: float
    code: FloatArray
    views: tuple[View, ...]
    confirmed: bool = False


@dataclass(frozen=True, eq=False)
class Group:
    """People who share one face.

    Attributes
    ----------
    members : tuple of int
        Indices of subjects.
    surrogates : tuple of Surrogate
        Whom each member becomes: the same for all, but with methods that shift a group as a whole.
    likeness : tuple of float
        Of each member to whom they become, as the recogniser of the loop sees it.
    """

    members: tuple[int, ...]
    surrogates: tuple[Surrogate, ...]
    likeness: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Loop:
    """The recogniser in the loop: it judges heads as they will be published.

    Parameters
    ----------
    recogniser : Recogniser
    finisher : Finisher
    cover : Cover
    """

    recogniser: Recogniser
    finisher: Finisher
    cover: Cover = HEAD

    @property
    def limit(self) -> float:
        """The cosine above which a person counts as recognised."""
        return self.recogniser.threshold - MARGIN

    def disguised(self, view: View, surrogate: Surrogate) -> FloatArray:
        """Return the vector of a view with a surrogate in it."""
        head = Head.of(view.points)
        region = Region.of(head, view.neutral, self.cover)
        out = view.pixels.copy()
        hidden = taken_away(out.shape, [region.outline])
        invent(out, hidden, Invention(surrogate.looks, head, view.neutral, region), self.finisher, size=_JUDGED)
        placed = head.place(wearing(surrogate.looks.shape, head, view.neutral))
        return self.recogniser.embed(out, five_points(placed))

    def likeness(self, person: Subject, surrogate: Surrogate) -> float:
        """Return the highest cosine, over a person's views, between the original and the view with a surrogate."""
        return max(float(self.disguised(view, surrogate) @ view.embedding) for view in person.views)


def choose(
    subjects: Sequence[Subject],
    k: int,
    loop: Loop,
    rng: np.random.Generator,
    *,
    judged: bool = True,
    workers: int = 2,
    track: Track = silent,
) -> list[Group]:
    """Deal people out to groups of at least ``k`` and give every group a face.

    Where a gender has fewer than ``2 k`` people, they make one group; if they are fewer than ``k``, whoever counts must
    say how many of it are real.

    Parameters
    ----------
    judged : bool
        Whether the recogniser is asked; otherwise the first faces drawn are taken.
    """
    groups: list[Group] = []
    with ThreadPoolExecutor(workers) as pool:
        for block in _blocks(subjects, k):
            search = _Search([subjects[i] for i in block], max(1, len(block) // k), loop, rng, pool, track)
            for members, face, likeness in search.groups() if judged else search.first_drawn():
                groups.append(Group(tuple(block[i] for i in members), (face,) * len(members), tuple(likeness)))
    return groups


def _blocks(subjects: Sequence[Subject], k: int) -> list[list[int]]:
    """Cut the people of each gender, in order of age and skin tone, into blocks of some groups each."""
    blocks = []
    for woman in (False, True):
        members = [i for i, subject in enumerate(subjects) if subject.woman is woman]
        order = sorted(members, key=lambda i: (_AGE * subjects[i].born + _TONE * subjects[i].tone, i))
        count = max(1, round(len(order) / (_BLOCK * k)))
        blocks += [part.tolist() for part in np.array_split(order, count) if len(part)]
    return blocks


@dataclass(eq=False)
class _Search:
    """A search for the faces of one block."""

    people: list[Subject]
    n_groups: int
    loop: Loop
    rng: np.random.Generator
    pool: Executor
    track: Track

    def draw(self) -> Surrogate:
        """Draw somebody about as old as somebody here, and of their skin tone."""
        like = self.people[int(self.rng.integers(len(self.people)))]
        return draw_surrogate(like.woman, like.born, like.tone, self.rng)

    def first_drawn(self) -> list[tuple[list[int], Surrogate, list[float]]]:
        """Cut the block into groups in its order, and give each the first face drawn."""
        parts = [part.tolist() for part in np.array_split(np.arange(len(self.people)), self.n_groups)]
        faces = [self.draw() for _ in parts]
        return [(part, face, self._likeness(part, face)) for part, face in zip(parts, faces, strict=True)]

    def groups(self) -> list[tuple[list[int], Surrogate, list[float]]]:
        """Find a face for each group with which the recogniser is lost, or the best of some."""
        drawn = [self.draw() for _ in range(_CANDIDATES * self.n_groups)]
        cost = self._foretold(drawn)
        chosen, owner = deal(cost, self.n_groups, self.rng)
        spare = [j for j in range(len(drawn)) if j not in set(chosen.tolist())]
        found = []
        for group, first in enumerate(chosen.tolist()):
            members = np.flatnonzero(owner == group).tolist()
            spare.sort(key=lambda j: float(np.exp(_SHARP * cost[members, j]).sum()))
            best, alike = first, [np.inf]
            for j in (first, *spare[: _TRIES - 1]):
                values = self._likeness(members, drawn[j])
                if max(values) < max(alike):
                    best, alike = j, values
                if max(alike) <= self.loop.limit:
                    break
            spare = [j for j in spare if j != best]
            found.append((members, drawn[best], alike))
        return found

    def _foretold(self, drawn: Sequence[Surrogate]) -> FloatArray:
        """Foretell the cost of everyone as everyone drawn, (n_people, n_drawn), from a few views."""
        few = np.linspace(0, len(self.people) - 1, _FEW).round().astype(int)
        views = [self.people[i].views[0] for i in dict.fromkeys(few.tolist())]

        def looks(surrogate: Surrogate) -> FloatArray:
            mean = sum(self.loop.disguised(view, surrogate) for view in views)
            return np.asarray(mean / np.linalg.norm(mean))

        seen = np.stack(list(self.track(self.pool.map(looks, drawn), "choosing surrogates")))
        alike = np.stack([person.views[0].embedding for person in self.people]) @ seen.T
        years = np.abs(np.subtract.outer([p.born for p in self.people], [one.born for one in drawn]))
        tones = np.abs(np.subtract.outer([p.tone for p in self.people], [one.tone for one in drawn]))
        return np.asarray(alike + _AGE * years + _TONE * tones)

    def _likeness(self, members: Sequence[int], surrogate: Surrogate) -> list[float]:
        """Return how much like themselves members of a group are as a surrogate."""
        return list(self.pool.map(lambda i: self.loop.likeness(self.people[i], surrogate), members))


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
