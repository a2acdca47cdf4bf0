"""From the pixels of a frame, and the decoded frame they were made from, to the frame that is encoded.

Only touched pixels go through RGB and back. The rest of the planes is that of the source, with all its bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import cv2
import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from ksame.pictures import Pixels, orient
from ksame.scene.media.planes import Window, coarser, plane_steps, plane_values
from ksame.scene.media.source import ColourSpace, Media

_GRID = 16
"""Pixels to whose multiples the part that was changed is rounded: chroma planes have half as many."""


@dataclass(frozen=True, eq=False)
class OutputFrame:
    """A frame to be written; see :meth:`ksame.scene.media.Output.write`."""

    pixels: Pixels
    native: VideoFrame | None = None
    touched: NDArray[np.bool_] | None = None


class FrameConverter:
    """Makes frames of one pixel format and colour space, or RGB where ``colours`` is None."""

    def __init__(self, media: Media, pixel_format: str, colours: ColourSpace | None) -> None:
        self._size = media.size
        self._source = None if media.stream is None else media.stream.colours
        self._orientation = media.orientation
        self._pixel_format = pixel_format
        self._colours = colours
        self._from_rgb = VideoReformatter()
        self._from_native = VideoReformatter()

    def prepare(self, frame: OutputFrame) -> Callable[[], VideoFrame]:
        """Return what makes the frame to be encoded; it holds little while it waits: copies of what is needed."""
        native, touched = frame.native, frame.touched
        if native is None or touched is None or self._colours is None or self._source is None:
            return partial(self._converted_rgb, frame.pixels)
        window = _window(touched)
        decoded = partial(reformat, self._from_native, native, self._pixel_format, self._source, self._colours)
        return partial(self._merged, decoded, frame.pixels[window].copy(), touched[window].copy(), window)

    def _merged(
        self,
        decoded: Callable[[], VideoFrame],
        pixels: Pixels,
        touched: NDArray[np.bool_],
        window: Window,
    ) -> VideoFrame:
        """Return a decoded frame in which the touched pixels of a window are others."""
        source, changed = decoded(), self._converted_rgb(pixels) if pixels.size else None
        merged = VideoFrame(*self._size, self._pixel_format)
        parts = lru_cache(partial(coarser, (window, touched)))  # two planes have the same
        for number in range(len(merged.planes)):
            values = plane_values(merged, number)
            values[:] = orient(plane_values(source, number), self._orientation)
            if changed is not None:
                place, where = parts(plane_steps(self._size[::-1], values.shape))
                values[place] = cv2.copyTo(plane_values(changed, number), where.view(np.uint8), values[place])
        return merged

    def _converted_rgb(self, pixels: Pixels) -> VideoFrame:
        frame = VideoFrame.from_numpy_buffer(np.ascontiguousarray(pixels), format="rgb24")
        if self._colours is None:
            return self._from_rgb.reformat(frame, format=self._pixel_format, threads=1)
        return reformat(self._from_rgb, frame, self._pixel_format, self._colours.as_rgb, self._colours)


def reformat(
    reformatter: VideoReformatter,
    frame: VideoFrame,
    pixel_format: str,
    source: ColourSpace,
    target: ColourSpace,
    size: tuple[int | None, int | None] = (None, None),
) -> VideoFrame:
    """Convert a frame to another pixel format, colour space and size; in one thread, as other frames keep the rest."""
    return reformatter.reformat(
        frame,
        width=size[0],
        height=size[1],
        format=pixel_format,
        src_colorspace=source.swscale_matrix,
        dst_colorspace=target.swscale_matrix,
        src_color_range=source.range,
        dst_color_range=target.range,
        threads=1,
    )


def _window(touched: NDArray[np.bool_]) -> Window:
    """Return the part of a picture with all touched pixels, and some round it; an empty one where there are none.

    It begins where values of all planes do, and colours that are spread over neighbours are spread as in the whole.
    """
    left, top, width, height = cv2.boundingRect(touched.view(np.uint8))
    if not width * height:
        return slice(0, 0), slice(0, 0)
    first, last = ((top, left), (top + height, left + width))
    rows, columns = (
        slice(max(0, low // _GRID - 1) * _GRID, min((high // _GRID + 2) * _GRID, length))
        for low, high, length in zip(first, last, touched.shape, strict=True)
    )
    return rows, columns
