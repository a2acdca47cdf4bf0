"""Planes of frames: their values, and where pixels lie in planes that have fewer values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray

Window: TypeAlias = "tuple[slice, slice]"
Part: TypeAlias = "tuple[Window, NDArray[np.bool_]]"
"""Rows and columns of a picture, and which values in them are meant."""


def plane_values(frame: VideoFrame, number: int = 0, channels: int = 1) -> NDArray[Any]:
    """Return the values of a plane, (height, width), as a view; of a packed one (height, width, channels)."""
    plane = frame.planes[number]
    rows = np.frombuffer(memoryview(plane), dtype=np.uint8)[: plane.line_size * plane.height]
    dtype = np.uint16 if frame.format.components[0].bits > 8 else np.uint8
    values = rows.reshape(plane.height, plane.line_size).view(dtype)[:, : channels * plane.width]
    return values if channels == 1 else values.reshape(plane.height, plane.width, channels)


def plane_steps(fine: Sequence[int], coarse: Sequence[int]) -> tuple[int, int]:
    """Return how many rows and columns of a plane of one shape there are for each of a coarser one.

    Examples
    --------
    >>> plane_steps((241, 320), (121, 160))
    (2, 2)
    """
    return -(-fine[0] // coarse[0]), -(-fine[1] // coarse[1])


def coarser_window(window: Window, steps: Sequence[int]) -> Window:
    """Return where a window lies in a plane that is coarser by some steps."""
    rows, columns = (slice(w.start // n, -(-w.stop // n)) for w, n in zip(window, steps, strict=True))
    return rows, columns


def coarser(part: Part, steps: Sequence[int]) -> Part:
    """Return a part in a coarser plane, whose values are meant where any of theirs is.

    Examples
    --------
    >>> window, meant = coarser(((slice(1, 4), slice(2, 4)), np.eye(3, 2, dtype=bool)), (2, 2))
    >>> window, meant.tolist()
    ((slice(0, 2, None), slice(1, 2, None)), [[True], [True]])
    """
    (rows, columns), mask = part
    if tuple(steps) == (1, 1):
        return part
    window = coarser_window((rows, columns), steps)
    padded = np.zeros([(each.stop - each.start) * step for each, step in zip(window, steps, strict=True)], dtype=bool)
    top, left = rows.start - window[0].start * steps[0], columns.start - window[1].start * steps[1]
    padded[top : top + mask.shape[0], left : left + mask.shape[1]] = mask
    by_row = np.logical_or.reduce([padded[i :: steps[0]] for i in range(steps[0])])
    return window, np.asarray(np.logical_or.reduce([by_row[:, j :: steps[1]] for j in range(steps[1])]))
