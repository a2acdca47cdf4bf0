"""The table of claims in docs/papers.md, made from two reproductions so that no figure is typed by hand.

ksame reproduce all -o SYNTHETIC
ksame reproduce all --faces PORTRAITS -o REAL
python -m benchmarks.papers_table SYNTHETIC/claims.json REAL/claims.json
"""

import argparse
from pathlib import Path

from ksame.papers.report import claims_table, read_claims

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


if __name__ == "__main__":
    main()
