"""Checking a release: from the folder alone, with the linkage, with the originals, with a key."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ksame.deidentify import deidentify
from ksame.errors import InputError, KsameError, KsameWarning
from ksame.faces.faceset import FaceSet
from ksame.faces.reading import StrPath
from ksame.privacy.certificate import Certificate, release_digest
from ksame.privacy.linkage import Linkage
from ksame.privacy.models import Evidence, KAnonymity, PrivacyModel, patterns
from ksame.privacy.release import CERTIFICATE, SIGNATURE, Release, face_name, read_release
from ksame.privacy.signing import signed_by
from ksame.recipes import Recipe, recipe
from ksame.spaces.reference import FaceModels

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. ``passed`` is None where it could not be judged."""

    name: str
    passed: bool | None
    detail: str


def verify(
    folder: StrPath,
    *,
    linkage: Linkage | None = None,
    originals: FaceSet | None = None,
    reference: FaceSet | None = None,
    key: Ed25519PublicKey | None = None,
) -> list[Finding]:
    """Check a release folder against its certificate.

    From the folder alone this finds every inconsistency, but not a forgery: whoever can change the faces can change the
    certificate too. With ``key`` any edit at all is found.

    Parameters
    ----------
    folder : Path
    linkage : Linkage, optional
        Adds: whom each face stands for, and whether the groups are whole.
    originals, reference : FaceSet, optional
        With the linkage: the promise itself and every released byte are computed again.
    key : Ed25519PublicKey, optional
        The publisher's key.
    """
    folder = Path(folder)
    release, hashes = read_release(folder)
    certificate = release.certificate
    found = [_signature(folder, key), *_files(certificate, hashes), _counts(release)]
    try:
        promise = certificate.promise.rebuild()
    except InputError as error:
        return [*found, Finding("promise", False, str(error))]
    found.append(_public(release, promise))
    if linkage is not None:
        if linkage.release_digest != certificate.digest:
            return [*found, Finding("linkage", False, "the link table belongs to another release")]
        found += _linked(release, promise, linkage)
        if originals is not None:
            found += _recomputed(release, linkage, originals, reference)
    return found


def _signature(folder: Path, key: Ed25519PublicKey | None) -> Finding:
    path = folder / SIGNATURE
    if key is None:
        there = "there is one, give the publisher's key to check it" if path.exists() else "unsigned"
        return Finding("signature", None, f"{there}; without it a forgery cannot be told from the original")
    if not path.is_file():
        return Finding("signature", False, "a key was given, but the release is not signed")
    good = signed_by((folder / CERTIFICATE).read_bytes(), path.read_bytes(), key)
    return Finding("signature", good, "made with this key" if good else "not made with this key for this certificate")


def _files(certificate: Certificate, hashes: dict[str, str]) -> list[Finding]:
    missing = sorted(set(certificate.files) - set(hashes))
    added = sorted(set(hashes) - set(certificate.files))
    changed = sorted(n for n in set(hashes) & set(certificate.files) if hashes[n] != certificate.files[n])
    found = []
    for name, names in (("no file missing", missing), ("no file added", added), ("no file changed", changed)):
        listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        found.append(Finding(name, not names, listed or f"{len(certificate.files)} files as certified"))
    whole = release_digest(certificate.files) == certificate.digest
    found.append(Finding("digest", whole, "matches the list of files" if whole else "does not match the list of files"))
    return found


def _counts(release: Release) -> Finding:
    n, counts = len(release.faces), release.certificate.counts
    names = [face_name(i) for i in range(n)]
    listed = sorted(name for name in release.certificate.files if name.startswith("faces/"))
    good = n == counts.released and listed == names
    return Finding("counts", good, f"{n} faces in the folder, {counts.released} certified, {len(listed)} listed")


