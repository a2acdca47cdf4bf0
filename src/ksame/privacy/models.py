"""Privacy models: each knows its bound, checks it on released bytes, and says it in plain words.

A model judges bytes and whom they stand for. It never learns which method made them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray, IntArray, members
from ksame.errors import parameter_error
from ksame.spaces.reference import FaceModels

FACE_ONLY = (
    "It covers the face region that was replaced, not hair, clothes, body, gait, place, time or who is seen with whom."
)


@dataclass(frozen=True)
class Bound:
    """The largest share of faces that an attacker can name."""

    value: float | None  # None where nothing is bounded
    scope: str  # against which attacker it holds


@dataclass(frozen=True)
class Violation:
    """How a release breaks its promise."""

    face: int | None  # the released face that does; None for the release as a whole
    reason: str


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a promise is judged on."""

    released: ByteArray  # (n_released, height, width, channels): as written
    subjects: NDArray[np.str_]  # (n_released,): the person each released face stands for
    sources: Sequence[Sequence[int]]  # the original images each stands for, as indices into ``originals``
    codes: FloatArray  # (n_released, n_features): the released faces, encoded again from their bytes
    originals: FaceModels  # the original images, encoded
    models: FaceModels  # the reference of the maps; the originals where no other was given
    secrets: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # per-face numbers from the linkage

    @classmethod
    def of_bytes(cls, released: ByteArray, subjects: Sequence[str]) -> Evidence:
        """Return what k-anonymity is judged on: bytes and people."""
        n = len(released)
        nothing = FaceModels(np.zeros((1, 1)), np.array([""]))
        return cls(released, np.array(subjects), [()] * n, np.zeros((n, 1)), nothing, nothing)


class PrivacyModel(ABC):
    """A promise about a release."""

    name: ClassVar[str]
    per_face: ClassVar[bool]
    """Whether a face that breaks the promise can be withheld, and the promise to the others still holds."""
    limits: ClassVar[tuple[str, ...]]
    """What is not promised, whatever the parameters."""

    def params(self) -> dict[str, Any]:
        """Return the public parameters, ready for JSON."""
        return asdict(self)  # type: ignore[call-overload]  # every model is a dataclass

    @abstractmethod
    def risk_bound(self) -> Bound:
        """Return the bound and its scope."""

    @abstractmethod
    def statement(self) -> str:
        """Return the promise in one plain sentence."""

    def not_promised(self) -> tuple[str, ...]:
        """Return what a reader might believe, and should not."""
        return self.limits

    @abstractmethod
    def check(self, evidence: Evidence) -> list[Violation]:
        """Return every way in which the released bytes break the promise."""

    def check_public(self, released: ByteArray) -> list[Violation]:
        """Return the breaches that show in the released bytes alone, without linkage or originals."""
        return []

    def settled(self, evidence: Evidence) -> PrivacyModel:
        """Return what is claimed once the bytes have been seen: this promise, or a weaker one."""
        return self

    def measure(self, evidence: Evidence) -> dict[str, float]:
        """Return aggregate figures for the certificate; never a number that belongs to one face."""
        return {}

    def measure_faces(self, evidence: Evidence) -> dict[str, list[float]]:
        """Return numbers of single faces, in released order, for the linkage only."""
        return {}

    def render(self) -> str:
        """Return promise, bound and limits as a short text."""
        bound = self.risk_bound()
        worth = "no bound" if bound.value is None else f"at most {bound.value:.4g}"
        limits = "\n".join(f"  - {line}" for line in self.not_promised())
        return f"{self.statement()}\nRisk of recognition: {worth}; {bound.scope}.\nNot promised:\n{limits}"


def patterns(released: ByteArray) -> IntArray:
    """Number the distinct faces: equal numbers where every byte is equal."""
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(digest, len(numbers)) for digest in digests(released)], dtype=np.intp)


def digests(faces: ByteArray) -> list[bytes]:
    """Return the SHA-256 of the bytes of every face."""
    return [sha256(face.tobytes()).digest() for face in faces]


