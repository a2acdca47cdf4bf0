"""The work in progress: complete segments of equal length, each from an encoder of its own.

A segment counts once its list of times stands beside it. After an interruption the work goes on at the end of the last
complete segment, and since every segment is encoded by itself with fixed settings, the result is the same to the byte.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import av
from av.container import OutputContainer
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ksame.errors import OutputError, UsageError
from ksame.files import read_json, remove_parts, write_atomic, write_json
from ksame.scene.media.conversion import FrameConverter, OutputFrame
from ksame.scene.media.encoding import EncoderConfig, VideoSettings, mpeg4_rate
from ksame.scene.media.source import Media, Timestamp
from ksame.scene.media.threads import EncoderThread, queue_length

_STATE = "state.json"
_SUFFIXES = (".nut", ".json")  # of a complete segment: its packets, and its list of times
_SCHEMA, _VERSION = "ksame-media-work", 1
_GLOBAL_HEADER = 1 << 22
"""The codec's header stands in that of the container; an AVI file has it among the frames."""


SEGMENT = 240
"""Frames in one segment, by default: what an interruption can cost."""


@dataclass(frozen=True)
class WorkFolder:
    """The folder for the work in progress on one result; it is removed at the end."""

    path: Path
    resume: bool = False  # go on where an interrupted run stopped; otherwise earlier work is thrown away
    run_key: str = ""  # everything beside source and encoding that decides the pixels, such as options and seed
    segment_length: int = SEGMENT

    def prepare(self, media: Media, destination: Path, encoding: EncoderConfig) -> None:
        """Make the folder, or check that the earlier work in it was for the same."""
        state: dict[str, Any] = {
            "schema": _SCHEMA,
            "version": _VERSION,
            "source": media.fingerprint,
            "suffix": destination.suffix.lower(),
            "encoding": json.loads(json.dumps(asdict(encoding))),
            "options": self.run_key,
            "length": self.segment_length,
        }
        file = self.path / _STATE
        remove_parts(file)  # all that is there where a run was killed as it began
        if file.is_file() and self.resume:
            earlier = read_json(file)
            for key, value in state.items():
                if earlier.get(key) != value:
                    raise UsageError(
                        f"{self.path}: the work in progress there was for another {key}. "
                        "Repeat the command as it was, or start anew without --resume."
                    )
            return
        if file.is_file():
            shutil.rmtree(self.path)
        elif self.path.is_dir() and any(self.path.iterdir()):
            raise UsageError(f"{self.path}: the folder for work in progress is not empty. Choose another.")
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(file, state)


@dataclass(frozen=True, eq=False)
class Segment:
    """A complete segment of encoded video and the times of its frames."""

    path: Path
    timestamps: tuple[Timestamp, ...]

    def packets(self) -> Iterator[Packet[Any]]:
        """Yield the packets, one for each frame, and see that there are as many."""
        count = 0
        with av.open(str(self.path)) as container:
            for packet in container.demux(video=0):
                if packet.size:
                    count += 1
                    yield packet
        if count != len(self.timestamps):
            raise OutputError(f"{self.path}: {count} frames where {len(self.timestamps)} were written. Run again.")

    def frames(self) -> Iterator[VideoFrame]:
        """Yield the frames, decoded."""
        with av.open(str(self.path)) as container:
            yield from container.decode(video=0)


