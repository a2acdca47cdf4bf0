"""Checking a release: from the folder alone, with the linkage, with the originals, with a key."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ksame.claims import check_claims, differences, rebuild_recipe
from ksame.deidentify import Provenance, deidentify
from ksame.errors import InputError, KsameError, KsameWarning
from ksame.faces.duplicates import APART, Names
from ksame.faces.faceset import FaceSet
from ksame.faces.reading import StrPath, decode_png, is_bare_png
from ksame.faces.sheet import contact_sheet
from ksame.privacy.certificate import Certificate, Series
from ksame.privacy.findings import ODD, Finding, check, check_digest, check_files, check_signature, passed
from ksame.privacy.linkage import Linkage
from ksame.privacy.models import Evidence, KAnonymity, PrivacyModel, patterns
from ksame.privacy.release import CERTIFICATE, SHEET, Release, face_name, read_release, release_order

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_FROM_FILES = ("originals", "withheld", "unreadable")
"""Counts that also depend on pictures that gave no face."""


def verify(
    folder: StrPath,
    *,
    linkage: Linkage | None = None,
    originals: FaceSet | None = None,
    provenance: Provenance | None = None,
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
        Adds: whom each face stands for, whether the groups are whole, and how many there really are.
    originals, reference : FaceSet, optional
        With the linkage: every released byte, the promise and every figure are computed again.
    provenance : Provenance, optional
        What is not among ``originals`` although it was given; without it these counts are not judged.
    key : Ed25519PublicKey, optional
        The publisher's key.
    """
    folder = Path(folder)
    release, hashes = read_release(folder)
    certificate = release.certificate
    found = [
        check_signature(folder / CERTIFICATE, (folder / CERTIFICATE).read_bytes(), key),
        *check_files(certificate.files, hashes),
        check_digest(certificate.files, certificate.digest),
        _counts(release),
        _pictures(folder, release, hashes),
    ]
    try:
        promise = certificate.promise.rebuild()
    except InputError as error:
        return [*found, Finding("promise", False, str(error))]
    found += [*check_claims(release, promise), _public(release, promise)]
    if linkage is None:
        return found
    if linkage.release_digest != certificate.digest:
        return [*found, Finding("linkage", False, "the link table belongs to another release")]
    found += _linked(release, promise, linkage)
    if originals is None:
        return found
    if not passed(found):
        return [*found, Finding("recomputed", None, "not tried: the certificate does not hold as it is")]
    return [*found, *_recomputed(release, linkage, originals, provenance, reference)]


def _counts(release: Release) -> Finding:
    n, counts = len(release.faces), release.certificate.counts
    listed = sorted(name for name in release.certificate.files if name.startswith("faces/"))
    wrong = []
    if n != counts.released or listed != [face_name(i) for i in range(n)]:
        wrong.append(f"{n} faces in the folder, {counts.released} certified, {len(listed)} listed")
    if counts.originals != counts.released + counts.merged + counts.withheld:
        wrong.append(
            f"{counts.originals} originals are not {counts.released} released, {counts.merged} merged and "
            f"{counts.withheld} withheld"
        )
    series = release.certificate.series
    if series is not None and series.repeated > counts.released:
        wrong.append(f"{series.repeated} faces are said to be repeated, of {counts.released}")
    if not counts.subjects_released <= min(counts.released, counts.subjects) <= counts.subjects <= counts.originals:
        wrong.append(f"{counts.subjects_released} of {counts.subjects} people cannot be behind these faces")
    return check("counts", wrong, f"{n} faces in the folder, {counts.released} certified, {len(listed)} listed")


def _pictures(folder: Path, release: Release, hashes: dict[str, str]) -> Finding:
    """Judge what faces and sheet may tell beyond the faces: only faces are certified, in an order that says nothing."""
    wrong = []
    others = sorted(n for n in release.certificate.files if n != SHEET and not n.startswith("faces/"))
    if others:
        wrong.append(f"{others[0]} is certified, but is no face")
    plain = [
        name for name in sorted(hashes) if hashes[name] not in ODD and (name == SHEET or name.startswith("faces/"))
    ]
    more = [name for name in plain if not is_bare_png((folder / name).read_bytes())]
    if more:
        wrong.append(f"{more[0]} holds more than pixels")
    if release_order(release.faces) != list(range(len(release.faces))):
        wrong.append("the faces are not in the order of their hashes")
    if hashes.get(SHEET, ODD[0]) not in ODD:
        try:
            same = np.array_equal(decode_png((folder / SHEET).read_bytes()), contact_sheet(release.faces))
        except (InputError, OSError):
            same = False
        if not same:
            wrong.append(f"{SHEET} does not show these faces")
    return check("pictures", wrong, "faces in the order of their hashes, and a sheet that shows them")