@dataclass(frozen=True)
class KAnonymity(PrivacyModel):
    """Every released face stands for at least ``k`` people alike (Newton et al. 2005, Theorems 1 and 2)."""

    k: int  # how many people share each released face
    k_real: int | None = None  # how many of them exist: only these count for the bound; all when None

    name: ClassVar[str] = "k-anonymity"
    per_face: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.k, int) or self.k < 2:
            raise parameter_error("k", "KAnonymity", "an integer of at least 2", self.k)
        if self.k_real is None:
            object.__setattr__(self, "k_real", self.k)
        elif not isinstance(self.k_real, int) or not 1 <= self.k_real <= self.k:
            raise parameter_error("k_real", "KAnonymity", f"an integer in [1, k = {self.k}]", self.k_real)

    @property
    def real(self) -> int:
        """How many people who exist share each face."""
        return self.k if self.k_real is None else self.k_real

    def risk_bound(self) -> Bound:
        """1/k, against any recogniser."""
        return Bound(
            1.0 / self.real,
            "for any attacker who does not know who is in which group, also one who holds the originals, knows the "
            "method and uses any recogniser, when naming a released face from its bytes",
        )

    def statement(self) -> str:
        """Return the theorem in plain words."""
        return (
            f"Every released face stands, byte for byte, for at least {self.real} different people of the set, and no "
            f"person makes up more than 1/{self.real} of its copies, so nobody can tell which of them it shows."
        )

    def not_promised(self) -> tuple[str, ...]:
        """Return the known limits of k-anonymity."""
        return (
            FACE_ONLY,
            f"That a face stands for some {self.real} people is not hidden, nor what these people have in common.",
            "Somebody who knows all other members of a group can compute the last one from an average "
            "(before rounding).",
            "A second release of the same people with other groups narrows both down; continue the first instead.",
        )

    def check_public(self, released: ByteArray) -> list[Violation]:
        """Count the copies of each byte pattern."""
        smallest = np.bincount(patterns(released)).min()
        if smallest >= self.real:
            return []
        return [Violation(None, f"a released face has {smallest} copies, fewer than k = {self.real}")]

    def check(self, evidence: Evidence) -> list[Violation]:
        """Count the people behind each byte pattern, and the copies each of them has."""
        violations = []
        for copies in members(patterns(evidence.released)):
            _, counts = np.unique(evidence.subjects[copies], return_counts=True)
            largest, total = counts.max(), counts.sum()
            if len(counts) < self.real:
                reason = f"stands for {len(counts)} people, fewer than k = {self.real}"
            elif largest * self.real > total:
                reason = f"one of its people has {largest} of the {total} copies, more than 1/{self.real}"
            else:
                continue
            violations.append(Violation(int(copies[0]), reason))
        return violations

    def measure(self, evidence: Evidence) -> dict[str, float]:
        """Return how many people share a face, at least and at most, and the number of distinct faces."""
        sizes = [len(np.unique(evidence.subjects[copies])) for copies in members(patterns(evidence.released))]
        return {"smallest_group": min(sizes), "largest_group": max(sizes), "distinct_faces": len(sizes)}


@dataclass(frozen=True)
class NoGuarantee(PrivacyModel):
    """Nothing is promised: what the ad-hoc masks deserve."""

    name: ClassVar[str] = "none"
    per_face: ClassVar[bool] = True
    limits: ClassVar[tuple[str, ...]] = (
        "An attacker who alters a gallery in the same way (parrot recognition) may recognise nearly everyone.",
        FACE_ONLY,
    )

    def risk_bound(self) -> Bound:
        """No bound."""
        return Bound(None, "a recogniser may name every face")

    def statement(self) -> str:
        """Say so."""
        return "Nothing is promised. The faces were altered; whether they are recognised has to be measured."

    def check(self, evidence: Evidence) -> list[Violation]:
        """Find nothing: nothing was promised."""
        return []
