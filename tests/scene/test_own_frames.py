"""Frames of one's own, as arrays: through all stages without a file, and nobody is left as they were."""

import numpy as np
import pytest

import ksame
from ksame.errors import InputError, PrivacyWarning
from ksame.scene.decide import Judge
from scene.walkers import background, paste

FACE = np.s_[95:150, 115:150]
"""Inside the face, in all frames."""


@pytest.fixture(scope="module")
def frames():
    pictures = []
    for i in range(4):
        picture = background((320, 240))
        paste(picture, 1, (130 + 2 * i, 120), 190)
        pictures.append(picture)
    return pictures


def test_everyone_is_replaced_in_every_frame(frames):
    before = [frame.copy() for frame in frames]
    after = ksame.deidentify_frames(iter(frames), fps=25, seed=1)
    assert len(after) == len(frames)
    for old, given, new in zip(before, frames, after, strict=True):
        assert np.array_equal(old, given), "what was given is not changed"
        assert new.shape == old.shape
        assert new.dtype == np.uint8
        assert (new[FACE] != old[FACE]).any(axis=2).mean() > 0.8
        assert np.array_equal(new[:, -40:], old[:, -40:]), "far from everyone nothing changes"
        assert new[FACE].astype(float).std() > 10, "a face, and no plain fill"


def test_whoever_cannot_be_replaced_is_masked_and_named(frames, monkeypatch):
    monkeypatch.setattr(Judge, "likeness", lambda *_: 0.99)
    monkeypatch.setattr(Judge, "embed", lambda _, view, __: view.embedding)
    with pytest.warns(PrivacyWarning, match="P1 is masked in frames 0 to 3: no surrogate"):
        after = ksame.deidentify_frames(frames, seed=1)
    for old, new in zip(frames, after, strict=True):
        assert new[FACE].astype(float).std(axis=(0, 1)).max() < 0.5 * old[FACE].astype(float).std(axis=(0, 1)).max()


def test_nothing_is_written_and_one_seed_gives_one_result(frames, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    config = ksame.JobConfig(method="noise")
    one, two = (ksame.deidentify_frames(frames[:1], config=config, seed=5) for _ in range(2))
    assert np.array_equal(one, two)
    assert list(tmp_path.iterdir()) == []


def test_that_nobody_was_found_is_said():
    empty = background((320, 240))
    with pytest.warns(PrivacyWarning, match="No face was found"):
        (after,) = ksame.deidentify_frames([empty])
    assert np.array_equal(after, empty)
    assert not np.shares_memory(after, empty)
    assert ksame.deidentify_frames([]) == []


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        (np.zeros((240, 320, 3)), "Frame 1 .* float64"),
        (np.zeros((240, 320), np.uint8), r"Frame 1 .*\(240, 320\)"),
        (np.zeros((200, 320, 3), np.uint8), "Expected frame 1 as 8-bit RGB of 320x240"),
    ],
)
def test_what_is_no_frame_is_refused(bad, match):
    with pytest.raises(InputError, match=match):
        ksame.deidentify_frames([background((320, 240)), bad])
    with pytest.raises(InputError, match="fps"):
        ksame.deidentify_frames([background((320, 240))], fps=0)
