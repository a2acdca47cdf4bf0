"""``ksame audit``: how many people are still recognised, and how much use is left."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from ksame.app import talk
from ksame.app.options import SCHEDULER_HELP, AsJson, Workers, option, run_option, with_options
from ksame.errors import ExitCode, InputError, UsageError
from ksame.models import RECOGNISERS
from ksame.scheduling import LOCAL

if TYPE_CHECKING:
    from ksame.audit import AuditResult
    from ksame.audit.crops import View

PIXEL_ATTACKERS = ("eigenfaces", "mahalanobis")
DEFAULT = ("eigenfaces", "sface")
"""The attackers on pixels, and those asked by default, as in :mod:`ksame.audit.attackers`, which takes long to load."""
SCENARIOS = (
    *("naive", "reverse", "parrot", "pooled", "automatic-parrot"),
    *("enhancement", "learned-inverse", "difference", "differencing", "insider"),
)
"""The scenarios, as in :mod:`ksame.attacks`."""
_VIEWS: dict[str, View | None] = {"auto": None, "faces": "faces", "photographs": "photographs"}


@dataclass(frozen=True)
class AuditCommand:
    """What ``ksame audit`` is told."""

    originals: Annotated[Path, typer.Argument(metavar="ORIGINALS", help="Folder of the pictures before.")]
    released: Annotated[
        Path, typer.Argument(metavar="RELEASED", help="Folder of the pictures after, made by any tool.")
    ]
    output: Path = option(Path("report.html"), "Report to write; audit.json appears beside it.", "--output", "-o")
    attackers: str = option(
        ",".join(DEFAULT),
        f"Recognisers: {', '.join((*PIXEL_ATTACKERS, *RECOGNISERS))}, or paths of ONNX files. restored=FILE.onnx lets "
        "a network restore the released faces for sface; dlib+restored=FILE.onnx: for dlib.",
    )
    scenarios: str | None = option(None, f"Out of {', '.join(SCENARIOS)}; those that fit the pictures by default.")
    pairs: Path | None = option(None, "CSV with the columns original,released.")
    linkage: Path | None = option(None, "Link table of ksame release or ksame deidentify.")
    labels: Path | None = option(None, "CSV with the column file, and any of subject, gender, expression ...")
    earlier: Path | None = option(
        None, "Folder of an earlier release of the same people, which the attacker subtracts from this one."
    )
    earlier_linkage: Path | None = option(None, "Link table of the earlier release.")
    view: str = option(
        "auto", "faces: registered crops. photographs: a face is detected in each. auto: a sample decides."
    )
    by_hand: bool = option(False, "Where no face is found in a released picture, take its place in the original.")
    compare: list[Path] | None = option(None, "audit.json of another release of the same originals; may be repeated.")
    name: str | None = option(
        None, "What to call this release in comparisons: method, then strength, such as 'blur 8'."
    )
    seed: int = option(0, "For folds, and what attacks draw at random.")
    scheduler: str = run_option(LOCAL, SCHEDULER_HELP)
    workers: Workers = None
    force: bool = option(False, "Replace an earlier report.")
    as_json: AsJson = False


@talk.guarded
@with_options
def audit_command(options: AuditCommand) -> None:
    """Attack released pictures with real recognisers and write a report.

    Works on the output of any tool. Files are paired by name, by --pairs or by --linkage. The report shows originals:
    it stays with the publisher. Exit code 3: some pictures could not be judged (named); 4: a certificate's promise is
    broken.
    """
    from ksame.audit import AuditConfig, Pairing, audit, pair_images
    from ksame.audit.report import require_place
    from ksame.scene.linkage import read_linkage

    if options.view not in _VIEWS:
        raise UsageError(f"--view must be one of {', '.join(_VIEWS)}. Got {options.view!r}.")
    require_place(options.output, options.released, force=options.force)
    config = AuditConfig(
        attackers=_listed(options.attackers),
        scenarios=None if options.scenarios is None else _listed(options.scenarios),
        view=_VIEWS[options.view],
        by_hand=options.by_hand,
        name=options.name,
        seed=options.seed,
        scheduler=options.scheduler,
        workers=options.workers,
    )
    link, earlier_link = (
        None if table is None else read_linkage(table) for table in (options.linkage, options.earlier_linkage)
    )
    earlier = None
    if options.earlier is not None:
        pairing = Pairing(linkage=earlier_link, labels=options.labels)
        earlier = pair_images(options.originals, options.earlier, pairing)
    result = audit(
        options.originals,
        options.released,
        config,
        pairing=Pairing(options.pairs, link, options.labels),
        earlier=earlier,
        compare=[_audited(path) for path in options.compare or ()],
        progress=talk.progress,
    )
    finish(result, options.output)
    if options.as_json:
        talk.emit(for_machines(result))
    else:
        describe(result, options.output)
    raise typer.Exit(exit_code(result))


def finish(result: AuditResult, output: Path) -> None:
    """Write the report and warn of what it holds."""
    from ksame.audit import write_report

    write_report(result, output)
    talk.warn_of_secret(f"{output} shows originals and says who became whom. Keep it apart from the released pictures.")


def for_machines(result: AuditResult) -> dict[str, Any]:
    """Return the numbers as they stand in audit.json."""
    data: dict[str, Any] = json.loads(result.to_json())
    return data


def describe(result: AuditResult, output: Path) -> None:
    """Print verdict and attacks for people."""
    from ksame.audit.report import NUMBERS

    talk.say(f"[bold]{escape(result.verdict.line)}[/]\n{escape(result.verdict.explanation)}")
    table = Table("attack", "recogniser", "recognised", "95 % interval", "promise")
    for attack in result.attacks:
        low, high = attack.interval
        rates = (f"{attack.rank1:.1%}", f"{low:.1%} to {high:.1%}")
        table.add_row(attack.scenario, attack.recogniser, *rates, attack.verdict or "none")
    talk.show(table)
    if result.without_face:
        talk.say(
            f"{len(result.without_face)} released pictures show the attacker no face; they count as not recognised."
        )
    for missed in result.not_judged:
        talk.say(f"[yellow]not judged[/] {missed.side} {escape(missed.name)}: {escape(missed.reason)}")
    talk.say(f"report   {escape(str(output))}\nnumbers  {escape(str(output.with_name(NUMBERS)))}")


def exit_code(result: AuditResult) -> ExitCode:
    """Return the exit code."""
    if result.verdict.outcome == "broken":
        return ExitCode.NOT_MET
    return ExitCode.WITHHELD if result.incomplete else ExitCode.DONE


def _listed(words: str) -> Sequence[str]:
    return [word.strip() for word in words.split(",") if word.strip()]


def _audited(path: Path) -> AuditResult:
    from ksame.audit import AuditResult
    from ksame.privacy.documents import read_bytes

    data = read_bytes(path, "the audit")
    try:
        return AuditResult.from_json(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
