"""``ksame release``: faces in, faces and a certificate out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from ksame.app import talk
from ksame.app.audit import describe, exit_code, finish, for_machines
from ksame.app.config_file import ConfigOption
from ksame.app.options import (
    SCHEDULER_HELP,
    AsJson,
    DryRun,
    PublicKeys,
    Sign,
    Workers,
    described,
    file_option,
    level_help,
    method_option,
    run_option,
    sets,
    with_options,
)
from ksame.app.source import Request, load_reference, load_source, parse_size
from ksame.deidentify import deidentify
from ksame.errors import ExitCode, KsameError, UsageError
from ksame.faces import FaceSet
from ksame.methods import Select
from ksame.parameters import specs
from ksame.privacy.certificate import Certificate, VaultRecord
from ksame.privacy.documents import read_document
from ksame.privacy.linkage import Linkage
from ksame.privacy.release import Release, require_free, write_release
from ksame.privacy.signing import load_private_key
from ksame.recipes import METHODS, Recipe, recipe
from ksame.remote import is_url, staged
from ksame.scheduling import LOCAL, check_scheduler
from ksame.vault import Recipients, Vault, load_identity
from ksame.vault.table import open_table, seal_table

if TYPE_CHECKING:
    from ksame.audit import AuditResult


@dataclass(frozen=True)
class ReleaseCommand:
    """What ``ksame release`` is told."""

    faces: Annotated[
        str,
        typer.Argument(
            metavar="FACES",
            help="Folder of faces or photographs (sub-folders or labels.csv say who is who), a URL of one, or "
            "synthetic:N for N people who do not exist.",
        ),
    ]
    output: str = file_option(..., "Folder to write, or a URL such as s3://bucket/folder.", "--output", "-o")
    method: str = method_option("k-same-pixel", "What is done to the faces; see: ksame methods.", "--method", "-m")
    params: Mapping[str, Any] = field(default_factory=dict)
    select: str | None = method_option(None, "Label to keep, such as gender or expression (k-Same-Select).")
    small_classes: str = method_option("error", f"With --select: {described(specs(Select)['small_classes'])}.")
    coding: str | None = method_option(
        None, "How faces are coded: pixel, eigen, model (shipped), aam (built on the set)."
    )
    portrait: bool = method_option(False, "k-same-m: show faces as whole natural heads on a plain background.")
    components: float | None = method_option(None, "Eigenfaces to keep: a number, or a share of variance below 1.")
    distance: str | None = method_option(None, "eigen: seek neighbours among eigenface coefficients.")
    level: float | None = method_option(None, level_help(sets()))
    labels: Path | None = file_option(None, "labels.csv, where it is not in the folder of faces.")
    size: str | None = file_option(None, "Register to this size, such as 99x134; needs landmarks.")
    reference: Path | None = file_option(
        None, "Other people, for the methods whose names end in -map: a folder, or builtin for people who do not exist."
    )
    seed: int | None = method_option(None, "Repeat a run exactly. A secret: it belongs to the linkage.")
    after: Path | None = file_option(
        None, "Link table of the release that this one continues: its faces are repeated, newcomers added."
    )
    same_person: bool = file_option(False, "Names that share a photograph are one person; otherwise an error.")
    link_table: Path | None = file_option(None, "Also write who became whom. Secret! Never overwritten.")
    vault: Path | None = file_option(
        None, "Also seal who became whom in this file, such as link.age, for each --recipient. Never overwritten."
    )
    recipient: PublicKeys = None
    identity: Path | None = file_option(None, "File with the secret key, where the --after link table is in a vault.")
    sign: Sign = None
    audit: Path | None = file_option(None, "Also attack the release and write this report. It shows originals!")
    skip_unreadable: bool = file_option(False, "Leave out files that cannot be read.")
    scheduler: str = run_option(LOCAL, f"For finding faces in photographs, and --audit. {SCHEDULER_HELP}")
    workers: Workers = None
    force: bool = file_option(False, "Replace an earlier release.")
    config: ConfigOption = None
    dry_run: DryRun = False
    as_json: AsJson = False


@talk.guarded
@with_options
def release_command(options: ReleaseCommand) -> None:
    """De-identify a set of registered faces and certify the result.

    The release folder holds faces/000001.png and so on, certificate.json and contact-sheet.png, and nothing that tells
    who became whom.
    """
    result = run_release(options)
    if options.as_json:
        talk.emit(result.as_dict())
    else:
        talk.say(result.render())
        if result.audit is not None and options.audit is not None:
            describe(result.audit, options.audit)
    raise typer.Exit(result.code)


@dataclass(frozen=True, eq=False)
class Result:
    """What came of it."""

    output: str | Path
    release: Release
    linkage: Linkage
    unreadable: tuple[str, ...]
    audit: AuditResult | None = None
    written: bool = True

    @property
    def code(self) -> ExitCode:
        """What the shell is told: an audit that breaks the promise weighs more than pictures left out."""
        audited = ExitCode.DONE if self.audit is None else exit_code(self.audit)
        return audited if audited is not ExitCode.DONE or not self.incomplete else ExitCode.WITHHELD

    @property
    def incomplete(self) -> bool:
        """Whether some input was withheld, left out, or is protected less than asked for."""
        weak = self.release.certificate.figures.get("weak_faces", 0)
        return bool(self.unreadable or self.linkage.withheld or weak)

    def as_dict(self) -> dict[str, Any]:
        """Return the result for machines. It names withheld files, so it is for the publisher's eyes."""
        audited = {} if self.audit is None else {"audit": for_machines(self.audit)}
        return {
            "schema": "ksame/release",
            "version": 1,
            "output": str(self.output),
            "written": self.written,
            "certificate": self.release.certificate.model_dump(mode="json", by_alias=True, exclude={"files"}),
            "withheld": [face.model_dump() for face in self.linkage.withheld],
            "unreadable": list(self.unreadable),
            **audited,
        }

    def render(self) -> str:
        """Return the result for people."""
        certificate = self.release.certificate
        counts = certificate.counts
        lines = [
            f"[bold]{counts.released} faces[/] of {counts.subjects_released} people "
            f"{'written' if self.written else 'would be written'} to [bold]{escape(str(self.output))}[/]",
            escape(certificate.promise.rebuild().render()),
        ]
        if certificate.series is not None:
            repeated = certificate.series.repeated
            lines.append(f"{repeated} of them are repeated from the release before this one, byte for byte.")
        if "label_homogeneity" in certificate.figures:
            lines.append(_homogeneity(certificate))
        if counts.merged:
            lines.append(f"{counts.merged} further images of the same people went into these faces.")
        lines += [f"[yellow]withheld[/] {escape(w.source)}: {escape(w.reason)}" for w in self.linkage.withheld]
        lines += [f"[yellow]unreadable[/] {escape(text)}" for text in self.unreadable]
        if not self.written:
            lines.append("Nothing was written. Another run groups people anew, unless it has the same --seed.")
        return "\n".join(lines)


