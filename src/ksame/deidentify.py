"""The pipeline: encode, group, replace, decode, round to bytes, check, certify."""

from __future__ import annotations

import platform
import secrets
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame import __version__
from ksame.errors import GuaranteeError, InputError, KsameWarning, PrivacyWarning, seed_number
from ksame.faces.faceset import ByteArray, FaceSet, FloatArray, quantise
from ksame.methods.base import Outcome, Problem
from ksame.privacy.certificate import (
    Certificate,
    Check,
    Counts,
    MethodRecord,
    PromiseRecord,
    release_digest,
)
from ksame.privacy.homogeneity import homogeneity
from ksame.privacy.ledger import Ledger
from ksame.privacy.linkage import Linkage, LinkedFace, WithheldFace
from ksame.privacy.models import Evidence, KAnonymity, PrivacyModel, patterns
from ksame.privacy.release import Release, encode_release, face_name, hashes_of, release_order
from ksame.progress import Track, silent
from ksame.recipes import Recipe
from ksame.spaces import EigenSpace, FaceModels, FaceModelSpace, FaceSpace, PixelSpace


@dataclass(frozen=True)
class Provenance:
    """What happened before the faces got here.

    Attributes
    ----------
    withheld : tuple of WithheldFace
        Pictures that gave no face.
    unreadable : int
        Files that were no pictures.
    labels : str, optional
        How selected labels were predicted, and how often rightly; None when they were given.
    warnings : tuple of str
        Privacy warnings given before, for the certificate.
    """

    withheld: tuple[WithheldFace, ...] = ()
    unreadable: int = 0
    labels: str | None = None
    warnings: tuple[str, ...] = ()


def deidentify(
    faces: FaceSet,
    recipe: Recipe,
    *,
    seed: int | None = None,
    reference: FaceSet | None = None,
    reuse: Linkage | None = None,
    provenance: Provenance | None = None,
    remember: bool = True,
    track: Track = silent,
) -> tuple[Release, Linkage]:
    """De-identify a face set.

    Parameters
    ----------
    faces : FaceSet
        Registered originals.
    recipe : Recipe
        From :func:`ksame.recipe`.
    seed : int, optional
        Makes the run repeatable; fresh entropy of the operating system when None. Either way it is part of the linkage.
    reference : FaceSet, optional
        Other people, for the maps (the street corner); the faces themselves when None (the office building).
    reuse : Linkage, optional
        Of an earlier release of the same people, whose groups are used again.
    provenance : Provenance, optional
        What is not among ``faces`` although it was given, and where labels come from.
    remember : bool
        Ask the ledger of this machine whether these pictures were released before, with other groups, and let
        :func:`ksame.write_release` remember them. False for trials that nobody will publish.
    track : Track
        Shows progress.

    Returns
    -------
    release : Release
        To publish.
    linkage : Linkage
        The secret.

    Raises
    ------
    GuaranteeError
        When the promise does not hold on the bytes that would be released.
    InputError
        When faces cannot be used, or the ledger cannot be read.

    Examples
    --------
    >>> from ksame import recipe, synthetic
    >>> release, linkage = deidentify(synthetic(6, size=(67, 50)), recipe("k-same-pixel", k=3), seed=1)
    >>> release.certificate.promise.bound, len(release.faces)
    (0.3333333333333333, 6)
    """
    faces.require_varied()
    if reuse is not None:
        recipe = recipe.with_groups(reuse.groups)
    used = secrets.randbits(63) if seed is None else seed_number("deidentify", seed)
    problem, space = pose(faces, recipe, reference)
    outcome = recipe.method.run(problem, np.random.default_rng(used), track)
    for message in outcome.warnings:
        warnings.warn(message, PrivacyWarning, stacklevel=2)
    _warn_full_rank(recipe, space, len(faces))
    draft = _Draft.of(faces, outcome, quantise(space.decode(outcome.surrogates)), space.landmarks(outcome.surrogates))
    originals = FaceModels(space.encode(faces), faces.subjects)
    draft, evidence = _protected(draft, outcome.promise, space, originals, problem.models)
    release, linkage = _certify(faces, recipe, space, draft, evidence, used, reference, provenance or Provenance())
    return (_compared(release, faces, reused=reuse is not None) if remember else release), linkage


