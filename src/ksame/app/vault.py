"""``ksame vault``: keys, what is sealed, opening one person, other recipients, and whether all is as it was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ksame.app import talk
from ksame.app.options import AsJson
from ksame.errors import UsageError

if TYPE_CHECKING:
    from ksame.privacy.findings import Finding
    from ksame.vault import Identity, Vault

app = typer.Typer(
    help="Make keys, see what a vault holds, bring one person back, change who can open it.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)

VaultFile = Annotated[Path, typer.Argument(metavar="VAULT", help="File that --vault wrote, such as case.age.")]
IdentityFile = Annotated[
    Path | None, typer.Option("--identity", "-i", help="File with the secret key of a recipient.", show_default=False)
]
Shares = Annotated[
    list[Path] | None,
    typer.Option("--share", help="File with a share of the key, instead of --identity; as often as are needed."),
]
Person = Annotated[list[str] | None, typer.Option("--person", "-p", help="Name in the link table, such as P3.")]


def _identity(identity: Path | None, shares: list[Path] | None) -> Identity:
    from ksame.vault import join, load_identity, read_share

    if (identity is None) == (not shares):
        raise UsageError("Name the file of the secret key with --identity, or the --share files that make it.")
    return load_identity(identity) if identity is not None else join([read_share(path) for path in shares or ()])


def _read(path: Path) -> Vault:
    from ksame.vault import Vault

    with talk.working("checking the vault"):
        return Vault.read(path)


def _free(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} exists, and is never overwritten. Choose another name.")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist. Make it first.")


@app.command()
@talk.guarded
def keygen(
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the secret key, such as key.txt.")],
) -> None:
    """Make a key: the secret part goes to a file that only you can read, the public part is printed.

    Example: ksame vault keygen -o key.txt
    """
    from ksame.vault import new_identity, write_identity

    _free(output)
    identity = new_identity()
    write_identity(output, identity)
    typer.echo(identity.recipient)
    talk.say(f"The secret key is in [bold]{talk.plain(str(output))}[/]. Without it, nothing can be opened again.")


@app.command("list")
@talk.guarded
def list_vault(vault: VaultFile, identity: IdentityFile = None, share: Shares = None, as_json: AsJson = False) -> None:
    """Show what anybody can see of a vault; with a key also the names, and where everybody is. Opens no film.

    Example: ksame vault list case.age --identity key.txt
    """
    sealed = _read(vault)
    entries = sealed.index.entries
    told: dict[str, Any] = {
        "schema": "ksame/vault-list",
        "version": 1,
        "release": sealed.index.release,
        "root": sealed.root,
        "recipients": sealed.index.recipients,
        "keys": len(sealed.numbers("key")),
        "films": len(sealed.numbers("film")),
        "left_out": sum(not entry.size for entry in entries),
        "bytes": sum(entry.size for entry in entries),
        "openings": len(sealed.log.openings),
        "log_head": sealed.log.head,
    }
    if identity is not None or share:
        told["people"] = _people(sealed, _identity(identity, share))
    if as_json:
        talk.emit(told)
        return
    table = Table("", "", show_header=False)
    for name in ("release", "root", "recipients", "keys", "films", "left_out", "bytes", "openings", "log_head"):
        table.add_row(name.replace("_", " "), str(told[name]))
    talk.show(table, str(vault))
    if "people" in told:
        people = Table("person", "became", "where", "films")
        for row in told["people"]:
            people.add_row(*(talk.plain(str(row[name])) for name in ("person", "became", "outputs", "films")))
        talk.show(people)


def _people(vault: Vault, identity: Identity) -> list[dict[str, Any]]:
    """Return who is in a vault."""
    from ksame.scene.sealing.restore import records

    told = records(vault, vault.keys(identity))
    return [
        {
            "person": name,
            "became": record.linkage.treatment
            + ("" if record.linkage.group is None else f", group {record.linkage.group}"),
            "outputs": ", ".join(place.output for place in record.linkage.places),
            "films": len(record.films),
        }
        for name, record in sorted(told.items())
    ]


@app.command("open")
@talk.guarded
def open_vault(
    vault: VaultFile,
    release: Annotated[
        Path | None,
        typer.Argument(metavar="RELEASE", help="The released file, or folder of frames, as it was published."),
    ] = None,
    person: Person = None,
    identity: IdentityFile = None,
    share: Shares = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write: .mp4, .mov or .mkv, .png for a photograph; or .json."),
    ] = None,
    reason: Annotated[str, typer.Option(help="Goes into the log, such as the number of a warrant.")] = "",
) -> None:
    """Bring one person back in the released file; everyone else stays hidden. Every opening is logged.

    Example: ksame vault open case.age safe.mp4 --person P3 --identity key.txt -o restored.mp4

    Without RELEASE and --person the link table is written, as JSON: ksame vault open link.age -i key.txt -o link.json
    """
    from ksame.scene.sealing.restore import restore

    if output is None:
        raise UsageError("Name the file to write with -o.")
    _free(output)
    key = _identity(identity, share)
    sealed = _read(vault)
    if release is None and not person:
        head = _open_table(sealed, key, output, reason)
        talk.warn_of_secret(f"{output} tells who became whom. Keep it, or delete it.")
    elif release is None or not person:
        raise UsageError("To bring somebody back, name the released file and --person. See: ksame vault list.")
    else:
        done = restore(sealed, key, person, release, output, note=reason, progress=talk.progress)
        head = done.head
        talk.say(
            f"[bold]{', '.join(done.people)}[/] brought back in {done.n_frames} frames of "
            f"[bold]{talk.plain(str(output))}[/]; all else is as released."
        )
        talk.warn_of_secret(f"{output} shows {', '.join(done.people)}. Keep it.")
    talk.say(f"Opening {len(sealed.log.openings) + 1} is logged. Note its hash elsewhere: {head}")


def _open_table(vault: Vault, key: Identity, output: Path, reason: str) -> str:
    """Write the link table of a vault, and return the head of the log."""
    from ksame.files import write_atomic
    from ksame.vault.table import open_table

    data, head = open_table(vault, key, reason)
    write_atomic(output, data, private=True, replace=False)
    return head


@app.command()
@talk.guarded
def rekey(
    vault: VaultFile,
    identity: IdentityFile = None,
    share: Shares = None,
    recipient: Annotated[
        list[str] | None, typer.Option(help="Public key that opens it from now on; several times.")
    ] = None,
    person: Person = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Another file to write; by default the vault itself is replaced."),
    ] = None,
) -> None:
    """Wrap the keys of a vault for other recipients. What is sealed is copied, not sealed again.

    Copies that were made before still open with the old keys.

    Example: ksame vault rekey case.age -i old.txt --recipient age1...

    With --person a copy is written that holds this person and nobody else, for whoever may see only them: ksame vault
    rekey case.age -i key.txt --person P3 --recipient age1... -o P3.age
    """
    from ksame.vault import Recipients

    new = Recipients(tuple(recipient or ()))
    key = _identity(identity, share)
    if output is not None:
        _free(output)
    elif person:
        raise UsageError("A vault with one person is a copy. Name its file with -o.")
    sealed = _read(vault)
    keep = None
    if person:
        from ksame.scene.sealing.restore import entries_of

        keep = entries_of(sealed, key, person)
    else:
        sealed.keys(key)
    sealed = sealed.noted(action="grant" if person else "rekey", people=tuple(person or ()), key=key.recipient)
    with talk.working("writing"):
        sealed.rewrapped(key, new, output or vault, keep)
    talk.say(f"[bold]{talk.plain(str(output or vault))}[/] opens with {len(new.names)} keys. Logged: {sealed.log.head}")


@app.command()
@talk.guarded
def verify(
    vault: VaultFile,
    release: Annotated[
        Path | None,
        typer.Option(help="The release, its certificate, or a released file beside it.", show_default=False),
    ] = None,
    identity: IdentityFile = None,
    share: Shares = None,
    key: Annotated[Path | None, typer.Option(help="The publisher's Ed25519 public key (PEM), with --release.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check every byte of a vault and its log; with --release that they belong together; with a key that all opens.

    Example: ksame vault verify case.age --release safe.mp4
    """
    from ksame.app.verify import tell_findings
    from ksame.privacy.findings import Finding

    opener = _identity(identity, share) if identity is not None or share else None
    sealed = _read(vault)
    n = len(sealed.index.entries)
    findings = [
        Finding("sealed pieces", True, f"{n} pieces, as their hashes say"),
        Finding("log", True, f"{len(sealed.log.openings)} openings, in one chain that the vault has noted"),
    ]
    findings += _release_findings(sealed, release, key) + _key_findings(sealed, opener)
    tell_findings(vault, findings, as_json=as_json)


