"""Checking photographs and recordings against their certificate."""

from __future__ import annotations

from collections import Counter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from av import FFmpegError
from pydantic import BaseModel, Field

from ksame.claims import differences
from ksame.errors import InputError
from ksame.privacy.documents import read_bytes, read_document
from ksame.privacy.findings import ODD, Finding, check, check_digest, check_files, check_signature, contents
from ksame.privacy.release import CERTIFICATE, SIGNATURE
from ksame.scene.certificate import SceneCertificate, frames_at_risk, frames_damaged
from ksame.scene.claims import check_scene_claims
from ksame.scene.decide.counting import smallest_sharing
from ksame.scene.linkage import SceneLinkage
from ksame.scene.media import open_media
from ksame.scene.media.recording import film, opened
from ksame.scene.risk import WHOLE_FILE, from_csv

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

AT_RISK = "at-risk.csv"
_SCHEMA = "ksame/scene-certificate"


class _Kind(BaseModel):
    """All that tells one certificate from another."""

    schema_: str = Field(alias="schema")


def certificate_of(path: Path) -> Path | None:
    """Return the scene certificate that belongs to a path, or None where it is something else.

    Parameters
    ----------
    path : Path
        The certificate itself, the folder that has it, or the one output beside it.
    """
    inside = path / CERTIFICATE if path.is_dir() else path
    for file in (inside, beside(path, CERTIFICATE, whole=True), beside(path, CERTIFICATE)):
        if file.suffix == ".json" and file.is_file():
            try:
                kind = read_document(_Kind, read_bytes(file, "the certificate", plain=True), "a certificate")
            except InputError:
                continue
            if kind.schema_ == _SCHEMA:
                return file
    return None


def certified(certificate: Path) -> set[str]:
    """Return the outputs beside a certificate that it is about; none where it is not there or is something else."""
    try:
        names = SceneCertificate.from_json(certificate.read_bytes()).files
    except (OSError, InputError):
        return set()
    return {name.split("/")[0] for name in names}


def beside(output: Path, name: str, *, whole: bool = False) -> Path:
    """Return the file that goes with a single output; with ``whole`` under a name that no other output can have.

    Examples
    --------
    >>> beside(Path("safe.mp4"), "certificate.json").as_posix()
    'safe.certificate.json'
    >>> beside(Path("safe.mp4"), "certificate.json", whole=True).as_posix()
    'safe.mp4.certificate.json'
    """
    output = output if output.name else output.absolute()  # "." has no name of its own
    return output.with_name(f"{output.stem if output.suffix and not whole else output.name}.{name}")


