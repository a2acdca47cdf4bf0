"""Movement is kept: expressions, pose and steadiness of a talking head, before and after."""

import io
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tools.make_samples import write_film

from ksame.scene.config import Job
from ksame.scene.job import run

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.scene_use import compare, measure


def kept_in(clip, folder, seed=1):
    made = folder / f"made-{seed}.mp4"
    result = run(Job([(clip, made)], folder / "work", seed=seed))
    assert not [risk for risk in result.files[0].at_risk if risk.person == "P1"]
    before = measure(clip)
    return compare(before, measure(made, before))


@pytest.mark.slow
def test_somebody_who_does_not_exist_goes_on_acting(tmp_path):
    clip = tmp_path / "acting.mp4"
    photo = files("ksame.data") / "samples" / "m12.jpg"
    write_film([np.asarray(Image.open(io.BytesIO(photo.read_bytes())))], clip)
    kept = [kept_in(clip, tmp_path, seed) for seed in (1, 2, 3)]
    print(kept)
    for what, least in (("blink", 0.7), ("smile", 0.8), ("brow up", 0.8), ("brow down", 0.85), ("gaze sideways", 0.75)):
        assert sum(one.correlations[what] for one in kept) / len(kept) >= least, what
    for one in kept:
        assert one.found >= 0.99
        assert max(one.pose) < 3
        assert one.jitter <= 1.3


@pytest.mark.slow
@pytest.mark.shared
def test_a_real_talking_head_goes_on_talking(shared, tmp_path):
    kept = kept_in(shared / "clips" / "openface_default.wmv", tmp_path)
    print(kept)
    assert kept.found >= 0.99
    for what, least in (
        ("jaw", 0.9),
        ("blink", 0.9),
        ("smile", 0.8),
        ("gaze sideways", 0.85),
        ("gaze upwards", 0.85),
        ("brow up", 0.7),
    ):
        assert kept.correlations[what] >= least, what
    assert max(kept.pose) < 3
    assert kept.jitter <= 1.3