class Segments:
    """Frames in, complete segments out; iterating yields those in order.

    With a ``part``, only the segments of these numbers: others may be written elsewhere at the same time.
    """

    def __init__(self, work: WorkFolder, media: Media, settings: VideoSettings, part: range | None = None) -> None:
        self.settings = settings
        self._folder = work.path
        self._length = work.segment_length
        self._media = media
        self._first = 0 if part is None else part.start
        self._n_complete = self._survey(part)
        self.next_frame = self._first * self._length + sum(len(segment.timestamps) for segment in self)
        self._converter = FrameConverter(media, settings.pixel_format, settings.colours)
        self._encoder: _SegmentEncoder | None = None
        self._thread: EncoderThread[tuple[Callable[[], VideoFrame], Timestamp]] | None = None

    def __iter__(self) -> Iterator[Segment]:
        for number in range(self._first, self._n_complete):
            pairs = json.loads(self._file(number, ".json").read_text(encoding="utf-8"))
            yield Segment(self._file(number, ".nut"), tuple(Timestamp(pts, duration) for pts, duration in pairs))

    def _file(self, number: int, suffix: str) -> Path:
        return self._folder / f"{number:06d}{suffix}"

    def _survey(self, part: range | None) -> int:
        """Return the first segment that is not complete, and remove what is left of others, unless they are a part."""
        count = self._first
        while all(self._file(count, suffix).is_file() for suffix in _SUFFIXES) and (part is None or count < part.stop):
            count += 1
        if part is not None:
            return count
        complete = {self._file(n, suffix) for n in range(count) for suffix in _SUFFIXES}
        for path in set(self._folder.iterdir()) - complete:
            if path.name.lstrip(".").split(".")[0].isdigit() and path.suffix in (*_SUFFIXES, ".part"):
                path.unlink()
        return count

    def write(self, frame: OutputFrame) -> None:
        """Queue the next frame for the encoder."""
        timestamp = self._media.timestamp(self.next_frame)
        if self._thread is None:
            self._thread = EncoderThread(self._encode, queue_length(self._media.size))
        self._thread.put((self._converter.prepare(frame), timestamp))
        self.next_frame += 1

    def _encode(self, item: tuple[Callable[[], VideoFrame], Timestamp]) -> None:
        if self._encoder is None:
            self._encoder = _SegmentEncoder(self._file(self._n_complete, ".nut"), self._media, self.settings)
        make_frame, timestamp = item
        self._encoder.encode(make_frame(), timestamp)
        if len(self._encoder.timestamps) == self._length:
            self._complete(self._encoder)

    def _complete(self, encoder: _SegmentEncoder) -> None:
        encoder.complete()
        times = json.dumps([[timestamp.pts, timestamp.duration] for timestamp in encoder.timestamps])
        write_atomic(self._file(self._n_complete, ".json"), times.encode())
        self._encoder = None
        self._n_complete += 1

    def _stop_thread(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.close()

    def complete(self) -> None:
        """Complete the last segment."""
        self._stop_thread()
        if self._encoder is not None:
            self._complete(self._encoder)

    def abandon(self) -> None:
        """Complete what can be completed and forget the rest."""
        with suppress(OSError, av.FFmpegError, OutputError):
            self._stop_thread()
        if self._encoder is not None:
            self._encoder.abandon()
            self._encoder = None


class _SegmentEncoder:
    """Encodes one segment into a file under a temporary name."""

    def __init__(self, path: Path, media: Media, settings: VideoSettings) -> None:
        self.timestamps: list[Timestamp] = []
        self._path = path
        self._part = path.with_name(path.name + ".part")
        self._file = self._part.open("wb")
        self._container = av.open(self._file, mode="w", format="nut", container_options={"fflags": "+bitexact"})
        self._counts_frames = settings.counts_frames
        self._stream = add_video_stream(self._container, media, settings)

    def encode(self, frame: VideoFrame, timestamp: Timestamp) -> None:
        self.timestamps.append(timestamp)
        first = self.timestamps[0].pts
        frame.pts = len(self.timestamps) - 1 if self._counts_frames else timestamp.pts - first
        frame.time_base = self._stream.codec_context.time_base
        self._container.mux(self._stream.encode(frame))

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


def add_video_stream(container: OutputContainer, media: Media, settings: VideoSettings) -> VideoStream:
    """Add the stream for the frames of ``media``."""
    rate = mpeg4_rate(media.rate) if settings.counts_frames else media.rate
    stream = container.add_stream(settings.encoder, rate=rate, options=dict(settings.options))
    if not isinstance(stream, VideoStream):
        raise OutputError(f"{settings.encoder} is no encoder for video.")
    stream.width, stream.height = media.size
    stream.pix_fmt = settings.pixel_format
    context = stream.codec_context
    context.time_base = 1 / rate if settings.counts_frames else media.time_base
    context.sample_aspect_ratio = media.aspect
    flags = int(context.flags)
    context.flags = flags & ~_GLOBAL_HEADER if settings.counts_frames else flags | _GLOBAL_HEADER
    if settings.colours is not None:
        context.colorspace = settings.colours.matrix
        context.color_primaries = settings.colours.primaries
        context.color_trc = settings.colours.transfer
        context.color_range = settings.colours.range
    return stream
