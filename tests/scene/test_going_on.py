"""A run that goes on does not decide again, and nobody changes OpenCV's threads under others."""

import threading
from dataclasses import dataclass

import cv2
import numpy as np
import pytest
from PIL import Image

from ksame import synthetic
from ksame.errors import InputError
from ksame.heads.head import Cover
from ksame.heads.surrogate import draw_surrogate
from ksame.scene.choosing import Choice, Judge
from ksame.scene.composing import Composer, Plan, Treatment
from ksame.scene.identities import Loop
from ksame.scene.memory import one_opencv_thread
from ksame.scene.pipeline import Job, Options, deidentify_scenes
from ksame.scene.plan_storage import load_choice, save_choice
from ksame.scene.track import find_tracks


@pytest.fixture
def choice() -> Choice:
    rng = np.random.default_rng(1)
    shared, other = (draw_surrogate(True, 1970.0, -0.5, rng) for _ in range(2))
    plans = {
        "P1": Plan(Treatment.REPLACE, shared),
        "P2": Plan(Treatment.REPLACE, shared),
        "the guest": Plan(Treatment.REPLACE, other, Cover.FACE),
        "P4": Plan(Treatment.MASK, stands_in=True),
        "U1": Plan(Treatment.KEEP),
    }
    groups = {"P1": 0, "P2": 0, "the guest": 1}
    return Choice(plans, groups, {"P1": 0.1234567890123}, {"P1": 0, "P2": 1}, Judge("someone", 0.4), shared=False)


def test_a_plan_comes_back_as_it_was(choice, tmp_path):
    path = tmp_path / "plan.npz"
    assert load_choice(path, "key") is None
    save_choice(choice, path, "key")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["plan.npz"]
    read = load_choice(path, "key")
    for name in ("groups", "likeness", "counted", "judge", "shared"):
        assert getattr(read, name) == getattr(choice, name)
    assert list(read.plans) == list(choice.plans)
    for name, plan in choice.plans.items():
        again = read.plans[name]
        assert (again.treatment, again.cover, again.stands_in) == (plan.treatment, plan.cover, plan.stands_in)
        if plan.surrogate is None:
            assert again.surrogate is None
            continue
        for part in ("shape", "texture"):
            assert np.array_equal(getattr(again.surrogate.looks, part), getattr(plan.surrogate.looks, part))
        assert again.surrogate.looks.iris == plan.surrogate.looks.iris
    assert read.plans["P1"].surrogate is read.plans["P2"].surrogate


def test_another_or_a_damaged_plan_is_refused(choice, tmp_path):
    path = tmp_path / "plan.npz"
    save_choice(choice, path, "key")
    with pytest.raises(InputError, match="other files, tracks or options"):
        load_choice(path, "another key")
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InputError, match="Leave --resume out"):
        load_choice(path, "key")


def test_a_run_that_goes_on_does_not_decide_again(tmp_path, monkeypatch):
    (face,) = (synthetic(1, seed=8, size=(200, 160)).images * 255).round().astype(np.uint8)
    Image.fromarray(face).save(tmp_path / "one.png")
    options = Options(method="k-same-m", k=2)

    def go(name, **more):
        job = Job(tmp_path / "one.png", tmp_path / name)
        return deidentify_scenes([job], options, work=tmp_path / f"{name}.work", seed=1, **more)

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Loop, "likeness", lambda *_: 0.0)
    go("whole.png")
    with monkeypatch.context() as context:
        context.setattr(Composer, "key", stopped)
        with pytest.raises(KeyboardInterrupt):
            go("safe.png")
    monkeypatch.setattr(Loop, "likeness", lambda *_: 0.99)  # whoever is judged now would be masked
    result = go("safe.png", resume=True)
    assert result.choice.plans["P1"].treatment is Treatment.REPLACE
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
