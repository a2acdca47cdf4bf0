"""From people to plans: who becomes whom, how much round the face is covered, and who can only be masked.

The recogniser in the loop has the last word. A surrogate in whom it still knows the person is tried with a wider cover;
if that does not help and there is no more than one group of their gender, which is quickly done, the group gets
another face; at last the person is masked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ksame.errors import UsageError, parameter_error
from ksame.faces.faceset import FloatArray
from ksame.methods import Furthest
from ksame.methods.base import Problem
from ksame.methods.grouping import partition, squared_distances
from ksame.models import Recogniser
from ksame.progress import Track, silent
from ksame.scene.composing import Plan, Treatment
from ksame.scene.masking import MASKS
from ksame.scene.replacing.identities import Group, Loop, Subject, choose
from ksame.scene.replacing.rim import Cover
from ksame.scene.replacing.surrogate import Surrogate, draw

SOMEONE_ELSE, K_SAME_M, K_DIFF = "someone-else", "k-same-m", "k-diff"
METHODS = (SOMEONE_ELSE, K_SAME_M, K_DIFF, *MASKS)
"""What may become of faces in photographs and recordings."""
MARGIN = 0.05
"""How far below the recogniser's own threshold a likeness must be."""


@dataclass(frozen=True, eq=False)
class Choice:
    """Who becomes whom.

    Attributes
    ----------
    plans : mapping of person to Plan
    groups : mapping of person to int
        Who shares a face with whom; secret.
    likeness : mapping of person to float
        Highest cosine between original and replacement over the views; secret, but for the highest of all.
    k_real : int or None
        The smallest number of real people who share a face; None where nobody was replaced, or faces are not shared.
    """

    plans: Mapping[str, Plan]
    groups: Mapping[str, int]
    likeness: Mapping[str, float]
    k_real: int | None


def check_method(method: str, k: int) -> None:
    """Refuse a method that there is not, and a k that is none."""
    if method not in METHODS:
        raise UsageError(f"There is no method {method!r} for photographs and video. Choose: {', '.join(METHODS)}.")
    if k < 2:
        raise parameter_error("k", method, "an integer of at least 2", k)


