"""What a certificate of scenes claims, held against itself: words are written anew, numbers must fit one another."""

from __future__ import annotations

from ksame.claims import agree
from ksame.errors import UsageError
from ksame.heads.covers import COVERS
from ksame.models import SFace
from ksame.privacy.findings import Finding, check
from ksame.recipes import METHODS
from ksame.scene.certificate import (
    CHOICES,
    NOT_JUDGED,
    SceneCertificate,
    not_promised,
    notes_on_counts,
    statement,
)
from ksame.scene.render import Mask


def check_scene_claims(certificate: SceneCertificate) -> list[Finding]:
    """Judge method, counts, likeness and words of a certificate by one another."""
    method = _method(certificate)
    found = [
        check("method", method, f"{certificate.method.name}, as ksame has it"),
        check("counts", _counts(certificate), f"{certificate.counts.people} people, each treated once"),
        check("shared faces", _sharing(certificate), "as the counts allow"),
        check("likeness", _likeness(certificate), "as the recogniser allows"),
    ]
    return found if method else [*found, check("words", _words(certificate), "as the numbers say")]


def _method(certificate: SceneCertificate) -> list[str]:
    method = certificate.method
    if method.name not in METHODS or not METHODS[method.name].scenes.works:
        return [f"unknown method {method.name!r}"]
    wrong = []
    if method.cover not in COVERS:
        wrong.append(f"there is no cover {method.cover!r}")
    if method.level is not None:
        try:
            Mask(method.name, method.level)
        except (UsageError, ValueError, ArithmeticError) as error:
            wrong.append(str(error))
    masks = METHODS[method.name].masks
    if masks != (certificate.k is None) or (certificate.k is not None and certificate.k < 2):
        wrong.append(f"k = {certificate.k} does not go with {method.name}")
    return wrong


def _counts(certificate: SceneCertificate) -> list[str]:
    counts, wrong = certificate.counts, []
    treated = counts.replaced + counts.masked + counts.masked_instead + counts.kept
    if counts.people != treated:
        wrong.append(f"{counts.people} people, but {treated} were replaced, masked or kept")
    if not counts.files <= min(counts.frames, len(certificate.files)):
        wrong.append(f"{counts.files} files, but {counts.frames} frames and {len(certificate.files)} outputs")
    if not counts.frames_at_risk <= min(counts.frames, counts.faces_masked_instead):
        wrong.append(f"{counts.frames_at_risk} frames at risk of {counts.frames}")
    if bool(counts.frames_at_risk) != bool(counts.faces_masked_instead):
        wrong.append(f"{counts.faces_masked_instead} faces masked in {counts.frames_at_risk} frames")
    if counts.without_faces > counts.files or counts.frames_damaged > counts.frames:
        wrong.append("more files without a face, or more damaged frames, than there are")
    if certificate.k is None and counts.replaced:
        wrong.append(f"{counts.replaced} people were replaced, but {certificate.method.name} replaces nobody")
    return wrong


def _sharing(certificate: SceneCertificate) -> list[str]:
    """Judge k_real: real people who share a face were replaced, and no group has twice k or more."""
    replaced, k_real, k = certificate.counts.replaced, certificate.k_real, certificate.k
    if not replaced or k is None:
        return [] if k_real is None else [f"k_real = {k_real}, but no faces are shared"]
    if k_real is None or not 1 <= k_real <= min(replaced, 2 * k - 1):
        return [f"k_real = {k_real}, but {replaced} people were replaced, in groups for k = {k}"]
    return []


def _likeness(certificate: SceneCertificate) -> list[str]:
    like = certificate.likeness
    if (like is None) != (certificate.counts.replaced == 0):
        return ["it is given for people who were replaced, and for nobody else"]
    if like is None:
        return []
    if like.recogniser != SFace.name or not agree(like.threshold, SFace.threshold):
        return [f"{like.recogniser} with threshold {like.threshold:g} is not the recogniser in the loop"]
    if like.recognised and NOT_JUDGED not in certificate.warnings:
        return ["somebody is still recognised, and such people are masked"]
    return []


def _words(certificate: SceneCertificate) -> list[str]:
    """Write every sentence anew; what was asked for may add some of its own."""
    counts, stated, wrong = certificate.counts, list(certificate.warnings), []
    if certificate.statement != statement(certificate.method.name, certificate.k, certificate.k_real, counts):
        wrong.append("the statement is not the one that follows from the numbers")
    if certificate.not_promised not in [not_promised(counts, sound=sound) for sound in (True, False)]:
        wrong.append("the limits are not those of the method")
    needed = notes_on_counts(counts)
    wrong += [f"a warning is missing: {text}" for text in needed if text not in stated]
    if len(set(stated)) != len(stated) or set(stated) - {*needed, *CHOICES}:
        wrong.append("a warning is there that ksame does not give")
    return wrong
