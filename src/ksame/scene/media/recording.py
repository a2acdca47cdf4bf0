"""Recordings, read through PyAV."""

from __future__ import annotations

import re
import struct
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
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
from ksame.scene.media.compat import duration_of, is_cover, open_leniently
from ksame.scene.media.damage import Damage, Damaged, be_strict, damaged_file, find_damage
from ksame.scene.media.source import MATRICES, Coding, Colours, Media, Pixels, Read, Stamp, turned

_UNSPECIFIED, _FULL_RANGE = 2, 2
_PLANAR = re.compile(r"yuvj?4(20|22|44)p(10le|12le)?")
"""Pixel formats whose planes are taken over as they are."""
_DEFAULT_RATE = Fraction(25)
_FASTEST = 1000
_ONLY_FILES = {
    "format_whitelist": "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,asf,gif,mpegts,mpeg,flv,ogg,nut,mp3,wav,flac,aac",
    "protocol_whitelist": "file",
}
"""No play lists and no addresses: a file must not make us open another."""


@contextmanager
def opened(path: Path) -> Iterator[InputContainer]:
    """Open a recording; what PyAV cannot read becomes an :class:`InputError`."""
    try:
        container = open_leniently(path, _ONLY_FILES)
    except (av.FFmpegError, OSError, ValueError) as error:
        raise unreadable(path, error) from error
    with container:
        yield container


def unreadable(path: Path, error: Exception) -> InputError:
    """Return the error for a file that is no recording."""
    reason = getattr(error, "strerror", None) or str(error)
    return InputError(
        f"{path}: not a readable photograph or recording ({reason}). "
        "Expected MP4, MOV, MKV, AVI, WebM, WMV, GIF, JPEG, PNG, WebP, TIFF or BMP."
    )


def film(container: InputContainer, path: Path) -> VideoStream:
    """Return the stream with the moving pictures; covers of music do not count."""
    for stream in container.streams.video:
        if stream.codec_context is not None and not is_cover(stream):
            return stream
    if container.streams.audio:
        raise InputError(f"{path}: there is only sound in it. Choose a recording with pictures.")
    raise InputError(f"{path}: there are no pictures in it that could be decoded.")