def _public(release: Release, promise: PrivacyModel) -> Finding:
    name = "promise, from the folder"
    violations = promise.check_public(release.faces)
    if violations:
        return Finding(name, False, violations[0].reason)
    if not isinstance(promise, KAnonymity):
        return Finding(name, None, f"{promise.name} cannot be judged without linkage and originals")
    copies = np.bincount(patterns(release.faces))
    if promise.k > copies.min():
        return Finding(name, False, f"a released face has {copies.min()} copies, fewer than k = {promise.k}")
    good = release.certificate.figures.get("distinct_faces") == len(copies)
    return Finding(name, good, f"{len(copies)} distinct faces, each at least {promise.real} times")


def _linked(release: Release, promise: PrivacyModel, linkage: Linkage) -> list[Finding]:
    names = [face.released for face in linkage.faces]
    if names != [face_name(i) for i in range(len(release.faces))]:
        return [Finding("linkage", False, "the link table does not list the released faces one by one")]
    counted = check("counts, from the link table", _miscounted(release.certificate, linkage), "as certified")
    if not isinstance(promise, KAnonymity):
        return [Finding("linkage", True, f"{len(names)} faces"), counted]
    evidence = Evidence.of_bytes(release.faces, [face.subject for face in linkage.faces])
    violations = promise.check(evidence)
    if violations:
        return [Finding("people behind each face", False, f"a face {violations[0].reason}")]
    whole = _groups_share_faces(release, linkage)
    measured = promise.measure(evidence)
    stated = {name: release.certificate.figures.get(name) for name in measured}
    return [
        Finding("people behind each face", True, f"at least {promise.real}"),
        Finding("groups", whole, "every group has faces of its own" if whole else "a face was moved to another group"),
        counted,
        check("figures, from the link table", differences(stated, measured), "as certified"),
    ]


def _miscounted(certificate: Certificate, linkage: Linkage) -> list[str]:
    """Return which counts a link table contradicts; of a series, newer pictures of people in it are not counted."""
    counts, before = certificate.counts, linkage.before()
    sources = [source for face in linkage.faces for source in face.sources]
    waiting = [face for face in linkage.withheld if before is None or face.subject not in before.people]
    shown, withheld = linkage.people, {face.subject for face in waiting}
    wrong = [] if len(set(sources)) == len(sources) else ["an original is behind two faces"]
    counted: dict[str, Any] = {
        "originals": len(sources) + len(waiting),
        "released": len(linkage.faces),
        "subjects_released": len(shown),
        "merged": len(sources) - len(linkage.faces),
        "withheld": len(waiting),
    }
    wrong += differences({name: getattr(counts, name) for name in counted}, counted)
    if not len(shown) <= counts.subjects <= len(shown | withheld):  # pictures that gave no face may be anybody's
        wrong.append(f"{counts.subjects} people are certified, the link table has {len(shown)}")
    return wrong + _misplaced(certificate.series, linkage, before)


def _misplaced(stated: Series | None, linkage: Linkage, before: Linkage | None) -> list[str]:
    """Return where a release is not at the place in its series that the certificate names."""
    if linkage.history and linkage.history[-1].digest != linkage.release_digest:
        return ["the history of the link table ends with another release"]
    actual = None
    if before is not None:
        number = linkage.history[-1].number
        actual = Series(number=number, repeated=len(before.faces), after=before.release_digest)
    return [] if stated == actual else ["the link table tells of another series"]


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


def _recomputed(
    release: Release,
    linkage: Linkage,
    originals: FaceSet,
    provenance: Provenance | None,
    reference: FaceSet | None,
) -> list[Finding]:
    """Run the same recipe again from the originals and the secret seed, and compare."""
    method = release.certificate.method
    if method.reference == "other people" and reference is None:
        return [Finding("recomputed", None, "made with a reference of other people; give it with --reference")]
    if method.coding_params.get("learned_on"):
        return [Finding("recomputed", None, "the coding was learned on other faces, which are not at hand")]
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
                names=_names(release),
                provenance=provenance,
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


def _names(release: Release) -> Names:
    """Return what was done with photographs under two names: kept apart where the certificate says so."""
    return "keep" if any(text.endswith(APART) for text in release.certificate.warnings) else "merge"


def _reclaimed(release: Release, redone: Release, *, complete: bool) -> list[str]:
    """Return where a certificate differs from one made anew; warnings may have been added, but never taken away."""
    parts = {"method", "counts", "promise", "figures", "checks", "series"}
    stated, actual = (one.certificate.model_dump(mode="json", include=parts) for one in (release, redone))
    for one in () if complete else (stated, actual):
        one["counts"] = {name: value for name, value in one["counts"].items() if name not in _FROM_FILES}
        del one["method"]["labels"]
    gone = [text for text in redone.certificate.warnings if text not in release.certificate.warnings]
    return [*differences(stated, actual), *(f"a warning is missing: {text}" for text in gone)]
