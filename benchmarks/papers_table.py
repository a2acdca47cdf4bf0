"""The table of claims in docs/papers.md, made from two reproductions so that no figure is typed by hand.

ksame reproduce all -o SYNTHETIC
ksame reproduce all --faces PORTRAITS -o REAL
python -m benchmarks.papers_table SYNTHETIC/claims.json REAL/claims.json
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ksame.errors import InputError

PAGE = Path(__file__).resolve().parents[1] / "docs" / "papers.md"
BEGIN, END = "<!-- claims: begin -->", "<!-- claims: end -->"


def main(arguments: list[str] | None = None) -> None:
    """Write the table between its two marks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("synthetic", type=Path)
    parser.add_argument("real", type=Path, nargs="?")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(arguments)
    synthetic = read_claims(options.synthetic)
    real = None if options.real is None else read_claims(options.real)
    before, _, rest = options.page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    made = [_run("Synthetic people", synthetic), *([] if real is None else [_run("Portraits", real)])]
    if "fast" in {record["scale"] for record in (synthetic, real or synthetic)}:
        made.append("At the fast size at most 250 people and a twentieth of the repetitions are taken.")
    text = f"{before}{BEGIN}\n{' '.join(made)}\n\n{claims_table(synthetic, real)}{END}{after}"
    options.page.write_text(text, encoding="utf-8")


def _run(what: str, record: dict) -> str:
    return f"{what}: {record['scale']} size, seed {record['seed']}, ksame {record['versions']['ksame']}."


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
    both = [clause for clause in own if clause in other]
    if second["verdict"] == claim["verdict"]:
        parts = {"synthetic: ": [c for c in own if c not in both], "portraits: ": [c for c in other if c not in both]}
        apart = [whose + "; ".join(clauses) for whose, clauses in parts.items() if clauses]
        shared = [("both: " if apart else "") + "; ".join(both)] if both else []
        return _said(claim["verdict"], [*apart, *shared])
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


if __name__ == "__main__":
    main()
