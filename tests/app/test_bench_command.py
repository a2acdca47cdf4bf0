"""``ksame bench``: what is printed, what is written, and what is skipped."""

import json
import sys
from pathlib import Path

import pytest

from ksame.bench import BENCHMARKS, Benchmark, Comparison, page
from ksame.bench.base import MissingYardstickError, compare, timed
from ksame.bench.report import cells

DOCS = Path(__file__).parents[2] / "docs"
QUICK = ("start", "k-same", "grouping", "eigenfaces", "audit")


@pytest.fixture(autouse=True)
def _nothing_installed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def comparisons(content):
    """Return the rows of a file, as they were measured."""
    derived = ("benchmark", "ratio", "cpu_ratio")
    return [
        (row["benchmark"], Comparison(**{name: value for name, value in row.items() if name not in derived}))
        for row in content["comparisons"]
    ]


@pytest.fixture(scope="module")
def measured(run, tmp_path_factory):
    """What was printed, the page and the numbers of one run."""
    folder = tmp_path_factory.mktemp("bench")
    env = {"COLUMNS": "250", "XDG_CACHE_HOME": str(folder / "cache")}
    printed = run("bench", *QUICK, "--tiny", "-o", folder / "out", code=0, env=env).stdout
    page, numbers = (folder / "out" / f"benchmarks.{suffix}" for suffix in ("md", "json"))
    return printed, page.read_text(), json.loads(numbers.read_text())


def test_the_table_the_page_and_the_numbers_say_the_same(measured):
    printed, told, content = measured
    assert (content["schema"], content["version"]) == ("ksame/bench", 1)
    assert list(dict.fromkeys(row["benchmark"] for row in content["comparisons"])) == list(QUICK)
    shown = [[cell.strip() for cell in line.split("│")[1:-1]] for line in printed.splitlines() if "│" in line]
    rows = comparisons(content)
    assert shown == [list(cells(*row)[1:-1]) for row in rows]
    assert told == page(rows, content["machine"], f"ksame bench {' '.join(QUICK)} --tiny")
    for row, (_, comparison) in zip(content["comparisons"], rows, strict=True):
        assert (row["ratio"] is None) == bool(row["skipped"])
        assert row["ratio"] == comparison.ratio
        if row["ratio"] is not None:
            assert row["ratio"] * row["seconds"] == pytest.approx(row["yardstick_seconds"])


def test_both_sides_did_the_same(measured):
    seen = {(row["benchmark"], row["yardstick"]): row["figures"] for row in measured[2]["comparisons"]}
    assert seen["k-same", "the paper's loop"] == {"same groups": 1.0}
    agreed = seen["eigenfaces", "scikit-learn"]
    assert agreed["same neighbour"] == 1.0
    assert agreed["largest difference"] < 1e-5
    audited = seen["audit", "script, scikit-learn"]
    assert audited["recognised"] == pytest.approx(audited["by the script"])


def test_a_missing_yardstick_is_skipped_and_said(run):
    result = run("bench", "k-same", "--tiny", "--json", code=0)
    _, missing = json.loads(result.stdout)["comparisons"]
    assert missing["skipped"] == "anonypyx==0.2.11 (MIT) is not installed; add --install"
    assert missing["seconds"] is missing["ratio"] is None
    assert missing["skipped"] in result.stderr.replace("\n", " ")


def test_scikit_learn_is_a_yardstick_that_may_be_missing(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    told = json.loads(run("bench", "eigenfaces", "audit", "--tiny", "--json", code=0).stdout)["comparisons"]
    reasons = [row["skipped"] for row in told if "scikit-learn" in row["yardstick"]]
    assert reasons == ["scikit-learn is not installed: pip install 'ksame[labels]'"] * 2


def test_nothing_is_installed_where_downloads_are_forbidden(run, tmp_path):
    found = run("bench", "k-same", "--tiny", "--install", "--json", code=0, env={"KSAME_OFFLINE": "1"})
    assert "KSAME_OFFLINE" in json.loads(found.stdout)["comparisons"][1]["skipped"]
    assert not (tmp_path / "cache").exists()


def test_nothing_of_ours_is_run_where_the_yardstick_is_missing():
    def absent():
        raise MissingYardstickError("not there")

    assert compare("x", "y", timed(lambda: pytest.fail("was run")), absent, rounds=1).skipped == "not there"


def test_one_line_adds_a_benchmark(run):
    def measure(settings):
        yield Comparison(f"counting to {settings.faces}", "fingers", 2.0, 1.0, 4.0, 1.0)

    BENCHMARKS.add(Benchmark("fingers", "counting", measure))
    try:
        (row,) = json.loads(run("bench", "fingers", "--tiny", "--json", code=0).stdout)["comparisons"]
    finally:
        BENCHMARKS.remove("fingers")
    assert (row["what"], row["ratio"], row["cpu_ratio"]) == ("counting to 16", 0.5, 0.25)


def test_what_cannot_be_is_refused_before_anything_is_measured(run, tmp_path):
    assert "Did you mean 'video'?" in run("bench", "vidoe", code=2).stderr
    assert "contradict" in run("bench", "start", "--full", "--tiny", code=2).stderr
    run("bench", "start", "--clip", tmp_path / "none.mp4", code=5)
    (tmp_path / "benchmarks.json").write_text("mine")
    assert "--force" in run("bench", "start", "-o", tmp_path, code=2).stderr
    assert [file.name for file in tmp_path.glob("benchmarks*")] == ["benchmarks.json"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["aam", "photographs", "video"])
def test_the_slow_ones_run(name, run):
    rows = json.loads(run("bench", name, "--tiny", "--json", code=0).stdout)["comparisons"]
    assert all(row["ratio"] or row["skipped"] for row in rows)
    if name == "aam":
        assert rows[0]["figures"]["error"] < 0.02  # of the face's width; the start is at 0.04


def test_the_page_in_the_docs_is_what_was_measured():
    content = json.loads((DOCS / "benchmarks.json").read_text())
    told = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    command = told.split("`")[1]
    assert told == page(comparisons(content), content["machine"], command)
    assert {row["benchmark"] for row in content["comparisons"]} == set(BENCHMARKS)
