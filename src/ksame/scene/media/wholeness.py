"""Is a media file whole, and may it be read? Answered from its structure, before anything is decoded.

Decoders stop without a word where a file was cut off. Every container says how long its parts are, so that a missing
end is seen at once; encrypted ones say so in their headers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ksame.errors import InputError

_HEADER_LIMIT = 1 << 26
_ASF_HEADER = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
_ASF_FILE = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
_ASF_LOCKS = (
    bytes.fromhex("fbb3112223bdd211b4b700a0c955fc6e"),
    bytes.fromhex("14e68a292226174cb935dae07ee9289c"),
    bytes.fromhex("338505438169e6499b74ad12cb86d58c"),
)
_MP4_NESTS = frozenset({b"moov", b"trak", b"mdia", b"minf", b"stbl"})
_MKV_SEGMENT, _MKV_TRACKS, _MKV_TRACK = 0x18538067, 0x1654AE6B, 0xAE
_MKV_ENCODINGS, _MKV_ENCODING, _MKV_ENCRYPTION = 0x6D80, 0x6240, 0x5035


def check_whole(path: Path) -> None:
    """Refuse a file that is cut off or encrypted.

    Raises
    ------
    InputError
        With the container's name and what is missing.
    """
    try:
        _check(path)
    except struct.error as error:
        raise _cut_off(path, "its header is incomplete") from error
    except RecursionError as error:
        raise InputError(f"{path}: its structure makes no sense. Copy it again from where it was recorded.") from error


def _check(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(16)
        if start[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"):
            _check_mp4(path, file, size)
        elif start[:4] == b"\x1a\x45\xdf\xa3":
            _check_mkv(path, file, size)
        elif start[:4] == b"RIFF":
            _check_riff(path, file, size)
        elif start == _ASF_HEADER:
            _check_asf(path, file, size)
        elif start[:4] == b"GIF8":
            _check_gif(path, file)


def _cut_off(path: Path, what: str) -> InputError:
    return InputError(f"{path}: the file is cut off ({what}). Copy it again from where it was recorded.")


def _encrypted(path: Path) -> InputError:
    return InputError(f"{path}: the recording is encrypted. Remove the protection with the program that set it.")


def _boxes(file: BinaryIO, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the name, the start of the content and the end of every MP4 box."""
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
    for name, start, stop in _boxes(file, 0, size):
        if stop > size:
            raise _cut_off(path, f"{stop - size} bytes are missing at its end")
        if name == b"moov":
            described = True
            if _mp4_locked(file, start, stop):
                raise _encrypted(path)
    if not described:
        raise _cut_off(path, "the description at its end is missing")


def _mp4_locked(file: BinaryIO, start: int, stop: int) -> bool:
    for name, inner, end in _boxes(file, start, stop):
        if name in _MP4_NESTS and _mp4_locked(file, inner, end):
            return True
        if name == b"stsd" and any(kind in (b"encv", b"enca") for kind, _, _ in _boxes(file, inner + 8, end)):
            return True
    return False


def _number(file: BinaryIO, *, keep_marker: bool) -> tuple[int, bool]:
    """Read one EBML number; the flag tells that it stands for "unknown"."""
    first = file.read(1)
    if not first or first[0] == 0:
        return -1, False
    length = 9 - first[0].bit_length()
    value = first[0] if keep_marker else first[0] & (0xFF >> length)
    rest = file.read(length - 1)
    if len(rest) < length - 1:
        return -1, False
    value = int.from_bytes(bytes([value]) + rest, "big")
    return value, not keep_marker and value == (1 << (7 * length)) - 1


def _elements(file: BinaryIO, start: int, end: int) -> Iterator[tuple[int, int, int | None]]:
    """Yield the id, the start of the content and the end of every EBML element; None for an unknown end."""
    while start < end:
        file.seek(start)
        name, _ = _number(file, keep_marker=True)
        length, unknown = _number(file, keep_marker=False)
        if name < 0 or length < 0:
            return
        inner = file.tell()
        yield name, inner, None if unknown else inner + length
        if unknown:
            return
        start = inner + length


def _check_mkv(path: Path, file: BinaryIO, size: int) -> None:
    for name, start, stop in _elements(file, 0, size):
        if stop is not None and stop > size:
            raise _cut_off(path, f"{stop - size} bytes are missing at its end")
        if name == _MKV_SEGMENT and _mkv_locked(file, start, stop or size):
            raise _encrypted(path)


def _mkv_locked(file: BinaryIO, start: int, stop: int) -> bool:
    nests = {_MKV_TRACKS, _MKV_TRACK, _MKV_ENCODINGS, _MKV_ENCODING}
    for name, inner, end in _elements(file, start, stop):
        if name == _MKV_ENCRYPTION:
            return True
        if name in nests and _mkv_locked(file, inner, end or stop):
            return True
    return False


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
    if any(lock in header for lock in _ASF_LOCKS):
        raise _encrypted(path)
    at = header.find(_ASF_FILE)
    if 0 <= at <= len(header) - 92:
        said = struct.unpack_from("<Q", header, at + 40)[0]
        live = struct.unpack_from("<I", header, at + 88)[0] & 1
        if not live and said > size:
            raise _cut_off(path, f"{said - size} bytes are missing at its end")


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
