"""What a reproduction leaves behind: one page that needs nothing else, figures, and every number as CSV and JSON."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ksame.errors import UsageError
from ksame.files import make_folder, write_atomic
from ksame.papers.claims import Judged, Verdict, judge
from ksame.papers.data import Data, FolderData
from ksame.papers.experiment import Experiment, Outcome, Row, Scale, versions
from ksame.papers.figures import draw
from ksame.papers.paper import Paper
from ksame.papers.run import PAPERS
from ksame.progress import Progress, silent

PAGE = "index.html"
CLAIMS = "claims"
RECORD = "reproduction.json"
SCHEMA = "ksame/reproduction"

_SHOWN = 40  # rows of an experiment on the page; all are in its CSV file


@dataclass(frozen=True)
class _Shown:
    """What the page shows of one experiment."""

    experiment: Experiment
    outcome: Outcome
    figures: list[dict[str, str]]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def require_own(folder: Path) -> None:
    """Raise where a folder holds anything but an earlier reproduction."""
    ours = {PAGE, RECORD, f"{CLAIMS}.csv", f"{CLAIMS}.json", *PAPERS}
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file. Choose a folder.")
    others = sorted(path.name for path in folder.iterdir() if path.name not in ours) if folder.is_dir() else []
    if others:
        raise UsageError(f"{folder} holds other files, for instance {others[0]}. Choose an empty or a new folder.")


def write_reproduction(
    papers: Sequence[Paper],
    outcomes: Mapping[str, Mapping[str, Outcome]],
    folder: Path,
    *,
    data: Data,
    scale: Scale,
    seed: int,
    progress: Progress = silent,
) -> list[Judged]:
    """Draw the figures, judge the claims, and write page, CSV and JSON; return the judged claims."""
    judged = [claim for paper in papers for claim in judge(paper.name, paper.claims, outcomes[paper.name])]
    shown: dict[str, list[_Shown]] = {paper.name: [] for paper in papers}
    pairs = [(paper, experiment) for paper in papers for experiment in paper.experiments]
    for paper, experiment in progress(pairs, "drawing"):
        outcome = outcomes[paper.name][experiment.name]
        place = folder / paper.name
        make_folder(place)
        write_atomic(place / f"{experiment.name}.csv", as_csv(outcome.findings.rows))
        shown[paper.name].append(_shown(experiment, outcome, place))
    rows = [asdict(claim) for claim in judged]
    write_atomic(folder / f"{CLAIMS}.csv", as_csv(rows))
    record = _record(papers, outcomes, data, scale, seed)
    claims = {"schema": "ksame/claims", "version": 1, **record["run"], "claims": rows}
    write_atomic(folder / f"{CLAIMS}.json", _json(claims))
    write_atomic(folder / RECORD, _json({"schema": SCHEMA, "version": 1, **record}))
    write_atomic(folder / PAGE, _page(papers, shown, judged, record, data).encode())
    return judged


def as_csv(rows: Sequence[Row]) -> bytes:
    """Return rows as a CSV file; its columns are all that any row has, in the order of their first appearance."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue().encode()


def _shown(experiment: Experiment, outcome: Outcome, place: Path) -> _Shown:
    figures = []
    for drawing in experiment.drawings:
        made = {} if outcome.missing else draw(drawing, outcome.findings)
        for ending, content in made.items():
            write_atomic(place / f"{drawing.name}.{ending}", content)
        if made:
            kind, content = ("png", made["png"]) if len(made["svg"]) > 300_000 else ("svg+xml", made["svg"])
            source = f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
            figures.append({"caption": drawing.caption, "source": source})
    rows = outcome.findings.rows
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    cells = tuple(tuple(_short(row.get(name)) for name in columns) for row in rows[:_SHOWN])
    return _Shown(experiment, outcome, figures, columns, cells)


def _short(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _record(
    papers: Sequence[Paper], outcomes: Mapping[str, Mapping[str, Outcome]], data: Data, scale: Scale, seed: int
) -> dict[str, Any]:
    """Return what was run, on what, and how long it took; the rows stand in each experiment's own file."""
    withheld = list(data.withheld) if isinstance(data, FolderData) else []
    notes = list(data.notes) if isinstance(data, FolderData) else []
    experiments = []
    for paper in papers:
        for experiment in paper.experiments:
            outcome = outcomes[paper.name][experiment.name]
            names = {"paper": paper.name, "experiment": experiment.name}
            said = {"where": experiment.where, "title": experiment.title, "missing": outcome.missing}
            spent = {"seconds": outcome.seconds, "cpu_seconds": outcome.cpu_seconds}
            experiments.append({**names, **said, **spent, "numbers": f"{paper.name}/{experiment.name}.json"})
    used = versions("matplotlib")
    return {
        "run": {"data": data.name, "digest": data.digest, "scale": scale.name, "seed": seed, "versions": used},
        "withheld": withheld,
        "data_notes": notes,
        "experiments": experiments,
    }


def _page(
    papers: Sequence[Paper],
    shown: Mapping[str, Sequence[_Shown]],
    judged: Sequence[Judged],
    record: Mapping[str, Any],
    data: Data,
) -> str:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(_file("report.html.jinja"))
    return page.render(
        css=Markup(_file("report.css")),  # noqa: S704 -- ours
        papers=papers,
        shown=shown,
        judged={paper.name: [claim for claim in judged if claim.paper == paper.name] for paper in papers},
        counts=Counter(claim.verdict for claim in judged),
        verdicts=tuple(verdict.value for verdict in Verdict),
        record=record,
        real=data.real,
        max_rows=_SHOWN,
    )


def _json(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, indent=1) + "\n").encode()


def _file(name: str) -> str:
    return files("ksame.papers").joinpath(name).read_text(encoding="utf-8")
