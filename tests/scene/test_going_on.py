"""A run that goes on does not decide again, and nobody changes OpenCV's threads under others."""

import threading
from dataclasses import dataclass

import cv2
import numpy as np
import pytest
from PIL import Image

from ksame import synthetic
from ksame.errors import InputError
from ksame.heads.covers import FACE
from ksame.heads.surrogate import ORDINARY, draw_surrogate
from ksame.scene.config import Job, JobConfig
from ksame.scene.decide import Decision, Judge, JudgeRecord, Plan, Treatment, load_plan, save_plan
from ksame.scene.job import run
from ksame.scene.memory import one_opencv_thread
from ksame.scene.render import Renderer
from ksame.scene.track import find_tracks


@pytest.fixture
def plan() -> Plan:
    rng = np.random.default_rng(1)
    shared, other = (draw_surrogate(True, 1970.0, ORDINARY, rng) for _ in range(2))
    decisions = {
        "P1": Decision(Treatment.REPLACE, shared, group=0, likeness=0.1234567890123, counts_as=0),
        "P2": Decision(Treatment.REPLACE, shared, group=0, likeness=0.2, counts_as=1),
        "the guest": Decision(Treatment.REPLACE, other, FACE, group=1, likeness=-0.1),
        "P4": Decision(Treatment.MASK, masked_instead=True),
        "U1": Decision(Treatment.KEEP),
    }
    return Plan(decisions, JudgeRecord("someone", 0.4))


def test_a_plan_comes_back_as_it_was(plan, tmp_path):
    path = tmp_path / "plan.npz"
    save_plan(plan, path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["plan.npz"]
    read = load_plan(path)
    assert read.judge == plan.judge
    assert list(read.decisions) == list(plan.decisions)
    for name, decision in plan.decisions.items():
        again = read.decisions[name]
        for part in ("treatment", "cover", "masked_instead", "group", "likeness", "counts_as"):
            assert getattr(again, part) == getattr(decision, part)
        if decision.surrogate is None:
            assert again.surrogate is None
            continue
        for part in ("shape", "texture"):
            assert np.array_equal(getattr(again.surrogate.looks, part), getattr(decision.surrogate.looks, part))
        assert again.surrogate.looks.iris == decision.surrogate.looks.iris
    assert read.decisions["P1"].surrogate is read.decisions["P2"].surrogate


def test_a_damaged_plan_is_refused(plan, tmp_path):
    path = tmp_path / "plan.npz"
    save_plan(plan, path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InputError, match="Leave --resume out"):
        load_plan(path)


def test_a_run_that_goes_on_does_not_decide_again(tmp_path, monkeypatch):
    (face,) = (synthetic(1, seed=8, size=(200, 160)).images * 255).round().astype(np.uint8)
    Image.fromarray(face).save(tmp_path / "one.png")
    config = JobConfig(method="k-same-m", k=2)

    def go(name, **more):
        files = [(tmp_path / "one.png", tmp_path / name)]
        return run(Job(files, tmp_path / f"{name}.work", config, seed=1, **more))

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Judge, "likeness", lambda *_: 0.0)
    go("whole.png")
    with monkeypatch.context() as context:
        context.setattr(Renderer, "finish", stopped)
        with pytest.raises(KeyboardInterrupt):
            go("safe.png")
    monkeypatch.setattr(Judge, "likeness", lambda *_: 0.99)  # whoever is judged now would be masked
    result = go("safe.png", resume=True)
    assert result.plan.decisions["P1"].treatment is Treatment.REPLACE
    assert (tmp_path / "safe.png").read_bytes() == (tmp_path / "whole.png").read_bytes()


@dataclass(frozen=True)
class Grey:
    index: int
    pixels: np.ndarray

    @property
    def time(self) -> float:
        return self.index / 25


def test_nobody_changes_opencvs_threads_under_others():
    before = cv2.getNumThreads()
    grey = np.full((64, 64, 3), 120, np.uint8)
    begun, ended = threading.Event(), threading.Event()
    seen = []

    def second():
        begun.set()
        yield Grey(0, grey)
        assert ended.wait(60)
        seen.append(cv2.getNumThreads())
        yield Grey(1, grey)

    try:
        cv2.setNumThreads(2)

        def find(frames):
            with one_opencv_thread():
                find_tracks(lambda start: frames(), (64, 64))

        other = threading.Thread(target=find, args=[second])

        def first():
            other.start()
            assert begun.wait(60)
            yield Grey(0, grey)

        find(first)
        ended.set()
        other.join(60)
        assert seen == [1], "one has finished, the other still looks"
        assert cv2.getNumThreads() == 2, "all have finished"
    finally:
        cv2.setNumThreads(before)
