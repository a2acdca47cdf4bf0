"""k-Same-furthest and k-Diff-furthest: two far clusters exchange their centres (Sun et al. 2015)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, combinations, islice, permutations
from typing import Literal

import numpy as np

from ksame.arrays import FloatArray, IntArray
from ksame.errors import GuaranteeError, InputError, parameter_error
from ksame.methods.base import Outcome, Problem
from ksame.parameters import Parameters, parameter
from ksame.privacy.maps import ZeroRecognition
from ksame.privacy.models import KAnonymity, PrivacyModel
from ksame.progress import Progress, silent

Condition = Literal["paper", "tight", "exact"]
Pair = tuple[list[int], list[int]]
Test = Callable[[list[int], list[int]], float]
"""The smallest margin over the members of two clusters: positive when all of them are protected."""

SAFETY = 1e-3
"""Margin of the exact condition, as a share of the distance between centres: rounding to bytes must not undo it."""

_TRIALS = 200  # ways of breaking pairs up before a leftover is withheld


@dataclass(frozen=True)
class Furthest(Parameters):
    """Form pairs of clusters that are far apart, and give each the place of the other.

    Everyone in a cluster becomes the centre of the other (k-Same-furthest), or is moved there by the difference of the
    centres (k-Diff-furthest, eq. 1), so that all released faces differ.

    A cluster may grow while a condition holds. ``paper``: the balls round the clusters do not overlap (eq. 5).
    ``tight``: squared distance of the centres above the sum of the squared radii, enough for ``shifted`` only.
    ``exact``: every member is nearer to somebody else than to itself; the most permissive, with the same promise.
    """

    k: int = parameter(5, "largest size to which a cluster grows; leftovers may join later", low=2)
    release: Literal["centroid", "shifted"] = parameter(
        "shifted", "what becomes of a cluster", choices=("centroid", "shifted"), public=False
    )
    condition: Condition = parameter("exact", "when a cluster may still grow", choices=("paper", "tight", "exact"))
    repair: bool = parameter(True, "let leftovers join a pair where everyone stays protected")

    selectable = True
    aligns = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.condition == "tight" and self.release == "centroid":
            raise parameter_error(
                "condition",
                self.name,
                "'paper' or 'exact' (the tight condition protects k-Diff-furthest only)",
                "tight",
            )

    @property
    def name(self) -> str:
        """The paper's name."""
        return "k-diff-furthest" if self.release == "shifted" else "k-same-furthest"

    @property
    def promised(self) -> type[PrivacyModel]:
        """Zero recognition where faces are shifted, k-anonymity where they are shared."""
        return ZeroRecognition if self.release == "shifted" else KAnonymity

    @property
    def min_subjects(self) -> int:
        """Two clusters of k people."""
        return 2 * self.k

    def run(self, problem: Problem, rng: np.random.Generator, progress: Progress = silent) -> Outcome:
        """Cluster the people and exchange the centres."""
        if not problem.person_specific and self.release == "shifted":
            raise InputError(
                "k-diff-furthest needs one image per person: several images of one person, moved together, would tell "
                "everybody's shift. Choose one image for each subject, or use a k-Same method, which groups by subject."
            )
        people = problem.by_subject
        if len(people) < self.min_subjects:
            raise parameter_error(
                "k", self.name, f"an integer in [2, number of subjects / 2 = {len(people) // 2}]", self.k
            )
        pairs, left = pair_clusters(people.codes, self.k, self.release, self.condition, rng, repair=self.repair)
        if not pairs:
            raise GuaranteeError(
                f"{self.name}: no two clusters of two or more faces could be formed in which everyone is nearer to "
                "somebody else. Try a smaller k or another coding."
            )
        return self._outcome(problem, people, pairs, left)

    def _outcome(self, problem: Problem, people: Problem, pairs: list[Pair], left: list[int]) -> Outcome:
        images = [problem.images[str(subject)] for subject in people.subjects]
        surrogates: list[FloatArray] = []
        rows: list[int] = []
        members: list[int] = []
        groups: list[int] = []
        clusters = [(own, other) for pair in pairs for own, other in (pair, pair[::-1])]
        for number, (own, other) in enumerate(clusters):
            centre, target = people.codes[own].mean(axis=0), people.codes[other].mean(axis=0)
            if self.release == "centroid":
                rows += [len(surrogates)] * len(own)
                surrogates.append(target)
            else:
                rows += range(len(surrogates), len(surrogates) + len(own))
                surrogates += list(people.codes[own] - centre + target)
            members += own
            groups += [number] * len(own)
        sizes = [len(own) for own, _ in clusters]
        warnings = []
        if self.release == "centroid" and min(sizes) < self.k:
            warnings.append(
                f"k-same-furthest formed clusters of {min(sizes)} to {max(sizes)} people; the promise is for "
                f"{min(sizes)}, not for k = {self.k}."
            )
        reason = "no pair of clusters could take it in without exposing somebody"
        return Outcome(
            np.stack(surrogates),
            np.array(rows, dtype=np.intp),
            [images[i] for i in members],
            ZeroRecognition() if self.release == "shifted" else KAnonymity(min(sizes)),
            np.array(groups, dtype=np.intp),
            {i: reason for person in left for i in images[person]},
            {"mean_cluster": float(np.mean(sizes)), "smallest_cluster": min(sizes), "pairs": len(pairs)},
            warnings=tuple(warnings),
        )


