"""Checking a release against its certificate: from its files alone, with the link table, with the originals, a key."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ksame.deidentify import Provenance
from ksame.errors import InputError, UsageError
from ksame.faces.faceset import FaceSet
from ksame.faces.reading import StrPath
from ksame.privacy.certificate import SEALED, Certificate, VaultRecord
from ksame.privacy.documents import read_bytes, schema_of
from ksame.privacy.findings import (
    FOLDER,
    NO_FILE,
    Finding,
    check,
    check_digest,
    check_files,
    check_signature,
    contents,
    passed,
)
from ksame.privacy.linkage import Linkage, LinkTable, Table
from ksame.privacy.release import CERTIFICATE, SIGNATURE, Release, read_faces
from ksame.scene.certificate import AnyCertificate, SceneCertificate, beside, read_certificate
from ksame.scene.linkage import AnyLinkage, SceneLinkage
from ksame.verification.faces import check_faces, check_linked_faces
from ksame.verification.repeating import rebuild_recipe, repeat
from ksame.verification.scenes import check_linked_scenes, check_scenes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

__all__ = ["certificate_of", "rebuild_recipe", "verify"]

_FACES, _SCENES = (kind.model_fields["schema_"].default for kind in (Certificate, SceneCertificate))


def verify(
    path: StrPath,
    *,
    linkage: AnyLinkage | None = None,
    originals: FaceSet | None = None,
    provenance: Provenance | None = None,
    reference: FaceSet | None = None,
    key: Ed25519PublicKey | None = None,
) -> list[Finding]:
    """Check a release of faces, or photographs and recordings, against the certificate.

    From the files alone this finds every inconsistency, but not a forgery: whoever can change the files can change the
    certificate too. With ``key`` any edit at all is found.

    Parameters
    ----------
    path : Path or str
        The folder of a release, its certificate, or of a single output the output itself.
    linkage : Linkage or SceneLinkage, optional
        Adds: what became of everyone, whether the groups are whole, and how many people there really are.
    originals, reference : FaceSet, optional
        Of a release of faces, with the linkage: every released byte, the promise and every figure are computed again.
    provenance : Provenance, optional
        What is not among ``originals`` although it was given; without it these counts are not judged.
    key : Ed25519PublicKey, optional
        The publisher's key.

    Raises
    ------
    InputError
        When there is no certificate, or certificate, pictures or link table cannot be read as what they should be.
    """
    file = certificate_of(Path(path))
    certificate, data = read_certificate(file)
    there = _files_of(file, certificate)
    findings = [
        check_signature(file, data, key),
        *check_files(certificate.files, there),
        check_digest(certificate.files, certificate.digest),
        *([] if certificate.vault is None else [_check_vault(certificate.vault)]),
    ]
    if isinstance(certificate, SceneCertificate):
        if originals is not None:
            raise UsageError("Only a release of faces can be compared with its originals.")
        findings += check_scenes(certificate, file)
        scenes = _own(linkage, SceneLinkage, certificate.digest, findings)
        return findings if scenes is None else [*findings, *check_linked_scenes(certificate, scenes)]
    release = Release(read_faces(file.parent, there), certificate)
    findings += check_faces(release, file.parent, there)
    table = _own(linkage, Linkage, certificate.digest, findings)
    if table is not None:
        findings += check_linked_faces(release, table)
    if table is None or originals is None:
        return findings
    if not passed(findings):
        return [*findings, Finding("recomputed", None, "not tried: the certificate does not hold as it is")]
    return [*findings, *repeat(release, table, originals, provenance, reference)]


def _check_vault(vault: VaultRecord) -> Finding:
    """Judge what a certificate says of a vault; the vault itself is another command's."""
    wrong = [] if vault.statement == SEALED else ["the words are not those of ksame"]
    return check("vault", wrong, "there is one; see: ksame vault verify")


def _own(linkage: LinkTable | None, kind: type[Table], digest: str, findings: list[Finding]) -> Table | None:
    """Return a link table if it is that of the release; one of another release is added to what was found."""
    if linkage is None or isinstance(linkage, kind):
        if linkage is None or linkage.release_digest == digest:
            return linkage
        findings.append(Finding("linkage", False, "the link table belongs to another release"))
        return None
    raise InputError(f"The link table is not {kind.expected}, as the certificate asks for.")


def certificate_of(path: Path) -> Path:
    """Return the certificate that belongs to a path: itself, that in a folder, or the one beside a single output."""
    inside = path / CERTIFICATE if path.is_dir() else path
    for file in (inside, beside(path, CERTIFICATE, whole=True), beside(path, CERTIFICATE)):
        if file.suffix == ".json" and file.is_file():
            with suppress(InputError):
                schema = schema_of(read_bytes(file, "the certificate", plain=True), "a certificate")
                if schema == _SCENES or (schema == _FACES and file.name == CERTIFICATE):
                    return file
    if inside.suffix == ".json" and os.path.lexists(inside):
        return inside  # reading it will say what is wrong
    raise InputError(
        f"{path}: no certificate is there. Name the folder of a release, a certificate, or the output beside it."
    )


def _files_of(file: Path, certificate: AnyCertificate) -> dict[str, str]:
    """Return what lies beside a certificate, see :func:`contents`; in a folder of its own, everything there."""
    if file.name != CERTIFICATE:
        return contents(file.parent, [name.split("/")[0] for name in certificate.files])
    ours = {CERTIFICATE, SIGNATURE}
    there = contents(file.parent)
    return {n: h for n, h in there.items() if n not in ours or h in (FOLDER, NO_FILE) or n in certificate.files}
