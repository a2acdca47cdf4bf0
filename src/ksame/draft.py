"""Faces about to be released: checked as the bytes they will be, and withheld where they break the promise."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame import scratch
from ksame.arrays import ByteArray, FloatArray
from ksame.errors import GuaranteeError, PrivacyWarning
from ksame.faces.faceset import FaceSet
from ksame.methods.base import Outcome
from ksame.privacy.guard import too_near
from ksame.privacy.models import Evidence, NoGuarantee, PrivacyModel
from ksame.privacy.release import release_order
from ksame.spaces import FaceModels, FaceSpace


@dataclass(frozen=True, eq=False)
class Draft:
    """Faces about to be released, in their final order, with their secrets.

    ``sources`` are rows of the originals that each face stands for, ``withheld`` reasons by row of the originals.
    """

    faces: ByteArray
    landmarks: FloatArray | None
    subjects: NDArray[np.str_]
    sources: list[tuple[int, ...]]
    groups: list[int | None]
    secrets: dict[str, list[Any]]
    withheld: dict[int, str]
    figures: Mapping[str, float]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, faces: FaceSet, outcome: Outcome, images: ByteArray, landmarks: FloatArray | None) -> Draft:
        """Put what a method made into the order of the release."""
        order = release_order(images, outcome.rows)
        rows = outcome.rows[order]
        sources = [tuple(int(i) for i in outcome.sources[c]) for c in order]
        return cls(
            scratch.take(images, rows),
            None if landmarks is None else landmarks[rows],
            np.array([str(faces.subjects[s[0]]) for s in sources]),
            sources,
            [None if outcome.groups is None else int(outcome.groups[c]) for c in order],
            {name: [values[c] for c in order] for name, values in outcome.secrets.items()},
            dict(outcome.withheld),
            outcome.figures,
            outcome.warnings,
        )

    def without(self, reasons: Mapping[int, str], every: str) -> Draft:
        """Withhold faces for reasons by row; raise where no face is left."""
        if not reasons:
            return self
        if len(reasons) == len(self.faces):
            raise GuaranteeError(f"{every}: it {next(iter(reasons.values()))}. Nothing was written.")
        keep = [i for i in range(len(self.faces)) if i not in reasons]
        withheld = {**self.withheld, **{s: reason for i, reason in reasons.items() for s in self.sources[i]}}
        return replace(
            self,
            faces=scratch.take(self.faces, keep),
            landmarks=None if self.landmarks is None else self.landmarks[keep],
            subjects=self.subjects[keep],
            sources=[self.sources[i] for i in keep],
            groups=[self.groups[i] for i in keep],
            secrets={name: [values[i] for i in keep] for name, values in self.secrets.items()},
            withheld=withheld,
        )

    def evidence(self, space: FaceSpace, originals: FaceModels, models: FaceModels) -> Evidence:
        """Encode the bytes again and collect what the promise is checked on."""
        codes = space.encode(FaceSet(self.faces, self.subjects, self.landmarks))
        return Evidence(self.faces, self.subjects, self.sources, codes, originals, models, self.secrets)


def protect(
    draft: Draft,
    promise: PrivacyModel,
    space: FaceSpace,
    originals: FaceModels,
    models: FaceModels,
    pictures: NDArray[Any],
) -> tuple[Draft, tuple[PrivacyModel, Evidence]]:
    """Check the bytes; withhold faces that show an original or break the promise, or refuse the whole release.

    ``pictures`` are the originals, (n, height, width, channels) in [0, 1].
    """
    evidence = draft.evidence(space, originals, models)
    near = {} if isinstance(promise, NoGuarantee) else too_near(evidence, pictures)
    if near:
        draft = draft.without(near, "Every face shows somebody")
        evidence = draft.evidence(space, originals, models)
    violations = promise.check(evidence)
    if violations and promise.per_face:
        reasons = {v.face: v.reason for v in violations if v.face is not None}
        draft = draft.without(reasons, f"Every face breaks the promise of {promise.name}")
        evidence = draft.evidence(space, originals, models)
        violations = promise.check(evidence)
    if violations:
        raise GuaranteeError(
            f"The promise of {promise.name} does not hold on the bytes to be released: a face {violations[0].reason}. "
            "Nothing was written."
        )
    settled = promise.settled(evidence)
    if settled != promise:
        note = f"{promise.name}: {settled.risk_bound().scope}."
        warnings.warn(note, PrivacyWarning, stacklevel=4)
        draft = replace(draft, warnings=(*draft.warnings, note))
    return draft, (settled, evidence)
