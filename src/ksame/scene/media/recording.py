"""Recordings, read through PyAV (17 and later)."""

from __future__ import annotations

import re
import struct
from collections import deque
from collections.abc import Container, Generator, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import av
import numpy as np
from av.buffer import Buffer
from av.container import InputContainer
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from av.video.stream import VideoStream

from ksame.errors import InputError
from ksame.pictures import STRICT, Pixels, orient
from ksame.scene.media.conversion import reformat
from ksame.scene.media.integrity import DamagedFrames, DamagePolicy, damaged_error, find_damaged_frames
from ksame.scene.media.metadata import container_entries
from ksame.scene.media.source import SWSCALE_MATRICES, ColourSpace, DecodedFrame, Media, StreamInfo, Timestamp
from ksame.scene.media.threads import queue_length

_PLANAR = re.compile(r"yuvj?4(20|22|44)p(10le|12le)?")
"""Pixel formats whose planes are taken over as they are."""
_UNSPECIFIED = (0, 2)
_FULL_RANGE = 2
_DEFAULT_RATE = Fraction(25)
_MAX_RATE = 1000
_ATTACHED_PICTURE = 0x400
_ONLY_FILES = {
    "format_whitelist": "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,asf,gif,mpegts,mpeg,flv,ogg,nut,mp3,wav,flac,aac",
    "protocol_whitelist": "file",
}
"""No play lists and no addresses: a file must not make us open another."""
_ANY_METADATA: dict[str, Any] = {"metadata_errors": "ignore"} if int(av.__version__.split(".")[0]) < 19 else {}
"""Metadata may be bytes of any kind; from PyAV 19 on they always may."""


