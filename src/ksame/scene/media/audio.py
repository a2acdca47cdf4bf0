"""The sound of a recording: copied packet by packet, or encoded anew on a steady clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, repeat
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.packet import Packet
from av.stream import Stream
from numpy.typing import NDArray

from ksame.errors import InputError
from ksame.scene.media.encoding import Container
from ksame.scene.media.recording import Recording, open_container

_WINDOW = 15
"""Frames of sound whose times are looked at together; some files have single wrong ones."""
_MAX_DRIFT = 0.02
"""Seconds that the clock may differ from the file's times before silence is put in or sound left out."""
_AVI_MAX_START = 0.01
"""Seconds after the pictures at which the sound of an AVI file may begin unnoticed."""
_RATES = {"libopus": (48000,), "wmav2": (8000, 11025, 16000, 22050, 32000, 44100, 48000)}
_AAC_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 64000, 88200, 96000)
_BIT_RATE = 96000
"""Per channel, in bits per second."""

TimedPacket: TypeAlias = "tuple[Fraction, Packet[Any]]"
Samples = NDArray[np.float32]
"""Of shape (n_channels, n_samples)."""


def copy_packets(path: Path, index: int, stream: Stream, start: Fraction) -> Iterator[TimedPacket]:
    """Yield the packets of a file's stream for another stream, with their times, of which ``start`` becomes zero."""
    with open_container(path) as source:
        for packet in source.demux(source.streams[index]):
            if packet.size and packet.dts is not None and packet.time_base is not None:
                shift = round(start / packet.time_base)
                packet.dts -= shift
                packet.pts = packet.dts if packet.pts is None else packet.pts - shift
                packet.stream = stream
                yield packet.dts * packet.time_base, packet


