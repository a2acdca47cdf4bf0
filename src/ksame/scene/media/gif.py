"""GIF: one palette made from all frames, then every frame drawn with it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import av.filter
from av.video.format import VideoFormat
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ksame.errors import OutputError
from ksame.scene.media.segments import Segments, pictures
from ksame.scene.media.source import Media

_HUNDREDTH = Fraction(1, 100)
_SHORTEST = 2
"""Hundredths of a second; players slow down anything shorter."""


def assemble_gif(segments: Segments, media: Media, path: Path) -> None:
    """Write the pieces as a GIF with the source's delays, repeated as often as the source if that is a GIF."""
    palette = _palette(segments, media)
    delays = list(_delays(segments, media))
    options = {"fflags": "+bitexact", "loop": str(getattr(media, "loop", 0)), "final_delay": str(delays[-1])}
    with av.open(str(path), mode="w", format="gif", options=options) as output:
        stream = output.add_stream("gif", rate=media.rate)
        if not isinstance(stream, VideoStream):
            raise OutputError(f"{path}: no encoder for GIF.")
        stream.width, stream.height = media.size
        stream.pix_fmt = "pal8"
        stream.codec_context.time_base = _HUNDREDTH
        at = 0
        for frame, delay in zip(_drawn(segments, media, palette), delays, strict=True):
            frame.pts, frame.time_base = at, _HUNDREDTH
            at += delay
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))


def _frames(segments: Segments) -> Iterator[VideoFrame]:
    index = 0
    for piece in segments.pieces():
        for frame in pictures(piece):
            frame.pts, frame.time_base = index, _HUNDREDTH
            index += 1
            yield frame


def _delays(segments: Segments, media: Media) -> Iterator[int]:
    """Yield the delay of each frame in hundredths of a second; rounding errors do not add up."""
    shown = 0
    stamps = [stamp for piece in segments.pieces() for stamp in piece.stamps]
    for i, stamp in enumerate(stamps):
        end = stamps[i + 1].at if i + 1 < len(stamps) else stamp.at + stamp.duration
        due = round((end - stamps[0].at) * media.time_base / _HUNDREDTH)
        delay = max(_SHORTEST, due - shown)
        shown += delay
        yield delay


def _source(graph: av.filter.Graph, media: Media) -> av.filter.context.FilterContext:
    width, height = media.size
    return graph.add_buffer(width=width, height=height, format=VideoFormat("bgr0"), time_base=_HUNDREDTH)


def _palette(segments: Segments, media: Media) -> VideoFrame:
    graph = av.filter.Graph()
    source, maker, sink = _source(graph, media), graph.add("palettegen", "stats_mode=full"), graph.add("buffersink")
    source.link_to(maker)
    maker.link_to(sink)
    graph.configure()
    made: list[VideoFrame] = []
    for frame in _frames(segments):
        source.push(frame)
        made.extend(_pulled(sink))  # nothing yet, but frames wait in the graph until something is asked for
    source.push(None)
    made.extend(_pulled(sink))
    if len(made) != 1:
        raise OutputError("The colours of the GIF could not be chosen.")
    return made[0]


def _drawn(segments: Segments, media: Media, palette: VideoFrame) -> Iterator[VideoFrame]:
    graph = av.filter.Graph()
    source = _source(graph, media)
    colours = graph.add_buffer(width=palette.width, height=palette.height, format=palette.format, time_base=_HUNDREDTH)
    user, sink = graph.add("paletteuse", "dither=sierra2_4a"), graph.add("buffersink")
    source.link_to(user, 0, 0)
    colours.link_to(user, 0, 1)
    user.link_to(sink)
    graph.configure()
    palette.pts, palette.time_base = 0, _HUNDREDTH
    colours.push(palette)
    colours.push(None)
    for frame in _frames(segments):
        source.push(frame)
        yield from _pulled(sink)
    source.push(None)
    yield from _pulled(sink)


def _pulled(sink: av.filter.context.FilterContext) -> Iterator[VideoFrame]:
    while True:
        try:
            frame = sink.pull()
        except (av.BlockingIOError, av.EOFError):
            return
        if isinstance(frame, VideoFrame):
            yield frame