def _compared(release: Release, faces: FaceSet, *, reused: bool) -> Release:
    """Warn where pictures are in an earlier release with other groups, and let these be remembered."""
    ledger, certificate = Ledger(), release.certificate
    try:
        prints = ledger.prints(faces)
    except OSError as error:
        warnings.warn(f"This release could not be remembered ({error}).", PrivacyWarning, stacklevel=3)
        return release
    seen = 0
    if not reused and certificate.promise.model == KAnonymity.name:
        seen = ledger.earlier(prints, certificate.digest)
    if seen:
        note = (
            f"{seen} of {len(faces)} pictures are part of an earlier release made on this machine. If both are "
            "published, their groups can be intersected; reuse the earlier groups with --reuse LINKAGE."
        )
        warnings.warn(note, PrivacyWarning, stacklevel=3)
        release = release.noted(note)
    return replace(release, prints=prints)


def pose(faces: FaceSet, recipe: Recipe, reference: FaceSet | None) -> tuple[Problem, FaceSpace]:
    """Encode the faces for a recipe; return the problem and the fitted space."""
    if reference is not None:
        if reference.shape[1:] != faces.shape[1:]:
            raise InputError(
                f"The reference must have the size of the faces, {faces.shape[1:]}. Got {reference.shape[1:]}."
            )
        shared = set(reference.subjects) & set(faces.subjects)
        if shared:
            warnings.warn(
                f"{len(shared)} people are in the reference and among the faces; the street corner wants other people.",
                KsameWarning,
                stacklevel=3,
            )
    fitted = recipe.fitted(faces)
    space = fitted.space
    distance = None if fitted.distance_space is None else fitted.distance_space.encode(faces)
    problem = Problem(
        space.encode(faces),
        faces.subjects,
        None if recipe.select is None else faces.attribute(recipe.select),
        faces.shape[1:] if isinstance(space, PixelSpace) else None,
        faces.landmarks,
        None if reference is None else FaceModels(space.encode(reference), reference.subjects),
        distance,
        space.stranger if isinstance(space, FaceModelSpace) else None,
    )
    return problem, space


@dataclass(frozen=True, eq=False)
class _Draft:
    """Faces about to be released, in their final order, with their secrets."""

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
    def of(cls, faces: FaceSet, outcome: Outcome, images: ByteArray, landmarks: FloatArray | None) -> _Draft:
        released = images[outcome.rows]
        order = release_order(released)
        sources = [tuple(int(i) for i in outcome.sources[c]) for c in order]
        return cls(
            released[order],
            None if landmarks is None else landmarks[outcome.rows][order],
            np.array([str(faces.subjects[s[0]]) for s in sources]),
            sources,
            [None if outcome.groups is None else int(outcome.groups[c]) for c in order],
            {name: [values[c] for c in order] for name, values in outcome.secrets.items()},
            dict(outcome.withheld),
            outcome.figures,
            outcome.warnings,
        )

    def without(self, rows: set[int], reasons: Mapping[int, str]) -> _Draft:
        """Withhold some of the faces."""
        keep = [i for i in range(len(self.faces)) if i not in rows]
        withheld = {**self.withheld, **{s: reasons[i] for i in rows for s in self.sources[i]}}
        return replace(
            self,
            faces=self.faces[keep],
            landmarks=None if self.landmarks is None else self.landmarks[keep],
            subjects=self.subjects[keep],
            sources=[self.sources[i] for i in keep],
            groups=[self.groups[i] for i in keep],
            secrets={name: [values[i] for i in keep] for name, values in self.secrets.items()},
            withheld=withheld,
        )

    def evidence(self, space: FaceSpace, originals: FaceModels, models: FaceModels) -> Evidence:
        """Encode the bytes again and lay everything before the promise."""
        codes = space.encode(FaceSet(self.faces, self.subjects, self.landmarks))
        return Evidence(self.faces, self.subjects, self.sources, codes, originals, models, self.secrets)


