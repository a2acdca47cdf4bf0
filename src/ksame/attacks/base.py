"""What an attack is: a recogniser, what the attacker holds, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ksame.arrays import FloatArray
from ksame.attacks.scoring import Verdict, clopper_pearson, cmc, rank1_scores, roc, verdict
from ksame.errors import InputError
from ksame.faces.faceset import FaceSet

FALSE_ACCEPT_RATES = (0.01, 0.001)
"""Rates at which the true accept rate is reported."""

_MAX_RANK = 50

Imitation = Callable[[FaceSet], FaceSet]
"""The de-identification as an attacker would run it on faces of their own; subjects stay as they were."""


@runtime_checkable
class Recogniser(Protocol):
    """Learns from a training set, then measures how far faces are apart.

    Half the square of a distance is, up to a constant for each probe, minus a log likelihood: the distances of several
    images of one person are pooled by adding squares.
    """

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def params(self) -> dict[str, Any]:
        """Return its settings and, once fitted, how large what it learned is; ready for JSON."""
        ...

    def fit(self, training: FaceSet) -> Recogniser:
        """Learn from a training set and return the trained recogniser; this one is left as it was."""
        ...

    def distances(self, probes: FaceSet, gallery: FaceSet) -> FloatArray:
        """Return distances, (n_probes, n_gallery)."""
        ...


@runtime_checkable
class Coder(Recogniser, Protocol):
    """A recogniser whose distances are Euclidean between codes, in which averages of faces are averages of codes."""

    def fit(self, training: FaceSet) -> Coder:
        """Learn from a training set and return the trained coder."""
        ...

    def encode(self, faces: FaceSet) -> FloatArray:
        """Return codes, (n_faces, n_features)."""
        ...


@runtime_checkable
class Remarking(Protocol):
    """A recogniser that has something to say about faces it was shown."""

    def remarks(self, faces: FaceSet) -> tuple[str, ...]:
        """Return what readers of a result should know about these faces."""
        ...


@dataclass(frozen=True, eq=False)
class AttackData:
    """What an attacker holds, and the truth the attack is scored on."""

    originals: FaceSet  # faces whose subjects the attacker knows
    # de-identified faces; their ``subjects`` are the truth, which no attack uses before scoring. Released faces and
    # originals go together by subject, not by position
    released: FaceSet
    training: FaceSet | None = None  # people outside both, for a recogniser to learn from
    imitate: Imitation | None = None  # the method, as the attacker runs it: see :data:`Imitation`
    earlier: FaceSet | None = None  # an earlier release of the same people; its ``subjects`` are the truth too

    def __post_init__(self) -> None:
        if not set(self.released.subjects) & set(self.originals.subjects):
            raise InputError("No released face shows anybody who is among the originals; check how they were paired.")
        if self.training is not None:
            both = set(self.training.subjects) & (set(self.originals.subjects) | set(self.released.subjects))
            if both:
                raise InputError(
                    f"The training set must show other people. {len(both)} of them are attacked too, "
                    f"for instance {min(both)}; leave them out of one of the sets."
                )


@dataclass(frozen=True, eq=False)
class AttackResult:
    """What an attack achieved."""

    scenario: str
    recogniser: str
    params: Mapping[str, Any]  # the recogniser's settings and the size of what it learned, ready for JSON
    n_probes: int
    n_gallery: int
    subjects: NDArray[np.str_]  # (n_probes,): whom the probes really show
    scores: FloatArray  # (n_probes,): chance with which each probe is named correctly at rank 1
    interval: tuple[float, float]  # Clopper-Pearson 95 % interval of the rank-1 rate
    # (max_rank,): see :func:`ksame.attacks.scoring.cmc`; as long as the gallery has subjects, at most 50
    cmc: FloatArray
    eer: float | None  # None where verification cannot be measured: a single person
    # true accept rate by false accept rate; empty where verification cannot be measured
    tar_at_far: Mapping[float, float]
    distances: FloatArray  # (n_probes, n_gallery)
    # what was compared with what, after restoration if there was any
    probes: FaceSet
    gallery: FaceSet
    covered: bool = True  # whether a promise of k-anonymity speaks of this attacker at all; it does not of insiders
    # what readers should know: who trained the recogniser, what was detected, what was left out
    notes: tuple[str, ...] = field(default=())

    @property
    def rank1(self) -> float:
        """The share of probes named correctly."""
        return float(self.scores.mean())

    def verdict(self, bound: float | None) -> Verdict | None:
        """Judge the rank-1 rate against a promised bound; None where nothing is promised against this attacker.

        No promise can be below what guessing reaches: one in as many people as the gallery shows.
        """
        if bound is None or not self.covered:
            return None
        return verdict(self.rank1, self.n_probes, max(bound, 1.0 / self.gallery.n_subjects))


def score(
    scenario: str,
    recogniser: Recogniser,
    distances: FloatArray,
    probes: FaceSet,
    gallery: FaceSet,
    *,
    notes: tuple[str, ...] = (),
    covered: bool = True,
) -> AttackResult:
    """Score distances of shape (n_probes, n_gallery) into a result."""
    scores = rank1_scores(distances, gallery.subjects, probes.subjects)
    eer, tar = _verification(distances, gallery.subjects, probes.subjects)
    absent = int((~np.isin(probes.subjects, gallery.subjects)).sum())
    if absent:
        notes = (*notes, f"{absent} of {len(probes)} probes show people who are not in the gallery")
    return AttackResult(
        scenario=scenario,
        recogniser=recogniser.name,
        params=MappingProxyType(recogniser.params()),
        n_probes=len(probes),
        n_gallery=len(gallery),
        subjects=probes.subjects,
        scores=scores,
        interval=clopper_pearson(float(scores.sum()), len(scores)),
        cmc=cmc(distances, gallery.subjects, probes.subjects, min(_MAX_RANK, gallery.n_subjects)),
        eer=eer,
        tar_at_far=MappingProxyType(tar),
        distances=distances,
        probes=probes,
        gallery=gallery,
        covered=covered,
        notes=notes,
    )


def _verification(
    distances: FloatArray, gallery: ArrayLike, probes: ArrayLike
) -> tuple[float | None, dict[float, float]]:
    try:
        curve = roc(distances, gallery, probes)
    except InputError:
        return None, {}
    return curve.eer(), {far: curve.tar_at(far) for far in FALSE_ACCEPT_RATES}


def compare(recogniser: Recogniser, probes: FaceSet, gallery: FaceSet) -> FloatArray:
    """Return distances, (n_probes, n_gallery), with exactly equal rows and columns for equal faces.

    Every different face is compared once, which keeps the ties of k-Same exact and saves time.
    """
    probe, row = distinct(probes)
    face, column = distinct(gallery)
    return recogniser.distances(probes.take(probe), gallery.take(face))[np.ix_(row, column)]


def distinct(faces: FaceSet) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find equal faces: same pixels and, where there are any, same landmarks.

    Returns where each different face stands first, (n_distinct,), and which of them each face is, (n_faces,).
    """
    seen: dict[bytes, int] = {}
    first: list[int] = []
    which = np.empty(len(faces), dtype=np.intp)
    for i, image in enumerate(faces.images):
        points = b"" if faces.landmarks is None else faces.landmarks[i].tobytes()
        key = image.tobytes() + points
        if key not in seen:
            seen[key] = len(first)
            first.append(i)
        which[i] = seen[key]
    return np.array(first, dtype=np.intp), which


def connected(first: ArrayLike, second: ArrayLike) -> NDArray[np.intp]:
    """Number faces, (n_faces,), so that those which share either label, directly or over others, share a number.

    Examples
    --------
    >>> connected(["ann", "ann", "bob", "eve"], [0, 1, 1, 2]).tolist()
    [0, 0, 0, 1]
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    _, rows = np.unique(np.asarray(first), return_inverse=True)
    _, columns = np.unique(np.asarray(second), return_inverse=True)
    columns = columns + rows.max() + 1
    links = coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(columns.max() + 1,) * 2)
    return np.asarray(connected_components(links, directed=False)[1][rows], dtype=np.intp)
