"""Checking photographs and recordings against their certificate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ksame.errors import InputError
from ksame.privacy.certificate import release_digest
from ksame.privacy.release import CERTIFICATE, SIGNATURE
from ksame.privacy.signing import signed_by
from ksame.scene.certificate import SceneCertificate, signature_of
from ksame.scene.counting import smallest_sharing
from ksame.scene.linkage import SceneLinkage
from ksame.scene.work import hashes
from ksame.verification import Finding

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

AT_RISK = "at-risk.csv"
_SCHEMA = "ksame/scene-certificate"


def certificate_of(path: Path) -> Path | None:
    """Return the scene certificate that belongs to a path, or None where it is something else.

    Parameters
    ----------
    path : Path
        The certificate itself, the folder that has it, or the one output beside it.
    """
    for file in (path / CERTIFICATE, beside(path, CERTIFICATE)) if path.is_dir() else (path, beside(path, CERTIFICATE)):
        if file.suffix == ".json" and file.is_file():
            try:
                content = json.loads(file.read_bytes())
            except (OSError, ValueError):
                continue
            if isinstance(content, dict) and content.get("schema") == _SCHEMA:
                return file
    return None


def certified(certificate: Path) -> set[str]:
    """Return the outputs beside a certificate that it is about; none where it is not there or is something else."""
    try:
        names = SceneCertificate.from_json(certificate.read_bytes()).files
    except (OSError, InputError):
        return set()
    return {name.split("/")[0] for name in names}


def beside(output: Path, name: str) -> Path:
    """Return the file that goes with a single output.

    Examples
    --------
    >>> beside(Path("safe.mp4"), "certificate.json").as_posix()
    'safe.certificate.json'
    """
    return output.with_name(f"{output.stem if output.suffix else output.name}.{name}")


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
        Adds: whether it belongs to these outputs, and whether the groups are as large as certified.
    """
    try:
        data = path.read_bytes()
        certificate = SceneCertificate.from_json(data)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    found = [_signature(path, data, key), *_files(path, certificate)]
    whole = release_digest(certificate.files) == certificate.digest
    found.append(Finding("digest", whole, "matches the list of files" if whole else "does not match the list of files"))
    if linkage is not None:
        found += _linked(certificate, linkage)
    return found


def _signature(path: Path, data: bytes, key: Ed25519PublicKey | None) -> Finding:
    file = signature_of(path)
    if key is None:
        there = "there is one, give the publisher's key to check it" if file.exists() else "unsigned"
        return Finding("signature", None, f"{there}; without it a forgery cannot be told from the original")
    if not file.is_file():
        return Finding("signature", False, "a key was given, but the certificate is not signed")
    good = signed_by(data, file.read_bytes(), key)
    return Finding("signature", good, "made with this key" if good else "not made with this key for this certificate")


def _files(path: Path, certificate: SceneCertificate) -> list[Finding]:
    there: dict[str, str] = {}
    for name in certificate.files:
        file = path.parent / name
        outside = not file.resolve().is_relative_to(path.parent.resolve())
        if not outside and file.is_file() and not file.is_symlink():
            there[name] = hashes(file)[file.name]
    missing = sorted(set(certificate.files) - set(there))
    changed = sorted(name for name in there if there[name] != certificate.files[name])
    checks = [("no file missing", missing), ("no file changed", changed)]
    if path.name == CERTIFICATE:
        ours = {CERTIFICATE, SIGNATURE, AT_RISK}
        names = {p.relative_to(path.parent).as_posix() for p in path.parent.rglob("*") if p.is_symlink() or p.is_file()}
        checks.append(("no file added", sorted(names - ours - set(certificate.files))))
    found = []
    for name, wrong in checks:
        listed = ", ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        found.append(Finding(name, not wrong, listed or f"{len(certificate.files)} files as certified"))
    return found


def _linked(certificate: SceneCertificate, linkage: SceneLinkage) -> list[Finding]:
    if linkage.release_digest != certificate.digest:
        return [Finding("linkage", False, "the link table belongs to other files")]
    people = ((p.group, p.counts_as) for p in linkage.people if p.group is not None and not p.shown)
    least = smallest_sharing(people)
    if certificate.k_real is None:
        return [Finding("linkage", True, f"{len(linkage.people)} people")]
    return [Finding("people behind each face", least == certificate.k_real, f"{least}, {certificate.k_real} certified")]
