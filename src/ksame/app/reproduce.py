"""``ksame reproduce``: the papers' experiments, figures and claims."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ksame.app import talk
from ksame.app.options import option, with_options
from ksame.errors import ExitCode, UsageError, seed_number, whole_number

if TYPE_CHECKING:
    from ksame.papers.claims import Judged
    from ksame.papers.experiment import Outcome


@dataclass(frozen=True)
class ReproduceCommand:
    """What ``ksame reproduce`` is told."""

    paper: Annotated[
        str, typer.Argument(metavar="PAPER", help="newton2005, gross2005, gross2006, gross2007, sun2015 or all.")
    ]
    output: Path = option(..., "Folder to write; index.html is the report.", "--output", "-o")
    fast: bool = option(False, "At most 250 people, few repetitions: minutes.")
    faces: Path | None = option(None, "Folder of a real data set instead of people who do not exist.")
    layout: str = option("auto", "How that folder is laid out: feret, multipie, imm, orl, lfw, folder, or auto.")
    seed: int = option(0, "Draws people, splits and repetitions.")
    jobs: int = option(0, "Processes at a time; 0: one for each core.", "--jobs", "-j")
    fresh: bool = option(False, "Compute again what an earlier call left in the output folder.")
    as_json: bool = option(False, "Print the judged claims as JSON.", "--json")


@talk.guarded
@with_options
def reproduce_command(options: ReproduceCommand) -> None:
    """Rerun a paper's experiments and draw its figures beside what the paper reported.

    Every experiment is kept as soon as it is done: call again to go on after an interruption. Exit code 3: some
    experiments could not be run on the data, or some pictures could not be used (named).
    """
    from ksame.papers.data import FolderData, SyntheticData
    from ksame.papers.experiment import FAST, FULL, Task
    from ksame.papers.figures import require_matplotlib
    from ksame.papers.report import PAGE, require_own, write_reproduction
    from ksame.papers.run import MAX_JOBS, PAPERS, load_paper, run_experiments
    from ksame.utility import require_classifiers

    if options.faces is None and options.layout != "auto":
        raise UsageError("--layout says how --faces is laid out; add --faces.")
    seed_number("reproduce", options.seed)
    whole_number("jobs", "reproduce", options.jobs, 0, MAX_JOBS)
    chosen = [load_paper(name) for name in (PAPERS if options.paper == "all" else (options.paper,))]
    require_own(options.output)
    require_matplotlib()
    require_classifiers()
    data = SyntheticData() if options.faces is None else FolderData.load(options.faces, options.layout, talk.progress)
    scale = FAST if options.fast else FULL
    try:
        outcomes = run_experiments(
            chosen,
            options.output,
            task=Task(data, scale, options.seed),
            jobs=options.jobs or os.cpu_count() or 1,
            fresh=options.fresh,
            progress=talk.progress,
            tell=_tell,
        )
    except KeyboardInterrupt:
        talk.console.print("[bold red]interrupted[/]; experiments that were done are kept. Call again to go on.")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    judged = write_reproduction(
        chosen, outcomes, options.output, data=data, scale=scale, seed=options.seed, progress=talk.progress
    )
    if data.real:
        talk.warn_of_secret(f"{options.output} shows people who exist. Publish its numbers, not its pictures.")
    if options.as_json:
        talk.emit([asdict(claim) for claim in judged])
    else:
        _describe(judged)
    talk.say(f"report   {escape(str(options.output / PAGE))}")
    withheld = data.withheld if isinstance(data, FolderData) else ()
    for reason in withheld:
        talk.say(f"[yellow]not used[/] {escape(reason)}")
    missing = [o for of in outcomes.values() for o in of.values() if o.missing]
    for outcome in missing:
        talk.say(f"[yellow]not run[/] {outcome.paper} {outcome.experiment}: {escape(outcome.missing)}")
    if missing or withheld:
        raise typer.Exit(ExitCode.WITHHELD)


def _tell(outcome: Outcome) -> None:
    how = "kept from before" if outcome.reused else f"{outcome.seconds:.1f} s"
    talk.say(f"[dim]{outcome.paper} {outcome.experiment}: {how}[/]")


def _describe(judged: Sequence[Judged]) -> None:
    colours = {"agree": "green", "partly": "yellow", "differs": "red"}
    table = Table("paper", "claim", "paper says", "we see", "agree?")
    for claim in judged:
        words = (escape(text) for text in (claim.statement, claim.reported, claim.seen))
        table.add_row(claim.paper, *words, f"[{colours.get(claim.verdict, 'dim')}]{claim.verdict}[/]")
    talk.show(table)
    counts = Counter(claim.verdict for claim in judged)
    talk.say(", ".join(f"{number} {verdict}" for verdict, number in counts.items()))
