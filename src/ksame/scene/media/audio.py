"""The sound of a recording: copied packet by packet, or encoded anew on a steady clock, perhaps with another voice."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.filter import Graph
from av.packet import Packet
from av.stream import Stream
from av.video.frame import VideoFrame

from ksame.errors import InputError
from ksame.scene.media.encoding import Container
from ksame.scene.media.recording import Recording, open_container
from ksame.scene.media.voice import Voice, VoiceShifter

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
F = TypeVar("F", AudioFrame, VideoFrame)


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
    """The first sound of a recording on its way into a container that is being written; ``start`` becomes zero.

    With a ``voice`` all of it is shifted, and nothing of it copied.
    """

    def __init__(
        self,
        media: Recording,
        output: OutputContainer,
        container: Container,
        start: Fraction,
        voice: Voice | None = None,
    ) -> None:
        self._path = media.path
        self._start = start
        self._voice = voice
        self._muxer = container.muxer
        with open_container(media.path) as source:
            stream = source.streams.audio[0]
            self._index = stream.index
            self._rate = stream.codec_context.sample_rate
            self._layout = "mono" if stream.codec_context.channels == 1 else "stereo"
            first = next((packet for packet in source.demux(stream) if packet.size), None)
            fits = _codec(stream.codec_context.name) in container.audio_codecs
            self._copied = voice is None and fits and self._can_copy(first)
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
        frames = self._frames() if self._voice is None else _disguised(self._frames(), self._voice)
        for frame in chain(frames, [None]):
            for packet in self._stream.encode(frame):
                if packet.dts is not None and packet.time_base is not None:
                    yield packet.dts * packet.time_base, packet

    def _frames(self) -> Iterator[AudioFrame]:
        """Yield the frames to be encoded, without gaps.

        Where the first sample of all would have to be is the median over neighbours: single wrong times do no harm.
        """
        from scipy.ndimage import median_filter  # takes long to load, and few recordings need it

        offsets, offset, n_before = list[float](), 0.0, 0
        for frame in self._decoded():
            offset = offset if frame.time is None else frame.time - n_before / frame.sample_rate
            offsets.append(offset)
            n_before += frame.samples
        graph, n_before = None, 0
        for frame, offset in zip(self._decoded(), median_filter(offsets, _WINDOW, mode="nearest"), strict=True):
            graph = graph or self._clock(frame)
            frame.pts = n_before + round((offset - float(self._start)) * frame.sample_rate)
            frame.time_base = Fraction(1, frame.sample_rate)
            n_before += frame.samples
            graph.push(frame)
            yield from pulled(graph, AudioFrame)
        if graph is not None:
            graph.push(None)
            yield from pulled(graph, AudioFrame)

    def _clock(self, first: AudioFrame) -> Graph:
        """Return what puts in silence, leaves out sound and resamples, so that all samples come at their time.

        A container that cannot say when its sound begins gets silence in front, or loses what comes too early.
        """
        graph = Graph()
        start = ":first_pts=0" if self._muxer == "avi" else ""
        graph.link_nodes(
            graph.add_abuffer(sample_rate=first.sample_rate, format=first.format, layout=first.layout),
            graph.add("aresample", f"{self._rate}:async=1:min_hard_comp={_MAX_DRIFT}{start}"),
            graph.add("aformat", f"sample_fmts=fltp:channel_layouts={self._layout}"),
            graph.add("abuffersink"),
        ).configure()
        return graph

    def _decoded(self) -> Iterator[AudioFrame]:
        with open_container(self._path) as source:
            try:
                yield from map(_with_layout, source.decode(source.streams.audio[0]))
            except av.FFmpegError as error:
                raise InputError(
                    f"{self._path}: the sound cannot be decoded ({error.strerror}). Leave it out with --audio drop."
                ) from error


def _disguised(frames: Iterator[AudioFrame], voice: Voice) -> Iterator[AudioFrame]:
    """Yield frames of floats without gaps with another voice: as many samples, at the same times."""
    shifter, first, n_done = None, None, 0
    for frame in chain(frames, [None]):
        if frame is not None and (shifter is None or first is None):
            first, shifter = frame, VoiceShifter(voice, frame.sample_rate, len(frame.layout.channels))
        if shifter is None or first is None:
            return
        samples = shifter.flush() if frame is None else shifter.push(frame.to_ndarray().astype(np.float64))
        if not samples.shape[1]:
            continue
        made = AudioFrame.from_ndarray(
            np.ascontiguousarray(samples, dtype=np.float32), format=first.format.name, layout=first.layout.name
        )
        made.sample_rate, made.time_base = first.sample_rate, Fraction(1, first.sample_rate)
        made.pts = round(float(first.time or 0.0) * first.sample_rate) + n_done
        n_done += samples.shape[1]
        yield made


def pulled(graph: Graph, kind: type[F]) -> Iterator[F]:
    """Yield the frames that a graph of filters has ready."""
    while True:
        try:
            frame = graph.pull()
        except (av.BlockingIOError, av.EOFError):
            return
        if isinstance(frame, kind):
            yield frame


def _with_layout(frame: AudioFrame) -> AudioFrame:
    """Return the frame with its channels named."""
    layout = {1: "mono", 2: "stereo"}.get(len(frame.layout.channels), frame.layout.name)
    if layout == frame.layout.name:
        return frame
    named = AudioFrame.from_ndarray(frame.to_ndarray(), format=frame.format.name, layout=layout)
    named.sample_rate, named.pts, named.time_base = frame.sample_rate, frame.pts, frame.time_base
    return named


def _codec(decoder: str) -> str:
    """Return the codec of a decoder: "aac" for "aac_fixed", "mp3" for "mp3float"."""
    for codec in ("aac", "mp3", "ac3", "opus", "vorbis"):
        if decoder in (codec, f"{codec}float", f"lib{codec}", f"{codec}_fixed"):
            return codec
    return {"dca": "dts"}.get(decoder, decoder)
