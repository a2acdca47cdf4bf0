"""Promises about distances: wrong-map, zero recognition, epsilon-map, (epsilon,k)-map.

They speak of nearest-neighbour matching in one coding, against one gallery, and claim nothing beyond it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from ksame.arrays import FloatArray
from ksame.privacy.models import FACE_ONLY, Bound, Evidence, PrivacyModel, Violation
from ksame.privacy.rounding import rough_down, rough_up
from ksame.spaces.reference import FaceModels

_CHANCE = 1e-3
"""The claim of 1/k is dropped where luck names as many faces more rarely than this."""

_OWN_DISTANCE = (
    "Nothing is claimed for other recognisers: a deep network does not measure this distance and may name every face."
)


class _Misled(PrivacyModel):
    """Somebody else is nearer to every released face than the person it shows."""

    per_face: ClassVar[bool] = True

    @abstractmethod
    def _gallery(self, evidence: Evidence) -> tuple[FaceModels, FloatArray]:
        """Return whom faces are compared with, and the distance of each face to the person it shows, (n,)."""

    def margins(self, evidence: Evidence) -> FloatArray:
        """Return how much nearer somebody else is than the true person, (n_released,); positive means misled."""
        gallery, own = self._gallery(evidence)
        distances = gallery.distances(evidence.codes)
        distances[gallery.subjects[None, :] == evidence.subjects[:, None]] = np.inf
        return np.asarray(own - distances.min(axis=1))

    def check(self, evidence: Evidence) -> list[Violation]:
        """Compare each face with the person it shows and with everybody else."""
        nearest = np.flatnonzero(self.margins(evidence) <= 0)
        return [Violation(int(i), "is nearest to the person it shows") for i in nearest]

    def measure(self, evidence: Evidence) -> dict[str, float]:
        """Return the smallest margin, rounded down."""
        smallest = float(self.margins(evidence).min())
        return {"smallest_margin": rough_down(smallest)} if np.isfinite(smallest) else {}


@dataclass(frozen=True)
class ZeroRecognition(_Misled):
    """Some other original is always nearer than the true one (Sun et al. 2015, Theorem 1)."""

    name: ClassVar[str] = "zero-recognition"
    limits: ClassVar[tuple[str, ...]] = (
        _OWN_DISTANCE,
        "All members of a cluster are shifted by the same vector: whoever holds the originals can find the pairs "
        "whose differences coincide and so link nearly every face.",
        "The released faces are all different, so nobody hides among others: this is not k-anonymity.",
        FACE_ONLY,
    )

    def risk_bound(self) -> Bound:
        """Zero, for one kind of attacker."""
        return Bound(
            0.0,
            "only for rank-1 matching of released faces by Euclidean distance in the method's own coding, against a "
            "gallery that holds the originals",
        )

    def statement(self) -> str:
        """Return the theorem in plain words."""
        return (
            "In the method's own distance every released face is nearer to somebody else than to the person it shows."
        )

    def _gallery(self, evidence: Evidence) -> tuple[FaceModels, FloatArray]:
        own = [
            np.linalg.norm(evidence.originals.codes[list(rows)] - code, axis=1).min()
            for rows, code in zip(evidence.sources, evidence.codes, strict=True)
        ]
        return evidence.originals, np.array(own)

    def measure_faces(self, evidence: Evidence) -> dict[str, list[float]]:
        """Return every margin."""
        return {"margin": self.margins(evidence).tolist()}


@dataclass(frozen=True)
class WrongMap(_Misled):
    """Somebody else's model, the mean of its images, is nearer than the true one (Gross and Sweeney 2007, III.8)."""

    name: ClassVar[str] = "wrong-map"
    limits: ClassVar[tuple[str, ...]] = (
        "The change is the smallest that works, so the true person stands at rank 2: a short list names everyone.",
        _OWN_DISTANCE,
        FACE_ONLY,
    )

    def risk_bound(self) -> Bound:
        """Zero at rank 1, for one kind of attacker."""
        return Bound(
            0.0,
            "only at rank 1, for nearest-neighbour matching by Euclidean distance in the method's own coding, against "
            "the reference models",
        )

    def statement(self) -> str:
        """Return the definition in plain words."""
        return (
            "In the method's own distance every released face is more like somebody else than like the person it shows."
        )

    def _gallery(self, evidence: Evidence) -> tuple[FaceModels, FloatArray]:
        models = evidence.models.means()
        same = models.subjects[None, :] == evidence.subjects[:, None]
        return models, np.where(same, models.distances(evidence.codes), np.inf).min(axis=1)


