"""The privacy operating characteristic (Phillips 2005): privacy against utility over a method's parameter range."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ksame.errors import parameter_error


@dataclass(frozen=True)
class PocPoint:
    """One method at one strength."""

    method: str
    parameter: str  # the strength, in words such as ``"p = 8"``
    privacy: float  # share of faces the strongest attacker does not name, in [0, 1]
    utility: float  # share of the use that is left, in [0, 1]

    def __post_init__(self) -> None:
        for name in ("privacy", "utility"):
            if not 0 <= getattr(self, name) <= 1:
                raise parameter_error(name, "PocPoint", "a share in [0, 1]", getattr(self, name))


@dataclass(frozen=True)
class PocCurve:
    """All strengths of one method, from least to most privacy."""

    method: str
    points: tuple[PocPoint, ...]

    @property
    def area(self) -> float:
        """Area under the best utility at a given privacy or more: 1 for perfect use at perfect privacy.

        A step function, as nothing is known between two strengths. A method measured at more strengths can only gain.

        Examples
        --------
        >>> curves = poc([PocPoint("blur", "1", 0.5, 1.0), PocPoint("blur", "9", 1.0, 0.5)])
        >>> curves[0].area
        0.75
        """
        privacy = np.array([0.0, *(point.privacy for point in self.points)])
        best = np.maximum.accumulate([point.utility for point in self.points][::-1])[::-1]
        return float((np.diff(privacy) * best).sum())


def poc(points: Iterable[PocPoint]) -> tuple[PocCurve, ...]:
    """Sort points into one curve per method; the curve with the largest area first."""
    given = list(points)
    curves = [
        PocCurve(method, tuple(sorted((p for p in given if p.method == method), key=lambda p: (p.privacy, p.utility))))
        for method in dict.fromkeys(point.method for point in given)
    ]
    return tuple(sorted(curves, key=lambda curve: -curve.area))
