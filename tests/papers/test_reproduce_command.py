"""``ksame reproduce`` as people call it."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from ksame.app.cli import app
from ksame.papers import run as running
from ksame.papers.experiment import TINY


@pytest.fixture
def small(monkeypatch, few):
    """Make --fast tiny, and Newton et al. two experiments long."""
    monkeypatch.setattr("ksame.papers.experiment.FAST", replace(TINY, name="fast"))
    short = few("newton2005", "fig2", "time")
    monkeypatch.setattr(running, "load_paper", lambda name: short)


def files_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def call(*words):
    return CliRunner().invoke(app, ["reproduce", *(str(word) for word in words)])


@pytest.mark.usefixtures("small")
def test_it_writes_a_report_and_goes_on_where_it_was(tmp_path):
    first = call("newton2005", "-o", tmp_path / "out", "--fast", "-j", 1)
    assert first.exit_code == 0, first.output
    written = files_below(tmp_path / "out")
    assert {"index.html", "claims.csv", "claims.json", "reproduction.json", "newton2005/fig2.png"} <= written
    assert not [name for name in written if name.endswith(".part")]
    numbers = (tmp_path / "out" / "newton2005" / "time.json").read_bytes()
    second = call("newton2005", "-o", tmp_path / "out", "--fast", "-j", 1)
    assert second.exit_code == 0
    assert second.output.count("kept from before") == 2
    assert (tmp_path / "out" / "newton2005" / "time.json").read_bytes() == numbers
    third = call("newton2005", "-o", tmp_path / "out", "--fast", "-j", 1, "--fresh")
    assert "kept from before" not in third.output


@pytest.mark.usefixtures("small")
def test_claims_as_json(tmp_path):
    done = CliRunner().invoke(app, ["reproduce", "newton2005", "-o", str(tmp_path / "out"), "--fast", "-j1", "--json"])
    assert done.exit_code == 0
    assert {claim["name"] for claim in json.loads(done.stdout)} == {"fig2", "linear-time"}


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["nobody2020"], 2, "no paper 'nobody2020'"),
        (["newton2005", "--layout", "orl"], 2, "add --faces"),
        (["newton2005", "--faces", "nowhere"], 5, "no such folder"),
        (["newton2005", "--seed", "-1"], 2, "'seed' parameter"),
        (["newton2005", "--jobs", "-1"], 2, "'jobs' parameter"),
    ],
)
def test_exit_codes(tmp_path, words, code, says):
    done = call(*words, "-o", tmp_path / "out")
    assert done.exit_code == code
    assert says in " ".join(done.output.split())
    assert not (tmp_path / "out").exists()


def test_a_folder_of_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    done = call("newton2005", "-o", tmp_path)
    assert done.exit_code == 2
    assert "thesis.tex" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.usefixtures("small")
def test_interrupted_it_keeps_what_is_done(tmp_path, monkeypatch):
    whole = running.perform

    def stop(paper, experiment, *rest, **options):
        if experiment.name == "time":
            raise KeyboardInterrupt
        return whole(paper, experiment, *rest, **options)

    monkeypatch.setattr(running, "perform", stop)
    done = call("newton2005", "-o", tmp_path / "out", "--fast", "-j", 1)
    assert done.exit_code == 130
    assert "Call again to go on" in done.output
    assert files_below(tmp_path / "out") == {"newton2005/fig2.json", "newton2005/fig2.npz"}
