"""Every experiment at the smallest size: it runs, it can be drawn, judged and written."""

import json

import numpy as np
import pytest

from ksame.papers.claims import Verdict, judge
from ksame.papers.data import SyntheticData
from ksame.papers.experiment import FAST, FULL, TINY, Rows
from ksame.papers.figures import Sheet, draw
from ksame.papers.report import write_reproduction
from ksame.papers.run import PAPERS, load_paper

ALL = [(paper, experiment.name) for paper in PAPERS for experiment in load_paper(paper).experiments]


@pytest.mark.parametrize(("paper", "name"), ALL)
def test_it_runs_and_is_drawn(performed, paper, name):
    outcome = performed(paper, name)
    assert not outcome.missing
    assert outcome.findings.rows
    json.dumps(outcome.findings.rows, allow_nan=False)
    shares = [row[c] for row in outcome.findings.rows for c in ("rank1", "accuracy", "within") if c in row]
    assert all(0 <= value <= 1 for value in shares)
    experiment = next(e for e in load_paper(paper).experiments if e.name == name)
    assert experiment.drawings
    for drawing in experiment.drawings:
        files = draw(drawing, outcome.findings)
        assert files["png"].startswith(b"\x89PNG")
        assert b"<svg" in files["svg"]
        assert draw(drawing, outcome.findings) == files, "the same bytes every time"
        assert not isinstance(drawing, Sheet) or outcome.findings.pictures is not None


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_is_judged(performed, paper):
    read = load_paper(paper)
    outcomes = {e.name: performed(paper, e.name) for e in read.experiments}
    judged = judge(paper, read.claims, outcomes)
    assert len(judged) == len(read.claims)
    assert len({c.name for c in read.claims}) == len(read.claims)
    for claim in judged:
        assert claim.verdict in {v.value for v in Verdict}
        assert claim.reason or claim.verdict == "agree", claim.name


@pytest.mark.parametrize(
    ("paper", "name", "wanted"),
    [
        ("newton2005", "fig7b", {}),
        ("gross2005", "fig6", {"method": "k-Same"}),
        ("gross2006", "fig5", {"attack": "naive"}),
        ("gross2007", "fig5a", {"method": "k-Same on subjects (ours)"}),
        ("sun2015", "fig6", {"method": "k-Same-M"}),
    ],
)
def test_k_same_is_never_above_one_in_k(performed, paper, name, wanted):
    rows = Rows(performed(paper, name).findings.rows).where(**wanted)
    for row in rows.rows:
        k = row.get("k", row.get("level"))
        if k > 1:
            assert row.get("most", row["rank1"]) <= 1 / k + 1e-9


def test_k_diff_is_never_named_in_its_own_distance(performed):
    rows = Rows(performed("sun2015", "fig6").findings.rows)
    for method in ("k-Diff, paper condition, one-member clusters", "k-Diff, exact condition and repair (ours)"):
        assert rows.where(method=method).column("most").max() == 0


def test_scales():
    assert FULL.people(805) == 805
    assert FAST.people(805) == 250
    assert (FULL.runs(20), FAST.runs(20), TINY.runs(1000)) == (20, 2, 2)
    assert FULL.levels([1, 2, 3]) == [1, 2, 3]
    assert TINY.levels(list(range(10)), keep=(4,)) == [0, 4, 9]


def test_what_is_written(performed, few, tmp_path):
    paper = few("newton2005", "fig2", "loss")
    outcomes = {"newton2005": {name: performed("newton2005", name) for name in ("fig2", "loss")}}
    judged = write_reproduction([paper], outcomes, tmp_path, data=SyntheticData(), scale=TINY, seed=0)
    assert [claim.name for claim in judged] == ["fig2", "loss-order"]
    for name in ("index.html", "claims.csv", "claims.json", "reproduction.json"):
        assert (tmp_path / name).stat().st_size > 0
    for name in ("fig2.csv", "fig2.png", "fig2.svg", "loss.csv", "loss.png", "loss.svg"):
        assert (tmp_path / "newton2005" / name).stat().st_size > 0
    record = json.loads((tmp_path / "reproduction.json").read_bytes())
    assert (record["run"]["seed"], record["run"]["scale"], record["run"]["data"]) == (0, "tiny", "synthetic people")
    assert {"ksame", "numpy", "python"} <= set(record["run"]["versions"])
    page = (tmp_path / "index.html").read_text()
    assert "http" not in page.replace("http-equiv", "")
    assert all(claim.seen in page for claim in judged)
    lines = (tmp_path / "newton2005" / "loss.csv").read_text().splitlines()
    assert len(lines) == 1 + len(outcomes["newton2005"]["loss"].findings.rows)


def test_pictures_come_back_as_they_were(performed):
    first, again = (performed("newton2005", "fig2") for _ in range(2))
    assert again.reused
    assert first.findings.pictures is not None
    assert np.array_equal(first.findings.pictures.images, again.findings.pictures.images)