def verify_scenes(
    path: Path, *, key: Ed25519PublicKey | None = None, linkage: SceneLinkage | None = None
) -> list[Finding]:
    """Check outputs against a certificate.

    Without a key this finds inconsistency, not forgery.

    Parameters
    ----------
    path : Path
        Of the certificate.
    key : Ed25519PublicKey, optional
        The publisher's.
    linkage : SceneLinkage, optional
        Adds: whether it belongs to these outputs, what became of everyone, and whether the groups are as large as
        certified.
    """
    data = read_bytes(path, "the certificate", plain=True)
    try:
        certificate = SceneCertificate.from_json(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    found = [
        check_signature(path, data, key),
        *_files(path, certificate),
        check_digest(certificate.files, certificate.digest),
        *check_scene_claims(certificate),
        check("frames", _miscounted_frames(path, certificate), "as many as certified"),
        _at_risk(path, certificate),
    ]
    if linkage is not None:
        found += _linked(certificate, linkage)
    return found


def _files(path: Path, certificate: SceneCertificate) -> list[Finding]:
    """Compare what lies beside a certificate with its list; a folder of its own must hold nothing else."""
    alone = path.name == CERTIFICATE
    there = contents(path.parent, None if alone else [name.split("/")[0] for name in certificate.files])
    if alone:
        ours = {CERTIFICATE, SIGNATURE}
        there = {n: h for n, h in there.items() if n not in ours or h in ODD or n in certificate.files}
    return check_files(certificate.files, there)


def _miscounted_frames(path: Path, certificate: SceneCertificate) -> list[str]:
    """Count the frames of all outputs; what cannot be counted is left to the hashes."""
    counted = 0
    for name in certificate.files:
        frames = _frames_in(path.parent, name)
        if frames is None:
            return []
        counted += frames
    return differences({"frames": certificate.counts.frames}, {"frames": counted})


def _frames_in(folder: Path, name: str) -> int | None:
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or name.startswith("/") or "\0" in name:
        return None
    file = folder / name
    try:
        if file.is_symlink() or not file.is_file():
            return None
        media = open_media(file)
        if media.exact:
            return media.n_frames
        with opened(file) as container:
            return sum(packet.size > 0 for packet in container.demux(film(container, file)))
    except (InputError, OSError, FFmpegError):
        return None


def _at_risk(path: Path, certificate: SceneCertificate) -> Finding:
    """Compare the list of frames at risk with the counts."""
    name, counts = "frames at risk", certificate.counts
    alone = path.name == CERTIFICATE
    folder, name_of = path.absolute().parent, path.name.replace(CERTIFICATE, AT_RISK)
    file = beside(folder, AT_RISK, whole=True) if alone else path.with_name(name_of)
    if not file.is_file() or file.is_symlink():
        if counts.faces_masked_instead + counts.frames_damaged + counts.without_faces:
            return Finding(name, None, f"{file.name} is not there to be compared")
        return Finding(name, True, "none, as certified")
    try:
        listed = from_csv(read_bytes(file, "the list of frames at risk", plain=True))
    except InputError as error:
        return Finding(name, False, f"{file.name}: {error}")
    every = list(listed.values())
    actual = {
        "faces_masked_instead": sum(len(one) for risks in every for one in risks if one.masked),
        "frames_at_risk": sum(map(frames_at_risk, every)),
        "frames_damaged": sum(map(frames_damaged, every)),
        "without_faces": sum(any(one.person == WHOLE_FILE for one in risks) for risks in every),
    }
    wrong = differences({n: getattr(counts, n) for n in actual}, actual)
    unknown = sorted(set(listed) - {str(p) for n in certificate.files for p in (n, *PurePosixPath(n).parents)})
    wrong += [f"{unknown[0]} is at risk, but not certified"] if unknown else []
    return check(name, wrong, f"{actual['frames_at_risk']}, as certified")


def _linked(certificate: SceneCertificate, linkage: SceneLinkage) -> list[Finding]:
    if linkage.release_digest != certificate.digest:
        return [Finding("linkage", False, "the link table belongs to other files")]
    sure = [person for person in linkage.people if person.sure]
    hidden = [person for person in sure if not person.shown]
    replaced = [person for person in hidden if person.treatment == "replace"]
    masked = [person for person in hidden if person.treatment == "mask"]
    instead = sum(person.stands_in for person in masked)
    in_doubt = Counter(person.shown for person in linkage.people if not person.sure)
    actual: dict[str, Any] = {
        "people": len(sure),
        "not_sure": in_doubt[False],
        "not_sure_kept": in_doubt[True],
        "replaced": len(replaced),
        "masked": len(masked) - instead,
        "masked_instead": instead,
        "kept": len(sure) - len(replaced) - len(masked),
    }
    wrong = differences({name: getattr(certificate.counts, name) for name in actual}, actual)
    alike, like = [person.likeness for person in replaced if person.likeness is not None], certificate.likeness
    recognised = max(alike) >= like.threshold if alike and like is not None else None
    wrong += differences({"recognised": None if like is None else like.recognised}, {"recognised": recognised})
    if any(person.cover != certificate.method.cover for person in replaced):
        wrong.append(f"not everyone is covered as certified ({certificate.method.cover})")
    known = {part for name in certificate.files for part in PurePosixPath(name).parts}
    if any(place.output not in known for person in linkage.people for place in person.places):
        wrong.append("somebody is in a file that is not certified")
    found = [check("linkage", wrong, f"{len(sure)} people, as certified")]
    if certificate.k_real is not None:
        groups = [(person.group, person.counts_as) for person in replaced if person.group is not None]
        least = smallest_sharing(groups) if len(groups) == len(replaced) else 0
        detail = f"{least or 0}, {certificate.k_real} certified"
        found.append(Finding("people behind each face", least == certificate.k_real, detail))
    return found
