"""The work in progress: complete pieces of equal length, each from an encoder of its own.

A piece counts once its list of times stands beside it. After an interruption the work goes on at the end of the last
complete piece, and since every piece is encoded by itself with fixed settings, the result is the same to the byte.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import av
from av.container import OutputContainer
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ksame.errors import OutputError
from ksame.scene.media.encoding import VideoSettings, countable
from ksame.scene.media.planes import FULL, LIMITED, Picture, Planes
from ksame.scene.media.source import Media, Stamp
from ksame.scene.media.threads import Behind, depth

LENGTH = 240
"""Frames in a piece."""
_GLOBAL_HEADER = 1 << 22
"""The codec's header stands in that of the container; an AVI file has it among the frames."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A complete piece of encoded video and the times of its frames."""

    film: Path
    stamps: tuple[Stamp, ...]


class Segments:
    """Frames in, complete pieces out.

    Parameters
    ----------
    folder : Path
    media : Media
    settings : VideoSettings
    length : int
        Frames in a piece.
    """

    def __init__(self, folder: Path, media: Media, settings: VideoSettings, length: int) -> None:
        self._folder = folder
        self._media = media
        self.settings = settings
        self._length = length
        self._done = self._survey()
        self.next_frame = 0
        if self._done:
            self.next_frame = (self._done - 1) * length + len(self._stamps(self._done - 1))
        self._piece: _Encoder | None = None
        self._behind: Behind[tuple[Picture, Stamp]] | None = None

    def _name(self, number: int, suffix: str) -> Path:
        return self._folder / f"{number:06d}{suffix}"

    def _survey(self) -> int:
        """Count the complete pieces and remove all others."""
        done = 0
        while self._name(done, ".nut").is_file() and self._name(done, ".json").is_file():
            done += 1
        keep = {self._name(n, suffix) for n in range(done) for suffix in (".nut", ".json")}
        for path in self._folder.iterdir():
            if path not in keep and path.suffix in (".nut", ".json", ".part") and path.stem.split(".")[0].isdigit():
                path.unlink()
        return done

    def _stamps(self, number: int) -> tuple[Stamp, ...]:
        pairs = json.loads(self._name(number, ".json").read_text(encoding="utf-8"))
        return tuple(Stamp(at, duration) for at, duration in pairs)

    def write(self, picture: Picture) -> None:
        """Queue the next frame for the encoder."""
        if self._behind is None:
            self._behind = Behind(self._encode, depth(self._media.size))
        self._behind.put((picture, self._media.stamp(self.next_frame)))
        self.next_frame += 1

    def _encode(self, item: tuple[Picture, Stamp]) -> None:
        picture, stamp = item
        if self._piece is None:
            self._piece = _Encoder(self._name(self._done, ".nut"), self._media, self.settings)
        self._piece.encode(picture, stamp)
        if len(self._piece.stamps) == self._length:
            self._complete(self._piece)

    def _complete(self, piece: _Encoder) -> None:
        piece.complete()
        times = json.dumps([[stamp.at, stamp.duration] for stamp in piece.stamps])
        listed = self._name(self._done, ".json.part")
        with listed.open("w", encoding="utf-8") as file:
            file.write(times)
            file.flush()
            os.fsync(file.fileno())
        listed.replace(self._name(self._done, ".json"))
        self._piece = None
        self._done += 1

    def finish(self) -> None:
        """Complete the last piece."""
        if self._behind is not None:
            behind, self._behind = self._behind, None
            behind.close()
        if self._piece is not None:
            self._complete(self._piece)

    def abandon(self) -> None:
        """Complete what can be completed and forget the rest."""
        if self._behind is not None:
            behind, self._behind = self._behind, None
            with suppress(OSError, av.FFmpegError):
                behind.close()
        if self._piece is not None:
            self._piece.abandon()
            self._piece = None

    def pieces(self) -> Iterator[Piece]:
        """Yield the complete pieces in order."""
        for number in range(self._done):
            yield Piece(self._name(number, ".nut"), self._stamps(number))


class _Encoder:
    """Encodes one piece into a file under a temporary name."""

    def __init__(self, path: Path, media: Media, settings: VideoSettings) -> None:
        self.stamps: list[Stamp] = []
        self._path = path
        self._part = path.with_name(path.name + ".part")
        self._file: BinaryIO = self._part.open("wb")
        self._container: OutputContainer = av.open(
            self._file, mode="w", format="nut", container_options={"fflags": "+bitexact"}
        )
        self._counted = settings.counted
        self._stream = film_stream(self._container, media, settings)
        self._planes = Planes(media, settings.pixels, settings.colours)

    def encode(self, picture: Picture, stamp: Stamp) -> None:
        made = self._planes.frame(picture)
        self.stamps.append(stamp)
        made.pts = len(self.stamps) - 1 if self._counted else stamp.at - self.stamps[0].at
        made.time_base = self._stream.codec_context.time_base
        self._container.mux(self._stream.encode(made))

    def complete(self) -> None:
        self._container.mux(self._stream.encode(None))
        self._container.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._part.replace(self._path)

    def abandon(self) -> None:
        with suppress(OSError, av.FFmpegError):
            self._container.close()
        with suppress(OSError):
            self._file.close()
        self._part.unlink(missing_ok=True)


def film_stream(container: OutputContainer, media: Media, settings: VideoSettings) -> VideoStream:
    """Add the stream for the frames of ``media``."""
    rate = countable(media.rate) if settings.counted else media.rate
    stream = container.add_stream(settings.encoder, rate=rate, options=dict(settings.options))
    if not isinstance(stream, VideoStream):
        raise OutputError(f"{settings.encoder} is no encoder for video.")
    stream.width, stream.height = media.size
    stream.pix_fmt = settings.pixels
    context = stream.codec_context
    context.time_base = 1 / rate if settings.counted else media.time_base
    context.sample_aspect_ratio = media.aspect
    flags = int(context.flags)
    context.flags = flags & ~_GLOBAL_HEADER if settings.counted else flags | _GLOBAL_HEADER
    if settings.colours is not None:
        context.colorspace = settings.colours.matrix
        context.color_primaries = settings.colours.primaries
        context.color_trc = settings.colours.transfer
        context.color_range = FULL if settings.colours.full else LIMITED
    return stream


def packets(piece: Piece) -> Iterator[Packet[Any]]:
    """Yield the packets of a piece, one for each frame, and see that there are as many."""
    count = 0
    with av.open(str(piece.film)) as container:
        for packet in container.demux(video=0):
            if packet.size:
                count += 1
                yield packet
    if count != len(piece.stamps):
        raise OutputError(f"{piece.film}: {count} frames where {len(piece.stamps)} were written. Run again.")


def pictures(piece: Piece) -> Iterator[VideoFrame]:
    """Yield the frames of a piece, decoded."""
    with av.open(str(piece.film)) as container:
        yield from container.decode(video=0)
