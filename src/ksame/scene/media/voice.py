"""A disguised voice: pitch and formants of a whole sound moved by two factors, block by block, in constant memory.

A phase vocoder with locked phases (Laroche and Dolson, "Improved phase vocoder time-scale modification of audio", IEEE
Trans. Speech and Audio Processing 7(3), 1999) makes every frame longer or shorter, and the frame is resampled by the
same factor: the pitch moves, the time does not. Formants, the smooth part of the spectrum (its low cepstrum), are taken
out before and put in again elsewhere. Both factors are constant: what varies over time can be averaged away.

It hides a voice from people who do not look for it. It can be undone by whoever finds the factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
PITCH = (3.0, 5.0)
"""Semitones by which the pitch moves, up or down. Less is still known, more is hard to understand."""
FORMANTS = (1.5, 3.0)
"""Semitones by which the formants move, the same way."""
_WINDOW = 0.043  # seconds: three periods of the lowest voices
_OVERLAP = 8  # frames over every sample
_FINER = 4  # times as many samples before a frame is read between them
_QUEFRENCY = 0.0016  # seconds: half a period of high voices; what is below is the vocal tract
_MAX_GAIN = 10.0  # of a formant that is put in: what was silent stays noise, not more
_BLOCK = 16  # frames that are transformed together
_FLOOR = 1e-6


@dataclass(frozen=True)
class Voice:
    """By which factors pitch and formants move: as secret as the seed that they come from."""

    pitch: float
    formants: float

    @classmethod
    def drawn(cls, seed: int) -> Voice:
        """Draw the voice of a run: clearly higher or clearly lower.

        Examples
        --------
        >>> voice = Voice.drawn(7)
        >>> abs(voice.pitch - 1) > 0.15
        True
        """
        rng = np.random.default_rng((seed, int.from_bytes(b"voice", "big")))
        way = rng.choice((-1.0, 1.0))
        pitch, formants = (float(2 ** (way * rng.uniform(*span) / 12)) for span in (PITCH, FORMANTS))
        return cls(pitch, formants)


class VoiceShifter:
    """Sound of a rate in samples per second in, as many samples out: :meth:`push` and, at the end, :meth:`flush`."""

    def __init__(self, voice: Voice, rate: int, channels: int) -> None:
        self._pitch = voice.pitch
        self._n = n = max(64, 1 << round(np.log2(_WINDOW * rate)))
        self._hop = n // _OVERLAP
        half = int(n / 2 / voice.pitch)
        self._times = n / 2 + voice.pitch * np.arange(-half, half)
        self._window = np.hanning(n + 1)[:-1]
        self._again = np.interp(self._times, np.arange(n), self._window)
        lead = -(-max(n, 2 * half) // self._hop) * self._hop
        self._norm = np.zeros(self._hop)
        np.add.at(self._norm, np.arange(2 * half) % self._hop, self._again**2)
        bins = np.arange(n // 2 + 1)
        self._steps = 2 * np.pi * self._hop * bins / n  # by which the phase of a bin moves from frame to frame
        self._heard = bins * voice.pitch <= n // 2  # the others would come back as wrong tones
        self._moved = np.minimum(bins * voice.pitch / voice.formants, n // 2)
        self._cut = max(2, int(_QUEFRENCY * rate))
        self._input = np.zeros((channels, n // 2 + lead))
        self._sum = np.zeros((channels, 2 * half))
        self._phases = np.zeros((channels, n // 2 + 1))
        self._rotations = np.zeros((channels, n // 2 + 1))
        self._to_drop = half + lead
        self._due = 0

    def push(self, samples: FloatArray) -> FloatArray:
        """Take samples of shape (channels, n); return those that are ready, of shape (channels, m)."""
        self._due += samples.shape[1]
        ready = self._shifted(samples)
        self._due -= ready.shape[1]
        return ready

    def flush(self) -> FloatArray:
        """Return the samples that are left."""
        silence = np.zeros((len(self._input), self._n + self._to_drop + self._due + self._hop * _BLOCK))
        return self._shifted(silence)[:, : self._due]

    def _shifted(self, samples: FloatArray) -> FloatArray:
        self._input = np.concatenate([self._input, np.nan_to_num(samples)], axis=1)
        done = [np.zeros((len(self._input), 0))]
        while self._input.shape[1] >= self._n + (_BLOCK - 1) * self._hop:
            done.append(self._next_block())
            self._input = self._input[:, _BLOCK * self._hop :]
        ready = np.concatenate(done, axis=1)
        dropped = min(self._to_drop, ready.shape[1])
        self._to_drop -= dropped
        return np.clip(ready[:, dropped:], -1.0, 1.0)

    def _next_block(self) -> FloatArray:
        """Shift the next frames; return the samples that no later frame adds to."""
        frames = np.lib.stride_tricks.sliding_window_view(self._input, self._n, axis=1)[:, :: self._hop][:, :_BLOCK]
        spectra = np.fft.rfft(frames * self._window, axis=2)
        phases = np.angle(spectra)
        heights = np.abs(spectra)
        turned = spectra * self._gains(heights)
        for channel in range(len(turned)):
            for frame in range(_BLOCK):
                rotation = self._rotation(channel, heights[channel, frame], phases[channel, frame])
                turned[channel, frame] *= np.exp(1j * rotation)
        finer = np.fft.irfft(turned, self._n * _FINER, axis=2) * _FINER
        places = self._times * _FINER
        low = places.astype(np.intp)
        weight = places - low
        high = (low + 1) % (self._n * _FINER)
        resampled = (finer[..., low] * (1 - weight) + finer[..., high] * weight) * self._again
        length = self._sum.shape[1]
        out = np.concatenate([self._sum, np.zeros((len(self._sum), _BLOCK * self._hop))], axis=1)
        for frame in range(_BLOCK):
            begin = frame * self._hop
            out[:, begin : begin + length] += resampled[:, frame]
        ready, self._sum = np.split(out, [_BLOCK * self._hop], axis=1)
        return ready / np.tile(self._norm, _BLOCK)

    def _gains(self, heights: FloatArray) -> FloatArray:
        """Return what moves the formants: the envelope at its new place over that at the old one."""
        floor = _FLOOR + _FLOOR * heights.max(axis=2, keepdims=True)
        cepstra = np.fft.irfft(np.log(np.maximum(heights, floor)), axis=2)
        cepstra[..., self._cut : -self._cut + 1] = 0
        envelopes = np.fft.rfft(cepstra, axis=2).real
        low = self._moved.astype(np.intp)
        high = np.minimum(low + 1, self._n // 2)
        weight = self._moved - low
        moved = envelopes[..., low] * (1 - weight) + envelopes[..., high] * weight
        gains = np.minimum(np.exp(moved - envelopes), _MAX_GAIN) * self._heard
        loudness = np.linalg.norm(heights, axis=2) / np.maximum(np.linalg.norm(heights * gains, axis=2), _FLOOR)
        return gains * np.minimum(loudness, _MAX_GAIN)[..., None]

    def _rotation(self, channel: int, heights: FloatArray, phases: FloatArray) -> FloatArray:
        """Return by how much the phase of every bin is turned: all bins round a peak as much as the peak."""
        before, turned_before = self._phases[channel].copy(), self._rotations[channel].copy()
        self._phases[channel] = phases
        peaks = _peaks(heights)
        if not len(peaks):
            self._rotations[channel] = 0.0
            return self._rotations[channel]
        step = self._steps[peaks]
        advance = step + _wrapped(phases[peaks] - before[peaks] - step)
        turned = before[peaks] + turned_before[peaks] + self._pitch * advance - phases[peaks]
        borders = (peaks[1:] + peaks[:-1] + 1) // 2
        nearest = np.searchsorted(borders, np.arange(len(phases)), side="right")
        self._rotations[channel] = _wrapped(turned)[nearest]
        return self._rotations[channel]


def _peaks(heights: FloatArray) -> NDArray[np.intp]:
    """Return the bins that are higher than two neighbours on either side."""
    padded = np.pad(heights, 2)
    centre = padded[2:-2]
    higher = (centre > padded[1:-3]) & (centre >= padded[3:-1]) & (centre > padded[:-4]) & (centre >= padded[4:])
    return np.flatnonzero(higher & (centre > _FLOOR))


def _wrapped(angles: FloatArray) -> FloatArray:
    """Return angles between -pi and pi."""
    return angles - 2 * np.pi * np.round(angles / (2 * np.pi))