def _release_findings(vault: Vault, release: Path | None, key: Path | None) -> list[Finding]:
    """Verify the release too, and that both name one another."""
    from ksame.privacy.findings import Finding
    from ksame.privacy.signing import load_public_key
    from ksame.scene.certificate import read_certificate
    from ksame.verification import certificate_of
    from ksame.verification import verify as verify_release

    if release is None:
        return [Finding("release", None, "name it with --release")]
    certificate, _ = read_certificate(certificate_of(release))
    named = certificate.vault is not None and certificate.vault.root == vault.root
    with talk.working("verifying the release"):
        verified = verify_release(release, key=None if key is None else load_public_key(key))
    return [
        *verified,
        Finding("release", certificate.digest == vault.index.release, "the digest in its certificate"),
        Finding("certificate", named, "it names this vault" if named else "it names another vault, or none"),
    ]


def _key_findings(vault: Vault, key: Identity | None) -> list[Finding]:
    from ksame.privacy.findings import Finding
    from ksame.vault.table import open_everything

    if key is None:
        return [Finding("keys", None, "name one with --identity")]
    with talk.working("opening everything in memory"):
        n_keys, n_opened = open_everything(vault, key)
    return [Finding("keys", True, f"{n_keys} keys unwrap, and open {n_opened} pieces")]