def _homogeneity(certificate: Certificate) -> str:
    """Say what the kept label tells about people."""
    figures = certificate.figures
    return (
        f"Kept label {escape(repr(certificate.method.params['select']))}: a face has the label of "
        f"{figures['label_homogeneity']:.0%} of the people behind it (the most frequent label alone: "
        f"{figures['label_by_chance']:.0%}); at least {figures['smallest_label_diversity']} "
        "different labels are behind a face. Who is known to be behind a face is known to have its label."
    )


def run_release(options: ReleaseCommand) -> Result:
    """Load, de-identify, check, write; what is at a URL is fetched first, and stored last."""
    if options.dry_run:
        if is_url(options.faces) or is_url(options.output):
            raise UsageError("--dry-run looks at local files. Leave it out, or name folders instead of URLs.")
        return _run(options, Path(options.output))
    with staged([options.faces], options.output, force=options.force, goes_on=False) as stage:
        result = _run(replace(options, faces=str(stage.paths[0])), Path(stage.output))
        try:
            stage.upload()
        except BaseException:
            _remove([options.link_table, options.vault])
            raise
    return replace(result, output=stage.name(Path(result.output)))


def _run(options: ReleaseCommand, output: Path) -> Result:
    require_free(output, force=options.force)
    recipients = None if options.vault is None else Recipients(tuple(options.recipient or ()))
    if options.vault is None and options.recipient:
        raise UsageError("A --recipient opens a vault. Name its file with --vault.")
    for name, path in {"link table": options.link_table, "vault": options.vault}.items():
        if path is not None and path.exists():
            raise UsageError(f"{path} exists; a {name} is never overwritten. Choose another name.")
        if path is not None and path.resolve().is_relative_to(output.resolve()):
            raise UsageError(f"The {name} undoes the release; it must not lie inside the release folder.")
    if options.audit is not None:
        from ksame.audit.report import require_place

        require_place(options.audit, output, force=options.force)
    chosen = build_recipe(options)
    key = None if options.sign is None else load_private_key(options.sign)
    after = None if options.after is None else read_after(options.after, options.identity)
    check_scheduler(options.scheduler, options.workers)
    where = Request(options.faces, options.labels, parse_size(options.size), options.skip_unreadable)
    source = load_source(replace(where, scheduler=options.scheduler, workers=options.workers), chosen)
    reference = None if options.reference is None else load_reference(options.reference, source.faces, chosen)
    with talk.working(f"de-identifying {len(source.faces)} faces"):
        release, linkage = deidentify(
            source.faces,
            chosen,
            seed=options.seed,
            reference=reference,
            after=after,
            provenance=replace(source.provenance, names="merge" if options.same_person else "refuse"),
            remember=not options.dry_run,
            progress=talk.progress,
        )
    if options.dry_run:
        return Result(output, release, linkage, source.unreadable, written=False)
    secrets: list[Path] = []
    try:
        if options.link_table is not None:
            linkage.write(options.link_table)
            secrets.append(options.link_table)
        if options.vault is not None and recipients is not None:
            root = seal_table(options.vault, linkage, release.certificate.files, recipients)
            secrets.append(options.vault)
            told = release.certificate.model_copy(update={"vault": VaultRecord(root=root)})
            release = replace(release, certificate=told)
        with talk.working("writing"):
            write_release(release, output, force=options.force, key=key)
    except BaseException:
        _remove(secrets)
        raise
    if options.link_table is not None:
        talk.warn_of_secret(
            f"{options.link_table} tells who became whom. Keep it apart from the release, or delete it."
        )
    audited = None if options.audit is None else _audited(options, output, options.audit, source.faces, linkage)
    return Result(output, release, linkage, source.unreadable, audited)