def _protected(
    draft: _Draft, promise: PrivacyModel, space: FaceSpace, originals: FaceModels, models: FaceModels
) -> tuple[_Draft, tuple[PrivacyModel, Evidence]]:
    """Check the promise on the bytes; withhold single faces that break it, or refuse the whole release."""
    evidence = draft.evidence(space, originals, models)
    violations = promise.check(evidence)
    if violations and promise.per_face:
        reasons = {v.face: v.reason for v in violations if v.face is not None}
        if len(reasons) == len(draft.faces):
            raise GuaranteeError(
                f"Every face breaks the promise of {promise.name}: {violations[0].reason}. Nothing was written."
            )
        draft = draft.without(set(reasons), reasons)
        evidence = draft.evidence(space, originals, models)
        violations = promise.check(evidence)
    if violations:
        raise GuaranteeError(
            f"The promise of {promise.name} does not hold on the bytes to be released: a face {violations[0].reason}. "
            "Nothing was written."
        )
    return draft, (promise, evidence)


def _certify(
    faces: FaceSet,
    recipe: Recipe,
    space: FaceSpace,
    draft: _Draft,
    judged: tuple[PrivacyModel, Evidence],
    seed: int,
    reference: FaceSet | None,
    provenance: Provenance,
) -> tuple[Release, Linkage]:
    promise, evidence = judged
    secret = {**draft.secrets, **promise.measure_faces(evidence)}
    hashes = hashes_of(encode_release(draft.faces))
    stood_for = {i for source in draft.sources for i in source}
    certificate = Certificate(
        method=MethodRecord(
            name=recipe.name,
            params=recipe.params(),
            coding=space.name,
            coding_params={**space.params(), **({"learned_on": "other faces"} if recipe.fitted_ else {})},
            reference="the faces themselves" if reference is None else "other people",
            labels=provenance.labels,
        ),
        counts=Counts(
            originals=len(faces) + len(provenance.withheld),
            subjects=faces.n_subjects,
            released=len(draft.faces),
            subjects_released=len(np.unique(draft.subjects)),
            merged=len(stood_for) - len(draft.faces),
            withheld=len(draft.withheld) + len(provenance.withheld),
            unreadable=provenance.unreadable,
        ),
        promise=PromiseRecord.of(promise),
        figures={
            **{name: _rough(value) for name, value in draft.figures.items()},
            **promise.measure(evidence),
            **_label_figures(faces, recipe, promise, draft),
        },
        checks=(
            Check(
                name=promise.name,
                how="on the 8-bit images, encoded again, with linkage and originals",
                passed=True,
            ),
        ),
        warnings=(*provenance.warnings, *draft.warnings),
        files=hashes,
        digest=release_digest(hashes),
        software={"ksame": __version__, "numpy": np.__version__, "python": platform.python_version()},
    )
    linkage = Linkage(
        release_digest=certificate.digest,
        seed=seed,
        faces=tuple(
            LinkedFace(
                released=face_name(i),
                subject=str(draft.subjects[i]),
                sources=tuple(faces.names[s] for s in draft.sources[i]),
                group=draft.groups[i],
                figures={name: values[i] for name, values in secret.items()},
            )
            for i in range(len(draft.faces))
        ),
        withheld=provenance.withheld
        + tuple(
            WithheldFace(source=faces.names[i], subject=str(faces.subjects[i]), reason=reason)
            for i, reason in sorted(draft.withheld.items())
        ),
    )
    return Release(draft.faces, certificate), linkage


def _label_figures(faces: FaceSet, recipe: Recipe, promise: PrivacyModel, draft: _Draft) -> dict[str, float]:
    """Return what a kept label tells of people who share a face."""
    if recipe.select is None or not isinstance(promise, KAnonymity):
        return {}
    labels = faces.attribute(recipe.select)
    return homogeneity(patterns(draft.faces), [str(labels[source[0]]) for source in draft.sources])


def _rough(value: float) -> float:
    """Round an aggregate to three digits: enough to compare, too little to test guesses against."""
    return float(f"{value:.3g}") if isinstance(value, float) else value


def _warn_full_rank(recipe: Recipe, space: FaceSpace, n: int) -> None:
    if recipe.name == "k-same-eigen" and isinstance(space, EigenSpace) and len(space.pca.components) >= n - 1:
        warnings.warn(
            f"{len(space.pca.components)} components describe {n} faces completely, so k-same-eigen equals "
            f"k-same-pixel. "
            "Ask for fewer with --components.",
            KsameWarning,
            stacklevel=3,
        )
