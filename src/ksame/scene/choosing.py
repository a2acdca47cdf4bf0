"""From people to plans: who becomes whom, and who can only be masked.

The recogniser in the loop has the last word: whoever it still knows in the best surrogate that was found is masked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ksame.errors import whole_number
from ksame.faces.faceset import FloatArray
from ksame.heads.surrogate import modelled
from ksame.methods import Method, Problem
from ksame.progress import Track, silent
from ksame.recipes import for_scenes
from ksame.scene.composing import Plan, Treatment
from ksame.scene.counting import distinct, smallest_sharing
from ksame.scene.identities import Group, Loop, Subject, choose
from ksame.spaces.facemodel import face_model

SOMEONE_ELSE = "someone-else"
"""The method that is used where none is named."""
LOOP = "sface"
"""The recogniser in the loop, out of ``RECOGNISERS``."""
LARGEST_K = 1_000_000


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
    """

    plans: Mapping[str, Plan]
    groups: Mapping[str, int] = field(default_factory=dict)
    likeness: Mapping[str, float] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=dict)
    judge: Judge | None = None

    def k_real(self, shown: Collection[str] = ()) -> int | None:
        """Return the smallest number of real people who share a face; None where nobody does.

        Parameters
        ----------
        shown : collection of str
            Those who are left as they are in some frame: nobody can be taken for one of them.
        """
        replaced = (name for name, plan in self.plans.items() if plan.treatment is Treatment.REPLACE)
        return smallest_sharing((self.groups[name], self.counted.get(name)) for name in replaced if name not in shown)


def check_method(method: str, k: int) -> None:
    """Refuse a method that scenes do not have, and a k that is none."""
    for_scenes(method)
    whole_number("k", method, k, 2, LARGEST_K)


def make_plans(
    wishes: Mapping[str, Treatment],
    subjects: Sequence[Subject],
    loop: Loop | None,
    rng: np.random.Generator,
    *,
    method: str = SOMEONE_ELSE,
    k: int = 10,
    judged: bool = True,
    track: Track = silent,
) -> Choice:
    """Plan for everyone.

    Parameters
    ----------
    wishes : mapping of person to Treatment
        What was asked; for everyone.
    subjects : sequence of Subject
        People who can be replaced: those with views. Whoever is to be replaced and is not among them is masked.
    loop : Loop, optional
        The recogniser, the network that invents heads, and how much of them; masks need none.
    judged : bool
        Whether the recogniser has a say at all.
    """
    check_method(method, k)
    entry = for_scenes(method)
    masked = Plan(Treatment.MASK, stands_in=not entry.masks)
    plans = {name: masked if wish is Treatment.REPLACE else Plan(wish) for name, wish in wishes.items()}
    people = [subject for subject in subjects if wishes[subject.name] is Treatment.REPLACE]
    if entry.masks or loop is None or not people:
        return Choice(plans)
    if entry.scenes.judged:
        groups = choose(people, k, loop, rng, judged=judged, track=track)
    else:
        groups = _grouped(entry.build(k=k, **entry.scenes.fixed), people, loop, rng)
    likeness: dict[str, float] = {}
    numbers: dict[str, int] = {}
    counted: dict[str, int] = {}
    for number, group in enumerate(groups):
        counted |= distinct([people[i] for i in group.members], loop.recogniser.threshold)
        for i, surrogate, value in zip(group.members, group.surrogates, group.likeness, strict=True):
            name = people[i].name
            numbers[name] = number
            if value <= loop.limit or not judged:
                plans[name] = Plan(Treatment.REPLACE, surrogate, loop.cover)
                likeness[name] = value
    judge = Judge(loop.recogniser.name, loop.recogniser.threshold)
    return Choice(plans, numbers, likeness, counted, judge)


def _grouped(method: Method, people: Sequence[Subject], loop: Loop, rng: np.random.Generator) -> list[Group]:
    """Let a method of face sets group the people of each gender by their codes in the face model."""
    groups = []
    for woman in (False, True):
        members = [i for i, person in enumerate(people) if person.woman is woman]
        if not members:
            continue
        codes = _codes([people[i] for i in members], method.min_subjects, rng)
        outcome = method.run(Problem(codes, np.arange(len(codes)).astype(str)), rng)
        rows = {source: int(row) for row, copy in zip(outcome.rows, outcome.sources, strict=True) for source in copy}
        shared: dict[int, list[int]] = {}
        for number, person in enumerate(members):
            if number in rows:
                shared.setdefault(rows[number], []).append(person)
        for row, sharing in sorted(shared.items()):
            face = modelled(outcome.surrogates[row])
            likeness = tuple(loop.likeness(people[i], face) for i in sharing)
            groups.append(Group(tuple(sharing), (face,) * len(sharing), likeness))
    return groups


def _codes(people: Sequence[Subject], min_rows: int, rng: np.random.Generator) -> FloatArray:
    """Return the codes of people, filled up to ``min_rows`` with people who do not exist, of the same kind."""
    model = face_model()
    codes = [person.code for person in people]
    while len(codes) < min_rows:
        like = people[len(codes) % len(people)]
        middle = model.labelled({"woman": float(like.woman), "born": like.born, "tone": like.tone})
        codes.append(middle + model.spread @ rng.standard_normal(model.n_codes).clip(-2, 2))
    return np.stack(codes)
