"""The finished recording: the segments in one stream, the sound beside it, and nothing else."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, islice, zip_longest
from pathlib import Path

import av
from av.container import OutputContainer
from av.filter import Graph
from av.filter.context import FilterContext
from av.stream import Stream
from av.video.format import VideoFormat
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ksame.errors import OutputError
from ksame.scene.media.audio import AudioTrack, TimedPacket, copy_packets, pulled
from ksame.scene.media.encoding import CONTAINERS, Container, EncoderConfig, losses, mpeg4_rate, video_settings
from ksame.scene.media.integrity import check_complete
from ksame.scene.media.metadata import asked_for
from ksame.scene.media.recording import Recording, open_container
from ksame.scene.media.segments import Segment, Segments, WorkFolder, add_video_stream
from ksame.scene.media.source import Media
from ksame.scene.media.voice import Voice

_GIF_TIME_BASE = Fraction(1, 100)
_GIF_MIN_DELAY = 2
"""In hundredths of a second; players slow down anything shorter."""


class VideoWriter(Segments):
    """Writes a recording: segment by segment, then all of them into one file with the sound of the source.

    With a ``part``, only the segments of these numbers, for a writer that goes on with them.
    """

    def __init__(
        self,
        media: Media,
        encoding: EncoderConfig,
        destination: Path,
        work: WorkFolder,
        voice: Voice | None = None,
        part: range | None = None,
    ) -> None:
        self._encoding = encoding
        self._voice = voice
        self._container = CONTAINERS[destination.suffix.lower()]
        codec = encoding.codec_for(destination, 8 if media.stream is None else media.stream.bits)
        settings = video_settings(codec, encoding, media)
        self.losses = losses(media, settings.bits, encoding, self._container)
        super().__init__(work, media, settings, part)

    def finish(self, path: Path) -> None:
        """Write the file, and see that all frames arrived in it."""
        self.complete()
        if self.next_frame == 0:
            raise OutputError(f"{path}: no frame was written.")
        if self._container.muxer == "gif":
            _mux_gif(self, self._media, path)
        else:
            _mux(self, self._media, self._encoding, self._container, path, self._voice)
        check_complete(path)
        with open_container(path) as container:
            count = sum(1 for packet in container.demux(video=0) if packet.size)
        if count != self.next_frame:
            raise OutputError(f"{path}: {count} frames arrived of {self.next_frame} that were written.")


def _mux(
    segments: Segments, media: Media, encoding: EncoderConfig, container: Container, path: Path, voice: Voice | None
) -> None:
    """Write the segments, and the sound of the source where it is wanted, into one file.

    The frames keep the source's time stamps. Only an AVI file, which has no time stamps, counts in frames,
    and begins with the first of them.
    """
    with_sound = encoding.audio != "drop" and container.audio_encoder is not None and media.has_sound
    start = next(iter(segments)).timestamps[0].pts * media.time_base
    if not segments.settings.counts_frames:
        start = _start_time(media, start, with_sound=with_sound)
    options = {"fflags": "+bitexact", **container.options}
    with av.open(str(path), mode="w", format=container.muxer, options=options) as output:
        stream = add_video_stream(output, media, segments.settings)
        if segments.settings.encoder == "libx265" and container.muxer in ("mp4", "mov"):
            stream.codec_context.codec_tag = "hvc1"  # the only name under which Apple's players know HEVC
        sources = [_video_packets(segments, media, stream, start)]
        if isinstance(media, Recording):
            if with_sound:
                sources.append(AudioTrack(media, output, container, start, voice).packets())
            if "subtitles" in encoding.keep_metadata:
                sources.extend(_subtitles(media, output, container, start))
            for key in sorted(asked_for(media.metadata, encoding.keep_metadata)):
                output.metadata[key] = media.metadata[key]
        for _, packet in heapq.merge(*sources, key=lambda timed: timed[0]):
            output.mux_one(packet)


def _start_time(media: Media, start: Fraction, *, with_sound: bool) -> Fraction:
    """Return the time that becomes zero: that of what comes first, if it is after zero."""
    if with_sound:
        with open_container(media.path) as source:
            stream = source.streams.audio[0]
            if stream.start_time is not None and stream.time_base is not None:
                start = min(start, stream.start_time * stream.time_base)
    return max(Fraction(0), math.floor(start / media.time_base) * media.time_base)


def _video_packets(segments: Segments, media: Media, stream: Stream, start: Fraction) -> Iterator[TimedPacket]:
    shift = round(start / media.time_base)
    rate = mpeg4_rate(media.rate)
    previous = -1
    for segment, ends in _with_ends(segments):
        for packet, timestamp, end in zip(segment.packets(), segment.timestamps, ends, strict=True):
            time = timestamp.pts - shift
            if segments.settings.counts_frames:
                previous = max(previous + 1, round(time * media.time_base * rate))
                packet.time_base, packet.pts, packet.duration = 1 / rate, previous, 1
            else:
                packet.time_base, packet.pts, packet.duration = media.time_base, time, end - timestamp.pts
            packet.dts, packet.stream = packet.pts, stream
            yield time * media.time_base, packet


def _with_ends(segments: Segments) -> Iterator[tuple[Segment, list[int]]]:
    """Yield every segment and when each of its frames ends: where the next begins."""
    for segment, following in zip_longest(segments, islice(segments, 1, None)):
        last = segment.timestamps[-1]
        end = last.pts + last.duration if following is None else following.timestamps[0].pts
        yield segment, [*(timestamp.pts for timestamp in segment.timestamps[1:]), end]


def _subtitles(
    media: Recording, output: OutputContainer, container: Container, start: Fraction
) -> list[Iterator[TimedPacket]]:
    with open_container(media.path) as source:
        copied = [s for s in source.streams.subtitles if s.codec_context.name in container.subtitles]
        streams = [(s.index, output.add_stream_from_template(s)) for s in copied]
    return [copy_packets(media.path, index, stream, start) for index, stream in streams]


def _mux_gif(segments: Segments, media: Media, path: Path) -> None:
    """Write the segments as a GIF with the source's delays, repeated as often as the source."""
    palette = _palette(segments, media)
    delays = _gif_delays(segments, media)
    options = {"fflags": "+bitexact", "loop": str(media.loop), "final_delay": str(delays[-1])}
    with av.open(str(path), mode="w", format="gif", options=options) as output:
        stream = output.add_stream("gif", rate=media.rate)
        if not isinstance(stream, VideoStream):
            raise OutputError(f"{path}: no encoder for GIF.")
        stream.width, stream.height = media.size
        stream.pix_fmt = "pal8"
        stream.codec_context.time_base = _GIF_TIME_BASE
        pts = 0
        for frame, delay in zip(_with_palette(segments, media, palette), delays, strict=True):
            frame.pts, frame.time_base = pts, _GIF_TIME_BASE
            pts += delay
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))


