"""Values on the command line: times and rectangles."""

from __future__ import annotations

import re

from ksame.errors import parameter_error

_FAR = 1_000_000  # pixels: more than any picture has across


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


def parse_region(text: str) -> tuple[float, float, float, float]:
    """Return x, y, width and height of a rectangle.

    Examples
    --------
    >>> parse_region("10,20,30,40")
    (10.0, 20.0, 30.0, 40.0)
    """
    try:
        x, y, width, height = (float(part) for part in text.split(","))
    except ValueError:
        raise parameter_error("region", "deidentify", "x,y,width,height in pixels", text) from None
    if not (0 < width <= _FAR and 0 < height <= _FAR and abs(x) <= _FAR and abs(y) <= _FAR):
        expected = f"x,y,width,height in pixels, none beyond {_FAR}, width and height above 0"
        raise parameter_error("region", "deidentify", expected, text)
    return x, y, width, height
