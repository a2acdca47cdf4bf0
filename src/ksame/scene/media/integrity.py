"""Can a recording be trusted? Its container is complete and not encrypted, and its frames can all be decoded.

Decoders stop without a word where a file was cut off. Every container says how long its parts are, so that a missing
end is seen before anything is decoded; encrypted ones say so in their headers.
A damaged frame spoils those that are decoded after it, up to the next key frame; some of these are shown before it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

import av
from av.packet import Packet
from av.video.frame import VideoFrame

from ksame.errors import InputError

DamagePolicy = Literal["refuse", "mask"]
"""What becomes of a recording with frames that cannot be decoded."""

_HEADER_LIMIT = 1 << 26
_ASF_HEADER = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
_ASF_FILE_PROPERTIES = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
_ASF_ENCRYPTION = (
    bytes.fromhex("fbb3112223bdd211b4b700a0c955fc6e"),
    bytes.fromhex("14e68a292226174cb935dae07ee9289c"),
    bytes.fromhex("338505438169e6499b74ad12cb86d58c"),
)
_MP4_STARTS = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip")
_MKV_SEGMENT = 0x18538067
_PARENTS = frozenset({b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd", 0x1654AE6B, 0xAE, 0x6D80, 0x6240})
"""Parts of MP4 and Matroska (Tracks, TrackEntry, ContentEncodings, ContentEncoding) that lead to those below."""
_ENCRYPTION = frozenset({b"encv", b"enca", 0x5035})
_Parts: TypeAlias = "Callable[[BinaryIO, int, int], Iterator[tuple[bytes | int, int, int | None]]]"
"""Yields name, begin and, where it is known, end of the parts in a span of a file."""


def check_complete(path: Path) -> None:
    """Refuse a file that is cut off or encrypted."""
    try:
        with path.open("rb") as file:
            start, size = file.read(16), path.stat().st_size
            if start[4:8] in _MP4_STARTS:
                _check_mp4(path, file, size)
            elif start[:4] == b"\x1a\x45\xdf\xa3":
                _check_mkv(path, file, size)
            elif start[:4] == b"RIFF":
                _check_riff(path, file, size)
            elif start == _ASF_HEADER:
                _check_asf(path, file, size)
            elif start[:4] == b"GIF8":
                _check_gif(path, file)
    except struct.error as error:
        raise _cut_off(path, "its header is incomplete") from error
    except RecursionError as error:
        raise InputError(f"{path}: its structure makes no sense. Copy it again from where it was recorded.") from error


def _cut_off(path: Path, reason: str) -> InputError:
    return InputError(f"{path}: the file is cut off ({reason}). Copy it again from where it was recorded.")


def _check_end(path: Path, end: int, size: int) -> None:
    if end > size:
        raise _cut_off(path, f"{end - size} bytes are missing at its end")


def _encrypted(path: Path) -> InputError:
    return InputError(f"{path}: the recording is encrypted. Remove the protection with the program that set it.")


def _is_encrypted(parts: _Parts, file: BinaryIO, start: int, end: int) -> bool:
    """Tell whether a span of a file, or one of the parts that it consists of, speaks of encryption."""
    for name, inner, stop in parts(file, start, end):
        if name in _ENCRYPTION:
            return True
        skipped = 8 if name == b"stsd" else 0  # its version and the number of its entries
        if name in _PARENTS and _is_encrypted(parts, file, inner + skipped, stop or end):
            return True
    return False


def _mp4_boxes(file: BinaryIO, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    while start + 8 <= end:
        file.seek(start)
        length, name = struct.unpack(">I4s", file.read(8))
        header = 8
        if length == 1:
            extended = file.read(8)
            if len(extended) < 8:
                return
            length, header = struct.unpack(">Q", extended)[0], 16
        stop = end if length == 0 else start + length
        if length != 0 and length < header:
            return
        yield name, start + header, stop
        start = stop


def _check_mp4(path: Path, file: BinaryIO, size: int) -> None:
    described = False
    for name, start, stop in _mp4_boxes(file, 0, size):
        _check_end(path, stop, size)
        if name == b"moov":
            described = True
            if _is_encrypted(_mp4_boxes, file, start, stop):
                raise _encrypted(path)
    if not described:
        raise _cut_off(path, "the description at its end is missing")


def _ebml_number(file: BinaryIO, *, keep_marker: bool) -> tuple[int, bool]:
    """Read one EBML number; the flag tells that it stands for "unknown"."""
    first = file.read(1)
    length = 9 - first[0].bit_length() if first and first[0] else 0
    data = first + file.read(max(0, length - 1))
    if length == 0 or len(data) < length:
        return -1, False
    unmarked = int.from_bytes(data, "big") & ((1 << 7 * length) - 1)
    return (int.from_bytes(data, "big"), False) if keep_marker else (unmarked, unmarked == (1 << 7 * length) - 1)


def _mkv_elements(file: BinaryIO, start: int, end: int) -> Iterator[tuple[int, int, int | None]]:
    while start < end:
        file.seek(start)
        name, _ = _ebml_number(file, keep_marker=True)
        length, unknown = _ebml_number(file, keep_marker=False)
        if name < 0 or length < 0:
            return
        inner = file.tell()
        yield name, inner, None if unknown else inner + length
        if unknown:
            return
        start = inner + length


def _check_mkv(path: Path, file: BinaryIO, size: int) -> None:
    for name, start, stop in _mkv_elements(file, 0, size):
        _check_end(path, stop or 0, size)
        if name == _MKV_SEGMENT and _is_encrypted(_mkv_elements, file, start, stop or size):
            raise _encrypted(path)


def _check_riff(path: Path, file: BinaryIO, size: int) -> None:
    start = 0
    while start + 8 <= size:
        file.seek(start)
        name, length = struct.unpack("<4sI", file.read(8))
        if name != b"RIFF":
            return
        start += 8 + length + length % 2
        if start > size + 1:
            raise _cut_off(path, f"{start - size} bytes are missing at its end")


def _check_asf(path: Path, file: BinaryIO, size: int) -> None:
    file.seek(16)
    length = min(struct.unpack("<Q", file.read(8))[0], _HEADER_LIMIT)
    file.seek(0)
    header = file.read(length)
    if len(header) < length:
        raise _cut_off(path, "its header is incomplete")
    if any(mark in header for mark in _ASF_ENCRYPTION):
        raise _encrypted(path)
    at = header.find(_ASF_FILE_PROPERTIES)
    if 0 <= at <= len(header) - 92:
        file_size = struct.unpack_from("<Q", header, at + 40)[0]
        live = struct.unpack_from("<I", header, at + 88)[0] & 1
        if not live:
            _check_end(path, file_size, size)


def _check_gif(path: Path, file: BinaryIO) -> None:
    file.seek(10)
    flags = file.read(3)[:1]
    if flags and flags[0] & 0x80:
        file.seek(3 << ((flags[0] & 7) + 1), 1)
    while (mark := file.read(1)) not in (b"", b"\x3b"):
        if mark == b"\x21":
            file.seek(1, 1)
        elif mark == b"\x2c":
            place = file.read(9)
            if len(place) == 9 and place[8] & 0x80:
                file.seek(3 << ((place[8] & 7) + 1), 1)
            file.seek(1, 1)
        else:
            break
        while (length := file.read(1)) not in (b"", b"\x00"):
            file.seek(length[0], 1)
    if mark != b"\x3b":
        raise _cut_off(path, "the mark of its end is missing")


@dataclass(frozen=True)
class DamagedFrames:
    """Times of frames that cannot be trusted, in order, and those of all frames."""

    times: tuple[int, ...]
    all_times: frozenset[int]

    def contains(self, frame: VideoFrame) -> bool:
        """Tell whether a frame is damaged; where any is, so is a frame that belongs to no packet."""
        time = _time(frame)
        return bool(self.times) and (time is None or time in self.times or time not in self.all_times)


def _time(item: Packet[Any] | VideoFrame) -> int | None:
    """Return the time that a packet and its frame have in common."""
    return item.pts if item.pts is not None else item.dts


def find_damaged_frames(packets: Any) -> DamagedFrames:
    """Decode packets of a strict decoder without threads, one at a time, and note which it complains of."""
    order: list[tuple[int | None, bool]] = []
    bad: set[int] = set()
    places: dict[int | None, int] = {}
    for packet in packets:
        number = len(order)
        if packet.size:
            order.append((_time(packet), bool(packet.is_keyframe)))
            places[_time(packet)] = number
            if packet.is_corrupt:
                bad.add(number)
        try:
            frames = packet.decode()
        except (av.FFmpegError, MemoryError):
            bad.add(min(number, len(order) - 1))
            continue
        bad |= {places.get(_time(frame), len(order) - 1) for frame in frames if frame.is_corrupt}
    times = sorted(time for time in _spread(order, bad) if time is not None)
    return DamagedFrames(tuple(times), frozenset(time for time, _ in order if time is not None))


def _spread(order: list[tuple[int | None, bool]], bad: set[int]) -> set[int | None]:
    """Return the times of all frames that are made from bad ones; ``order`` is that of decoding."""
    damaged: set[int | None] = set()
    spreading = False
    leading_to: int | None = None
    for number, (time, key) in enumerate(order):
        if key:
            leading_to = time if spreading else None  # frames shown before it may be made from those before it
            spreading = False
        spreading = spreading or number in bad
        leading = leading_to is not None and time is not None and time < leading_to
        if spreading or leading:
            damaged.add(time)
    return damaged


def damaged_error(path: Path, index: int, reason: str) -> InputError:
    """Return the error for a recording with a damaged frame that is refused."""
    return InputError(
        f"{path}: frame {index} is damaged ({reason}). Copy the file again from where it was recorded, or have the "
        "damaged frames made black with --damaged mask."
    )
