"""A talking head: somebody who does not exist turns, blinks, smiles and speaks, with a voice of hums."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray
from ksame.errors import OutputError, parameter_error
from ksame.spaces.facemodel import face_model
from ksame.synthetic.expressions import NEUTRAL, Expression
from ksame.synthetic.people import draw_people, pick_people
from ksame.synthetic.render import Painter, Shot

RATE = 25
"""Frames per second."""
_SAMPLES = 48_000  # of sound per second
_BLINK = 0.24  # seconds that a blink lasts
_SYLLABLES = 3.3  # per second
_JAW, _LIDS = 0.15, -0.085  # widest opening of the mouth, and how far the lids go, in eye distances
_SMILE = {"smile": 0.72, "squint": 0.50, "upper_lip": 0.12}


def talking_head(
    n_frames: int, *, seed: int = 0, size: tuple[int, int] = (384, 320), person: int | None = None
) -> Iterator[ByteArray]:
    """Film somebody who does not exist.

    Parameters
    ----------
    n_frames : int
    seed : int
        Decides who it is, unless ``person`` is given, and when they speak, blink and turn.
    size : (int, int)
        Height and width.
    person : int, optional
        Number of the person; even for women, odd for men.

    Yields
    ------
    frame : ndarray of shape (height, width, 3), uint8
        RGB.
    """
    if n_frames < 1:
        raise parameter_error("n_frames", "talking_head", "an integer of at least 1", n_frames)
    model = face_model()
    people = draw_people(model, pick_people(1, seed) if person is None else np.array([person]))
    for picture in Painter(model, size).film(people, _moments(n_frames, seed)):
        yield np.rint(picture * 255).clip(0, 255).astype(np.uint8)


def _moments(n_frames: int, seed: int) -> Iterator[Shot]:
    rng = np.random.default_rng((seed, 1))
    time = np.arange(n_frames) / RATE
    jaw, blink = speech(time, seed), _blinks(time, rng)
    smile = _wave(time, rng, 0.11, 0.19) ** 2
    narrow = 0.05 * _wave(time, rng, 0.7, 1.1) * jaw / _JAW
    yaw, pitch, roll = (
        a * (2 * _wave(time, rng, *rates) - 1)
        for a, rates in ((0.13, (0.13, 0.31)), (0.05, (0.17, 0.41)), (0.035, (0.09, 0.23)))
    )
    for i in range(n_frames):
        attributes = {name: NEUTRAL[name] + smile[i] * (value - NEUTRAL[name]) for name, value in _SMILE.items()}
        movements = {"jaw": float(jaw[i]), "narrow": float(narrow[i]), "lids": float(_LIDS * blink[i])}
        face = Expression(attributes, movements, lips_part=bool(jaw[i] > 0.004), teeth=float(0.35 * jaw[i]))
        turn = (float(yaw[i]), float(pitch[i]), float(roll[i]))
        yield Shot(face, turn=turn, grain=int(rng.integers(1 << 12)))


def speech(time: FloatArray, seed: int) -> FloatArray:
    """Return how far the mouth is open at moments in seconds, (n,), in eye distances: syllables in phrases."""
    rng = np.random.default_rng((seed, 2))
    phrase = np.clip(3 * _wave(time, rng, 0.23, 0.37) - 0.6, 0.0, 1.0)
    pace = 2 * np.pi * _SYLLABLES * time + 1.3 * np.sin(2 * np.pi * 0.41 * time + rng.uniform(0, 6))
    loud = 0.45 + 0.55 * _wave(time, rng, 0.9, 1.7)
    return np.asarray(_JAW * phrase * loud * (0.5 - 0.5 * np.cos(pace)))


def _blinks(time: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return how far the eyes are closed, in [0, 1]."""
    closed = np.zeros_like(time)
    at = rng.uniform(0.5, 1.2)
    while at < time[-1]:
        closed = np.maximum(closed, np.cos(np.clip((time - at) / _BLINK, -0.5, 0.5) * np.pi) ** 1.5)
        at += rng.uniform(1.3, 3.2)
    return closed


def _wave(time: FloatArray, rng: np.random.Generator, slow: float, fast: float) -> FloatArray:
    """Return something smooth in [0, 1]: two sines of these frequencies."""
    phases = rng.uniform(0, 2 * np.pi, 2)
    return np.asarray(
        0.5 + 0.32 * np.sin(2 * np.pi * slow * time + phases[0]) + 0.18 * np.sin(2 * np.pi * fast * time + phases[1])
    )


def _voice(n_frames: int, seed: int) -> NDArray[np.int16]:
    """Return a hum, (n_samples,), as loud as the mouth is open."""
    time = np.arange(n_frames * _SAMPLES // RATE) / _SAMPLES
    pitch = 2 * np.pi * (130 * time + 2.0 * np.sin(2 * np.pi * 0.7 * time))
    sound = sum(np.sin(n * pitch) / n**1.5 for n in range(1, 9))
    return np.asarray(np.rint(9000 * sound * speech(time, seed) / _JAW).clip(-32767, 32767), dtype=np.int16)


def write_talking_head(
    path: Path, n_frames: int, *, seed: int = 0, size: tuple[int, int] = (384, 320), person: int | None = None
) -> None:
    """Write a talking head with sound as H.264 and AAC, in the container that the suffix names."""
    import av

    try:
        with av.open(str(path), "w") as container:
            film = container.add_stream("libx264", rate=RATE, options={"crf": "16", "preset": "veryfast"})
            film.height, film.width, film.pix_fmt = *size, "yuv420p"
            hum = container.add_stream("aac", rate=_SAMPLES, layout="mono")
            for frame in talking_head(n_frames, seed=seed, size=size, person=person):
                container.mux(film.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
            container.mux(film.encode())
            sound = av.AudioFrame.from_ndarray(_voice(n_frames, seed)[None], format="s16", layout="mono")
            sound.sample_rate, sound.pts, sound.time_base = _SAMPLES, 0, Fraction(1, _SAMPLES)
            container.mux(hum.encode(sound))
            container.mux(hum.encode())
    except (OSError, av.FFmpegError) as error:
        raise OutputError(f"{path}: the talking head cannot be written ({error}).") from error
