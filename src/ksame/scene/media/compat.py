"""What differs between the versions of PyAV that are supported (13 and later)."""

from __future__ import annotations

from typing import TypeVar

from av.container import OutputContainer
from av.stream import Stream

StreamT = TypeVar("StreamT", bound=Stream)


def add_like(output: OutputContainer, template: StreamT) -> StreamT:
    """Add a stream of the same codec as ``template``, for its packets."""
    if hasattr(output, "add_stream_from_template"):
        return output.add_stream_from_template(template)
    made: StreamT = output.add_stream(template=template)  # type: ignore[call-overload]
    return made
