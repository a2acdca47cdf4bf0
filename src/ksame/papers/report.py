"""What a reproduction leaves behind: one page that needs nothing else, figures, and every number as CSV and JSON."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ksame.errors import InputError, UsageError
from ksame.papers.claims import Judged, Verdict, judge
from ksame.papers.data import Data, FolderData
from ksame.papers.experiment import Experiment, Outcome, Row, Scale, versions, write_whole
from ksame.papers.figures import draw
from ksame.papers.paper import Paper
from ksame.papers.run import PAPERS
from ksame.progress import Track, silent

PAGE = "index.html"
CLAIMS = "claims"
RECORD = "reproduction.json"
SCHEMA = "ksame/reproduction"

_SHOWN = 40  # rows of an experiment on the page; all are in its CSV file


@dataclass(frozen=True)
class _Figure:
    caption: str
    source: str


@dataclass(frozen=True)
class _Shown:
    """What the page shows of one experiment."""

    experiment: Experiment
    outcome: Outcome
    figures: tuple[_Figure, ...]
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
    track: Track = silent,
) -> list[Judged]:
    """Draw the figures, judge the claims, and write page, CSV and JSON; return the judged claims."""
    judged = [found for paper in papers for found in judge(paper.name, paper.claims, outcomes[paper.name])]
    shown: dict[str, list[_Shown]] = {paper.name: [] for paper in papers}
    pairs = [(paper, experiment) for paper in papers for experiment in paper.experiments]
    for paper, experiment in track(pairs, "drawing"):
        outcome = outcomes[paper.name][experiment.name]
        place = folder / paper.name
        write_whole(place / f"{experiment.name}.csv", as_csv(outcome.findings.rows))
        shown[paper.name].append(_shown(experiment, outcome, place))
    write_whole(folder / f"{CLAIMS}.csv", as_csv([found.as_dict() for found in judged]))
    record = _record(papers, outcomes, data, scale, seed)
    claims = {"schema": "ksame/claims", "version": 1, **record["run"], "claims": [c.as_dict() for c in judged]}
    write_whole(folder / f"{CLAIMS}.json", _json(claims))
    write_whole(folder / RECORD, _json({"schema": SCHEMA, "version": 1, **record}))
    write_whole(folder / PAGE, _page(papers, shown, judged, record, data).encode())
    return judged


def as_csv(rows: Sequence[Row]) -> bytes:
    """Return rows as a CSV file; its columns are all that any row has, in the order of their first appearance."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue().encode()


def read_claims(file: Path) -> dict[str, Any]:
    """Read the judged claims of a reproduction."""
    try:
        record: dict[str, Any] = json.loads(file.read_bytes())
        if record["schema"] != "ksame/claims":
            raise KeyError("schema")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file}: expected the claims.json of a reproduction ({error}).") from error
    return record


def claims_table(synthetic: Mapping[str, Any], real: Mapping[str, Any] | None = None) -> str:
    """Return the claims of one reproduction, or of two beside each other, as tables in Markdown, one a paper."""
    other = {(c["paper"], c["name"]): c for c in (real or {"claims": []})["claims"]}
    lines: list[str] = []
    for paper in dict.fromkeys(claim["paper"] for claim in synthetic["claims"]):
        lines += [f"### {paper}", ""]
        heads = ["claim", "paper's figure", "ours, synthetic people", *(["ours, portraits"] if real else []), "verdict"]
        lines += [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
        for claim in synthetic["claims"]:
            if claim["paper"] != paper:
                continue
            second = other.get((paper, claim["name"]))
            cells = [f"{claim['statement']} ({claim['where']})", claim["reported"], claim["seen"]]
            if real:
                cells.append("–" if second is None else second["seen"])
            cells.append(_verdicts(claim, second))
            lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
        lines.append("")
    return "\n".join(lines)


def _verdicts(claim: Mapping[str, str], second: Mapping[str, str] | None) -> str:
    """Return both verdicts with their reasons; what holds for both is said once."""
    own = _clauses(claim)
    if second is None:
        return _said(claim["verdict"], own)
    other = _clauses(second)
    if second["verdict"] == claim["verdict"]:
        return _said(claim["verdict"], list(dict.fromkeys(own + other)))
    both = [clause for clause in own if clause in other]
    if both and both == own == other:
        return f"synthetic **{claim['verdict']}**, portraits {_said(second['verdict'], both)}"
    said = [
        f"synthetic {_said(claim['verdict'], [c for c in own if c not in both])}",
        f"portraits {_said(second['verdict'], [c for c in other if c not in both])}",
    ]
    return "; ".join([*said, *([f"both: {'; '.join(both)}"] if both else [])])


def _clauses(claim: Mapping[str, str]) -> list[str]:
    return [clause for clause in claim["reason"].split("; ") if clause]


def _said(verdict: str, clauses: Sequence[str]) -> str:
    return f"**{verdict}**" + (f": {'; '.join(clauses)}" if clauses else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _shown(experiment: Experiment, outcome: Outcome, place: Path) -> _Shown:
    figures = []
    for drawing in experiment.drawings:
        made = {} if outcome.missing else draw(drawing, outcome.findings)
        for ending, content in made.items():
            write_whole(place / f"{drawing.name}.{ending}", content)
        if made:
            kind, content = ("png", made["png"]) if len(made["svg"]) > 300_000 else ("svg+xml", made["svg"])
            figures.append(_Figure(drawing.caption, f"data:image/{kind};base64,{base64.b64encode(content).decode()}"))
    rows = outcome.findings.rows
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    cells = tuple(tuple(_short(row.get(name)) for name in columns) for row in rows[:_SHOWN])
    return _Shown(experiment, outcome, tuple(figures), columns, cells)


def _short(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _record(
    papers: Sequence[Paper],
    outcomes: Mapping[str, Mapping[str, Outcome]],
    data: Data,
    scale: Scale,
    seed: int,
) -> dict[str, Any]:
    """Return what was run, on what, and how long it took; the rows stand in each experiment's own file."""
    withheld = list(data.withheld) if isinstance(data, FolderData) else []
    notes = list(data.notes) if isinstance(data, FolderData) else []
    experiments = [
        {
            "paper": paper.name,
            "experiment": experiment.name,
            "where": experiment.where,
            "title": experiment.title,
            "missing": outcomes[paper.name][experiment.name].missing,
            "seconds": outcomes[paper.name][experiment.name].seconds,
            "cpu_seconds": outcomes[paper.name][experiment.name].cpu_seconds,
            "numbers": f"{paper.name}/{experiment.name}.json",
        }
        for paper in papers
        for experiment in paper.experiments
    ]
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
        judged={paper.name: [found for found in judged if found.paper == paper.name] for paper in papers},
        counts=Counter(found.verdict for found in judged),
        verdicts=tuple(verdict.value for verdict in Verdict),
        record=record,
        real=data.real,
        most=_SHOWN,
    )


def _json(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, indent=1) + "\n").encode()


def _file(name: str) -> str:
    return files("ksame.papers").joinpath(name).read_text(encoding="utf-8")