def _public(release: Release, promise: PrivacyModel) -> Finding:
    violations = promise.check_public(release.faces)
    if violations:
        return Finding("promise, from the folder", False, violations[0].reason)
    if not isinstance(promise, KAnonymity):
        return Finding(
            "promise, from the folder", None, f"{promise.name} cannot be judged without linkage and originals"
        )
    distinct = int(patterns(release.faces).max()) + 1
    stated = release.certificate.figures.get("distinct_faces")
    good = stated == distinct
    return Finding("promise, from the folder", good, f"{distinct} distinct faces, each at least {promise.real} times")


def _linked(release: Release, promise: PrivacyModel, linkage: Linkage) -> list[Finding]:
    names = [face.released for face in linkage.faces]
    if names != [face_name(i) for i in range(len(release.faces))]:
        return [Finding("linkage", False, "the link table does not list the released faces one by one")]
    if not isinstance(promise, KAnonymity):
        return [Finding("linkage", True, f"{len(names)} faces")]
    nothing = FaceModels(np.zeros((1, 1)), np.array([""]))
    subjects = np.array([face.subject for face in linkage.faces])
    evidence = Evidence(release.faces, subjects, [()] * len(subjects), np.zeros((len(subjects), 1)), nothing, nothing)
    violations = promise.check(evidence)
    if violations:
        return [Finding("people behind each face", False, f"a face {violations[0].reason}")]
    whole = _groups_share_faces(release, linkage)
    return [
        Finding("people behind each face", True, f"at least {promise.real}"),
        Finding(
            "groups",
            whole,
            "every group has faces of its own" if whole else "a face was moved to another group",
        ),
    ]


def _groups_share_faces(release: Release, linkage: Linkage) -> bool:
    """Return whether every member of a group has the same released faces."""
    pattern = patterns(release.faces)
    faces: dict[tuple[int | None, str], list[int]] = {}
    for face, p in zip(linkage.faces, pattern, strict=True):
        faces.setdefault((face.group, face.subject), []).append(int(p))
    groups: dict[int | None, set[tuple[int, ...]]] = {}
    for (group, _), held in faces.items():
        groups.setdefault(group, set()).add(tuple(sorted(held)))
    return all(len(sets) == 1 for sets in groups.values())


def _recomputed(release: Release, linkage: Linkage, originals: FaceSet, reference: FaceSet | None) -> list[Finding]:
    """Run the same recipe again from the originals and the secret seed, and compare."""
    method = release.certificate.method
    if method.reference == "other people" and reference is None:
        return [Finding("recomputed", None, "made with a reference of other people; give it with --reference")]
    if method.coding_params.get("learned_on"):
        return [Finding("recomputed", None, "the coding was learned on other faces, which are not at hand")]
    try:
        again = rebuild_recipe(release.certificate)
        reuse = linkage if method.params.get("reused_groups") else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KsameWarning)
            redone, relinked = deidentify(
                originals, again, seed=linkage.seed, reference=reference, reuse=reuse, remember=False
            )
    except KsameError as error:
        return [Finding("recomputed", False, f"the run cannot be repeated from these originals: {error}")]
    then = {(face.subject, face.sources): release.faces[i] for i, face in enumerate(linkage.faces)}
    now = {(face.subject, face.sources): redone.faces[i] for i, face in enumerate(relinked.faces)}
    if then.keys() != now.keys():
        return [Finding("recomputed", False, "other people are released than these originals give")]
    differs = max(int(np.abs(then[s].astype(int) - now[s].astype(int)).max()) for s in then)
    detail = "every byte the same" if differs == 0 else f"largest difference {differs} of 255"
    same_promise = redone.certificate.promise == release.certificate.promise
    return [
        Finding("recomputed", differs <= 1, detail),
        Finding("promise, recomputed", same_promise, redone.certificate.promise.statement),
    ]


def rebuild_recipe(certificate: Certificate) -> Recipe:
    """Return the recipe that a certificate names."""
    params = {name: value for name, value in certificate.method.params.items() if name != "reused_groups"}
    components = params.pop("components", certificate.method.coding_params.get("n_components"))
    return recipe(certificate.method.name, coding=certificate.method.coding, components=components, **params)


def passed(findings: Sequence[Finding]) -> bool:
    """Return whether nothing was found wrong."""
    return all(finding.passed is not False for finding in findings)
