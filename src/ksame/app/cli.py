"""``ksame``: the commands and their options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from ksame.app import audit as auditing
from ksame.app import models, talk
from ksame.app.options import SCHEDULER_HELP, SETS, described, level_help, with_options
from ksame.app.reproduce import reproduce_command
from ksame.app.scene import deidentify_command, people_command
from ksame.app.source import parse_size
from ksame.app.verdict import tell_findings
from ksame.errors import ExitCode, UsageError
from ksame.heads import COVERS
from ksame.methods import Select
from ksame.models import RECOGNISERS
from ksame.parameters import specs
from ksame.privacy.findings import passed
from ksame.privacy.signing import load_public_key
from ksame.recipes import METHODS
from ksame.scheduling import LOCAL
from ksame.version import __version__

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Publish pictures of people without publishing who they are, and prove it.",
)

app.add_typer(models.app, name="models")
app.command("deidentify")(deidentify_command)
app.command("people")(people_command)
app.command("audit")(auditing.audit_command)
app.command("reproduce")(reproduce_command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ksame {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Hold the options of ``ksame`` itself."""


@dataclass(frozen=True)
class ReleaseCommand:
    """What ``ksame release`` is told."""

    faces: Annotated[
        str,
        typer.Argument(
            metavar="FACES",
            help="Folder of faces or photographs (sub-folders or labels.csv say who is who), a URL of one, or "
            "synthetic:N people.",
        ),
    ]
    output: Annotated[str, typer.Option("--output", "-o", help="Folder to write, or a URL such as s3://bucket/folder.")]
    method: Annotated[str, typer.Option("--method", "-m", help="Recipe; see: ksame methods.")] = "k-same-pixel"
    params: Mapping[str, Any] = field(default_factory=dict)
    select: Annotated[str | None, typer.Option(help="Label to keep, such as gender or expression (k-Same-Select).")] = (
        None
    )
    small_classes: Annotated[str, typer.Option(help=described(specs(Select)["small_classes"]))] = "error"
    coding: Annotated[str | None, typer.Option(help="pixel, eigen, model (shipped), aam (built on the set).")] = None
    portrait: Annotated[
        bool, typer.Option("--portrait", help="k-same-m: show faces as whole natural heads on a plain background.")
    ] = False
    components: Annotated[
        float | None, typer.Option(help="Eigenfaces to keep: a number, or a share of variance below 1.")
    ] = None
    distance: Annotated[str | None, typer.Option(help="eigen: seek neighbours among eigenface coefficients.")] = None
    level: Annotated[float | None, typer.Option(help=level_help(SETS))] = None
    labels: Annotated[Path | None, typer.Option(help="labels.csv elsewhere.")] = None
    size: Annotated[str | None, typer.Option(help="Register to this size, such as 99x134; needs landmarks.")] = None
    reference: Annotated[Path | None, typer.Option(help="Folder of other people, or builtin, for the maps.")] = None
    seed: Annotated[int | None, typer.Option(help="Repeat a run exactly. A secret: it belongs to the linkage.")] = None
    after: Annotated[
        Path | None,
        typer.Option(
            help="Link table of the release that this one continues: its faces are repeated, newcomers added."
        ),
    ] = None
    same_person: Annotated[
        bool, typer.Option("--same-person", help="Names that share a photograph are one person; otherwise an error.")
    ] = False
    link_table: Annotated[Path | None, typer.Option(help="Also write who became whom. Secret!")] = None
    sign: Annotated[Path | None, typer.Option(help="Ed25519 private key (PEM) to sign the certificate.")] = None
    audit: Annotated[
        Path | None, typer.Option(help="Also attack the release and write this report. It shows originals!")
    ] = None
    skip_unreadable: Annotated[bool, typer.Option("--skip-unreadable", help="Leave out files that cannot be read.")] = (
        False
    )
    scheduler: Annotated[str, typer.Option(help=f"For finding faces in photographs, and --audit. {SCHEDULER_HELP}")] = (
        LOCAL
    )
    workers: Annotated[int | None, typer.Option(help="How many processes, with --scheduler processes.")] = None
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier release.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False


