"""What differs between the versions of PyAV that are supported (17 and later)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import av
from av.container import InputContainer
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

_ATTACHED_PICTURE = 0x400
_LENIENT: dict[str, Any] = {"metadata_errors": "ignore"} if int(av.__version__.split(".")[0]) < 19 else {}


def open_leniently(path: Path, options: Mapping[str, str]) -> InputContainer:
    """Open a recording, whatever bytes its metadata are made of."""
    return av.open(str(path), mode="r", options=dict(options), **_LENIENT)


def is_cover(stream: VideoStream) -> bool:
    """Tell whether a video stream is the picture on the cover of music."""
    disposition = getattr(stream, "disposition", None)
    if disposition is not None:
        return bool(getattr(disposition, "value", disposition) & _ATTACHED_PICTURE)  # a flag in PyAV 17, a number in 18
    return stream.codec_context.name in ("mjpeg", "png") and not stream.average_rate


def duration_of(frame: VideoFrame, packet: Packet[Any]) -> int:
    """Return how long a frame from a packet is shown, zero where the file does not say."""
    return getattr(frame, "duration", None) or packet.duration or 0
