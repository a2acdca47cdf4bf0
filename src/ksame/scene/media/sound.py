"""The sound of a recording: taken over packet by packet, or encoded anew on a steady clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from statistics import median
from typing import Any, TypeAlias

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.packet import Packet
from numpy.typing import NDArray

from ksame.errors import InputError
from ksame.scene.media.encoding import Container
from ksame.scene.media.recording import Recording, opened

_WINDOW = 15
"""Frames of sound whose times are looked at together; some files have single wrong ones."""
_TOLERANCE = 0.02
"""Seconds that the clock may differ from the file's times before silence is put in or sound left out."""
_AVI_START = 0.01
_RATES = {"libopus": (48000,), "wmav2": (8000, 11025, 16000, 22050, 32000, 44100, 48000)}
_AAC_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 64000, 88200, 96000)
_BIT_RATE = 96000
"""Of each channel, in bits per second."""

Timed: TypeAlias = "tuple[Fraction, Packet[Any]]"


class Sound:
    """The first sound of a recording on its way into a container that is being written.

    Parameters
    ----------
    media : Recording
    output : OutputContainer
    container : Container
    start : Fraction
        Time in seconds that becomes zero.
    """

    def __init__(self, media: Recording, output: OutputContainer, container: Container, start: Fraction) -> None:
        self._media = media
        self._start = start
        self._muxer = container.muxer
        with opened(media.path) as source:
            stream = source.streams.audio[0]
            name = stream.codec_context.name
            first = next((p for p in source.demux(stream) if p.size), None)
            whole = first is not None and first.dts is not None and first.pts is not None
            late = 0.0
            if first is not None and first.pts is not None and first.time_base is not None:
                late = abs(float(first.pts * first.time_base - start))
            self.remuxed = _family(name) in container.sounds and whole
            if container.muxer == "avi" and late > _AVI_START:
                self.remuxed = False
            self._rate = stream.codec_context.sample_rate
            self._layout = "mono" if stream.codec_context.channels == 1 else "stereo"
            if self.remuxed:
                self._stream = output.add_stream_from_template(stream)
            else:
                self._stream = self._new_stream(output, str(container.sound))

    def _new_stream(self, output: OutputContainer, encoder: str) -> AudioStream:
        rates = _RATES.get(encoder, _AAC_RATES)
        self._rate = min((r for r in rates if r >= self._rate), default=rates[-1])
        stream = output.add_stream(encoder, rate=self._rate)
        if not isinstance(stream, AudioStream):
            raise InputError(f"{encoder} is no encoder for sound.")
        stream.layout = self._layout
        if not encoder.startswith("pcm"):
            stream.bit_rate = _BIT_RATE * (1 if self._layout == "mono" else 2)
        return stream

    def packets(self) -> Iterator[Timed]:
        """Yield the packets with the time at which each is due."""
        return self._copied() if self.remuxed else self._encoded()

    def _copied(self) -> Iterator[Timed]:
        with opened(self._media.path) as source:
            for packet in source.demux(source.streams.audio[0]):
                if not packet.size or packet.dts is None or packet.time_base is None:
                    continue
                shift = round(self._start / packet.time_base)
                packet.dts -= shift
                if packet.pts is not None:
                    packet.pts -= shift
                packet.stream = self._stream
                yield packet.dts * packet.time_base, packet

    def _encoded(self) -> Iterator[Timed]:
        at: int | None = None
        for samples, time in self._steady():
            if at is None:
                at = round(time * self._rate)
            frame = AudioFrame.from_ndarray(samples, format="fltp", layout=self._layout)
            frame.sample_rate = self._rate
            frame.time_base = Fraction(1, self._rate)
            frame.pts = at
            at += samples.shape[1]
            yield from self._timed(self._stream.encode(frame))
        if at is not None:
            yield from self._timed(self._stream.encode(None))

    @staticmethod
    def _timed(made: list[Packet[Any]]) -> Iterator[Timed]:
        for packet in made:
            if packet.dts is not None and packet.time_base is not None:
                yield packet.dts * packet.time_base, packet

    def _steady(self) -> Iterator[tuple[NDArray[np.float32], Fraction]]:
        """Yield samples without gaps, and the time of the first of them on the new time line.

        A container that cannot say when its sound begins gets silence in front, or loses what comes too early.
        """
        begun: Fraction | None = None
        clock = 0.0
        heard = False
        for samples, offset in self._decoded():
            due = offset - float(self._start)
            if begun is None:
                clock = 0.0 if self._muxer == "avi" else due
                begun = Fraction(clock)
            piece = samples
            n = round((due - clock) * self._rate)
            if abs(due - clock) > _TOLERANCE or not heard:
                if n > 0:
                    yield np.zeros((samples.shape[0], n), dtype=np.float32), begun
                piece = samples[:, max(0, -n) :]
                clock += max(n, -samples.shape[1]) / self._rate
            if piece.shape[1]:
                heard = True
                yield np.ascontiguousarray(piece), begun

    def _decoded(self) -> Iterator[tuple[NDArray[np.float32], float]]:
        """Yield samples at the new rate and, in seconds, where the first sample of all would have to be.

        This offset is the median over neighbours: single wrong times do no harm.
        """
        window: deque[tuple[NDArray[np.float32], float | None]] = deque()
        past: deque[float] = deque(maxlen=_WINDOW // 2)
        for item in self._resampled():
            window.append(item)
            if len(window) > _WINDOW // 2:
                yield self._settle(window, past)
        while window:
            yield self._settle(window, past)

    @staticmethod
    def _settle(
        window: deque[tuple[NDArray[np.float32], float | None]], past: deque[float]
    ) -> tuple[NDArray[np.float32], float]:
        known = [*past, *(offset for _, offset in window if offset is not None)]
        samples, offset = window.popleft()
        if offset is not None:
            past.append(offset)
        return samples, float(median(known)) if known else 0.0

    def _resampled(self) -> Iterator[tuple[NDArray[np.float32], float | None]]:
        resampler = AudioResampler(format="fltp", layout=self._layout, rate=self._rate)
        heard = 0
        with ExitStack() as stack:
            source = stack.enter_context(opened(self._media.path))
            try:
                for frame in source.decode(source.streams.audio[0]):
                    offset = None
                    if frame.pts is not None and frame.time_base is not None:
                        offset = float(frame.pts * frame.time_base) - heard / frame.sample_rate
                    heard += frame.samples
                    for made in resampler.resample(_named(frame)):
                        yield _samples(made), offset
            except av.FFmpegError as error:
                raise InputError(
                    f"{self._media.path}: the sound cannot be decoded ({error.strerror}). "
                    "Leave it out with --audio drop."
                ) from error
            for made in resampler.resample(None):
                yield _samples(made), None


def _samples(frame: AudioFrame) -> NDArray[np.float32]:
    return np.asarray(frame.to_ndarray(), dtype=np.float32)


def _named(frame: AudioFrame) -> AudioFrame:
    """Return the frame with its channels named and its time removed: the clock is ours."""
    n_channels = len(frame.layout.channels)
    if n_channels <= 2 and frame.layout.name not in ("mono", "stereo"):
        named = AudioFrame.from_ndarray(
            frame.to_ndarray(), format=frame.format.name, layout="mono" if n_channels == 1 else "stereo"
        )
        named.sample_rate = frame.sample_rate
        return named
    frame.pts = None
    return frame


def _family(name: str) -> str:
    """Return the codec of a decoder: "aac" for "aac_fixed", "mp3" for "mp3float"."""
    for family in ("aac", "mp3", "ac3", "opus", "vorbis"):
        if name in (family, f"{family}float", f"lib{family}", f"{family}_fixed"):
            return family
    return {"dca": "dts"}.get(name, name)