def _gif_delays(segments: Segments, media: Media) -> list[int]:
    """Return the delay of each frame in hundredths of a second; rounding errors do not add up."""
    delays: list[int] = []
    shown, first = 0, next(iter(segments)).timestamps[0].pts
    for end in (end for _, ends in _with_ends(segments) for end in ends):
        due = round((end - first) * media.time_base / _GIF_TIME_BASE)
        delays.append(max(_GIF_MIN_DELAY, due - shown))
        shown += delays[-1]
    return delays


def _palette(segments: Segments, media: Media) -> VideoFrame:
    """Choose one palette for all frames."""
    graph = Graph()
    source = _buffer(graph, media.size, "bgr0")
    graph.link_nodes(source, graph.add("palettegen", "stats_mode=full"), graph.add("buffersink")).configure()
    palettes = list(_filtered(segments, source, graph))
    if len(palettes) != 1:
        raise OutputError("The colours of the GIF could not be chosen.")
    return palettes[0]


def _with_palette(segments: Segments, media: Media, palette: VideoFrame) -> Iterator[VideoFrame]:
    graph = Graph()
    source, mapper = _buffer(graph, media.size, "bgr0"), graph.add("paletteuse", "dither=sierra2_4a")
    graph.link_nodes(source, mapper, graph.add("buffersink"))
    colours = _buffer(graph, (palette.width, palette.height), palette.format.name)
    colours.link_to(mapper, 0, 1)
    graph.configure()
    palette.pts, palette.time_base = 0, _GIF_TIME_BASE
    colours.push(palette)
    colours.push(None)
    yield from _filtered(segments, source, graph)


def _buffer(graph: Graph, size: tuple[int, int], pixels: str) -> FilterContext:
    return graph.add_buffer(width=size[0], height=size[1], format=VideoFormat(pixels), time_base=_GIF_TIME_BASE)


def _filtered(segments: Segments, source: FilterContext, graph: Graph) -> Iterator[VideoFrame]:
    """Yield what filters make of all frames; asked after each, so that they do not wait in the graph."""
    frames = (frame for segment in segments for frame in segment.frames())
    for index, frame in enumerate(chain(frames, [None])):
        if frame is not None:
            frame.pts, frame.time_base = index, _GIF_TIME_BASE
        source.push(frame)
        yield from pulled(graph, VideoFrame)