@app.command()
@talk.guarded
def split(
    identity: Annotated[Path, typer.Argument(metavar="KEY", help="File with the secret key.")],
    needed: Annotated[int, typer.Option("--needed", "-m", help="How many shares make the key.")],
    total: Annotated[int, typer.Option("--total", "-n", help="How many shares there are.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the shares; it is made.")],
) -> None:
    """Divide a key among officers: any M of N shares make it again, and fewer tell nothing of it.

    Give each share to another officer, then delete the key and the folder.

    Example: ksame vault split key.txt --needed 2 --total 3 -o shares
    """
    from ksame.files import make_folder
    from ksame.vault import load_identity
    from ksame.vault import split as divide
    from ksame.vault.shares import check_shares

    check_shares(needed, total)
    shares = divide(load_identity(identity), needed, total)
    files = [output / f"share-{share.number}-of-{share.total}.txt" for share in shares]
    make_folder(output)
    for file in files:
        _free(file)
    for share, file in zip(shares, files, strict=True):
        share.write(file)
    talk.say(f"{total} shares are in [bold]{talk.plain(str(output))}[/]; any {needed} of them make the key.")


@app.command("join")
@talk.guarded
def join_shares(
    shares: Annotated[list[Path], typer.Argument(metavar="SHARE", help="Files of shares.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the secret key.")],
) -> None:
    """Make a key again of its shares. To open a vault it need not be written: ksame vault open takes --share.

    Example: ksame vault join share-1-of-3.txt share-3-of-3.txt -o key.txt
    """
    from ksame.vault import join, read_share, write_identity

    _free(output)
    identity = join([read_share(path) for path in shares])
    write_identity(output, identity)
    typer.echo(identity.recipient)