class AudioTrack:
    """The first sound of a recording on its way into a container that is being written; ``start`` becomes zero."""

    def __init__(self, media: Recording, output: OutputContainer, container: Container, start: Fraction) -> None:
        self._path = media.path
        self._start = start
        self._muxer = container.muxer
        with open_container(media.path) as source:
            stream = source.streams.audio[0]
            self._index = stream.index
            self._rate = stream.codec_context.sample_rate
            self._layout = "mono" if stream.codec_context.channels == 1 else "stereo"
            first = next((packet for packet in source.demux(stream) if packet.size), None)
            self._copied = _codec(stream.codec_context.name) in container.audio_codecs and self._can_copy(first)
            if self._copied:
                self._stream = output.add_stream_from_template(stream)
            else:
                self._stream = self._new_stream(output, str(container.audio_encoder))

    def _can_copy(self, first: Packet[Any] | None) -> bool:
        if first is None or first.dts is None or first.pts is None:
            return False
        late = 0.0 if first.time_base is None else abs(float(first.pts * first.time_base - self._start))
        return self._muxer != "avi" or late <= _AVI_MAX_START

    def _new_stream(self, output: OutputContainer, encoder: str) -> AudioStream:
        rates = _RATES.get(encoder, _AAC_RATES)
        self._rate = min((rate for rate in rates if rate >= self._rate), default=rates[-1])
        stream = output.add_stream(encoder, rate=self._rate)
        if not isinstance(stream, AudioStream):
            raise InputError(f"{encoder} is no encoder for sound.")
        stream.layout = self._layout
        if not encoder.startswith("pcm"):
            stream.bit_rate = _BIT_RATE * (1 if self._layout == "mono" else 2)
        return stream

    def packets(self) -> Iterator[TimedPacket]:
        """Yield the packets with the time at which each is due."""
        if self._copied:
            yield from copy_packets(self._path, self._index, self._stream, self._start)
            return
        for frame in self._frames():
            for packet in self._stream.encode(frame):
                if packet.dts is not None and packet.time_base is not None:
                    yield packet.dts * packet.time_base, packet

    def _frames(self) -> Iterator[AudioFrame | None]:
        """Yield the frames to be encoded, and None after the last."""
        pts: int | None = None
        for samples, time in self._steady():
            if pts is None:
                pts = round(time * self._rate)
            frame = AudioFrame.from_ndarray(samples, format="fltp", layout=self._layout)
            frame.sample_rate = self._rate
            frame.time_base = Fraction(1, self._rate)
            frame.pts = pts
            pts += samples.shape[1]
            yield frame
        if pts is not None:
            yield None

    def _steady(self) -> Iterator[tuple[Samples, Fraction]]:
        """Yield samples without gaps, and the time of the first of them on the new time line.

        A container that cannot say when its sound begins gets silence in front, or loses what comes too early.
        """
        begin: Fraction | None = None
        clock = 0.0
        started = False
        for samples, offset in self._with_offsets():
            due = offset - float(self._start)
            if begin is None:
                clock = 0.0 if self._muxer == "avi" else due
                begin = Fraction(clock)
            n_missing = round((due - clock) * self._rate)
            if abs(due - clock) > _MAX_DRIFT or not started:
                if n_missing > 0:
                    yield np.zeros((samples.shape[0], n_missing), dtype=np.float32), begin
                clock += max(n_missing, -samples.shape[1]) / self._rate
                samples = samples[:, max(0, -n_missing) :]
            if samples.shape[1]:
                started = True
                yield np.ascontiguousarray(samples), begin

    def _with_offsets(self) -> Iterator[tuple[Samples, float]]:
        """Yield samples at the new rate and, in seconds, where the first sample of all would have to be.

        This offset is the median over neighbours: single wrong times do no harm.
        """
        past: deque[float] = deque(maxlen=_WINDOW // 2)
        window: deque[tuple[Samples | None, float | None]] = deque()
        for item in chain(self._resampled(), repeat((None, None), _WINDOW // 2)):
            window.append(item)
            if len(window) <= _WINDOW // 2:
                continue
            offsets = [*past, *(offset for _, offset in window if offset is not None)]
            samples, offset = window.popleft()
            if offset is not None:
                past.append(offset)
            if samples is not None:
                yield samples, float(median(offsets)) if offsets else 0.0

    def _resampled(self) -> Iterator[tuple[Samples, float | None]]:
        resampler = AudioResampler(format="fltp", layout=self._layout, rate=self._rate)
        n_before = 0
        with open_container(self._path) as source:
            try:
                for frame in source.decode(source.streams.audio[0]):
                    offset = None
                    if frame.pts is not None and frame.time_base is not None:
                        offset = float(frame.pts * frame.time_base) - n_before / frame.sample_rate
                    n_before += frame.samples
                    for resampled in resampler.resample(_with_layout(frame)):
                        yield resampled.to_ndarray().astype(np.float32), offset
            except av.FFmpegError as error:
                raise InputError(
                    f"{self._path}: the sound cannot be decoded ({error.strerror}). Leave it out with --audio drop."
                ) from error
            for resampled in resampler.resample(None):
                yield resampled.to_ndarray().astype(np.float32), None


def _with_layout(frame: AudioFrame) -> AudioFrame:
    """Return the frame with its channels named and its time removed: the clock is ours."""
    n_channels = len(frame.layout.channels)
    if n_channels <= 2 and frame.layout.name not in ("mono", "stereo"):
        layout = "mono" if n_channels == 1 else "stereo"
        named = AudioFrame.from_ndarray(frame.to_ndarray(), format=frame.format.name, layout=layout)
        named.sample_rate = frame.sample_rate
        return named
    frame.pts = None
    return frame


def _codec(decoder: str) -> str:
    """Return the codec of a decoder: "aac" for "aac_fixed", "mp3" for "mp3float"."""
    for codec in ("aac", "mp3", "ac3", "opus", "vorbis"):
        if decoder in (codec, f"{codec}float", f"lib{codec}", f"{codec}_fixed"):
            return codec
    return {"dca": "dts"}.get(decoder, decoder)
