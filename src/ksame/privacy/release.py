"""A release: the faces to publish, and their certificate. On disk it is a folder that appears whole or not at all."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ksame.arrays import ByteArray
from ksame.errors import InputError, OutputError, PrivacyWarning, UsageError
from ksame.faces.faceset import FaceSet
from ksame.faces.reading import StrPath, decode_png, encode_png
from ksame.faces.sheet import contact_sheet
from ksame.files import build_folder
from ksame.privacy.certificate import Certificate
from ksame.privacy.findings import FOLDER, NO_FILE, ODD, contents
from ksame.privacy.ledger import Ledger
from ksame.privacy.linkage import Linkage
from ksame.privacy.models import KAnonymity

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


def release_order(faces: ByteArray) -> list[int]:
    """Return the order of release: by the hash of their bytes, which tells nothing of the order of the originals."""
    keys = [sha256(face.tobytes()).digest() for face in faces]
    return sorted(range(len(faces)), key=lambda i: keys[i])


def encode_release(faces: ByteArray) -> dict[str, bytes]:
    """Return the picture files of a release by name."""
    found = {face_name(i): encode_png(face) for i, face in enumerate(faces)}
    found[SHEET] = encode_png(contact_sheet(faces))
    return found


def hashes_of(encoded: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of every file."""
    return {name: sha256(data).hexdigest() for name, data in encoded.items()}


def write_release(
    release: Release, folder: StrPath, *, force: bool = False, key: Ed25519PrivateKey | None = None
) -> None:
    """Write a release folder.

    Everything goes to a temporary folder beside it first, is read back and compared, and is renamed in one step.

    Raises
    ------
    UsageError
        When ``folder`` exists and ``force`` is not given.
    OutputError
        When the disk is full or not writable; nothing is left behind.
    """
    folder = Path(folder)
    require_free(folder, force=force)
    pictures = encode_release(release.faces)
    with build_folder(folder) as building:
        (building / "faces").mkdir()
        for name, data in pictures.items():
            (building / name).write_bytes(data)
        release.certificate.write(building / CERTIFICATE, key)
        written = {**pictures, CERTIFICATE: release.certificate.to_json()}
        for name, data in written.items():
            if (building / name).read_bytes() != data:
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
    """Warn where pictures are in a release that this one does not continue, and let these be remembered.

    Only pictures that a face stands for count: who waits was not released.
    """
    shown = {source for face in linkage.faces for source in face.sources}
    ours = faces.take(np.isin(faces.names, list(shown))) if shown & set(faces.names) else None
    if ours is None:  # of a series whose people have all left
        return release
    ledger = Ledger()
    try:
        prints = ledger.prints(ours)
    except OSError as error:
        warnings.warn(f"This release could not be remembered ({error}).", PrivacyWarning, stacklevel=3)
        return release
    if release.certificate.promise.model == KAnonymity.name:
        known = frozenset() if after is None else after.people
        new = [one for one, subject in zip(prints, ours.subjects, strict=True) if str(subject) not in known]
        seen = ledger.earlier(new, release.certificate.digest)
        if seen:
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
    """Read a release folder: the release, and the SHA-256 of all other files there by name.

    Links and folders are among them, see :func:`ksame.privacy.findings.contents`.

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
    """Return the faces of a release in the order of their names; ``hashes`` tell what lies there, links are not read.

    Raises
    ------
    InputError
        When a file is no picture, or they are not of one size.
    """
    faces = []
    for name in sorted(hashes):
        if name.startswith("faces/") and hashes[name] not in ODD:
            try:
                faces.append(decode_png((folder / name).read_bytes()))
            except InputError as error:
                raise InputError(f"{folder / name}: {error}") from error
    if not faces or len({face.shape for face in faces}) != 1:
        raise InputError(f"{folder}: expected released faces of one size in faces/, found {len(faces)} files.")
    return np.stack(faces)
