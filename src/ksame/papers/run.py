"""Running experiments: in several processes, each result kept as soon as it is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

from ksame.errors import UsageError, seed_number, whole_number
from ksame.papers.data import SyntheticData
from ksame.papers.experiment import FULL, Experiment, Outcome, Task, perform
from ksame.papers.paper import Paper
from ksame.progress import Progress, silent

PAPERS = ("newton2005", "gross2005", "gross2006", "gross2007", "sun2015")
"""What can be reproduced, oldest first."""

MAX_JOBS = 256
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

Tell = Callable[[Outcome], None]
"""Called with every experiment that is done."""


def load_paper(name: str) -> Paper:
    """Return a paper by its name."""
    if name not in PAPERS:
        raise UsageError(f"There is no paper {name!r} to reproduce. Choose all or one of: {', '.join(PAPERS)}.")
    paper: Paper = import_module(f"ksame.papers.{name}").PAPER
    return paper


def run_experiments(
    papers: Sequence[Paper],
    folder: Path,
    *,
    task: Task | None = None,
    jobs: int = 1,
    fresh: bool = False,
    progress: Progress = silent,
    tell: Tell = lambda outcome: None,
) -> dict[str, dict[str, Outcome]]:
    """Run the experiments of papers, or take what an earlier call left; return outcomes by paper and experiment.

    Every experiment's numbers appear in ``folder``, below its paper's name, as soon as it is done, and ``tell`` hears
    of it. The default ``task`` is people who do not exist, at full size. One of ``jobs`` runs in this process, more in
    others. ``fresh`` computes all again.
    """
    jobs = whole_number("jobs", "reproduce", jobs, 1, MAX_JOBS)
    task = task or Task(SyntheticData(), FULL, 0)
    seed_number("reproduce", task.seed)
    todo = [(paper, experiment) for paper in papers for experiment in paper.experiments]
    outcomes: dict[str, dict[str, Outcome]] = {paper.name: {} for paper in papers}
    run = _in_turn if jobs == 1 else _side_by_side
    finished = run(todo, task, folder, jobs, fresh)
    for _ in progress(range(len(todo)), "experiments"):
        outcome = next(finished)
        outcomes[outcome.paper][outcome.experiment] = outcome
        tell(outcome)
    return outcomes


Todo = Sequence[tuple[Paper, Experiment]]


def _in_turn(todo: Todo, task: Task, folder: Path, jobs: int, fresh: bool) -> Iterator[Outcome]:
    for paper, experiment in todo:
        yield perform(paper.name, experiment, task, folder / paper.name, fresh=fresh)


def _side_by_side(todo: Todo, task: Task, folder: Path, jobs: int, fresh: bool) -> Iterator[Outcome]:
    with _one_thread_each():
        pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_start, initargs=(task,))
        try:
            heavy_first = sorted(todo, key=lambda pair: not pair[1].heavy)
            works = [pool.submit(_work, p.name, e.name, folder / p.name, fresh) for p, e in heavy_first]
            for done in as_completed(works):
                yield done.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


_TASK: list[Task] = []  # of a worker


def _start(task: Task) -> None:
    """Give a worker its task; let it leave interruptions to its parent, and use one thread."""
    import signal

    import cv2

    _TASK[:] = [task]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    cv2.setNumThreads(1)


def _work(paper: str, name: str, folder: Path, fresh: bool) -> Outcome:
    """Run one experiment in a process of its own."""
    experiment = next(e for e in load_paper(paper).experiments if e.name == name)
    return perform(paper, experiment, _TASK[0], folder, fresh=fresh)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes started inside use one thread each: threads of several would wait for one another."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