def make_plans(
    wishes: Mapping[str, Treatment],
    subjects: Sequence[Subject],
    recogniser: Recogniser,
    rng: np.random.Generator,
    *,
    method: str = SOMEONE_ELSE,
    k: int = 10,
    cover: Cover | None = None,
    loop: bool = True,
    candidates: int = 16,
    workers: int = 2,
    track: Track = silent,
) -> Choice:
    """Plan for everyone.

    Parameters
    ----------
    wishes : mapping of person to Treatment
        What was asked; for everyone.
    subjects : sequence of Subject
        People who can be replaced: those with views. Whoever is to be replaced and is not among them is masked.
    cover : Cover, optional
        How much round the face is changed; by default the mildest with which the recogniser is lost.
    loop : bool
        Whether the recogniser has a say at all.
    """
    check_method(method, k)
    plans = {name: Plan(wish) for name, wish in wishes.items()}
    if method in MASKS:
        plans = {
            name: Plan(Treatment.MASK) if plan.treatment is Treatment.REPLACE else plan for name, plan in plans.items()
        }
        return Choice(plans, {}, {}, None)
    people = [subject for subject in subjects if wishes[subject.name] is Treatment.REPLACE]
    known = {subject.name for subject in people}
    for name, wish in wishes.items():
        if wish is Treatment.REPLACE and name not in known:
            plans[name] = Plan(Treatment.MASK, stands_in=True)
    if not people:
        return Choice(plans, {}, {}, None)
    asked = Loop(recogniser)
    judge = _Judge(people, asked, cover, heeded=loop)

    def chosen(some: Sequence[Subject], tries: int) -> list[Group]:
        return choose(some, k, asked, rng, cover=judge.mildest, candidates=tries, workers=workers, track=track)

    other_ways = {K_SAME_M: _k_same, K_DIFF: _k_diff}
    groups = other_ways[method](people, k, rng) if method in other_ways else chosen(people, candidates if loop else 1)
    like: dict[str, float] = {}
    numbers: dict[str, int] = {}
    for number, group in enumerate(groups):
        verdict = judge(group)
        members = [people[i] for i in group.members]
        alone = sum(person.woman is members[0].woman for person in people) == len(members)
        if verdict.n_refused and alone and method == SOMEONE_ELSE:
            (again,) = chosen(members, max(2, candidates // 2))
            other = judge(replace(group, surrogates=again.surrogates))
            verdict = min(verdict, other, key=lambda one: one.n_refused)
        plans.update(verdict.plans)
        like.update(verdict.likeness)
        numbers.update(dict.fromkeys(verdict.plans, number))
    for name, plan in plans.items():
        if plan.treatment is Treatment.REPLACE and plan.surrogate is None:  # the method had no place for them
            plans[name] = Plan(Treatment.MASK, stands_in=True)
    sharing = Counter(number for name, number in numbers.items() if plans[name].treatment is Treatment.REPLACE)
    return Choice(plans, numbers, like, None if method == K_DIFF else min(sharing.values(), default=None))


@dataclass(frozen=True, eq=False)
class _Verdict:
    """What becomes of a group: plans, and the likeness of those who are not masked."""

    plans: dict[str, Plan]
    likeness: dict[str, float]

    @property
    def n_refused(self) -> int:
        """How many must be masked."""
        return len(self.plans) - len(self.likeness)


@dataclass(frozen=True, eq=False)
class _Judge:
    """Finds the mildest cover with which the recogniser does not know people in their surrogates.

    Parameters
    ----------
    people : sequence of Subject
    loop : Loop
    cover : Cover, optional
        The only one that is tried.
    heeded : bool
        Whether the recogniser has a say.
    """

    people: Sequence[Subject]
    loop: Loop
    cover: Cover | None
    heeded: bool

    @property
    def mildest(self) -> Cover:
        """What is tried first."""
        return self.cover or Cover.FACE

    def __call__(self, group: Group) -> _Verdict:
        """Judge a group; whoever is known under every cover is masked."""
        plans, likenesses = {}, {}
        for i, surrogate in zip(group.members, group.surrogates, strict=True):
            person = self.people[i]
            plans[person.name] = Plan(Treatment.MASK, stands_in=True)
            for cover in Cover if self.cover is None else (self.cover,):
                value = max(self.loop.likeness(view, surrogate, cover) for view in person.views)
                if not self.heeded or value <= self.loop.recogniser.threshold - MARGIN:
                    plans[person.name] = Plan(Treatment.REPLACE, surrogate, cover)
                    likenesses[person.name] = value
                    break
        return _Verdict(plans, likenesses)


def _codes(people: Sequence[Subject], least: int, rng: np.random.Generator) -> FloatArray:
    """Return the codes of people, topped up to ``least`` rows with people who do not exist, of the same kind."""
    codes = [person.code for person in people]
    while len(codes) < least:
        like = people[len(codes) % len(people)]
        codes.append(draw({"woman": float(like.woman), "born": like.born, "tone": like.tone}, rng, plain=True).code)
    return np.stack(codes)


def _k_same(people: Sequence[Subject], k: int, rng: np.random.Generator) -> list[Group]:
    """Group people of a gender by their codes and give each group its mean (k-Same-M)."""
    groups = []
    for woman in (False, True):
        members = [i for i, person in enumerate(people) if person.woman is woman]
        if not members:
            continue
        codes = _codes([people[i] for i in members], k, rng)
        labels = partition(squared_distances(codes), k, "mdav+refine", rng)
        for label in np.unique(labels[: len(members)]):
            mean = Surrogate(codes[labels == label].mean(axis=0))
            mine = tuple(i for i, other in zip(members, labels, strict=False) if other == label)
            groups.append(Group(mine, (mean,) * len(mine)))
    return groups


def _k_diff(people: Sequence[Subject], k: int, rng: np.random.Generator) -> list[Group]:
    """Shift every cluster of people onto the one furthest away (k-Diff-furthest); reference people fill up."""
    codes = _codes(people, max(len(people) + 2, 4 * k), rng)
    names = np.array([f"{i}" for i in range(len(codes))])
    outcome = Furthest(k=k, release="shifted", condition="exact", repair=True).run(Problem(codes, names), rng)
    where = {source: copy for copy, sources in enumerate(outcome.sources) for source in sources}
    clusters: dict[int, list[int]] = {}
    for i in range(len(people)):
        if i in where and outcome.groups is not None:
            clusters.setdefault(int(outcome.groups[where[i]]), []).append(i)
    return [
        Group(tuple(members), tuple(Surrogate(outcome.surrogates[outcome.rows[where[i]]]) for i in members))
        for members in clusters.values()
    ]