@dataclass(frozen=True)
class EpsilonMap(PrivacyModel):
    """No released face is likely under any model (Gross and Sweeney 2007, Definition III.7)."""

    epsilon: float  # bound on the likelihood exp(-d² / 2σ²)
    sigma: float  # its scale
    exceptions: int = 0  # how many faces stay above epsilon although the strongest level was used

    name: ClassVar[str] = "epsilon-map"
    per_face: ClassVar[bool] = False
    limits: ClassVar[tuple[str, ...]] = (
        "An attacker who applies the same distortion to a gallery first may still recognise people; the random "
        "perturbation defeats exact detection of the distortion level, not a tolerant one.",
        _OWN_DISTANCE,
        FACE_ONLY,
    )

    def risk_bound(self) -> Bound:
        """No bound on recognition: a likelihood below epsilon can still be the largest."""
        return Bound(None, f"a likelihood below {self.epsilon:g} under every model can still be the largest of all")

    def statement(self) -> str:
        """Return the definition in plain words."""
        but = f", but for {self.exceptions} that stayed above it at the strongest level" if self.exceptions else ""
        return (
            f"Every released face has a likelihood exp(-d²/2σ²) below {self.epsilon:g} under every reference model, "
            f"with σ = {self.sigma:g}{but}: it looks like no one."
        )

    def likelihoods(self, codes: FloatArray, models: FaceModels) -> FloatArray:
        """Return the largest likelihood of each face under any model, (n,)."""
        nearest = models.distances(codes).min(axis=1)
        return np.asarray(np.exp(-(nearest**2) / (2.0 * self.sigma**2)))

    def check(self, evidence: Evidence) -> list[Violation]:
        """Count the faces that are too likely; the admitted exceptions are not held against the release."""
        above = np.flatnonzero(self.likelihoods(evidence.codes, evidence.models) >= self.epsilon)
        if len(above) <= self.exceptions:
            return []
        return [Violation(int(i), f"has a likelihood of {self.epsilon:g} or more") for i in above]

    def measure(self, evidence: Evidence) -> dict[str, float]:
        """Return how many faces meet epsilon, and the order of magnitude of the largest likelihood among them."""
        values = self.likelihoods(evidence.codes, evidence.models)
        met = values[values < self.epsilon]
        figures: dict[str, float] = {"above_epsilon": int((values >= self.epsilon).sum())}
        if len(met) and met.max() > 0:
            figures["largest_likelihood_met"] = float(10.0 ** np.ceil(np.log10(met.max())))
        return figures


@dataclass(frozen=True)
class EpsilonKMap(PrivacyModel):
    """Every released face is about equally far from k models (Gross and Sweeney 2007, Definition III.9)."""

    k: int
    sigma: float  # scale of the likelihood from which the posterior over the k models is formed
    models: Literal["mean", "images"] = "mean"  # what stands for a person
    epsilon: float | None = None  # largest squared difference allowed between two of the k posteriors; any when None
    gap: float = 0.02  # largest difference allowed between the k distances, as a share of their mean
    even: bool = True  # whether naive matching is expected to find the true person about once in k

    name: ClassVar[str] = "(epsilon,k)-map"
    per_face: ClassVar[bool] = True
    limits: ClassVar[tuple[str, ...]] = (
        "Reverse matching, parrot matching and galleries other than the reference: parrot matching can reach 100 %.",
        _OWN_DISTANCE,
        "Rounding to 8 bits leaves small differences between the k distances; the largest is given.",
        FACE_ONLY,
    )

    def risk_bound(self) -> Bound:
        """No proven bound; about 1/k for one kind of attacker, where no equality was given up."""
        if not self.even:
            return Bound(
                None,
                f"naive matching finds the true person far more often than once in {self.k}; nothing is expected of "
                "any attacker",
            )
        return Bound(
            None,
            f"about 1/{self.k} is expected of nearest-neighbour matching in the method's own coding against the "
            "reference models themselves; nothing is proven, and other attacks are not covered",
        )

    def statement(self) -> str:
        """Return the definition in plain words."""
        limit = "" if self.epsilon is None else f", squared posterior difference at most {self.epsilon:g}"
        return (
            f"Every released face is about equally like {self.k} people of the reference (distances in the method's "
            f"own coding differ by at most {100 * self.gap:g} %{limit}): it looks like everyone."
        )

    def _people(self, evidence: Evidence) -> FaceModels:
        return evidence.models.means() if self.models == "mean" else evidence.models

    def distances(self, evidence: Evidence) -> FloatArray:
        """Return the distances of every face to its k models, (n, k)."""
        models = self._people(evidence)
        row = {key: i for i, key in enumerate(models.keys)}
        near = ([row[key] for key in keys] for keys in evidence.secrets["neighbours"])
        pairs = zip(near, evidence.codes, strict=True)
        return np.stack([np.linalg.norm(models.codes[rows] - code, axis=1) for rows, code in pairs])

    def reached(self, evidence: Evidence) -> tuple[FloatArray, FloatArray]:
        """Return for every face the epsilon reached and the largest gap relative to the mean distance, (n,) each."""
        distances = self.distances(evidence)
        scores = -(distances**2) / (2.0 * self.sigma**2) if self.sigma > 0 else np.zeros_like(distances)
        posterior = np.exp(scores - scores.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        spread = distances.max(axis=1) - distances.min(axis=1)
        return np.ptp(posterior, axis=1) ** 2, spread / np.maximum(distances.mean(axis=1), 1e-300)

    def check(self, evidence: Evidence) -> list[Violation]:
        """Compare the distances and posteriors of the k models of each face."""
        epsilons, gaps = self.reached(evidence)
        wide = f"its {self.k} distances differ by more than {100 * self.gap:g} %"
        violations = [Violation(int(i), wide) for i in np.flatnonzero(gaps > self.gap)]
        if self.epsilon is not None:
            unlike = f"its k posteriors differ by more than epsilon = {self.epsilon:g}"
            above = np.flatnonzero((epsilons > self.epsilon) & (gaps <= self.gap))
            violations += [Violation(int(i), unlike) for i in above]
        return violations

    def settled(self, evidence: Evidence) -> EpsilonKMap:
        """Drop the claim of 1/k where the true person's model is nearest far more often than that."""
        from scipy.stats import binom

        models = self._people(evidence)
        known = np.isin(evidence.subjects, models.subjects)
        nearest = models.subjects[models.distances(evidence.codes).argmin(axis=1)]
        n, own = int(known.sum()), int((nearest == evidence.subjects)[known].sum())
        return replace(self, even=False) if n and binom.sf(own - 1, n, 1.0 / self.k) < _CHANCE else self

    def measure(self, evidence: Evidence) -> dict[str, float]:
        """Return the largest epsilon and the largest relative gap, rounded up to two digits."""
        epsilons, gaps = self.reached(evidence)
        return {"largest_epsilon": rough_up(float(epsilons.max())), "largest_relative_gap": rough_up(float(gaps.max()))}
