"""k-Same: every group of k people shares one face (Newton et al. 2005, Fig. 4; Gross et al. 2005, 2006)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ksame.arrays import FloatArray, IntArray, members
from ksame.errors import GuaranteeError, UsageError, parameter_error
from ksame.methods.base import Outcome, Problem
from ksame.methods.grouping import STRATEGIES, group_means, partition
from ksame.parameters import Parameters, parameter
from ksame.privacy.models import KAnonymity
from ksame.progress import Progress, silent


@dataclass(frozen=True)
class KSame(Parameters):
    """Group people, release one face for each group, as many copies as it has members.

    People are grouped, not images: with several images of a subject the group is formed from subject means, and every
    member contributes the same number of copies. Otherwise the counts alone would name people, and images of one person
    would be averaged with each other (Gross and Sweeney 2007, section II-C).
    """

    k: int = parameter(5, "how many people share a face", low=2)
    grouping: str = parameter(
        "greedy", "who shares one: greedy is the papers', mdav+refine loses least", choices=STRATEGIES
    )
    surrogate: Literal["mean", "someone-else"] = parameter(
        "mean",
        "what a group shares: its mean, or one person who does not exist, of its gender, age, skin tone and expression",
        choices=("mean", "someone-else"),
        quiet=True,
    )

    name = "k-same"
    selectable = True
    aligns = True
    promised = KAnonymity

    @property
    def min_subjects(self) -> int:
        """At least k people are needed."""
        return self.k

    def run(self, problem: Problem, rng: np.random.Generator, progress: Progress = silent) -> Outcome:
        """Group the subjects and release one face for each group, or for each group and label (``problem.strata``)."""
        people = problem.by_subject
        n = len(people)
        if n < self.k:
            raise parameter_error("k", self.name, f"an integer in [2, number of subjects = {n}]", self.k)
        labels = partition(people.neighbours, self.k, self.grouping, rng)
        outcome = (_collapsed if problem.strata is None else _aligned)(problem, people, labels)
        return outcome if self.surrogate == "mean" else _with_drawn_people(outcome, problem, rng)


def _collapsed(problem: Problem, people: Problem, labels: IntArray) -> Outcome:
    """Release one copy for each person: the mean of the subject means of its group."""
    sizes = np.bincount(labels)
    return Outcome(
        group_means(people.codes, labels),
        labels,
        [problem.images[str(subject)] for subject in people.subjects],
        KAnonymity(int(sizes.min())),
        labels,
        figures={"loss_sse": people.neighbours.loss(labels), "mean_group": float(sizes.mean())},
    )


def _aligned(problem: Problem, people: Problem, labels: IntArray) -> Outcome:
    """Release one copy for each person and label, for the labels that every member of the group has."""
    assert problem.strata is not None  # noqa: S101 -- the caller's branch
    strata = problem.strata
    reason = "not every member of its group has this label"
    withheld: dict[int, str] = {}
    surrogates: list[FloatArray] = []
    rows: list[int] = []
    sources: list[list[int]] = []
    groups: list[int] = []
    for group, row in enumerate(members(labels)):
        images = [problem.images[str(subject)] for subject in people.subjects[row]]
        common = set.intersection(*(set(strata[own]) for own in images))
        for label in sorted(common):
            matching = [[i for i in own if strata[i] == label] for own in images]
            rows += [len(surrogates)] * len(images)
            surrogates.append(np.mean([problem.codes[own].mean(axis=0) for own in matching], axis=0))
            sources += matching
            groups += [group] * len(images)
        withheld.update({i: reason for own in images for i in own if strata[i] not in common})
    if not surrogates:
        raise GuaranteeError(
            "No group has a label that all of its members share; nothing can be released with --select."
        )
    sizes = np.bincount(labels)
    return Outcome(
        np.stack(surrogates),
        np.array(rows, dtype=np.intp),
        sources,
        KAnonymity(int(sizes.min())),
        np.array(groups, dtype=np.intp),
        withheld,
        {"mean_group": float(sizes.mean())},
    )


def _with_drawn_people(outcome: Outcome, problem: Problem, rng: np.random.Generator) -> Outcome:
    """Replace every mean by a person who does not exist; a group keeps the same one for all of its labels."""
    if problem.draw_person is None:
        raise UsageError("Only the face model can draw somebody else; add --coding model.")
    assert outcome.groups is not None  # noqa: S101 -- k-Same always has groups
    surrogates = outcome.surrogates.copy()
    seeds = {int(group): int(rng.integers(2**63)) for group in np.unique(outcome.groups)}
    for row, copies in enumerate(members(outcome.rows)):
        faces = [i for c in copies.tolist() for i in outcome.sources[c]]
        own = np.random.default_rng(seeds[int(outcome.groups[copies[0]])])
        surrogates[row] = problem.draw_person(problem.codes[faces], own)
    return replace(outcome, surrogates=surrogates)


@dataclass(frozen=True)
class Average(Parameters):
    """Everybody gets the average of all (Newton et al. 2005, Example 2.4)."""

    name = "average"
    selectable = True
    aligns = False
    promised = KAnonymity

    @property
    def min_subjects(self) -> int:
        """Two people, so that there is somebody to hide among."""
        return 2

    def run(self, problem: Problem, rng: np.random.Generator, progress: Progress = silent) -> Outcome:
        """Release one copy of the one face for every person."""
        people = problem.by_subject
        return _collapsed(problem, people, np.zeros(len(people), dtype=np.intp))


@dataclass(frozen=True)
class Blackout(Average):
    """Everybody gets one plain face (Newton et al. 2005, Example 2.3)."""

    value: float = parameter(0.0, "grey value, 0 black to 1 white", low=0, high=1, level=True)

    name = "blackout"

    def run(self, problem: Problem, rng: np.random.Generator, progress: Progress = silent) -> Outcome:
        """Release one plain copy for every person."""
        shared = super().run(problem, rng, progress)
        return replace(shared, surrogates=self.apply(shared.surrogates, rng), figures={})

    def apply(self, images: FloatArray, rng: np.random.Generator, landmarks: FloatArray | None = None) -> FloatArray:
        """Return plain images of the same shape."""
        return np.full_like(images, self.value)
