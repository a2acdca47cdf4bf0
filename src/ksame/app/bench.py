"""``ksame bench``: speed beside yardsticks."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ksame.app import talk
from ksame.app.options import AsJson
from ksame.errors import UsageError

PAGE, NUMBERS = "benchmarks.md", "benchmarks.json"


@talk.guarded
def bench_command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Benchmarks to run; all by default.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=f"Folder to write {PAGE} and {NUMBERS} to.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="805 faces, more rounds: takes much longer.")] = False,
    tiny: Annotated[bool, typer.Option("--tiny", help="16 small faces: only to see that everything runs.")] = False,
    clip: Annotated[Path | None, typer.Option(help="A recording instead of the sample, for video.")] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Install missing yardsticks, each into an environment of its own.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace earlier results.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure how fast ksame is, each time beside a yardstick in the same run.

    Needs no data. A yardstick that is not installed is skipped, and the table says so.
    """
    from ksame.bench import BENCHMARKS, FULL, QUICK, TINY, machine, page
    from ksame.bench.report import HEADINGS, cells
    from ksame.files import make_folder, write_atomic, write_json

    if full and tiny:
        raise UsageError("--full and --tiny contradict one another. Leave one out.")
    targets = [] if output is None else [output / PAGE, output / NUMBERS]
    for path in targets:
        if path.exists() and not force:
            raise UsageError(f"{path} exists. Add --force to replace it.")
    chosen = [BENCHMARKS[name] for name in names or BENCHMARKS]
    settings = replace(FULL if full else TINY if tiny else QUICK, install=install, clip=clip)
    where, rows = machine(), []
    for benchmark in talk.progress(chosen, "measuring"):
        for comparison in benchmark.run(settings):
            rows.append((benchmark.name, comparison))
            talk.say(f"[dim]{talk.plain(' · '.join(filter(None, cells(*rows[-1])[1:])))}[/]")
    content = {
        "schema": "ksame/bench",
        "version": 1,
        "machine": where,
        "settings": {**asdict(settings), "clip": None if clip is None else clip.name},
        "comparisons": [{"benchmark": name, **comparison.as_dict()} for name, comparison in rows],
    }
    if output is not None:
        make_folder(output)
        flags = {"--full": full, "--tiny": tiny, "--install": install}
        command = " ".join(["ksame bench", *(names or ()), *(flag for flag, given in flags.items() if given)])
        write_atomic(output / PAGE, page(rows, where, command).encode())
        write_json(output / NUMBERS, content)
    if as_json:
        talk.emit(content)
        return
    table = Table(*HEADINGS[1:-1])
    for row in rows:
        table.add_row(*(talk.plain(cell) for cell in cells(*row)[1:-1]))
    talk.show(table)
