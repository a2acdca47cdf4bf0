"""Which frames of a recording can be trusted: what the decoder complains of, and all that is made from it.

A damaged frame spoils those that are decoded after it, up to the next key frame; some of these are shown before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import av
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ksame.errors import InputError

Damaged = Literal["refuse", "mask"]
"""What becomes of a recording with frames that cannot be decoded."""
_STRICT = "crccheck+bitstream+buffer+explode"


def be_strict(stream: VideoStream) -> None:
    """Have a decoder stop at what it would patch up by default."""
    stream.codec_context.options = {"err_detect": _STRICT}


def time_of(item: Packet[Any] | VideoFrame) -> int | None:
    """Return the time that a packet and its frame have in common."""
    return item.pts if item.pts is not None else item.dts


@dataclass(frozen=True)
class Damage:
    """Times of frames that cannot be trusted.

    Attributes
    ----------
    times : tuple of int
        In order.
    known : frozenset of int
        Times of all frames.
    """

    times: tuple[int, ...]
    known: frozenset[int]

    def has(self, frame: VideoFrame) -> bool:
        """Tell whether a frame is spoilt; where anything is, so is a frame that belongs to no packet."""
        at = time_of(frame)
        return bool(self.times) and (at is None or at in self.times or at not in self.known)


def find_damage(packets: Any) -> Damage:
    """Decode everything once, one packet at a time, and note which the decoder complains of.

    Parameters
    ----------
    packets : iterable of Packet
        Of a stream that was told to :func:`be_strict`, without threads.
    """
    order: list[tuple[int | None, bool]] = []
    bad: set[int] = set()
    places: dict[int | None, int] = {}
    for packet in packets:
        number = len(order)
        if packet.size:
            order.append((time_of(packet), bool(packet.is_keyframe)))
            places[time_of(packet)] = number
            if packet.is_corrupt:
                bad.add(number)
        try:
            frames = packet.decode()
        except (av.FFmpegError, MemoryError):
            bad.add(min(number, len(order) - 1))
            continue
        bad |= {places.get(time_of(frame), len(order) - 1) for frame in frames if frame.is_corrupt}
    times = sorted(time for time in _spoilt(order, bad) if time is not None)
    return Damage(tuple(times), frozenset(time for time, _ in order if time is not None))


def _spoilt(order: list[tuple[int | None, bool]], bad: set[int]) -> set[int | None]:
    """Return the times of all frames that are made from bad ones; ``order`` is that of decoding."""
    spoilt: set[int | None] = set()
    spreading = False
    leads: int | None = None
    for number, (time, key) in enumerate(order):
        if key:
            leads = time if spreading else None  # frames shown before it may still be made from those before it
            spreading = False
        spreading = spreading or number in bad
        leading = leads is not None and time is not None and time < leads
        if spreading or leading:
            spoilt.add(time)
    return spoilt


def damaged_file(path: Path, index: int, reason: str) -> InputError:
    """Return the error for a recording that is refused."""
    return InputError(
        f"{path}: frame {index} is damaged ({reason}). Copy the file again from where it was recorded, or have the "
        "damaged frames made black with --damaged mask."
    )


def check_jpeg(path: Path) -> None:
    """Refuse a JPEG file whose data break off or make no sense: Pillow's decoder paints grey or rubble without a word.

    Raises
    ------
    InputError
    """
    decoder = av.CodecContext.create("mjpeg", "r")
    decoder.options = {"err_detect": _STRICT}
    try:
        frames = [*decoder.decode(Packet(path.read_bytes())), *decoder.decode(None)]
    except av.InvalidDataError:
        damaged = True
    except av.FFmpegError:
        damaged = False  # a kind of JPEG that this decoder does not know
    else:
        damaged = any(frame.is_corrupt for frame in frames)
    if damaged:
        raise InputError(
            f"{path}: the picture is damaged. Copy it again from where it was taken; if it looks right, save it anew."
        )
