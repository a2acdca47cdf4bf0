"""A release: the faces to publish, and their certificate. On disk it is a folder that appears whole or not at all."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ksame import scratch
from ksame.arrays import ByteArray, IntArray
from ksame.errors import InputError, OutputError, PrivacyWarning, UsageError
from ksame.faces.faceset import FaceSet
from ksame.faces.reading import StrPath, decode_png, encode_png
from ksame.faces.sheet import contact_sheet
from ksame.files import build_folder, sha256_of
from ksame.privacy.certificate import Certificate
from ksame.privacy.findings import FOLDER, NO_FILE, ODD, contents
from ksame.privacy.ledger import Ledger
from ksame.privacy.linkage import Linkage, sealed
from ksame.privacy.models import KAnonymity, digests

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

CERTIFICATE = "certificate.json"
SIGNATURE = "certificate.sig"
SHEET = "contact-sheet.png"


@dataclass(frozen=True, eq=False)
class Release:
    """What may be published.

    Attributes
    ----------
    faces : ndarray of shape (n_released, height, width, channels), uint8
        In the order of their own hashes, which has nothing to do with the order of the originals.
    certificate : Certificate
    prints : tuple of str
        Keyed hashes of the originals, by which :func:`write_release` lets the ledger remember them; never written into
        the release.
    """

    faces: ByteArray
    certificate: Certificate
    prints: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return the promise and the number of faces, not their pixels."""
        promise = self.certificate.promise
        return f"Release({len(self.faces)} faces, {promise.model}, bound {promise.bound})"

    def noted(self, warning: str) -> Release:
        """Return the release with one more warning in its certificate."""
        notes = (*self.certificate.warnings, warning)
        return replace(self, certificate=self.certificate.model_copy(update={"warnings": notes}))


def face_name(index: int) -> str:
    """Return the file name of a released face: faces/000001.png for the first."""
    return f"faces/{index + 1:06d}.png"


def release_order(faces: ByteArray, rows: IntArray | None = None) -> list[int]:
    """Return the order of release, by the hash of the bytes; with ``rows``, copy i shows the face ``rows[i]``."""
    keys = digests(faces)
    shown = range(len(faces)) if rows is None else rows.tolist()
    return sorted(range(len(shown)), key=lambda i: keys[shown[i]])


def encoded_files(faces: ByteArray) -> Iterator[tuple[str, bytes]]:
    """Yield the picture files of a release with their names."""
    before, data = None, b""
    for i, face in enumerate(faces):
        if before is None or not np.array_equal(face, before):  # equal faces follow one another
            before, data = face, encode_png(face)
        yield face_name(i), data
    yield SHEET, encode_png(contact_sheet(faces))


def encoded_once(faces: ByteArray, *, keep: bool) -> tuple[dict[str, str], dict[str, str]]:
    """Return the SHA-256 of every file of a release, and with ``keep`` the distinct faces for the link table."""
    hashes: dict[str, str] = {}
    kept: dict[str, str] = {}
    for name, data in encoded_files(faces):
        hashes[name] = sha256(data).hexdigest()
        if keep and name != SHEET and hashes[name] not in kept:
            kept[hashes[name]] = sealed(data)
    return hashes, kept


def write_release(
    release: Release, folder: StrPath, *, force: bool = False, key: Ed25519PrivateKey | None = None
) -> None:
    """Write a release folder: under another name first, read back and compared, then renamed in one step.

    Raises
    ------
    UsageError
        When ``folder`` exists and ``force`` is not given.
    OutputError
        When the disk is full or not writable; nothing is left behind.
    """
    folder = Path(folder)
    require_free(folder, force=force)
    with build_folder(folder) as building:
        (building / "faces").mkdir()
        written = {CERTIFICATE: sha256(release.certificate.to_json()).hexdigest()}
        for name, data in encoded_files(release.faces):
            (building / name).write_bytes(data)
            written[name] = sha256(data).hexdigest()
        release.certificate.write(building / CERTIFICATE, key)
        for name, digest in written.items():
            if sha256_of(building / name) != digest:
                raise OutputError(f"{folder}: {name} does not read back as it was written; check the disk.")
    if release.prints:
        _remember(release)


