"""docs/papers.md has a row for every claim, written by the tool."""

from pathlib import Path

import pytest
from benchmarks import papers_table
from benchmarks.papers_table import claims_table, read_claims

from ksame.errors import InputError
from ksame.papers.run import PAPERS, load_paper

PAGE = (Path(__file__).parents[2] / "docs" / "papers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAPERS)
def test_every_claim_has_a_row(name):
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    for claim in load_paper(name).claims:
        mine = [row for row in rows if row.startswith(f"| {claim.statement} ({claim.where}) |")]
        assert len(mine) == 1, claim.name
        assert mine[0].count(" | ") == 4
        assert "**" in mine[0]


def record(verdict, reason, seen="10 %"):
    claim = {"paper": "p", "name": "n", "where": "Fig. 1", "statement": "A|B", "reported": "9 %", "how": "h"}
    claims = [{**claim, "seen": seen, "verdict": verdict, "reason": reason}]
    return {"schema": "ksame/claims", "scale": "full", "seed": 0, "versions": {"ksame": "0"}, "claims": claims}


def test_two_reproductions_side_by_side():
    same = claims_table(record("agree", ""), record("agree", "", "11 %"))
    assert "| A\\|B (Fig. 1) | 9 % | 10 % | 11 % | **agree** |" in same
    other = claims_table(record("agree", ""), record("differs", "it rained"))
    assert "synthetic **agree**; portraits **differs**: it rained" in other


def test_the_table_is_written_between_its_marks(tmp_path):
    import json

    page = tmp_path / "page.md"
    page.write_text(f"before\n{papers_table.BEGIN}\nold\n{papers_table.END}\nafter\n")
    (tmp_path / "claims.json").write_text(json.dumps(record("agree", "")))
    papers_table.main([str(tmp_path / "claims.json"), "--page", str(page)])
    text = page.read_text()
    assert text.startswith("before")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "**agree**" in text


def test_no_claims(tmp_path):
    (tmp_path / "claims.json").write_text("{}")
    with pytest.raises(InputError, match="expected the claims.json of a reproduction"):
        read_claims(tmp_path / "claims.json")
