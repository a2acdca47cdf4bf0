"""epsilon-map, wrong-map and (epsilon,k)-map: de-identification against reference models (Gross and Sweeney 2007)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray, IntArray
from ksame.errors import InputError, parameter_error
from ksame.faces.faceset import quantise
from ksame.methods.adhoc import Levelled, Pixelate, at, pixels
from ksame.methods.base import Outcome, Problem, Written, equal_copies, one_copy_each
from ksame.parameters import Parameters, parameter
from ksame.privacy.maps import EpsilonKMap as EpsilonKMapPromise
from ksame.privacy.maps import EpsilonMap as EpsilonMapPromise
from ksame.privacy.maps import WrongMap as WrongMapPromise
from ksame.privacy.rounding import rough
from ksame.progress import Progress, silent
from ksame.spaces.reference import FaceModels, cross_squared_distances

PERTURBATION_PSNR = 41.0
"""Decibels between an epsilon-mapped face before and after Rand(); the paper asks for 40 or more."""

_ROUNDS = 40  # of writing and equalising
_SETTLED = 1e-3  # relative gap below which only the rounding to bytes is left
_LARGEST = 1e6  # scale or weight: squares of it stay far from where floats end

_SHARE = {"kind": float, "low": 0, "high": 1, "above": True, "below": True}
_SCALE = {"kind": float, "low": 0, "high": _LARGEST, "above": True}
_SIGMA = "scale of the likelihood; estimated from the models where it is left out"


@dataclass(frozen=True)
class EpsilonMap(Parameters):
    """Distort each face just enough that it is unlikely under every model (Algorithm IV.1, "like no one")."""

    over: Levelled = parameter(
        Pixelate(), "what distorts a face: a method with levels, such as pixelate, blur or noise", kind=str, method=True
    )
    epsilon: float = parameter(1e-3, "likelihood exp(-d²/2σ²) that no model may reach", **_SHARE)
    sigma: float | None = parameter(None, _SIGMA, **_SCALE)

    name = "epsilon-map"
    selectable = False
    aligns = False
    promised = EpsilonMapPromise

    def __post_init__(self) -> None:
        super().__post_init__()
        if not hasattr(self.over, "levels"):
            raise parameter_error("over", self.name, "a method with levels", getattr(self.over, "name", self.over))

    @property
    def min_subjects(self) -> int:
        """Two, so that a scale can be estimated."""
        return 1 if self.sigma is not None else 2

    def run(self, problem: Problem, rng: np.random.Generator, progress: Progress = silent) -> Outcome:
        """Scan the levels of every face from weak to strong; the distance is not monotone, so nothing is bisected."""
        images = pixels(problem, self.name)
        models = problem.models
        sigma = self.sigma or rough(models.scale())
        if sigma <= 0:
            raise InputError("The reference models coincide, so no scale can be estimated. Give --sigma.")
        promise = EpsilonMapPromise(self.epsilon, sigma)
        noise = rng.standard_normal(images.shape) * 10.0 ** (-PERTURBATION_PSNR / 20.0)
        levels = list(self.over.levels(images.shape[1:]))
        chosen = np.full(len(images), levels[-1], dtype=np.float64)
        released = np.zeros_like(problem.codes)
        open_ = np.arange(len(images))
        seed = int(rng.integers(2**63))
        for level in progress(levels, "scanning levels"):
            if not len(open_):
                continue
            altered = at(self.over, level).apply(images[open_], np.random.default_rng(seed))
            codes = quantise(altered + noise[open_]).reshape(len(open_), -1) / 255.0
            released[open_] = codes
            met = promise.likelihoods(codes, models) < self.epsilon
            chosen[open_[met]] = level
            open_ = open_[~met]
        warnings = _of_uneven_counts(problem)
        if len(open_):
            warnings += (
                f"epsilon-map: {len(open_)} of {len(images)} faces stay above epsilon = {self.epsilon:g} even at the "
                f"strongest level of {self.over.name}, which was used for them.",
            )
        return Outcome(
            released,
            np.arange(len(images)),
            one_copy_each(len(images)),
            replace(promise, exceptions=len(open_)),
            figures={"mean_level": float(chosen.mean()), "weak_faces": len(open_)},
            secrets={"level": chosen.tolist()},
            warnings=warnings,
        )


def _of_uneven_counts(problem: Problem) -> tuple[str, ...]:
    _, counts = np.unique(problem.subjects, return_counts=True)
    if counts.min() == counts.max():
        return ()
    return (
        f"epsilon-map: people have {counts.min()} to {counts.max()} faces each, and how many a person has may tell who "
        "it is. Give as many images of everyone.",
    )


@dataclass(frozen=True)
class WrongMap(Parameters):
    """Move each face, by the smallest change that works, until somebody else is nearer (Definition III.8).

    The nearest point beyond the plane that bisects the true model and another has a closed form; the other model with
    the smallest change is chosen.
    """

    margin: float = parameter(
        0.02, "how far beyond the plane, as a share of the distance between two models", **{**_SHARE, "high": 0.5}
    )

    name = "wrong-map"
    selectable = False
    aligns = False
    promised = WrongMapPromise

    @property
    def min_subjects(self) -> int:
        """Two, so that there is somebody else."""
        return 2

    def run(self, problem: Problem, rng: np.random.Generator, progress: Progress = silent) -> Outcome:
        """Move every face across its nearest bisecting plane."""
        models = problem.models.means()
        index = {str(s): i for i, s in enumerate(models.subjects)}
        unknown = sorted({str(s) for s in problem.subjects} - set(index))
        if unknown:
            raise InputError(
                f"wrong-map needs a model of every person to be hidden; the reference has none of {len(unknown)} of "
                f"them (for instance {unknown[0]}). Leave --reference out, so that the faces are their own reference."
            )
        codes, subjects, sources = equal_copies(problem)
        true = np.array([index[str(s)] for s in subjects], dtype=np.intp)
        rows = np.arange(len(codes))
        squares = cross_squared_distances(codes, models.codes)
        between = np.sqrt(cross_squared_distances(models.codes, models.codes))[true]
        behind = squares - squares[rows, true][:, None]  # how far each model's square is behind the true one's
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.where(between > 0, behind / (2.0 * between) + self.margin * between, np.inf)
        change[rows, true] = np.inf
        target = change.argmin(axis=1)
        step = np.maximum(change[rows, target], 0.0)
        if not np.isfinite(step).all():
            raise InputError("wrong-map: all models coincide, so nobody can be made to look like somebody else.")
        direction = (models.codes[target] - models.codes[true]) / between[rows, target][:, None]
        return Outcome(
            codes + direction * step[:, None],
            rows,
            sources,
            WrongMapPromise(),
            figures={"mean_change": float(step.mean())},
            secrets={"towards": [str(models.subjects[t]) for t in target]},
        )


@dataclass(frozen=True)
class EpsilonKMap(Parameters):
    """Make each face equally like k people, by the smallest change (eqs. 1 to 4, "like everyone")."""

    k: int = parameter(5, "how many people each face is equally like", low=2)
    lam: float = parameter(
        0.0,
        "weight of the change against the equality; 0 makes all k equally far",
        low=0,
        high=_LARGEST,
        option="lambda",
    )
    models: Literal["mean", "images"] = parameter(
        "mean", "whether a person is the mean of its images or any one of them", choices=("mean", "images")
    )
    epsilon: float | None = parameter(
        None, "faces whose k posteriors differ by more (squared) after writing are withheld", **_SHARE
    )
    sigma: float | None = parameter(None, _SIGMA, **_SCALE)

    name = "epsilon-k-map"
    selectable = True
    aligns = False
    promised = EpsilonKMapPromise

    @property
    def min_subjects(self) -> int:
        """One: a single face works against a reference; the reference needs k people."""
        return 1

    def run(self, problem: Problem, rng: np.random.Generator, progress: Progress = silent) -> Outcome:
        """Move every face to equal distances from its k models."""
        models = problem.models.means() if self.models == "mean" else problem.models
        people = len(np.unique(models.subjects))
        if people < self.k:
            raise parameter_error("k", self.name, f"an integer in [2, people in the reference = {people}]", self.k)
        faces, subjects, sources = equal_copies(problem)
        neighbours = nearest_people(faces, subjects, models, self.k)
        codes = equalise(faces, models.codes, neighbours, self.lam)
        if self.lam == 0 and problem.written is not None:
            codes = as_written(codes, models.codes, neighbours, problem.written, progress)
        sigma = self.sigma or rough(models.scale())
        promise = EpsilonKMapPromise(self.k, sigma, self.models, self.epsilon, even=self.lam == 0)
        change = np.linalg.norm(codes - faces, axis=1)
        return Outcome(
            codes,
            np.arange(len(codes)),
            sources,
            promise,
            figures={"mean_change": float(change.mean())},
            secrets={"neighbours": [[models.keys[i] for i in row] for row in neighbours]},
        )


def nearest_people(codes: FloatArray, subjects: NDArray[Any], models: FaceModels, k: int) -> IntArray:
    """Return for every face the models, (n, k), of the k nearest different people, the true one always among them.

    Of a person with several models the nearest stands for that person.
    """
    squares = cross_squared_distances(codes, models.codes)
    squares[models.subjects[None, :] == subjects[:, None]] -= squares.max() + 1.0  # the true person comes first
    who, person = np.unique(models.subjects, return_inverse=True)
    if len(who) == len(person):
        return np.sort(np.argsort(squares, axis=1, kind="stable")[:, :k], axis=1)
    chosen = np.empty((len(codes), k), dtype=np.intp)
    for row, order in enumerate(np.argsort(squares, axis=1, kind="stable")):
        _, first = np.unique(person[order], return_index=True)
        chosen[row] = order[np.sort(first)[:k]]
    return np.sort(chosen, axis=1)


def equalise(codes: FloatArray, models: FloatArray, neighbours: IntArray, lam: float) -> FloatArray:
    """Return the faces moved so that their k models are equally far (the minimiser of eq. 2).

    With a_j = 2 (R_j - R_1) and b_j = ‖I - R_1‖² - ‖I - R_j‖² for j = 2…k the minimiser is
    Δ = -Aᵀ (A Aᵀ + (λ/k)(Id + 1 1ᵀ))⁻¹ b: a system of k-1 unknowns whose entries are inner products of models. Faces
    with the same neighbours share one inverse, and all changes are one product. Codes are (n, n_features), models
    (n_models, n_features), neighbours (n, k).
    """
    centre = models.mean(axis=0)
    shifted = models - centre
    gram = shifted @ shifted.T
    sets, which = np.unique(neighbours, axis=0, return_inverse=True)
    inverses = _inverses(gram, sets, lam)[which.reshape(-1)]
    current = codes - centre
    for _ in range(2 if lam == 0 else 1):  # a second projection changes nothing but rounding errors
        current = current + _changes(current, shifted, neighbours, inverses)
    return np.asarray(current + centre)


def as_written(
    codes: FloatArray, models: FloatArray, neighbours: IntArray, written: Written, progress: Progress = silent
) -> FloatArray:
    """Return codes whose k models are equally far from what is read back of them.

    Clipping and rounding to bytes make the distances unequal again. So each code is moved, again and again, by what its
    written picture still lacks, as in alternating projections. Shapes are those of :func:`equalise`.
    """
    current, best = codes.copy(), codes.copy()
    smallest = np.full(len(codes), np.inf)
    left = np.arange(len(codes))
    for _ in progress(range(_ROUNDS), "equalising"):
        if not len(left):
            continue
        shown = written(current[left])
        reached = gaps(shown, models, neighbours[left])
        better = reached < smallest[left]
        best[left[better]], smallest[left[better]] = current[left[better]], reached[better]
        open_ = reached > _SETTLED
        left, shown = left[open_], shown[open_]
        if len(left):
            current[left] += equalise(shown, models, neighbours[left], 0.0) - shown
    return best


def gaps(codes: FloatArray, models: FloatArray, neighbours: IntArray) -> FloatArray:
    """Return how much the distances to the k models differ, as a share of their mean, (n,)."""
    squares = cross_squared_distances(codes, models)
    distances = np.sqrt(np.take_along_axis(squares, neighbours, axis=1))
    return np.asarray((distances.max(axis=1) - distances.min(axis=1)) / np.maximum(distances.mean(axis=1), 1e-300))


def _inverses(gram: FloatArray, sets: IntArray, lam: float) -> FloatArray:
    """Return the inverse, or pseudo-inverse for dependent models, of every set's system, (n_sets, k-1, k-1)."""
    k = sets.shape[1]
    inner = gram[sets[:, :, None], sets[:, None, :]]
    first, rest = inner[:, :1, :1], inner[:, 1:, 1:]
    products = 4.0 * (rest - inner[:, 1:, :1] - inner[:, :1, 1:] + first)
    system = products + lam / k * (np.eye(k - 1) + np.ones((k - 1, k - 1)))
    return np.linalg.pinv(system, rcond=1e-12, hermitian=True)


def _changes(current: FloatArray, models: FloatArray, neighbours: IntArray, inverses: FloatArray) -> FloatArray:
    """Return Δ, (n, n_features)."""
    near = np.take_along_axis(cross_squared_distances(current, models), neighbours, axis=1)
    b = near[:, :1] - near[:, 1:]
    solved = np.einsum("nij,nj->ni", inverses, b)
    weights = np.zeros((len(current), len(models)))
    np.put_along_axis(weights, neighbours[:, 1:], -2.0 * solved, axis=1)
    np.put_along_axis(weights, neighbours[:, :1], 2.0 * solved.sum(axis=1, keepdims=True), axis=1)
    return weights @ models
