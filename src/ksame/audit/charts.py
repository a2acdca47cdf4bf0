"""Plots as SVG for the report. Colours come from the page's style sheet, so that they follow light and dark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from xml.sax.saxutils import escape

from ksame.audit.result import AttackRecord, DiversityRecord
from ksame.utility.poc import PocCurve

_WIDTH, _HEIGHT = 400, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 10, 12, 46
_RANKS = (1, 2, 5, 10, 20, 50)
_SERIES = 6  # colours that the style sheet knows


@dataclass(frozen=True)
class Axis:
    """A scale from data to pixels with its ticks."""

    start: float
    end: float
    ticks: tuple[float, ...]
    label: str
    show: Callable[[float], str]
    scale: Callable[[float], float] = float

    def at(self, value: float, low: float, high: float) -> float:
        """Return where ``value`` lies between the pixels ``low`` and ``high``."""
        first, last = self.scale(self.start), self.scale(self.end)
        share = (self.scale(value) - first) / (last - first) if last != first else 0.5
        return low + share * (high - low)


@dataclass(frozen=True)
class Line:
    """A curve, its name, and the number of its colour."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: int
    dots: bool = False


def _percent(value: float) -> str:
    return f"{100 * value:.0f}\u2009%"


def share_axis(label: str) -> Axis:
    """Return an axis from 0 to 100 %."""
    return Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), label, _percent)


def cmc_chart(attacks: Sequence[AttackRecord], bound: float | None) -> str:
    """Draw how often the right person is among the first r, one curve per recogniser."""
    max_rank = max((len(attack.cmc) for attack in attacks), default=1)
    ticks = tuple(float(r) for r in _RANKS if r <= max_rank)
    x = Axis(1.0, float(max(max_rank, 2)), ticks or (1.0,), "guesses allowed (rank)", "{:.0f}".format, log)
    curves = [[(rank + 1.0, rate) for rank, rate in enumerate(attack.cmc)] for attack in attacks]
    lines = [Line(attack.recogniser, curves[i], i) for i, attack in enumerate(attacks)]
    label = f"Cumulative match characteristic, {attacks[0].scenario}" if attacks else "Cumulative match characteristic"
    extra = "" if bound is None else _level(bound, f"promised: at most {_percent(bound)} at rank 1")
    chance = min((attack.chance for attack in attacks), default=0.0)
    guess = Line("guessing", [(float(r), min(1.0, r * chance)) for r in range(1, max_rank + 1)], _SERIES)
    return _chart(x, share_axis("right person among the first guesses"), [*lines, guess], label, extra)


def poc_chart(curves: Sequence[PocCurve], measure: str) -> str:
    """Draw privacy against utility, one curve per method."""
    points = [[(point.privacy, point.utility) for point in curve.points] for curve in curves]
    lines = [Line(curve.method, points[i], i, dots=True) for i, curve in enumerate(curves)]
    x = share_axis("privacy: not recognised by the strongest attack")
    return _chart(x, share_axis(f"utility: {measure}"), lines, "Privacy operating characteristic")


def diversity_chart(before: DiversityRecord, after: DiversityRecord) -> str:
    """Draw how far faces are apart, originals against released."""
    highest = max([*_shares(before), *_shares(after), 1e-9])
    end = before.edge or 1.0
    ticks = tuple(end * i / 4 for i in range(5))
    x = Axis(0.0, end, ticks, "distance between two faces (grey values)", "{:.0f}".format)
    y = Axis(0.0, highest, (0.0, highest / 2, highest), "share of pairs", _percent)
    lines = [
        Line(name, _staircase(_shares(record), end), colour)
        for name, record, colour in (("originals", before, _SERIES), ("released", after, 0))
    ]
    return _chart(x, y, lines, "Distances between faces")


def _shares(record: DiversityRecord) -> list[float]:
    total = max(sum(record.counts), 1)
    return [count / total for count in record.counts]


def _staircase(shares: Sequence[float], end: float) -> list[tuple[float, float]]:
    width = end / max(len(shares), 1)
    return [(0.0, 0.0), *(p for i, s in enumerate(shares) for p in ((i * width, s), ((i + 1) * width, s))), (end, 0.0)]


def _level(value: float, name: str) -> str:
    y = share_axis("").at(value, _HEIGHT - _BOTTOM, _TOP)
    words = y - 6 if y > 40 else y + 16
    return (
        f'<line class="bound" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="bound-name" x="{_WIDTH - _RIGHT - 4}" y="{words:.1f}" text-anchor="end">{escape(name)}</text>'
    )


def _chart(x: Axis, y: Axis, lines: Sequence[Line], label: str, extra: str = "") -> str:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = [f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">']
    for tick in y.ticks:
        at = y.at(tick, bottom, _TOP)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{y.show(tick)}</text>')
    for tick in x.ticks:
        at = x.at(tick, _LEFT, right)
        parts.append(f'<line class="tick" x1="{at:.1f}" x2="{at:.1f}" y1="{bottom}" y2="{bottom + 5}"/>')
        parts.append(f'<text x="{at:.1f}" y="{bottom + 19}" text-anchor="middle">{x.show(tick)}</text>')
    parts.append(f'<text class="axis" x="{(_LEFT + right) / 2:.0f}" y="{_HEIGHT - 6}" text-anchor="middle">')
    parts.append(f"{escape(x.label)}</text>")
    for line in lines:
        spots = [(x.at(a, _LEFT, right), y.at(b, bottom, _TOP)) for a, b in line.points]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in spots)
        parts.append(f'<polyline class="line s{line.colour % (_SERIES + 1)}" points="{path}"/>')
        if line.dots or len(spots) == 1:
            colour = f"dot s{line.colour % _SERIES}"
            parts += [f'<circle class="{colour}" cx="{a:.1f}" cy="{b:.1f}" r="5"/>' for a, b in spots]
    drawn = "".join([*parts, extra, "</svg>"])
    legend = "".join(f'<li><i class="s{line.colour % (_SERIES + 1)}"></i>{escape(line.name)}</li>' for line in lines)
    return f'<figure><figcaption>{escape(y.label)}</figcaption>{drawn}<ul class="legend">{legend}</ul></figure>'
