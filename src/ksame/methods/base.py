"""What a method is given and what it gives back. Arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray, IntArray
from ksame.faces.faceset import subject_means
from ksame.methods.grouping import Neighbours
from ksame.privacy.models import PrivacyModel
from ksame.progress import Progress, silent
from ksame.spaces.reference import FaceModels

DrawPerson = Callable[[FloatArray, np.random.Generator], FloatArray]
"""From codes of some faces, (n, n_features), to the code of a person who does not exist, (n_features,)."""

Written = Callable[[FloatArray], FloatArray]
"""From codes, (n, n_features), to what is read back from their pictures: clipped and rounded to bytes."""


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """Coded faces to be de-identified, and what else is known of them."""

    codes: FloatArray  # (n_faces, n_features)
    subjects: NDArray[np.str_]  # (n_faces,)
    strata: NDArray[np.str_] | None = None  # (n_faces,): labels that are kept apart
    shape: tuple[int, int, int] | None = None  # height, width and channels, where the codes are pixels
    landmarks: FloatArray | None = None  # (n_faces, n_points, 2)
    reference: FaceModels | None = None  # other people (street corner); without it the faces (office building)
    distance_codes: FloatArray | None = None  # (n_faces, n_distance_features): where neighbours are sought
    draw_person: DrawPerson | None = None  # draws somebody who does not exist, with the labels of given faces
    written: Written | None = None  # tells what becomes of codes when they are written as pictures

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def person_specific(self) -> bool:
        """Whether no subject appears twice."""
        return len(np.unique(self.subjects)) == len(self)

    @cached_property
    def models(self) -> FaceModels:
        """The reference: the people given, or the faces themselves."""
        return self.reference or FaceModels(self.codes, self.subjects)

    @cached_property
    def by_subject(self) -> Problem:
        """The same people with one row each, the mean of their images; itself when person-specific."""
        if self.person_specific:
            return self
        codes, who = subject_means(self.codes, self.subjects)
        distance = None if self.distance_codes is None else subject_means(self.distance_codes, self.subjects)[0]
        return replace(self, codes=codes, subjects=who, strata=None, landmarks=None, distance_codes=distance)

    @cached_property
    def neighbours(self) -> Neighbours:
        """The codes among which neighbours are sought."""
        return Neighbours(self.codes if self.distance_codes is None else self.distance_codes)

    @cached_property
    def images(self) -> dict[str, list[int]]:
        """The faces of every subject."""
        rows: dict[str, list[int]] = {}
        for i, subject in enumerate(self.subjects):
            rows.setdefault(str(subject), []).append(i)
        return rows

    def take(self, rows: IntArray) -> Problem:
        """Return the problem of some of the faces, against the same reference; labels are left out."""
        return replace(
            self,
            codes=self.codes[rows],
            subjects=self.subjects[rows],
            strata=None,
            landmarks=None if self.landmarks is None else self.landmarks[rows],
            distance_codes=None if self.distance_codes is None else self.distance_codes[rows],
        )


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """What a method decided: distinct faces, and copies that show them, so that equal faces are equal to the bit."""

    surrogates: FloatArray  # (n_surrogates, n_features): the distinct faces
    rows: IntArray  # (n_copies,): which of them each copy shows
    sources: Sequence[Sequence[int]]  # for each copy, the faces of the problem it stands for, all of one subject
    promise: PrivacyModel  # what holds for these copies
    groups: IntArray | None = None  # (n_copies,): secret
    withheld: Mapping[int, str] = field(default_factory=dict)  # faces that no copy stands for, and why
    figures: Mapping[str, float] = field(default_factory=dict)  # aggregates that may be published
    secrets: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # numbers of single copies; for the linkage only
    warnings: tuple[str, ...] = ()  # where privacy is weaker than asked for


class Method(Protocol):
    """Turns a problem into an outcome. Holds parameters only; randomness comes in."""

    @property
    def name(self) -> str:
        """The papers' name, in lower case."""

    @property
    def selectable(self) -> bool:
        """Whether people share in one another's faces, so that keeping classes apart means something."""

    @property
    def aligns(self) -> bool:
        """Whether it can release one face per group and label, for a label that varies within a person."""

    @property
    def promised(self) -> type[PrivacyModel]:
        """The kind of promise that every outcome makes."""

    def params(self) -> dict[str, Any]:
        """Return the public parameters, ready for JSON."""

    @property
    def min_subjects(self) -> int:
        """The smallest number of subjects the method can work on."""

    def run(self, problem: Problem, rng: np.random.Generator, progress: Progress = silent) -> Outcome:
        """De-identify the problem's codes."""


def one_copy_each(n: int) -> list[tuple[int, ...]]:
    """Return sources in which copy i stands for face i."""
    return [(i,) for i in range(n)]


def equal_copies(problem: Problem) -> tuple[FloatArray, NDArray[np.str_], list[tuple[int, ...]]]:
    """Return equally many faces of everybody, by merging images of those who have more.

    Unequal numbers name people: whoever guesses the person with twelve images is right twelve times.

    Returns codes, (n_copies, n_features), the means of merged images; subjects, (n_copies,); and sources, the images
    that each copy stands for.
    """
    who, counts = np.unique(problem.subjects, return_counts=True)
    if counts.min() == counts.max():
        return problem.codes, problem.subjects, one_copy_each(len(problem))
    parts = [part for s in who for part in np.array_split(np.flatnonzero(problem.subjects == s), counts.min())]
    sources = [tuple(part.tolist()) for part in parts]
    codes = np.stack([problem.codes[list(rows)].mean(axis=0) for rows in sources])
    return codes, np.repeat(who, counts.min()), sources
