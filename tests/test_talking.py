"""The talking head: it moves, smoothly, and can be heard."""

import av
import numpy as np
import pytest
from tools.talking_head import RATE, speech, talking_head, write_talking_head

from ksame.errors import OutputError, UsageError


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    return np.stack(list(talking_head(50, seed=3, size=(160, 128))))


def test_it_moves_without_jumps(frames):
    assert frames.dtype == np.uint8
    face = frames[:, 50:125, 35:95].astype(float)
    steps = np.abs(np.diff(face, axis=0)).mean(axis=(1, 2, 3))
    apart = np.abs(face[0] - face[25]).mean()
    assert steps.max() < 1.5 * np.median(steps) + apart
    assert np.ptp(frames.mean(axis=(1, 2, 3))) < 2


def test_the_same_seed_is_the_same_film():
    first, again, other = (next(iter(talking_head(1, seed=seed, size=(96, 80)))) for seed in (4, 4, 5))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_mouth_opens_and_closes():
    jaw = speech(np.arange(200) / RATE, 3)
    assert jaw.min() >= 0
    assert jaw.max() > 0.05
    assert (jaw < 0.005).any()
    assert np.abs(np.diff(jaw)).max() < 0.08


def test_sound_and_pictures_are_of_one_length(tmp_path):
    write_talking_head(tmp_path / "head.mp4", 25, size=(96, 80))
    with av.open(str(tmp_path / "head.mp4")) as container:
        sound, film = container.streams.audio[0], container.streams.video[0]
        assert film.frames == 25
        assert abs(float(sound.duration * sound.time_base) - 1.0) < 0.05


def test_what_cannot_be_filmed(tmp_path):
    with pytest.raises(UsageError, match="at least 1"):
        next(iter(talking_head(0)))
    with pytest.raises(OutputError, match="cannot be written"):
        write_talking_head(tmp_path / "no" / "head.mp4", 1, size=(96, 80))
