"""``ksame verify``: a release against its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ksame.app import talk
from ksame.app.options import AsJson
from ksame.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from ksame.privacy.findings import Finding


@talk.guarded
def verify_command(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="RELEASE",
            help="Folder of the release; of photographs and video also the certificate, or the output beside it.",
        ),
    ],
    linkage: Annotated[Path | None, typer.Option("--linkage", help="The link table of this release.")] = None,
    originals: Annotated[
        str | None, typer.Option(help="The faces a release of faces was made from; needs the link table.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="labels.csv of the originals, when elsewhere.")] = None,
    size: Annotated[str | None, typer.Option(help="Size to which the originals were registered.")] = None,
    reference: Annotated[Path | None, typer.Option(help="The reference it was made with.")] = None,
    key: Annotated[Path | None, typer.Option(help="The publisher's Ed25519 public key (PEM).")] = None,
    as_json: AsJson = False,
) -> None:
    """Check a release of faces, or photographs and video, against the certificate.

    Without a key this finds inconsistency, not forgery. With link table and originals the whole run of a release of
    faces is repeated; for photographs and video the link table shows whether as many real people share a face as
    certified.
    """
    from ksame.app.source import Request, load_reference, load_source, parse_size
    from ksame.privacy.certificate import Certificate
    from ksame.privacy.findings import passed
    from ksame.privacy.signing import load_public_key
    from ksame.scene.certificate import read_certificate
    from ksame.scene.linkage import read_linkage
    from ksame.verification import certificate_of, rebuild_recipe, verify

    template = parse_size(size)
    certificate, _ = read_certificate(certificate_of(folder))
    if originals is not None and not isinstance(certificate, Certificate):
        raise UsageError(
            "--originals is for releases of faces. To compare photographs and video byte for byte, repeat the command "
            "with the seed in the link table."
        )
    if originals is not None and linkage is None:
        raise UsageError("Originals can only be compared with the help of the link table; add --linkage.")
    secret = None if linkage is None else read_linkage(linkage)
    public_key = None if key is None else load_public_key(key)
    with talk.working("verifying"):
        findings = verify(folder, linkage=secret, key=public_key)
    if originals is not None and isinstance(certificate, Certificate) and passed(findings):  # else it names no run
        made_with = rebuild_recipe(certificate)
        given = load_source(Request(originals, labels, template, skip_unreadable=True), made_with)
        others = None if reference is None else load_reference(reference, given.faces, made_with)
        with talk.working("repeating the run"):
            findings = verify(
                folder,
                linkage=secret,
                originals=given.faces,
                provenance=given.provenance,
                reference=others,
                key=public_key,
            )
    tell_findings(folder, findings, as_json=as_json)


def tell_findings(what: Path, findings: Sequence[Finding], *, as_json: bool) -> None:
    """Print findings, and end with the exit code they mean."""
    from ksame.privacy.findings import conclusion, passed

    good = passed(findings)
    if as_json:
        talk.emit(
            {
                "schema": "ksame/verification",
                "version": 1,
                "passed": good,
                "conclusion": conclusion(findings),
                "findings": [asdict(f) for f in findings],
            }
        )
    else:
        table = Table("check", "result", "detail")
        words = {True: "[green]passed[/]", False: "[bold red]FAILED[/]", None: "[yellow]not judged[/]"}
        for finding in findings:
            table.add_row(finding.name, words[finding.passed], talk.plain(finding.detail))
        talk.show(table, str(what))
        talk.say(f"[bold]{conclusion(findings)}[/]")
    if not good:
        raise typer.Exit(ExitCode.NOT_MET)