def _remove(secrets: Sequence[Path | None]) -> None:
    """Remove what would undo a release that was not written."""
    for path in secrets:
        if path is not None:
            path.unlink(missing_ok=True)


def read_after(path: Path, identity: Path | None) -> Linkage:
    """Read a link table, in a vault where a key to it is given; that is logged as an opening."""
    if identity is None:
        return Linkage.read(path)
    data, _ = open_table(Vault.read(path), load_identity(identity), "for a release that continues this one")
    return read_document(Linkage, data, Linkage.expected)


def _audited(options: ReleaseCommand, folder: Path, report: Path, faces: FaceSet, linkage: Linkage) -> AuditResult:
    """Attack the files just written, with the faces they were made from."""
    from ksame.audit import AuditConfig, Pairing, audit

    config = AuditConfig(view="faces", scheduler=options.scheduler, workers=options.workers)
    try:
        result = audit(faces, folder, config, pairing=Pairing(linkage=linkage), progress=talk.progress)
    except KsameError as error:
        raise type(error)(f"The release was written to {folder}, but could not be audited. {error}") from error
    finish(result, report)
    return result


def build_recipe(options: ReleaseCommand) -> Recipe:
    """Return the recipe the options describe; ``--level`` means whatever parameter the mask has."""
    level = METHODS[options.method].at(options.level)
    if options.portrait and options.coding not in (None, "portrait"):
        raise UsageError(f"--portrait has a coding of its own. Leave --coding {options.coding} out.")
    return recipe(
        options.method,
        coding="portrait" if options.portrait else options.coding,
        components=_whole(options.components),
        distance=options.distance,
        select=options.select,
        small_classes=options.small_classes,
        **{**options.params, **level},
    )


def _whole(components: float | None) -> int | float | None:
    """Return a number of components as an integer, a share of variance as it is."""
    whole = components is not None and components >= 1 and components % 1 == 0
    return int(components) if whole and components is not None else components