@app.command()
@talk.guarded
@with_options
def release(options: ReleaseCommand) -> None:
    """De-identify a set of registered faces and certify the result.

    The release folder holds faces/000001.png and so on, certificate.json and contact-sheet.png, and nothing that tells
    who became whom.
    """
    from ksame.app.release import run_release

    result = run_release(options)
    if options.as_json:
        talk.emit(result.as_dict())
    else:
        talk.say(result.render())
        if result.audit is not None and options.audit is not None:
            auditing.describe(result.audit, options.audit)
    if result.code is not ExitCode.DONE:
        raise typer.Exit(result.code)


@app.command("verify")
@talk.guarded
def verify_command(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="RELEASE",
            help="Folder of the release; of photographs and video also the certificate, or the output beside it.",
        ),
    ],
    linkage: Annotated[Path | None, typer.Option("--linkage", help="Its link table.")] = None,
    originals: Annotated[
        str | None, typer.Option(help="The faces a release of faces was made from; needs the link table.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="labels.csv of the originals, when elsewhere.")] = None,
    size: Annotated[str | None, typer.Option(help="Size to which the originals were registered.")] = None,
    reference: Annotated[Path | None, typer.Option(help="The reference it was made with.")] = None,
    key: Annotated[Path | None, typer.Option(help="The publisher's Ed25519 public key (PEM).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check a release of faces, or photographs and video, against the certificate.

    Without a key this finds inconsistency, not forgery. With link table and originals the whole run of a release of
    faces is repeated; for photographs and video the link table shows whether as many real people share a face as
    certified.
    """
    from ksame.app.source import Request, load_reference, load_source
    from ksame.privacy.certificate import Certificate
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


@app.command()
@talk.guarded
def methods(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """List every method, cover and recogniser: what it does, what it promises and needs, where it comes from."""
    if as_json:
        told = ("name", "summary", "promise", "bound", "needs", "paper", "codings", "masks")
        talk.emit(
            [
                {
                    **{field: getattr(entry, field) for field in told},
                    "accepts": list(entry.parameters),
                    "params": entry.schema(),
                    "scenes": entry.scenes.works,
                }
                for entry in METHODS.values()
            ]
        )
        return
    table = Table(
        *(Column("name", no_wrap=True), "what it does", "promise", "bound on recognition", "needs", "paper", "works on")
    )
    for entry in METHODS.values():
        places = [place for place, works in (("face sets", entry.for_sets), ("scenes", entry.scenes.works)) if works]
        words = (entry.summary, entry.promise, entry.bound, entry.needs, entry.paper)
        table.add_row(entry.name, *words, ", ".join(places))
    talk.show(table)
    covers = Table(Column("cover", no_wrap=True), "what is invented", "what it leaves")
    for cover in COVERS.values():
        covers.add_row(cover.name, cover.summary, cover.leaks)
    talk.show(covers)
    recognisers = Table(Column("recogniser", no_wrap=True), "what it is", "weights")
    for each in RECOGNISERS.values():
        recognisers.add_row(each.name, each.summary, each.licence)
    talk.show(recognisers)
    talk.say(
        "Every method whose people share faces also takes --select LABEL. All promises are about the face region only. "
        "In scenes a mask promises nothing, and others promise only that the people of a group share one surrogate "
        "identity."
    )


@app.command()
@talk.guarded
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")] = Path("ksame-demo"),
    people: Annotated[int, typer.Option(help="How many people, the astronaut included.")] = 40,
    k: Annotated[int, typer.Option("--k", "-k", help="How many people share a face.")] = 5,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier demo.")] = False,
) -> None:
    """Release people who do not exist and one real photograph, attack the result; then de-identify a film."""
    from ksame.app.demo import run_demo

    run_demo(output, people=people, k=k, force=force)


def main() -> None:
    """Run the command line."""
    app()
