"""From people to plans: who becomes whom, and who can only be masked.

The recogniser in the loop has the last word: whoever it still knows in the best surrogate that was found is masked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ksame.errors import UsageError, whole_number
from ksame.faces.faceset import FloatArray
from ksame.heads.head import Cover
from ksame.heads.surrogate import modelled
from ksame.methods import Furthest
from ksame.methods.base import Problem
from ksame.methods.grouping import partition, squared_distances
from ksame.models import Recogniser
from ksame.models.finisher import Finisher, finisher
from ksame.progress import Track, silent
from ksame.scene.composing import Plan, Treatment
from ksame.scene.counting import distinct, smallest_sharing
from ksame.scene.identities import Group, Loop, Subject, choose
from ksame.scene.masking import MASKS
from ksame.spaces.facemodel import face_model

SOMEONE_ELSE, K_SAME_M, K_DIFF = "someone-else", "k-same-m", "k-diff"
LARGEST_K = 1_000_000
METHODS = (SOMEONE_ELSE, K_SAME_M, K_DIFF, *MASKS)
"""What may become of faces in photographs and recordings."""


@dataclass(frozen=True)
class Judge:
    """The recogniser that judged: its name, and the cosine from which it takes two faces for one person."""

    name: str
    threshold: float


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
    counted : mapping of person to int
        Whoever surely is a person, by a number that those of a group who are perhaps one and the same have in common.
    judge : Judge or None
        Who measured the likeness; None where nobody was replaced.
    shared : bool
        Whether the people of a group get one face.
    """

    plans: Mapping[str, Plan]
    groups: Mapping[str, int] = field(default_factory=dict)
    likeness: Mapping[str, float] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=dict)
    judge: Judge | None = None
    shared: bool = True

    def k_real(self, shown: Collection[str] = ()) -> int | None:
        """Return the smallest number of real people who share a face; None where nobody does.

        Parameters
        ----------
        shown : collection of str
            Those who are left as they are in some frame: nobody can be taken for one of them.
        """
        if not self.shared:
            return None
        replaced = (name for name, plan in self.plans.items() if plan.treatment is Treatment.REPLACE)
        return smallest_sharing((self.groups[name], self.counted.get(name)) for name in replaced if name not in shown)


def check_method(method: str, k: int) -> None:
    """Refuse a method that there is not, and a k that is none."""
    if method not in METHODS:
        raise UsageError(f"There is no method {method!r} for photographs and video. Choose: {', '.join(METHODS)}.")
    whole_number("k", method, k, 2, LARGEST_K)


def make_plans(
    wishes: Mapping[str, Treatment],
    subjects: Sequence[Subject],
    recogniser: Recogniser,
    rng: np.random.Generator,
    *,
    method: str = SOMEONE_ELSE,
    k: int = 10,
    cover: Cover = Cover.HEAD,
    loop: bool = True,
    network: Finisher | None = None,
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
    cover : Cover
    loop : bool
        Whether the recogniser has a say at all.
    network : Finisher, optional
        Invents heads; the one that comes with ksame by default.
    """
    check_method(method, k)
    plans = {name: Plan(wish) for name, wish in wishes.items()}
    if method in MASKS:
        plans = {
            name: Plan(Treatment.MASK) if plan.treatment is Treatment.REPLACE else plan for name, plan in plans.items()
        }
        return Choice(plans)
    people = [subject for subject in subjects if wishes[subject.name] is Treatment.REPLACE]
    known = {subject.name for subject in people}
    for name, wish in wishes.items():
        if wish is Treatment.REPLACE and name not in known:
            plans[name] = Plan(Treatment.MASK, stands_in=True)
    if not people:
        return Choice(plans)
    judge = Loop(recogniser, network or finisher(), cover)
    other_ways = {K_SAME_M: _k_same, K_DIFF: _k_diff}
    if method in other_ways:
        groups = other_ways[method](people, k, judge, rng)
    else:
        groups = choose(people, k, judge, rng, judged=loop, workers=workers, track=track)
    like: dict[str, float] = {}
    numbers: dict[str, int] = {}
    counted: dict[str, int] = {}
    for number, group in enumerate(groups):
        counted |= distinct([people[i] for i in group.members], recogniser.threshold)
        for i, surrogate, value in zip(group.members, group.surrogates, group.likeness, strict=True):
            name = people[i].name
            numbers[name] = number
            plans[name] = Plan(Treatment.MASK, stands_in=True)
            if value <= judge.limit or not loop:
                plans[name] = Plan(Treatment.REPLACE, surrogate, cover)
                like[name] = value
    for name, plan in plans.items():
        if plan.treatment is Treatment.REPLACE and plan.surrogate is None:  # the method had no place for them
            plans[name] = Plan(Treatment.MASK, stands_in=True)
    return Choice(plans, numbers, like, counted, Judge(recogniser.name, recogniser.threshold), method != K_DIFF)


def _codes(people: Sequence[Subject], least: int, rng: np.random.Generator) -> FloatArray:
    """Return the codes of people, topped up to ``least`` rows with people who do not exist, of the same kind."""
    model = face_model()
    codes = [person.code for person in people]
    while len(codes) < least:
        like = people[len(codes) % len(people)]
        middle = model.labelled({"woman": float(like.woman), "born": like.born, "tone": like.tone})
        codes.append(middle + model.spread @ rng.standard_normal(model.n_codes).clip(-2, 2))
    return np.stack(codes)


def _k_same(people: Sequence[Subject], k: int, judge: Loop, rng: np.random.Generator) -> list[Group]:
    """Group people of a gender by their codes and give each group its mean (k-Same-M)."""
    groups = []
    for woman in (False, True):
        members = [i for i, person in enumerate(people) if person.woman is woman]
        if not members:
            continue
        codes = _codes([people[i] for i in members], k, rng)
        labels = partition(squared_distances(codes), k, "mdav+refine", rng)
        for label in np.unique(labels[: len(members)]):
            mean = modelled(codes[labels == label].mean(axis=0))
            mine = tuple(i for i, other in zip(members, labels, strict=False) if other == label)
            groups.append(Group(mine, (mean,) * len(mine), tuple(judge.likeness(people[i], mean) for i in mine)))
    return groups


def _k_diff(people: Sequence[Subject], k: int, judge: Loop, rng: np.random.Generator) -> list[Group]:
    """Shift every cluster of people onto the one furthest away (k-Diff-furthest); reference people fill up."""
    codes = _codes(people, max(len(people) + 2, 4 * k), rng)
    names = np.array([f"{i}" for i in range(len(codes))])
    outcome = Furthest(k=k, release="shifted", condition="exact", repair=True).run(Problem(codes, names), rng)
    where = {source: copy for copy, sources in enumerate(outcome.sources) for source in sources}
    clusters: dict[int, list[int]] = {}
    for i in range(len(people)):
        if i in where and outcome.groups is not None:
            clusters.setdefault(int(outcome.groups[where[i]]), []).append(i)
    groups = []
    for members in clusters.values():
        faces = tuple(modelled(outcome.surrogates[outcome.rows[where[i]]]) for i in members)
        likeness = tuple(judge.likeness(people[i], face) for i, face in zip(members, faces, strict=True))
        groups.append(Group(tuple(members), faces, likeness))
    return groups
