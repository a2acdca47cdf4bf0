"""What differs between the versions of PyAV that are supported (13 and later)."""

from __future__ import annotations

from typing import Any, TypeVar

from av.container import OutputContainer
from av.packet import Packet
from av.stream import Stream
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

_ATTACHED_PICTURE = 0x400
StreamT = TypeVar("StreamT", bound=Stream)


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
