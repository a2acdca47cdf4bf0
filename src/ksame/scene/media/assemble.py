"""The finished file: the pieces in one stream, the sound beside it, and nothing else."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
from av.container import OutputContainer
from av.packet import Packet
from av.stream import Stream

from ksame.errors import OutputError
from ksame.scene.media.encoding import Container, Encoding, countable
from ksame.scene.media.recording import Recording, opened
from ksame.scene.media.segments import Piece, Segments, film_stream, packets
from ksame.scene.media.sound import Sound, Timed
from ksame.scene.media.source import Media, Stamp

SUBTITLES = {"matroska": frozenset({"subrip", "srt", "ass", "ssa", "webvtt", "dvd_subtitle"}), "mp4": {"mov_text"}}
"""Codecs of subtitles by muxer."""


def assemble(segments: Segments, media: Media, encoding: Encoding, container: Container, path: Path) -> None:
    """Write the pieces, and the sound of the source where it is wanted, into one file.

    The frames keep the source's time stamps. Only an AVI file, which has no time stamps, counts in frames,
    and begins with the first of them.
    """
    first = next(segments.pieces(), None)
    if first is None:
        raise OutputError(f"{path}: no frame was written.")
    with_sound = encoding.audio == "keep" and container.sound is not None and media.has_sound
    start = first.stamps[0].at * media.time_base
    if not segments.settings.counted:
        start = _start(media, start, with_sound=with_sound)
    options = {"fflags": "+bitexact", **container.options}
    with av.open(str(path), mode="w", format=container.muxer, options=options) as output:
        film = film_stream(output, media, segments.settings)
        if segments.settings.encoder == "libx265" and container.muxer in ("mp4", "mov"):
            film.codec_context.codec_tag = "hvc1"  # the only name under which Apple's players know HEVC
        sources = [_film_packets(segments, media, film, start)]
        if isinstance(media, Recording):
            if with_sound:
                sources.append(Sound(media, output, container, start).packets())
            if "subtitles" in encoding.keep_metadata:
                sources.extend(_subtitles(media, output, container, start))
            for key in encoding.keep_metadata:
                if key in media.metadata:
                    output.metadata[key] = media.metadata[key]
        for _, packet in heapq.merge(*sources, key=lambda timed: timed[0]):
            output.mux_one(packet)


def _start(media: Media, start: Fraction, *, with_sound: bool) -> Fraction:
    """Return the time that becomes zero: that of what comes first, if it is after zero."""
    if with_sound:
        with opened(media.path) as source:
            stream = source.streams.audio[0]
            if stream.start_time is not None and stream.time_base is not None:
                start = min(start, stream.start_time * stream.time_base)
    return max(Fraction(0), math.floor(start / media.time_base) * media.time_base)


def _film_packets(segments: Segments, media: Media, film: Stream, start: Fraction) -> Iterator[Timed]:
    shift = round(start / media.time_base)
    rate = countable(media.rate)
    previous = -1
    for piece, following in _with_next(segments):
        ends = [stamp.at for stamp in piece.stamps[1:]]
        last = piece.stamps[-1]
        ends.append(last.at + last.duration if following is None else following.at)
        for packet, stamp, end in zip(packets(piece), piece.stamps, ends, strict=True):
            if segments.settings.counted:
                previous = max(previous + 1, round((stamp.at - shift) * media.time_base * rate))
                _place(packet, film, previous, 1, 1 / rate)
            else:
                _place(packet, film, stamp.at - shift, end - stamp.at, media.time_base)
            yield (stamp.at - shift) * media.time_base, packet


def _with_next(segments: Segments) -> Iterator[tuple[Piece, Stamp | None]]:
    """Yield every piece with the first time of the one after it."""
    waiting: Piece | None = None
    for piece in segments.pieces():
        if waiting is not None:
            yield waiting, piece.stamps[0]
        waiting = piece
    if waiting is not None:
        yield waiting, None


def _place(packet: Packet[Any], stream: Stream, at: int, duration: int, time_base: Fraction) -> None:
    packet.time_base = time_base
    packet.pts = packet.dts = at
    packet.duration = duration
    packet.stream = stream


def _subtitles(
    media: Recording, output: OutputContainer, container: Container, start: Fraction
) -> list[Iterator[Timed]]:
    with opened(media.path) as source:
        able = SUBTITLES.get(container.muxer, frozenset())
        kept = [
            (s.index, output.add_stream_from_template(s))
            for s in source.streams.subtitles
            if s.codec_context.name in able
        ]
    return [_copied(media, index, stream, start) for index, stream in kept]


def _copied(media: Recording, index: int, stream: Stream, start: Fraction) -> Iterator[Timed]:
    with opened(media.path) as source:
        for packet in source.demux(source.streams[index]):
            if packet.size and packet.dts is not None and packet.time_base is not None:
                shift = round(start / packet.time_base)
                packet.pts = packet.dts = packet.dts - shift
                packet.stream = stream
                yield packet.dts * packet.time_base, packet


def count_packets(path: Path) -> int:
    """Count the frames of a written file without decoding them."""
    with opened(path) as container:
        return sum(1 for packet in container.demux(video=0) if packet.size)