@contextmanager
def open_container(path: Path) -> Iterator[InputContainer]:
    """Open a recording; what PyAV cannot read becomes an :class:`InputError`."""
    try:
        container = av.open(str(path), mode="r", options=dict(_ONLY_FILES), **_ANY_METADATA)
    except (av.FFmpegError, OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    with container:
        yield container


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(
        f"{path}: not a readable photograph or recording ({_reason(error)}). "
        "Expected MP4, MOV, MKV, AVI, WebM, WMV, GIF, JPEG, PNG, WebP, TIFF or BMP."
    )


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def video_stream(container: InputContainer, path: Path) -> VideoStream:
    """Return the stream with the moving pictures; covers of music do not count."""
    for stream in container.streams.video:
        if stream.codec_context is not None and not _is_cover(stream):
            return stream
    if container.streams.audio:
        raise InputError(f"{path}: there is only sound in it. Choose a recording with pictures.")
    raise InputError(f"{path}: there are no pictures in it that could be decoded.")


def _is_cover(stream: VideoStream) -> bool:
    disposition: Any = stream.disposition  # a flag in PyAV 17, a number in 18
    return bool(getattr(disposition, "value", disposition) & _ATTACHED_PICTURE)


class Recording(Media):
    """Moving pictures in a file that PyAV reads; frames that cannot be trusted end the reading, or are black."""

    def __init__(self, path: Path, damaged: DamagePolicy = "refuse") -> None:
        self._damage = _survey_damage(path) if damaged == "mask" else None
        self._black: set[int] = set()
        with open_container(path) as container:
            stream = video_stream(container, path)
            rate = _rate(stream)
            n_frames, time_base = _frame_count(container, stream, rate), stream.time_base or 1 / rate
            self.loop = _loop(path) if container.format.name == "gif" else 0
            self.metadata = container_entries(container.metadata)
            self.metadata_keys = (*self.metadata, *(["subtitles"] if container.streams.subtitles else []))
            self.has_sound = bool(container.streams.audio)
            aspect = stream.codec_context.sample_aspect_ratio
            first = next((frame for frame, _ in self._trusted_frames(container, stream, path)), None)
            if first is None:
                raise InputError(f"{path}: not a single frame could be decoded.")
            # of the whole recording: asking every frame ties each into a cycle that frees it late
            self.orientation = _orientation(first)
            size = (first.height, first.width) if self.orientation % 2 else (first.width, first.height)
            self.stream = _stream_info(container, stream, first, size)
        super().__init__(path, size, n_frames, exact=False, rate=rate, time_base=time_base)
        if aspect:
            self.aspect = 1 / aspect if self.orientation % 2 else aspect

    @property
    def damaged(self) -> tuple[int, ...]:
        """Numbers of the frames that were made black; of those that :meth:`frames` has come past."""
        return tuple(sorted(self._black))

    def _decode(self, wanted: Container[int]) -> Generator[DecodedFrame, None, None]:
        timestamp = Timestamp(-1, 1)
        default_duration = max(1, round(1 / (self.rate * self.time_base)))
        converter = VideoReformatter(), Lock()
        index = 0
        missing = deque(self._damage.times if self._damage else ())
        with open_container(self.path) as container:
            stream = video_stream(container, self.path)
            # several frames at a time; of large ones, which would take much memory, one
            stream.thread_type = "AUTO" if queue_length(self.size) > 1 else "SLICE"
            for frame, packet in self._trusted_frames(container, stream, self.path):
                pts = frame.pts if frame.pts is not None else timestamp.pts + timestamp.duration if index else 0
                while missing and missing[0] <= pts:
                    if (time := missing.popleft()) < pts:
                        yield Timestamp(time, default_duration), self._black_pixels(index, wanted), None
                        index += 1
                timestamp = Timestamp(pts, frame.duration or packet.duration or default_duration)
                if self._damage is not None and self._damage.contains(frame):
                    yield timestamp, self._black_pixels(index, wanted), None
                else:
                    pixels = partial(self._upright, frame, converter) if index in wanted else None
                    yield timestamp, pixels, frame if self._coded_as_first(frame) else None
                index += 1
        for time in missing:
            yield Timestamp(time, default_duration), self._black_pixels(index, wanted), None
            index += 1

    def _trusted_frames(
        self, container: InputContainer, stream: VideoStream, path: Path
    ) -> Iterator[tuple[VideoFrame, Packet[Any]]]:
        """Yield frames and the packets that brought them; damage is an error, unless it is known and masked."""
        index = 0
        strict = self._damage is None
        if strict:
            stream.codec_context.options = STRICT
        try:
            for packet in container.demux(stream):
                if strict and packet.is_corrupt:
                    raise damaged_error(path, index, "its data are incomplete")
                try:
                    frames = packet.decode()
                except av.FFmpegError:
                    if self._damage is None or not self._damage.times:
                        raise
                    continue
                for frame in frames:
                    if strict and frame.is_corrupt:
                        raise damaged_error(path, index, "parts of it are missing")
                    yield frame, packet
                    index += 1
        except (av.FFmpegError, MemoryError) as error:
            raise damaged_error(path, index, _reason(error)) from error

    def _black_pixels(self, index: int, wanted: Container[int]) -> Pixels | None:
        self._black.add(index)
        return np.zeros((self.size[1], self.size[0], 3), dtype=np.uint8) if index in wanted else None

    @property
    def _coded_size(self) -> tuple[int, int]:
        return (self.size[1], self.size[0]) if self.orientation % 2 else self.size

    def _coded_as_first(self, frame: VideoFrame) -> bool:
        """Tell whether a frame is coded as the first; some recordings change in the middle."""
        return (
            self.stream is not None
            and ((frame.width, frame.height), frame.format.name) == (self._coded_size, self.stream.pixel_format)
            and _colour_space(frame, self.size) == self.stream.colours
        )

    def _upright(self, frame: VideoFrame, converter: tuple[VideoReformatter, Lock]) -> Pixels:
        colours, (reformatter, lock) = _colour_space(frame, self.size), converter
        with lock:
            rgb = reformat(reformatter, frame, "rgb24", colours, colours.as_rgb, self._coded_size)
        pixels = np.asarray(rgb.to_ndarray(), dtype=np.uint8)
        return pixels if self.orientation == 0 else orient(pixels, self.orientation)


def _stream_info(
    container: InputContainer, stream: VideoStream, first: VideoFrame, size: tuple[int, int]
) -> StreamInfo | None:
    if not _PLANAR.fullmatch(first.format.name):
        return None
    return StreamInfo(
        stream.codec_context.name,
        first.format.name,
        first.format.components[0].bits,
        _colour_space(first, size),
        bit_rate=stream.bit_rate or container.bit_rate or 0,
        interlaced=bool(first.interlaced_frame),
        n_video=sum(not _is_cover(s) for s in container.streams.video),
        n_audio=len(container.streams.audio),
    )


def _colour_space(frame: VideoFrame, size: tuple[int, int]) -> ColourSpace:
    """Return the colours that a frame tells of; what it does not tell is the default for its size."""
    default = ColourSpace.default_for(size)
    matrix, primaries, transfer = int(frame.colorspace), int(frame.color_primaries), int(frame.color_trc)
    return ColourSpace(
        matrix if matrix in SWSCALE_MATRICES else default.matrix,
        default.primaries if primaries in _UNSPECIFIED else primaries,
        default.transfer if transfer in _UNSPECIFIED else transfer,
        frame.format.name.startswith("yuvj") or int(frame.color_range) == _FULL_RANGE,
    )


def _orientation(frame: VideoFrame) -> int:
    """Return how a frame has to be turned to stand upright; see :func:`ksame.pictures.orient`.

    The display matrix maps a pixel (x, y), y down, to (a·x + c·y, b·x + d·y).
    """
    try:
        data = frame.side_data.get("DISPLAYMATRIX")
    except ValueError:  # PyAV knows no name for something else that comes with the frame
        return round(frame.rotation / 90) % 4
    if not isinstance(data, Buffer):
        return 0
    a, b, _, c, d = struct.unpack("<5i", bytes(data)[:20])
    flipped = a * d - b * c < 0
    if flipped:
        a, b = -a, -b
    upright = abs(a) >= abs(b)
    quarter = (0 if a > 0 else 2) if upright else (3 if b > 0 else 1)
    return quarter + 4 * flipped


def _rate(stream: VideoStream) -> Fraction:
    for rate in (stream.average_rate, stream.guessed_rate, stream.base_rate):
        if rate and 0 < rate <= _MAX_RATE:
            return Fraction(rate)
    return _DEFAULT_RATE


def _frame_count(container: InputContainer, stream: VideoStream, rate: Fraction) -> int:
    """Return the number of frames as the header tells it; such a number is believed only once counted."""
    if stream.frames:
        return stream.frames
    if stream.duration and stream.time_base:
        return max(1, round(stream.duration * stream.time_base * rate))
    return max(1, round(Fraction(container.duration or 0, av.time_base) * rate))


def _loop(path: Path) -> int:
    """Return how often a GIF is repeated: 0 for ever, -1 never."""
    with path.open("rb") as file:
        head = file.read(1 << 12)
    at = head.find(b"NETSCAPE2.0\x03\x01")
    return -1 if at < 0 else int(struct.unpack_from("<H", head, at + 13)[0])


def _survey_damage(path: Path) -> DamagedFrames:
    with open_container(path) as container:
        stream = video_stream(container, path)
        stream.thread_type = "NONE"
        stream.codec_context.options = STRICT
        try:
            return find_damaged_frames(container.demux(stream))
        except av.FFmpegError as error:
            raise _unreadable(path, error) from error
