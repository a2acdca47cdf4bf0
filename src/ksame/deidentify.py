"""The pipeline: encode, group, replace, decode, round to bytes, check, certify."""

from __future__ import annotations

import secrets
import warnings
from dataclasses import dataclass, replace

import numpy as np

from ksame.arrays import FloatArray
from ksame.draft import Draft, protect
from ksame.errors import GuaranteeError, InputError, KsameWarning, PrivacyWarning, TooFewError, UsageError, seed_number
from ksame.faces.duplicates import Names, one_name_each
from ksame.faces.faceset import FaceSet, quantise
from ksame.methods.base import Problem
from ksame.privacy.certificate import (
    LEARNED_ON,
    Certificate,
    Check,
    Counts,
    MethodRecord,
    PromiseRecord,
    release_digest,
)
from ksame.privacy.homogeneity import homogeneity
from ksame.privacy.linkage import Linkage, LinkedFace, PastRelease, WithheldFace
from ksame.privacy.models import Evidence, KAnonymity, NoGuarantee, PrivacyModel, patterns
from ksame.privacy.release import Release, compared, encoded_once, face_name
from ksame.privacy.rounding import rough
from ksame.privacy.series import Occasion, continued, split
from ksame.progress import Progress, silent
from ksame.recipes import METHODS, Recipe
from ksame.spaces import EigenSpace, FaceModels, FaceModelSpace, FaceSpace, PixelSpace
from ksame.version import software


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
        How selected labels were predicted, and how often correctly; None when they were given.
    warnings : tuple of str
        Privacy warnings given before, for the certificate.
    names : {"refuse", "merge", "keep"}
        What becomes of names under which nearly the same photograph stands: an error, one person, or different people
        all the same, which the certificate then says.
    """

    withheld: tuple[WithheldFace, ...] = ()
    unreadable: int = 0
    labels: str | None = None
    warnings: tuple[str, ...] = ()
    names: Names = "refuse"


def deidentify(
    faces: FaceSet,
    recipe: Recipe,
    *,
    seed: int | None = None,
    reference: FaceSet | None = None,
    after: Linkage | None = None,
    provenance: Provenance | None = None,
    remember: bool = True,
    progress: Progress = silent,
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
    after : Linkage, optional
        Of the latest release of a series. Its faces are repeated byte for byte, and only people who are not in it yet
        get new ones; see :mod:`ksame.privacy.series`.
    provenance : Provenance, optional
        What is not among ``faces`` although it was given, where labels come from, and whether two names may be one
        person.
    remember : bool
        Ask the ledger of this machine whether these pictures were released before, with other groups, and let
        :func:`ksame.write_release` remember them. False for trials that nobody will publish.
    progress : Progress
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
    used_seed = secrets.randbits(63) if seed is None else seed_number("deidentify", seed)
    given = provenance or Provenance()
    if recipe.method.promised is not NoGuarantee:
        faces, notes = one_name_each(faces, given.names, settled=() if after is None else after.people)
        given = replace(given, warnings=(*given.warnings, *notes))
        for note in notes:
            warnings.warn(note, PrivacyWarning, stacklevel=2)
    run = _Run(recipe, used_seed, reference, given, progress)
    release, linkage = _release(faces, run) if after is None else _next_release(faces, run, after)
    return (compared(release, linkage, faces, after) if remember else release), linkage


@dataclass(frozen=True, eq=False)
class _Run:
    """The settings of one release."""

    recipe: Recipe
    seed: int
    reference: FaceSet | None
    provenance: Provenance
    progress: Progress


def _release(faces: FaceSet, run: _Run) -> tuple[Release, Linkage]:
    """Release faces by themselves."""
    problem, space = pose(faces, run.recipe, run.reference)
    outcome = run.recipe.method.run(problem, np.random.default_rng(run.seed), run.progress)
    for message in outcome.warnings:
        warnings.warn(message, PrivacyWarning, stacklevel=3)
    _warn_full_rank(run.recipe, space, len(faces))
    draft = Draft.of(faces, outcome, quantise(space.decode(outcome.surrogates)), space.landmarks(outcome.surrogates))
    originals = FaceModels(problem.codes, faces.subjects)
    draft, evidence = protect(draft, outcome.promise, space, originals, problem.models, faces.images)
    return _certify(faces, run, space, draft, evidence)


def _next_release(faces: FaceSet, run: _Run, after: Linkage) -> tuple[Release, Linkage]:
    """Repeat the faces of a series and release newcomers among themselves; where they are too few, they wait."""
    after.require_series()
    recipe, provenance = run.recipe, run.provenance
    if recipe.method.promised is not KAnonymity:
        raise UsageError(f"{recipe.name} forms no groups that could be continued. Leave --after out.")
    series = after.history[-1]
    parts = split(faces, after)
    waiting = [*provenance.withheld, *parts.unused]
    method = _method(run, recipe.space)
    notes = list(provenance.warnings)
    added = None
    if parts.newcomers is not None:
        try:
            _require_people(parts.newcomers, recipe, series.k)
            added = _release(parts.newcomers, replace(run, provenance=Provenance(labels=provenance.labels)))
        except (GuaranteeError, TooFewError) as error:
            new = zip(parts.newcomers.names, parts.newcomers.subjects, strict=True)
            waiting += [WithheldFace(source=n, subject=str(s), reason=f"newcomers wait: {error}") for n, s in new]
        else:
            certificate = added[0].certificate
            method, waiting = certificate.method, [*waiting, *added[1].withheld]
            notes += certificate.warnings
            if 1.0 / series.k < (certificate.promise.bound or 0.0):
                notes.append(
                    f"Faces of the newcomers stand for fewer people than those before them; the promise of the series "
                    f"falls from 1/{series.k} to 1/{round(1.0 / (certificate.promise.bound or 1.0))}."
                )
                warnings.warn(notes[-1], PrivacyWarning, stacklevel=3)
    return continued(after, added, Occasion(method, provenance.unreadable, tuple(notes)), waiting)


def _require_people(newcomers: FaceSet, recipe: Recipe, k: int) -> None:
    """Raise when there are fewer newcomers than share a face, or than the method can work on."""
    need = max(recipe.method.min_subjects, int(recipe.params().get("k", k)))
    if newcomers.n_subjects < need:
        raise TooFewError(f"{newcomers.n_subjects} are fewer than the {need} people that {recipe.name} needs here")


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
    space, distances = fitted.space, fitted.distance_space
    problem = Problem(
        codes=space.encode(faces),
        subjects=faces.subjects,
        strata=None if recipe.select is None else faces.attribute(recipe.select),
        shape=faces.shape[1:] if isinstance(space, PixelSpace) else None,
        landmarks=faces.landmarks,
        reference=None if reference is None else FaceModels(space.encode(reference), reference.subjects),
        distance_codes=None if distances is None else distances.encode(faces),
        draw_person=space.draw_person if isinstance(space, FaceModelSpace) else None,
        written=lambda codes: _written(space, codes),
    )
    return problem, space


def _written(space: FaceSpace, codes: FloatArray) -> FloatArray:
    """Return codes as they are read back from the bytes that would be released."""
    nobody = np.zeros(len(codes), dtype=np.intp).astype(str)
    return space.encode(FaceSet(quantise(space.decode(codes)), nobody, space.landmarks(codes)))


def _certify(
    faces: FaceSet, run: _Run, space: FaceSpace, draft: Draft, judged: tuple[PrivacyModel, Evidence]
) -> tuple[Release, Linkage]:
    (promise, evidence), provenance = judged, run.provenance
    secret = {**draft.secrets, **promise.measure_faces(evidence)}
    k = promise.real if isinstance(promise, KAnonymity) else None
    shared = k is not None  # only faces that people share can be repeated in a later release
    hashes, kept = encoded_once(draft.faces, keep=shared)
    stood_for = {i for source in draft.sources for i in source}
    certificate = Certificate(
        method=_method(run, space),
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
            **{name: rough(value) for name, value in draft.figures.items()},
            **promise.measure(evidence),
            **_label_figures(faces, run.recipe, promise, draft),
        },
        checks=(Check.of(promise),),
        warnings=(*provenance.warnings, *draft.warnings),
        files=hashes,
        digest=release_digest(hashes),
        software=software("numpy"),
    )
    linkage = Linkage(
        release_digest=certificate.digest,
        seed=run.seed,
        faces=tuple(
            LinkedFace(
                released=face_name(i),
                subject=str(draft.subjects[i]),
                sources=tuple(faces.names[s] for s in draft.sources[i]),
                group=draft.groups[i],
                figures={name: values[i] for name, values in secret.items()},
                face=hashes[face_name(i)] if shared else None,
            )
            for i in range(len(draft.faces))
        ),
        withheld=provenance.withheld
        + tuple(
            WithheldFace(source=faces.names[i], subject=str(faces.subjects[i]), reason=reason)
            for i, reason in sorted(draft.withheld.items())
        ),
        kept=kept,
        history=() if k is None else (PastRelease(number=1, digest=certificate.digest, k=k),),
    )
    return Release(draft.faces, certificate), linkage


def _label_figures(faces: FaceSet, recipe: Recipe, promise: PrivacyModel, draft: Draft) -> dict[str, float]:
    """Return what a kept label says about people who share a face."""
    if recipe.select is None or not isinstance(promise, KAnonymity):
        return {}
    labels = faces.attribute(recipe.select)
    return homogeneity(patterns(draft.faces), [str(labels[source[0]]) for source in draft.sources])


def _method(run: _Run, space: FaceSpace) -> MethodRecord:
    return MethodRecord(
        name=run.recipe.name,
        params=run.recipe.params(),
        coding=space.name,
        coding_params={**space.params(), **({"learned_on": LEARNED_ON} if run.recipe.fitted_ else {})},
        reference="the faces themselves" if run.reference is None else "other people",
        labels=run.provenance.labels,
    )


def _warn_full_rank(recipe: Recipe, space: FaceSpace, n: int) -> None:
    equals = METHODS[recipe.name].equals
    if equals and isinstance(space, EigenSpace) and len(space.pca.components) >= n - 1:
        warnings.warn(
            f"{len(space.pca.components)} components describe {n} faces completely, so {recipe.name} equals {equals}. "
            "Ask for fewer with --components.",
            KsameWarning,
            stacklevel=3,
        )
