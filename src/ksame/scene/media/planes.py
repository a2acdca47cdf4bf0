"""From a changed picture and the decoded frame that it was made from to the frame that is encoded.

Only what was changed goes through RGB and back. The rest of the planes is that of the source, with all its bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from ksame.scene.media.source import Colours, Media, Pixels, turned

LIMITED, FULL = 1, 2
"""Ranges of values, by the numbers of FFmpeg."""
_GRID = 16  # pixels to whose multiples the part that was changed is rounded


@dataclass(frozen=True, eq=False)
class Picture:
    """A frame to be written.

    Attributes
    ----------
    pixels : ndarray of shape (height, width, 3), uint8
    native : VideoFrame, optional
        As it was decoded; None where all pixels count.
    touched : ndarray of shape (height, width), bool, optional
        Which pixels count instead of the native ones: all whose original must not be published, changed or not.
    """

    pixels: Pixels
    native: VideoFrame | None = None
    touched: NDArray[np.bool_] | None = None


class Planes:
    """Makes frames of one pixel format.

    Parameters
    ----------
    media : Media
    pixels : str
    colours : Colours, optional
        Of the frames; None for RGB.
    """

    def __init__(self, media: Media, pixels: str, colours: Colours | None) -> None:
        self._source = None if media.coding is None else media.coding.colours
        self._turn = media.turn
        self._pixels = pixels
        self._colours = colours
        self._from_rgb = VideoReformatter()
        self._from_native = VideoReformatter()

    def frame(self, picture: Picture) -> VideoFrame:
        """Return the frame to be encoded."""
        if picture.native is None or picture.touched is None or self._colours is None or self._source is None:
            return self._drawn(picture.pixels)
        kept = self._from_native.reformat(
            picture.native,
            format=self._pixels,
            src_colorspace=self._source.swscale,
            dst_colorspace=self._colours.swscale,
            src_color_range=FULL if self._source.full else LIMITED,
            dst_color_range=FULL if self._colours.full else LIMITED,
        )
        made = VideoFrame(picture.pixels.shape[1], picture.pixels.shape[0], self._pixels)
        window = _window(picture.touched)
        drawn = None if window is None else self._drawn(picture.pixels[window])
        for number in range(len(made.planes)):
            values = _values(made, number)
            values[:] = turned(_values(kept, number), self._turn)
            if window is not None and drawn is not None:
                steps = [-(-picture.touched.shape[axis] // values.shape[axis]) for axis in (0, 1)]
                part = values[tuple(slice(w.start // n, -(-w.stop // n)) for w, n in zip(window, steps, strict=True))]
                where = _thinned(picture.touched[window], part.shape, steps)
                np.copyto(part, _values(drawn, number), where=where)
        return made

    def _drawn(self, pixels: Pixels) -> VideoFrame:
        frame = VideoFrame.from_numpy_buffer(np.ascontiguousarray(pixels), format="rgb24")
        if self._colours is None:
            return self._from_rgb.reformat(frame, format=self._pixels)
        return self._from_rgb.reformat(
            frame,
            format=self._pixels,
            src_colorspace=self._colours.swscale,
            dst_colorspace=self._colours.swscale,
            src_color_range=FULL,
            dst_color_range=FULL if self._colours.full else LIMITED,
        )


def _dtype(frame: VideoFrame) -> type[np.uint8] | type[np.uint16]:
    return np.uint16 if frame.format.components[0].bits > 8 else np.uint8


def _values(frame: VideoFrame, number: int) -> NDArray[Any]:
    plane = frame.planes[number]
    rows = np.frombuffer(memoryview(plane), dtype=np.uint8)[: plane.line_size * plane.height].reshape(
        plane.height, plane.line_size
    )
    return rows.view(_dtype(frame))[:, : plane.width]


def _window(touched: NDArray[np.bool_]) -> tuple[slice, slice] | None:
    """Return the part of a picture with all touched pixels, and some round it; None where there are none.

    It begins where values of all planes do, and colours that are spread over neighbours are spread as in the whole.
    """
    left, top, width, height = cv2.boundingRect(touched.view(np.uint8))
    if not width * height:
        return None
    first, last = ((top, left), (top + height, left + width))
    rows, columns = (
        slice(max(0, low // _GRID - 1) * _GRID, min((high // _GRID + 2) * _GRID, length))
        for low, high, length in zip(first, last, touched.shape, strict=True)
    )
    return rows, columns


def _thinned(touched: NDArray[np.bool_], shape: tuple[int, ...], steps: Sequence[int]) -> NDArray[np.bool_]:
    """Return which values of a plane belong to a touched pixel; a plane may have half as many rows and columns."""
    if steps == [1, 1]:
        return touched
    padding = [(0, shape[axis] * steps[axis] - touched.shape[axis]) for axis in (0, 1)]
    padded = np.pad(touched, padding) if any(after for _, after in padding) else touched
    columns = np.logical_or.reduce([padded[:, i :: steps[1]] for i in range(steps[1])])
    return np.asarray(np.logical_or.reduce([columns[i :: steps[0]] for i in range(steps[0])]))
