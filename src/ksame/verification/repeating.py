"""Repeating the run of a release of faces from its originals and the secret seed."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from ksame.deidentify import Provenance, deidentify
from ksame.errors import InputError, KsameError, KsameWarning
from ksame.faces.duplicates import APART
from ksame.faces.faceset import FaceSet
from ksame.privacy.certificate import Certificate
from ksame.privacy.findings import Finding, check, differences
from ksame.privacy.linkage import Linkage
from ksame.privacy.release import Release
from ksame.recipes import Recipe, recipe

_FROM_FILES = ("originals", "withheld", "unreadable")
"""Counts that also depend on pictures that gave no face."""


def rebuild_recipe(certificate: Certificate) -> Recipe:
    """Return the recipe that a certificate names; raises InputError when there is no such recipe."""
    record = certificate.method
    params = dict(record.params)
    components = params.pop("components", record.coding_params.get("n_components"))
    try:
        return recipe(record.name, coding=record.coding, components=components, **params)
    except (KsameError, TypeError, ValueError, ArithmeticError) as error:
        raise InputError(f"the certificate's method cannot be rebuilt: {error}") from error


def repeat(
    release: Release,
    linkage: Linkage,
    originals: FaceSet,
    provenance: Provenance | None,
    reference: FaceSet | None,
) -> list[Finding]:
    """Run the same recipe again and compare every byte, and the certificate."""
    method = release.certificate.method
    if method.reference == "other people" and reference is None:
        return [Finding("recomputed", None, "made with a reference of other people; give it with --reference")]
    if method.coding_params.get("learned_on"):
        return [Finding("recomputed", None, "the coding was learned on other faces, which are not at hand")]
    kept_apart = any(text.endswith(APART) for text in release.certificate.warnings)  # photographs under two names
    try:
        again = rebuild_recipe(release.certificate)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KsameWarning)
            redone, relinked = deidentify(
                originals,
                again,
                seed=linkage.seed,
                reference=reference,
                after=linkage.before(),
                provenance=replace(provenance or Provenance(), names="keep" if kept_apart else "merge"),
                remember=False,
            )
    except KsameError as error:
        return [Finding("recomputed", False, f"the run cannot be repeated from these originals: {error}")]
    then = {(face.subject, face.sources): release.faces[i] for i, face in enumerate(linkage.faces)}
    now = {(face.subject, face.sources): redone.faces[i] for i, face in enumerate(relinked.faces)}
    if then.keys() != now.keys():
        return [Finding("recomputed", False, "other people are released than these originals give")]
    if redone.faces.shape != release.faces.shape:
        return [Finding("recomputed", False, "these originals give faces of another size")]
    differs = max(int(np.abs(then[s].astype(int) - now[s].astype(int)).max()) for s in then)
    detail = "every byte the same" if differs == 0 else f"largest difference {differs} of 255"
    wrong = _reclaimed(release, redone, complete=provenance is not None)
    return [
        Finding("recomputed", differs <= 1, detail),
        check("certificate, recomputed", wrong, "method, counts, promise, figures, checks and warnings as certified"),
    ]


def _reclaimed(release: Release, redone: Release, *, complete: bool) -> list[str]:
    """Return where a certificate differs from one made anew; warnings may have been added, but never taken away."""
    parts = {"method", "counts", "promise", "figures", "checks", "series"}
    stated, actual = (each.certificate.model_dump(mode="json", include=parts) for each in (release, redone))
    for told in () if complete else (stated, actual):
        told["counts"] = {name: value for name, value in told["counts"].items() if name not in _FROM_FILES}
        del told["method"]["labels"]
    gone = [text for text in redone.certificate.warnings if text not in release.certificate.warnings]
    return [*differences(stated, actual), *(f"a warning is missing: {text}" for text in gone)]
