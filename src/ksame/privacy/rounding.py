"""Rounding of what a certificate tells about the data.

A number with sixteen digits is a test for guesses: whoever holds candidate photographs computes it for each and sees
which one fits. Two significant digits are enough to compare releases, and too few to tell one pair of faces from
another.
"""

from __future__ import annotations

import math

DIGITS = 2
"""Significant digits of every data-dependent number in a certificate."""


def rough(value: float) -> float:
    """Round to two significant digits; counts stay as they are.

    Examples
    --------
    >>> rough(0.0123456), rough(1234.5), rough(7), rough(0.0)
    (0.012, 1200.0, 7, 0.0)
    """
    return value if isinstance(value, int) else float(f"{value:.{DIGITS - 1}e}")


def rough_down(value: float) -> float:
    """Round to two significant digits towards minus infinity, so that a smallest value stays a lower bound.

    Examples
    --------
    >>> rough_down(0.0199), rough_down(-0.0191), rough_down(0.15)
    (0.019, -0.02, 0.15)
    """
    near = rough(value)
    if near <= value or not math.isfinite(value):
        return near
    step = 10.0 ** (math.floor(math.log10(abs(near))) - DIGITS + 1)
    return rough(near - step)


def rough_up(value: float) -> float:
    """Round to two significant digits towards plus infinity, so that a largest value stays an upper bound.

    Examples
    --------
    >>> rough_up(0.0191), rough_up(-0.0199), rough_up(0.15)
    (0.02, -0.019, 0.15)
    """
    return -rough_down(-value)
