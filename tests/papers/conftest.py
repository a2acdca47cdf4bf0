from dataclasses import replace

import pytest

from ksame.papers.data import SyntheticData
from ksame.papers.experiment import TINY, Experiment, Outcome, Task, perform
from ksame.papers.paper import Paper
from ksame.papers.run import load_paper


@pytest.fixture(scope="session")
def performed(tmp_path_factory):
    """Experiments at the smallest size, each run once: call it with paper and experiment."""
    folder = tmp_path_factory.mktemp("papers")
    task = Task(SyntheticData(), TINY, 0)

    def run(paper: str, name: str) -> Outcome:
        return perform(paper, experiment_of(paper, name), task, folder / paper)

    return run


def experiment_of(paper: str, name: str) -> Experiment:
    return next(e for e in load_paper(paper).experiments if e.name == name)


@pytest.fixture(scope="session")
def few():
    """Papers with only some of their experiments: call it with a paper's name and theirs."""

    def read(paper: str, *names: str) -> Paper:
        whole = load_paper(paper)
        return replace(whole, experiments=tuple(e for e in whole.experiments if e.name in names))

    return read
