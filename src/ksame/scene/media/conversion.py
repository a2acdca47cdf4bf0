"""From the pixels of a frame, and the decoded frame they were made from, to the frame that is encoded.

Only touched pixels go through RGB and back. The rest of the planes is that of the source, with all its bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from ksame.pictures import Pixels, orient
from ksame.scene.media.source import ColourSpace, Media


@dataclass(frozen=True, eq=False)
class OutputFrame:
    """A frame to be written; see :meth:`ksame.scene.media.Output.write`."""

    pixels: Pixels
    native: VideoFrame | None = None
    touched: NDArray[np.bool_] | None = None


class FrameConverter:
    """Makes frames of one pixel format and colour space, or RGB where ``colours`` is None."""

    def __init__(self, media: Media, pixel_format: str, colours: ColourSpace | None) -> None:
        self._source = None if media.stream is None else media.stream.colours
        self._orientation = media.orientation
        self._pixel_format = pixel_format
        self._colours = colours
        self._from_rgb = VideoReformatter()
        self._from_native = VideoReformatter()

    def convert(self, frame: OutputFrame) -> VideoFrame:
        """Return the frame to be encoded."""
        if frame.native is None or frame.touched is None or self._colours is None or self._source is None:
            return self._converted_rgb(frame.pixels)
        source = reformat(self._from_native, frame.native, self._pixel_format, self._source, self._colours)
        changed = self._converted_rgb(frame.pixels) if frame.touched.any() else None
        merged = VideoFrame(frame.pixels.shape[1], frame.pixels.shape[0], self._pixel_format)
        for number, plane in enumerate(merged.planes):
            values = orient(_plane_values(source, number), self._orientation)
            if changed is not None:
                values = np.where(_subsampled(frame.touched, values.shape), _plane_values(changed, number), values)
            _fill_plane(plane, values)
        return merged

    def _converted_rgb(self, pixels: Pixels) -> VideoFrame:
        frame = VideoFrame.from_numpy_buffer(np.ascontiguousarray(pixels), format="rgb24")
        if self._colours is None:
            return self._from_rgb.reformat(frame, format=self._pixel_format)
        return reformat(self._from_rgb, frame, self._pixel_format, self._colours.as_rgb, self._colours)


def reformat(
    reformatter: VideoReformatter,
    frame: VideoFrame,
    pixel_format: str,
    source: ColourSpace,
    target: ColourSpace,
    size: tuple[int | None, int | None] = (None, None),
) -> VideoFrame:
    """Convert a frame to another pixel format, colour space and size."""
    return reformatter.reformat(
        frame,
        width=size[0],
        height=size[1],
        format=pixel_format,
        src_colorspace=source.swscale_matrix,
        dst_colorspace=target.swscale_matrix,
        src_color_range=source.range,
        dst_color_range=target.range,
    )


def _plane_values(frame: VideoFrame, number: int) -> NDArray[Any]:
    plane = frame.planes[number]
    rows = np.frombuffer(memoryview(plane), dtype=np.uint8)[: plane.line_size * plane.height]
    dtype = np.uint16 if frame.format.components[0].bits > 8 else np.uint8
    return rows.reshape(plane.height, plane.line_size).view(dtype)[:, : plane.width]


def _fill_plane(plane: Any, values: NDArray[Any]) -> None:
    rows = np.zeros((plane.height, plane.line_size // values.itemsize), dtype=values.dtype)
    rows[:, : values.shape[1]] = values
    data = rows.tobytes()
    plane.update(data + bytes(plane.buffer_size - len(data)))


def _subsampled(touched: NDArray[np.bool_], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return which values of a plane belong to a touched pixel; a plane may have half as many rows and columns."""
    steps = [-(-touched.shape[axis] // shape[axis]) for axis in (0, 1)]
    if steps == [1, 1]:
        return touched
    padding = [(0, shape[axis] * steps[axis] - touched.shape[axis]) for axis in (0, 1)]
    blocks = np.pad(touched, padding).reshape(shape[0], steps[0], shape[1], steps[1])
    return np.asarray(blocks.any(axis=(1, 3)))
