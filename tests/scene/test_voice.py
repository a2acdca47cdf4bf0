"""A disguised voice: another pitch, other formants, the same words at the same time, in constant memory."""

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksame.scene.certificate import SOUND
from ksame.scene.media import EncoderConfig, Output, Voice, WorkFolder, open_media
from ksame.scene.media.voice import VoiceShifter
from scene.clips import flash_and_beep, make_clip

RATE = 16000
VOICES = (Voice(1.3, 1.15), Voice(0.78, 0.88))


def shifted(samples, voice, rate=RATE, pieces=7):
    shifter = VoiceShifter(voice, rate, len(samples))
    ready = [shifter.push(piece) for piece in np.array_split(samples, pieces, axis=1)]
    return np.concatenate([*ready, shifter.flush()], axis=1)


def loudest(samples, rate=RATE):
    heights = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return heights.argmax() * rate / len(samples)


def speech(seconds=2.0):
    """A pulse train of 120 Hz through two formants, in syllables."""
    from scipy.signal import lfilter

    t = np.arange(int(seconds * RATE)) / RATE
    sound = np.diff(np.floor(120 * t), prepend=0.0)
    for formant in (600, 1800):
        radius = np.exp(-np.pi * 90 / RATE)
        sound = lfilter([1], [1, -2 * radius * np.cos(2 * np.pi * formant / RATE), radius**2], sound)
    sound = sound * np.interp(t % 0.4, [0, 0.05, 0.2, 0.25, 0.4], [0, 1, 1, 0, 0])
    return 0.5 * sound / np.abs(sound).max()


def loudness(samples):
    return np.sqrt(np.convolve(samples**2, np.ones(RATE // 50) * 50 / RATE, "same"))


@pytest.mark.parametrize("voice", VOICES)
@pytest.mark.parametrize("frequency", [110, 220, 800])
def test_the_pitch_moves_by_the_factor(voice, frequency):
    tone = 0.4 * np.sin(2 * np.pi * frequency * np.arange(2 * RATE) / RATE)
    moved = shifted(tone[None], voice)[0]
    assert loudest(moved) == pytest.approx(frequency * voice.pitch, rel=0.02)
    assert moved.std() == pytest.approx(tone.std(), rel=0.3)


@pytest.mark.parametrize("voice", VOICES)
def test_words_stay_where_they_are(voice):
    before = speech()
    after = shifted(before[None], voice)[0]
    assert np.corrcoef(loudness(before), loudness(after))[0, 1] > 0.97


@pytest.mark.parametrize("pitch", [1.3, 0.78])
def test_formants_move_by_their_own_factor(pitch):
    def centroid(samples):
        power = np.abs(np.fft.rfft(samples)) ** 2
        frequencies = np.fft.rfftfreq(len(samples), 1 / RATE)
        return (frequencies * power).sum() / power.sum()

    with_small, with_large = (centroid(shifted(speech()[None], Voice(pitch, q))[0]) for q in (0.85, 1.18))
    assert with_large > 1.15 * with_small


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 9000), st.integers(1, 12), st.sampled_from((8000, 22050, 48000)), st.sampled_from(VOICES))
def test_as_many_samples_come_out_however_they_come_in(n, pieces, rate, voice):
    sound = np.random.default_rng(n).normal(0, 0.1, (2, n))
    whole = shifted(sound, voice, rate, 1)
    assert whole.shape == sound.shape
    np.testing.assert_allclose(shifted(sound, voice, rate, pieces), whole, atol=1e-9)


def test_little_is_held():
    shifter = VoiceShifter(VOICES[0], RATE, 1)
    second, heard = np.zeros((1, RATE)), 0
    for _ in range(60):
        heard += shifter.push(second).shape[1]
    assert heard > 59 * RATE


def test_what_is_no_number_is_silence():
    assert np.isfinite(shifted(np.full((1, 5000), np.nan), VOICES[0])).all()


def test_voices_are_drawn_away_from_the_original_and_by_the_seed():
    voices = [Voice.drawn(seed) for seed in range(200)]
    assert Voice.drawn(3) == voices[3]
    assert len({voice.pitch for voice in voices}) == 200
    assert min(abs(np.log2(voice.pitch)) for voice in voices) >= 3 / 12
    assert min(abs(np.log2(voice.formants)) for voice in voices) >= 1.5 / 12
    assert {voice.pitch > 1 for voice in voices} == {True, False}


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".webm", ".avi", ".wmv", ".mov"])
def test_sound_is_never_copied_and_stays_in_step(suffix, tmp_path):
    source = make_clip(tmp_path / "clip.mp4", sound="aac")
    media = open_media(source)
    destination = tmp_path / f"out{suffix}"
    with Output(
        media, destination, EncoderConfig(audio="disguise"), WorkFolder(tmp_path / "work"), voice=VOICES[0]
    ) as output:
        for frame in media.frames():
            output.write(frame.pixels)
        output.finish()
    flash, heard = flash_and_beep(destination)
    assert abs(flash - heard) < 0.045
    with av.open(str(destination)) as container:
        rate = container.streams.audio[0].rate
        frames = [frame.to_ndarray() for frame in container.decode(audio=0)]
        kind = container.streams.audio[0].format.is_planar
    samples = np.concatenate([f[0] if kind else f.reshape(-1) for f in frames]).astype(float)
    assert loudest(samples, rate) == pytest.approx(1300, rel=0.05)
    assert len(samples) / rate == pytest.approx(media.duration + 0.2, abs=0.15)


def test_the_limits_say_that_a_disguise_is_not_anonymous():
    assert "not anonymous" in SOUND["disguise"]
    assert "undone" in SOUND["disguise"]
