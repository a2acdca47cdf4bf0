"""Rectangles that a person names to be filled: always, or for a time, standing still or moving."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from ksame.errors import UsageError

Box: TypeAlias = "tuple[float, float, float, float]"
"""x, y, width and height in pixels."""


@dataclass(frozen=True)
class MovingRegion:
    """A rectangle that is filled from the first to the last of some times, and moves straight between them.

    Examples
    --------
    >>> plate = MovingRegion((5.0, 7.0), ((20, 40, 200, 100), (60, 40, 200, 100)))
    >>> plate.at(6.0)
    (40.0, 40.0, 200.0, 100.0)
    >>> plate.at(8.0)
    """

    times: tuple[float, ...]  # rising, in seconds; at least two
    boxes: tuple[Box, ...]  # where it is then

    def __post_init__(self) -> None:
        if len(self.times) != len(self.boxes) or len(self.times) < 2:
            raise UsageError("A moving region has two times or more, and a rectangle for each.")
        if any(not early < late for early, late in pairwise(self.times)):
            told = ", ".join(f"{time:g}" for time in self.times)
            raise UsageError(f"The times of a moving region must rise. Got {told} seconds.")

    def at(self, time: float) -> Box | None:
        """Return where it is at a time in seconds; None where it is not there."""
        if not self.times[0] <= time <= self.times[-1]:
            return None
        x, y, width, height = (float(np.interp(time, self.times, values)) for values in zip(*self.boxes, strict=True))
        return x, y, width, height


Region: TypeAlias = "Box | MovingRegion"


def boxes_at(regions: Iterable[Region], time: float) -> list[Box]:
    """Return the rectangles that are there at a time in seconds."""
    places = (region.at(time) if isinstance(region, MovingRegion) else region for region in regions)
    return [box for box in places if box is not None]


def touches(box: Box, size: tuple[int, int]) -> bool:
    """Tell whether any of a box lies in a picture of a size, (width, height)."""
    x, y, width, height = box
    return x < size[0] and y < size[1] and x + width > 0 and y + height > 0


def check_region(region: Region, what: str, size: tuple[int, int], duration: float | None) -> None:
    """Refuse a rectangle that has no effect on a picture of a size, or on a recording of a duration in seconds."""
    boxes = region.boxes if isinstance(region, MovingRegion) else (region,)
    if not any(touches(box, size) for box in boxes):
        told = "..".join(",".join(f"{value:g}" for value in box) for box in boxes)
        raise UsageError(
            f"{what}: the --region {told} lies outside its picture of {size[0]}x{size[1]} pixels. Correct it, or work "
            "on this file apart."
        )
    if isinstance(region, MovingRegion) and duration is None:
        raise UsageError(f"{what}: a photograph has no times. Name the --region without them.")
    if isinstance(region, MovingRegion) and duration is not None and region.times[0] > duration:
        raise UsageError(
            f"{what}: the --region begins at {region.times[0]:g} s, when the recording is over. Correct it, or work on "
            "this file apart."
        )
