"""What is written beside the outputs, what they are called, and which of that is refused before any work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ksame.errors import UsageError
from ksame.scene.paths import OutputPaths, require_folder
from ksame.scene.review import check_sheet
from ksame.scene.store import can_resume
from ksame.vault import Recipients
from ksame.vault.log import log_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


@dataclass(frozen=True)
class ReleaseOptions:
    """What is written beside the outputs, and what they are called.

    Parameters
    ----------
    frames : bool
        A folder is one recording in numbered pictures.
    keep_names : bool
        Outputs in a folder are named as the originals; by default they are numbered at random.
    container : str, optional
        For recordings in a folder, such as "mp4".
    tracks : Path, optional
        Who is where in one file: read if it exists, otherwise written, to be edited. As secret as the originals.
    review : Path, optional
        A picture of everyone before and after. It shows originals.
    link_table : Path, optional
        Who became whom. Secret; never overwritten.
    vault : Path, optional
        Where everybody's originals, and who became whom, are sealed; never overwritten.
    recipients : tuple of str
        Public keys of age, each of which opens the vault.
    manifest : Path, optional
        Where it is kept what is to be done and what became of each file. It names originals.
    described : mapping of str to value
        Options of ``ksame deidentify`` that a new manifest has.
    sign : Ed25519PrivateKey, optional
        Signs the certificate.
    resume, force : bool
        Go on with an interrupted run; replace earlier outputs.
    """

    frames: bool = False
    keep_names: bool = False
    container: str | None = None
    tracks: Path | None = None
    review: Path | None = None
    link_table: Path | None = None
    vault: Path | None = None
    recipients: tuple[str, ...] = ()
    manifest: Path | None = None
    described: Mapping[str, Any] = field(default_factory=dict)
    sign: Ed25519PrivateKey | None = None
    resume: bool = False
    force: bool = False


def check_vault(options: ReleaseOptions, places: OutputPaths, *, remote: bool) -> None:
    """Refuse a vault that nobody could open, recipients without one, and one that would be replaced."""
    if options.vault is None:
        if options.recipients:
            raise UsageError("A --recipient opens a vault. Name its file with --vault.")
        return
    Recipients(options.recipients)
    if remote:
        raise UsageError("A --vault is made of local files. Fetch them first, and store the results afterwards.")
    if options.vault.exists() and not (options.resume and can_resume(places.work)):
        raise UsageError(f"{options.vault} exists; a vault is never overwritten. Choose another name.")
    if log_of(options.vault).exists():
        raise UsageError(f"{log_of(options.vault)} exists: the log of another vault. Choose another name.")


def check_places(places: OutputPaths, options: ReleaseOptions) -> None:
    """Refuse, before any work, what must not be replaced and what must not lie among the outputs."""
    resuming = options.resume and can_resume(places.work)
    for file in (places.certificate, places.at_risk):
        if file.exists() and not options.force and not resuming:
            raise UsageError(f"{file} exists. Choose another place, or replace it with --force.")
    if options.link_table is not None and options.link_table.exists() and not resuming:
        raise UsageError(f"{options.link_table} exists; a link table is never overwritten. Choose another name.")
    if options.review is not None:
        check_sheet(options.review, may_exist=options.force or resuming)
    secrets = {
        "link table": options.link_table,
        "vault": options.vault,
        "contact sheet": options.review,
        "file of tracks": options.tracks,
        "manifest": options.manifest,
    }
    for name, path in secrets.items():
        if path is None:
            continue
        if places.folder is not None and path.resolve().is_relative_to(places.folder.resolve()):
            raise UsageError(f"The {name} undoes the work; it must not lie in the folder of the outputs.")
        require_folder(path)
        if path.resolve() in {output.resolve() for output in places.outputs}:
            raise UsageError(f"{path}: the {name} and an output cannot have one name.")