def _remember(release: Release) -> None:
    try:
        Ledger().record(release.prints, release.certificate.digest)
    except OSError as error:
        warnings.warn(
            f"This release could not be remembered ({error}). A second release of the same people will not be noticed.",
            PrivacyWarning,
            stacklevel=3,
        )


def compared(release: Release, linkage: Linkage, faces: FaceSet, after: Linkage | None) -> Release:
    """Warn where released pictures are in an earlier release that this one does not continue; add their prints."""
    shown = {source for face in linkage.faces for source in face.sources}
    ours = np.flatnonzero([name in shown for name in faces.names])
    if not len(ours):  # of a series whose people have all left
        return release
    ledger = Ledger()
    try:
        prints = ledger.prints(faces, ours)
    except OSError as error:
        warnings.warn(f"This release could not be remembered ({error}).", PrivacyWarning, stacklevel=3)
        return release
    if release.certificate.promise.model == KAnonymity.name:
        known = frozenset() if after is None else after.people
        new = [p for p, subject in zip(prints, faces.subjects[ours], strict=True) if str(subject) not in known]
        if seen := ledger.earlier(new, release.certificate.digest):
            note = (
                f"{seen} of {len(faces)} pictures are part of an earlier release made on this machine. If both are "
                "published, their groups can be intersected; continue the earlier release with --after LINKAGE."
            )
            warnings.warn(note, PrivacyWarning, stacklevel=3)
            release = release.noted(note)
    return replace(release, prints=prints)


def require_free(folder: Path, *, force: bool) -> None:
    """Raise when something stands where a release is to be written and may not be replaced."""
    try:
        exists = folder.exists()
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror}).") from error
    if exists:
        if not force:
            raise UsageError(f"{folder} exists. Choose another folder, or replace it with --force.")
        if not (folder / CERTIFICATE).is_file() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} is no earlier release, so --force does not replace it. Choose another folder.")


def read_release(folder: StrPath) -> tuple[Release, dict[str, str]]:
    """Read a release folder: the release, and what lies there besides the certificate and its signature.

    The latter is the SHA-256 of files by name, or what else they are, see :func:`ksame.privacy.findings.contents`.

    Raises
    ------
    InputError
        When there is no certificate, or a file is no picture.
    """
    folder = Path(folder)
    if not (folder / CERTIFICATE).exists():
        raise InputError(f"{folder}: there is no {CERTIFICATE}. Is this the folder of a release?")
    certificate = Certificate.read(folder / CERTIFICATE)
    there = contents(folder)
    hashes = {n: h for n, h in there.items() if n not in (CERTIFICATE, SIGNATURE) or h in (FOLDER, NO_FILE)}
    return Release(read_faces(folder, hashes), certificate), hashes


def read_faces(folder: Path, hashes: Mapping[str, str]) -> ByteArray:
    """Return the faces of a release in the order of their names; of the names in ``hashes``, links are not read.

    Raises
    ------
    InputError
        When a file is no picture, or they are not of one size.
    """
    names = [name for name in sorted(hashes) if name.startswith("faces/") and hashes[name] not in ODD]
    unequal = InputError(f"{folder}: expected released faces of one size in faces/, found {len(names)} files.")
    if not names:
        raise unequal
    for i, name in enumerate(names):
        try:
            face = decode_png((folder / name).read_bytes())
        except InputError as error:
            raise InputError(f"{folder / name}: {error}") from error
        if i == 0:
            faces: ByteArray = scratch.empty((len(names), *face.shape), np.uint8)
        if face.shape != faces.shape[1:]:
            raise unequal
        faces[i] = face
    return faces
