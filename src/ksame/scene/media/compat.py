"""What differs between the versions of PyAV that are supported (13 and later)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import av
from av.container import InputContainer, OutputContainer
from av.packet import Packet
from av.stream import Stream
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

_ATTACHED_PICTURE = 0x400
_LENIENT: dict[str, Any] = {"metadata_errors": "ignore"} if int(av.__version__.split(".")[0]) < 19 else {}
StreamT = TypeVar("StreamT", bound=Stream)


def open_leniently(path: Path, options: Mapping[str, str]) -> InputContainer:
    """Open a recording, whatever bytes its metadata are made of."""
    return av.open(str(path), mode="r", options=dict(options), **_LENIENT)


def add_like(output: OutputContainer, template: StreamT) -> StreamT:
    """Add a stream of the same codec as ``template``, for its packets."""
    if hasattr(output, "add_stream_from_template"):
        return output.add_stream_from_template(template)
    made: StreamT = output.add_stream(template=template)  # type: ignore[call-overload]
    return made


def is_cover(stream: VideoStream) -> bool:
    """Tell whether a video stream is the picture on the cover of music."""
    disposition = getattr(stream, "disposition", None)
    if disposition is not None:
        return bool(int(disposition) & _ATTACHED_PICTURE)
    return stream.codec_context.name in ("mjpeg", "png") and not stream.average_rate


def duration_of(frame: VideoFrame, packet: Packet[Any]) -> int:
    """Return how long a frame from a packet is shown, zero where the file does not say."""
    return getattr(frame, "duration", None) or packet.duration or 0
