"""Times and rectangles as they are written on a command line."""

from __future__ import annotations

import re

from ksame.errors import UsageError, parameter_error
from ksame.scene.media.regions import Box, MovingRegion, Region

_FAR = 1_000_000  # pixels: more than any picture has across
_EXPECTED = "x,y,width,height in pixels, or TIME@x,y,width,height..TIME@x,y,width,height"


def parse_time(text: str | None, default: float) -> float:
    """Return the seconds of a time such as 75, 1:15 or 0:01:15.5.

    Examples
    --------
    >>> parse_time("1:02:03.5", 0.0)
    3723.5
    """
    if text is None:
        return default
    if re.fullmatch(r"(\d{1,9}:){0,2}\d{1,9}(\.\d{0,9})?", text) is None:
        raise parameter_error("time", "deidentify", "seconds, m:ss or h:mm:ss, such as 75 or 1:15", text)
    seconds = 0.0
    for part in text.split(":"):
        seconds = 60 * seconds + float(part)
    return seconds


def parse_region(text: str) -> Region:
    """Return a rectangle, or one that moves from each place to the next.

    Examples
    --------
    >>> parse_region("10,20,30,40")
    (10.0, 20.0, 30.0, 40.0)
    >>> parse_region("0:05@10,20,30,40..0:07@20,20,30,40..0:09").times
    (5.0, 7.0, 9.0)
    """
    if "@" not in text:
        return _box(text, text)
    times, boxes = list[float](), list[Box]()
    for part in text.split(".."):
        time, at, box = part.partition("@")
        if not at and not boxes:
            raise parameter_error("region", "deidentify", _EXPECTED, text)
        times.append(parse_time(time, 0.0))
        boxes.append(_box(box, text) if at else boxes[-1])
    if len(times) == 1:
        raise parameter_error("region", "deidentify", f"{_EXPECTED}; ..TIME alone says when it ends", text)
    try:
        return MovingRegion(tuple(times), tuple(boxes))
    except UsageError as error:
        raise UsageError(f"--region {text}: {error}") from error


def _box(text: str, whole: str) -> Box:
    try:
        x, y, width, height = (float(part) for part in text.split(","))
    except ValueError:
        raise parameter_error("region", "deidentify", _EXPECTED, whole) from None
    if not (0 < width <= _FAR and 0 < height <= _FAR and abs(x) <= _FAR and abs(y) <= _FAR):
        expected = f"x,y,width,height in pixels, none beyond {_FAR}, width and height above 0"
        raise parameter_error("region", "deidentify", expected, whole)
    return x, y, width, height