class Recording(Media):
    """Moving pictures in a file that PyAV reads.

    Parameters
    ----------
    path : Path
    damaged : "refuse" or "mask"
        Whether frames that cannot be trusted end the reading, or are black.
    """

    def __init__(self, path: Path, damaged: Damaged = "refuse") -> None:
        self._damage = _damage(path) if damaged == "mask" else None
        self._black: set[int] = set()
        with opened(path) as container:
            stream = film(container, path)
            rate = _rate(stream)
            n_frames, exact = _count(container, stream, rate)
            time_base = stream.time_base or 1 / rate
            self.container_name = container.format.name
            self.loop = _loop(path) if container.format.name == "gif" else 0
            self.metadata = dict(container.metadata)
            self.entries = (*self.metadata, *(["subtitles"] if container.streams.subtitles else []))
            has_sound = bool(container.streams.audio)
            aspect = stream.codec_context.sample_aspect_ratio
            first = next((frame for frame, _ in self._decoded(container, stream, path)), None)
            if first is None:
                raise InputError(f"{path}: not a single frame could be decoded.")
            streams = (sum(not is_cover(s) for s in container.streams.video), len(container.streams.audio))
            bit_rate = stream.bit_rate or container.bit_rate or 0
            codec = stream.codec_context.name
            turn = _turn(first)
            size = (first.height, first.width) if turn % 2 else (first.width, first.height)
        super().__init__(path, size, n_frames, exact=exact, rate=rate, time_base=time_base)
        self.turn = turn  # of the whole recording: asking every frame ties each into a cycle that frees it late
        self.has_sound = has_sound
        if _PLANAR.fullmatch(first.format.name):
            bits = first.format.components[0].bits
            colours, interlaced = _colours(first, size), bool(first.interlaced_frame)
            self.coding = Coding(codec, first.format.name, bits, colours, bit_rate, interlaced, streams)
        if aspect:
            self.aspect = 1 / aspect if turn % 2 else aspect

    @property
    def damaged(self) -> tuple[int, ...]:
        """Numbers of the frames that were made black; of those that :meth:`frames` has come past."""
        return tuple(sorted(self._black))

    def _read(self, start: int) -> Iterator[Read]:
        stamp = Stamp(-1, 1)
        usual = max(1, round(1 / (self.rate * self.time_base)))
        reformatter = VideoReformatter()
        index = 0
        lost = deque(self._damage.times if self._damage else ())
        with opened(self.path) as container:
            stream = film(container, self.path)
            stream.thread_type = "AUTO"
            for frame, packet in self._decoded(container, stream, self.path):
                at = frame.pts if frame.pts is not None else stamp.at + stamp.duration if index else 0
                while lost and lost[0] <= at:
                    if (time := lost.popleft()) < at:
                        yield Stamp(time, usual), self._blackened(index, start), None
                        index += 1
                stamp = Stamp(at, duration_of(frame, packet) or usual)
                if self._damage is not None and self._damage.has(frame):
                    yield stamp, self._blackened(index, start), None
                else:
                    pixels = None if index < start else self._upright(frame, reformatter)
                    yield stamp, pixels, frame if self._same_coding(frame) else None
                index += 1
        for time in lost:
            yield Stamp(time, usual), self._blackened(index, start), None
            index += 1

    def _decoded(
        self, container: InputContainer, stream: VideoStream, path: Path
    ) -> Iterator[tuple[VideoFrame, Packet[Any]]]:
        """Yield frames and the packets that brought them; damage is an error, unless it is known and masked."""
        index = 0
        if self._damage is None:
            be_strict(stream)
        try:
            for packet in container.demux(stream):
                if self._damage is None and packet.is_corrupt:
                    raise damaged_file(path, index, "its data are incomplete")
                try:
                    frames = packet.decode()
                except av.FFmpegError:
                    if self._damage is None or not self._damage.times:
                        raise
                    continue
                for frame in frames:
                    if self._damage is None and frame.is_corrupt:
                        raise damaged_file(path, index, "parts of it are missing")
                    yield frame, packet
                    index += 1
        except (av.FFmpegError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise damaged_file(path, index, reason) from error

    def _blackened(self, index: int, start: int) -> Pixels | None:
        self._black.add(index)
        return None if index < start else np.zeros((self.size[1], self.size[0], 3), dtype=np.uint8)

    def _same_coding(self, frame: VideoFrame) -> bool:
        """Tell whether a frame is coded as the first; some recordings change in the middle."""
        width, height = reversed(self.size) if self.turn % 2 else self.size
        return (
            self.coding is not None
            and (frame.width, frame.height, frame.format.name) == (width, height, self.coding.pixels)
            and _colours(frame, self.size) == self.coding.colours
        )

    def _upright(self, frame: VideoFrame, reformatter: VideoReformatter) -> Pixels:
        width, height = reversed(self.size) if self.turn % 2 else self.size
        colours = _colours(frame, self.size)
        flat = reformatter.reformat(
            frame,
            width=width,
            height=height,
            format="rgb24",
            src_colorspace=colours.swscale,
            dst_colorspace=colours.swscale,
            src_color_range=2 if colours.full else 1,
            dst_color_range=2,
        )
        pixels = np.asarray(flat.to_ndarray(), dtype=np.uint8)
        return pixels if self.turn == 0 else turned(pixels, self.turn)


def _colours(frame: VideoFrame, size: tuple[int, int]) -> Colours:
    """Return the colours that a frame tells of; what it does not tell is as usual for its size."""
    usual = Colours.usual(size)
    matrix = int(frame.colorspace)
    if matrix not in MATRICES:
        matrix = usual.matrix
    full = frame.format.name.startswith("yuvj") or int(frame.color_range) == _FULL_RANGE
    primaries, transfer = int(frame.color_primaries), int(frame.color_trc)
    unknown = (0, _UNSPECIFIED)
    return Colours(
        matrix,
        usual.primaries if primaries in unknown else primaries,
        usual.transfer if transfer in unknown else transfer,
        full,
    )


def _turn(frame: VideoFrame) -> int:
    """Return how a frame has to be turned to stand upright; see :func:`turned`.

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
        if rate and 0 < rate <= _FASTEST:
            return Fraction(rate)
    return _DEFAULT_RATE


def _count(container: InputContainer, stream: VideoStream, rate: Fraction) -> tuple[int, bool]:
    """Return the number of frames as the header tells it; such a number is believed only once counted."""
    if stream.frames:
        return stream.frames, False
    if stream.duration and stream.time_base:
        return max(1, round(stream.duration * stream.time_base * rate)), False
    if container.duration:
        return max(1, round(Fraction(container.duration, av.time_base) * rate)), False
    return 1, False


def _loop(path: Path) -> int:
    """Return how often a GIF is repeated: 0 for ever, -1 never."""
    with path.open("rb") as file:
        head = file.read(1 << 12)
    at = head.find(b"NETSCAPE2.0\x03\x01")
    return -1 if at < 0 else int(struct.unpack_from("<H", head, at + 13)[0])


def _damage(path: Path) -> Damage:
    with opened(path) as container:
        stream = film(container, path)
        stream.thread_type = "NONE"
        be_strict(stream)
        try:
            return find_damage(container.demux(stream))
        except av.FFmpegError as error:
            raise unreadable(path, error) from error