def pair_clusters(
    codes: FloatArray, k: int, release: str, condition: str, rng: np.random.Generator, *, repair: bool = True
) -> tuple[list[Pair], list[int]]:
    """Form pairs of far clusters of 2 to k faces (more after repair), indices into codes of shape (n, n_features).

    Returns the pairs, and the faces in no pair, which are never released.
    """
    points = _isometric(codes)
    margin = _margin_test(points, release)
    may_grow = margin if condition == "exact" else _ball_test(points, squared=condition == "tight")
    pool = list(range(len(points)))
    pairs: list[Pair] = []
    left: list[int] = []
    while len(pool) >= 4:
        trigger = pool[rng.integers(len(pool))]
        pair = _grow(points, pool, trigger, k, may_grow)
        if pair is None:
            left.append(trigger)
            pool.remove(trigger)
        else:
            pairs.append(pair)
            taken = {*pair[0], *pair[1]}
            pool = [i for i in pool if i not in taken]
    left += pool
    if repair and left:
        left = _repair(points, pairs, left, margin)
    return pairs, left


def _grow(points: FloatArray, pool: list[int], trigger: int, k: int, may_grow: Test) -> Pair | None:
    """Grow one cluster round the trigger and one at the far end; None if neither can have a second member."""
    others = np.array([i for i in pool if i != trigger])
    order = others[np.argsort(((points[others] - points[trigger]) ** 2).sum(axis=1), kind="stable")]
    near, far = [trigger], [int(order[-1])]
    for step in range(min(k - 1, (len(order) - 1) // 2)):
        wider = ([*near, int(order[step])], [*far, int(order[-2 - step])])
        if may_grow(*wider) <= 0:
            break
        near, far = wider
    return (near, far) if len(near) > 1 else None


def _repair(points: FloatArray, pairs: list[Pair], left: list[int], margin: Test) -> list[int]:
    """Find places for the leftovers in which everyone stays protected; edit ``pairs`` and return who is still left."""
    waiting = list(left)
    _settle(points, pairs, waiting, margin)
    improved = True
    while waiting and improved:
        improved = False
        choices = chain(combinations(range(len(pairs)), 1), combinations(range(len(pairs)), 2))
        for broken in islice(choices, _TRIALS):
            # break one or two pairs up and place their members anew, together with the leftovers
            trial = [(list(a), list(b)) for n, (a, b) in enumerate(pairs) if n not in broken]
            moved = [*waiting, *(i for n in broken for cluster in pairs[n] for i in cluster)]
            _settle(points, trial, moved, margin)
            if len(moved) < len(waiting):
                pairs[:], waiting, improved = trial, moved, True
                break
    return waiting


def _settle(points: FloatArray, pairs: list[Pair], waiting: list[int], margin: Test) -> None:
    """Let faces join formed pairs singly, then one on each side, then form pairs of their own, until nothing helps."""
    progress = True
    while waiting and progress:
        progress = (
            _join(pairs, waiting, margin)
            or _join_two(pairs, waiting, margin)
            or _pair_up(points, pairs, waiting, margin)
        )


def _join(pairs: list[Pair], waiting: list[int], margin: Test) -> bool:
    """Let each face join the side of the pair that leaves everyone safest, where one does."""
    joined = False
    for face in list(waiting):
        best = max(
            (
                (margin([*a, face], b) if side == 0 else margin(a, [*b, face]), number, side)
                for number, (a, b) in enumerate(pairs)
                for side in (0, 1)
            ),
            default=(0.0, -1, 0),
        )
        if best[0] > 0:
            pairs[best[1]][best[2]].append(face)
            waiting.remove(face)
            joined = True
    return joined


def _join_two(pairs: list[Pair], waiting: list[int], margin: Test) -> bool:
    """Let two leftovers join opposite sides of one pair, where one alone would not fit."""
    for first, second in permutations(waiting, 2):
        for a, b in pairs:
            if margin([*a, first], [*b, second]) > 0:
                a.append(first)
                b.append(second)
                waiting.remove(first)
                waiting.remove(second)
                return True
    return False


def _pair_up(points: FloatArray, pairs: list[Pair], waiting: list[int], margin: Test) -> bool:
    """Form a new pair of two and two among the leftovers."""
    for trigger in waiting if len(waiting) >= 4 else ():
        pair = _grow(points, waiting, trigger, 2, margin)
        if pair is not None:
            pairs.append(pair)
            for i in (*pair[0], *pair[1]):
                waiting.remove(i)
            return True
    return False


def _isometric(codes: FloatArray) -> FloatArray:
    """Return points in at most n dimensions with the same distances: high codings cost no more than low ones."""
    centred = codes - codes.mean(axis=0)
    if centred.shape[1] <= len(centred):
        return centred
    values, vectors = np.linalg.eigh(centred @ centred.T)
    keep = values > values.max() * 1e-14
    return np.asarray(vectors[:, keep] * np.sqrt(values[keep]))


def _ball_test(points: FloatArray, *, squared: bool) -> Test:
    """Return the growth condition of the paper (eq. 5), or its tight form on squares."""

    def test(a: list[int], b: list[int]) -> float:
        c1, c2 = points[a].mean(axis=0), points[b].mean(axis=0)
        distance = float(np.linalg.norm(c1 - c2))
        r1 = float(np.linalg.norm(points[a] - c1, axis=1).max())
        r2 = float(np.linalg.norm(points[b] - c2, axis=1).max())
        return distance**2 - r1**2 - r2**2 if squared else distance - r1 - r2

    return test


def _margin_test(points: FloatArray, release: str) -> Test:
    """Return the check of Theorem 1 itself, over all members of both clusters and against all originals."""
    norms = (points**2).sum(axis=1)

    def test(a: list[int], b: list[int]) -> float:
        c1, c2 = points[a].mean(axis=0), points[b].mean(axis=0)
        if release == "shifted":
            released = np.concatenate([points[a] + (c2 - c1), points[b] + (c1 - c2)])
        else:
            released = np.concatenate([np.tile(c2, (len(a), 1)), np.tile(c1, (len(b), 1))])
        index = np.array(a + b, dtype=np.intp)
        return float(_margins(released, index, points, norms).min() - SAFETY * np.linalg.norm(c1 - c2))

    return test


def _margins(released: FloatArray, index: IntArray, points: FloatArray, norms: FloatArray) -> FloatArray:
    """Return distance to the own original minus distance to the nearest other, (n_released,)."""
    squares = norms[None, :] - 2.0 * released @ points.T + (released**2).sum(axis=1)[:, None]
    own = np.linalg.norm(released - points[index], axis=1)
    squares[np.arange(len(index)), index] = np.inf
    return np.asarray(own - np.sqrt(np.maximum(squares.min(axis=1), 0.0)))
