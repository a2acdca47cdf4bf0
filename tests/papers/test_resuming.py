"""Results are kept one by one, and used again only where everything is the same."""

import json

import pytest

from ksame.errors import UsageError
from ksame.papers.data import NotAvailableError, SyntheticData
from ksame.papers.experiment import FAST, TINY, Experiment, Findings, Task, perform
from ksame.papers.run import run_experiments

CALLS: list[int] = []


def counted(task: Task) -> Findings:
    CALLS.append(task.seed)
    return Findings([{"call": len(CALLS)}], ("counted",))


def unavailable(task: Task) -> Findings:
    raise NotAvailableError("needs two pictures of everybody")


COUNTED = Experiment("counted", "Fig. 0", "Counting", counted)


@pytest.fixture
def once(tmp_path):
    """Perform the counting experiment for seed 3; return its folder."""
    CALLS.clear()
    first = perform("paper", COUNTED, Task(SyntheticData(), TINY, 3), tmp_path)
    assert not first.reused
    return tmp_path


def again(folder, *, seed=3, scale=TINY, fresh=False):
    return perform("paper", COUNTED, Task(SyntheticData(), scale, seed), folder, fresh=fresh)


def test_the_same_key_is_not_computed_again(once):
    second = again(once)
    assert second.reused
    assert second.findings.rows == [{"call": 1}]
    assert second.findings.notes == ("counted",)
    assert CALLS == [3]


@pytest.mark.parametrize("other", [{"seed": 4}, {"scale": FAST}, {"fresh": True}])
def test_another_key_is(once, other):
    assert not again(once, **other).reused
    assert len(CALLS) == 2


@pytest.mark.parametrize("damage", ["", "{", '{"schema": "other"}', "null"])
def test_damaged_results_are_computed_again(once, damage):
    (once / "counted.json").write_text(damage)
    assert not again(once).reused


def test_another_version_or_code_is_computed_again(once):
    file = once / "counted.json"
    for name in ("ksame", "code", "data"):
        record = json.loads(file.read_bytes())
        record["key"][name] = "other"
        file.write_text(json.dumps(record))
        assert not again(once).reused


def test_nothing_half_written_stays(once, monkeypatch):
    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(Exception, match="cannot be written"):
        again(once, seed=9)
    monkeypatch.undo()
    assert sorted(path.name for path in once.iterdir()) == ["counted.json"]
    assert again(once).reused


def test_what_the_data_cannot_serve_is_named(tmp_path):
    experiment = Experiment("none", "Fig. 0", "Nothing", unavailable)
    outcome = perform("paper", experiment, Task(SyntheticData(), TINY, 0), tmp_path)
    assert (outcome.missing, outcome.findings.rows) == ("needs two pictures of everybody", [])


def test_several_processes_find_what_one_finds(few, tmp_path):
    paper = few("newton2005", "loss", "fig2")
    told = []
    one = run_experiments([paper], tmp_path / "one", task=Task(SyntheticData(), TINY, 0))
    two = run_experiments([paper], tmp_path / "two", task=Task(SyntheticData(), TINY, 0), jobs=2, tell=told.append)
    for name in ("loss", "fig2"):
        assert one["newton2005"][name].findings.rows == two["newton2005"][name].findings.rows
    assert {outcome.experiment for outcome in told} == {"loss", "fig2"}
    third = run_experiments([paper], tmp_path / "two", task=Task(SyntheticData(), TINY, 0), jobs=2)
    assert all(outcome.reused for outcome in third["newton2005"].values())


@pytest.mark.parametrize(
    ("name", "wrong"), [("jobs", {"jobs": 0}), ("seed", {"task": Task(SyntheticData(), TINY, -1)})]
)
def test_bad_parameters(tmp_path, name, wrong):
    with pytest.raises(UsageError, match=f"'{name}' parameter"):
        run_experiments([], tmp_path, **wrong)
