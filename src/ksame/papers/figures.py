"""Figures: curves, sheets of faces, bars and histograms, as PNG and SVG files that are the same bytes every time."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ksame.errors import UsageError
from ksame.papers.experiment import Drawing, Findings, Row

_COLOURS = ("#1f5fbf", "#c2410c", "#15803d", "#8b2fc9", "#b08900", "#0e7490", "#be185d", "#4b5563", "#7c2d12")
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_STYLE: Any = {
    "figure.facecolor": "white",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e1db",
    "axes.axisbelow": True,
    "font.size": 9.5,
    "legend.frameon": False,
    "svg.hashsalt": "ksame",
    "svg.fonttype": "path",
    "savefig.dpi": 110,
}
_BESIDE: Any = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "fontsize": 8.5}  # the legend


_LABELS = {"rank1": "recognised at rank 1", "within": "right person among the first", "grey": "grey value"}
_SHARES = ("rank1", "within", "accuracy")  # columns drawn in per cent


@dataclass(frozen=True)
class Curves(Drawing):
    """One line for each series of rows."""

    x: str  # a column, as ``y``
    series: tuple[str, ...]  # columns whose values, joined, name the lines
    where: Mapping[str, Any] = field(default_factory=dict)  # rows to draw: column to value, or to several values
    x_label: str = ""
    y: str = "rank1"
    y_label: str = ""
    bound: bool = False  # draw 1/x as well: what k-anonymity promises
    logarithmic: bool = False  # both axes
    marks: bool = True  # mark the points
    zoomed: bool = False  # let the largest value set the height, instead of 100 %

    def draw(self, findings: Findings) -> Any:
        """See :meth:`Drawing.draw`."""
        figure, axes = _axes(self.y, self.y_label)
        lines = _grouped(_chosen(findings.rows, self.where, self.x, self.y), self.series)
        for number, (label, rows) in enumerate(lines.items()):
            points = sorted((row[self.x], row[self.y]) for row in rows)
            xs, ys = [p[0] for p in points], [p[1] * _unit(self.y) for p in points]
            colour, mark = _COLOURS[number % len(_COLOURS)], _MARKS[number % len(_MARKS)] if self.marks else ""
            axes.plot(xs, ys, color=colour, marker=mark, markersize=4.5, linewidth=1.6, label=label, clip_on=False)
        if self.bound:
            ks = np.array(sorted({row[self.x] for rows in lines.values() for row in rows if row[self.x] >= 1}))
            axes.plot(ks, 100 / ks, color="black", linestyle="--", linewidth=1.2, label="1/k, promised")
        if self.logarithmic:
            axes.set_xscale("log")
            axes.set_yscale("log")
            places = sorted({row[self.x] for rows in lines.values() for row in rows})
            axes.set_xticks(places, [f"{place:g}" for place in places])
            axes.xaxis.minorticks_off()
            axes.yaxis.set_major_formatter("{x:g}")
        elif self.y in _SHARES:
            top = max((y for line in axes.get_lines() for y in line.get_ydata()), default=0.0)
            axes.set_ylim(0, 100 if not self.zoomed else max(1.2 * top, 0.5))
        axes.set_xlabel(self.x_label or self.x)
        axes.legend(**_BESIDE)
        return figure


@dataclass(frozen=True)
class Bars(Drawing):
    """One group of bars for each value of the column ``groups``, one bar for each series; otherwise as `Curves`."""

    groups: str
    series: tuple[str, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    y: str = "rank1"

    def draw(self, findings: Findings) -> Any:
        """See :meth:`Drawing.draw`."""
        figure, axes = _axes(self.y)
        rows = _chosen(findings.rows, self.where, self.groups, self.y)
        names = list(dict.fromkeys(str(row[self.groups]) for row in rows))
        lines = _grouped(rows, self.series)
        width = 0.8 / max(len(lines), 1)
        for number, (label, line) in enumerate(lines.items()):
            places = [names.index(str(row[self.groups])) + (number - (len(lines) - 1) / 2) * width for row in line]
            heights = [row[self.y] * _unit(self.y) for row in line]
            bars = axes.bar(places, heights, width=0.92 * width, color=_COLOURS[number % len(_COLOURS)], label=label)
            texts = [f"{h:.0f}" if h >= 10 or h == 0 else f"{h:.1f}" for h in heights]
            axes.bar_label(bars, texts, fontsize=7, padding=1)
        turned, anchor = (20, "right") if len(names) > 4 else (0, "center")
        axes.set_xticks(range(len(names)), names, rotation=turned, ha=anchor)
        axes.grid(visible=False, axis="x")
        if self.y in _SHARES:
            axes.set_ylim(0, 108)
        if len(lines) > 1:
            axes.legend(**_BESIDE)
        return figure


@dataclass(frozen=True)
class Histograms(Drawing):
    """One histogram per series, below one another on one axis; ``x`` and ``y``: the left end of a bin and its count."""

    x: str
    y: str
    series: tuple[str, ...]
    where: Mapping[str, Any] = field(default_factory=dict)
    x_label: str = ""

    def draw(self, findings: Findings) -> Any:
        """See :meth:`Drawing.draw`."""
        from matplotlib.figure import Figure

        lines = _grouped(_chosen(findings.rows, self.where, self.x, self.y), self.series)
        figure = Figure(figsize=(6.4, 1.35 * len(lines) + 0.5), layout="constrained")
        panels = np.atleast_1d(figure.subplots(len(lines), 1, sharex=True))
        for number, (axes, (label, rows)) in enumerate(zip(panels, lines.items(), strict=True)):
            left = np.array([row[self.x] for row in rows])
            width = left[1] - left[0] if len(left) > 1 else 1.0
            counts = [row[self.y] for row in rows]
            axes.bar(left + width / 2, counts, width=width, color=_COLOURS[number % len(_COLOURS)])
            axes.set_title(label, fontsize=9, loc="left", pad=2)
            axes.set_ylabel(self.y)
        panels[-1].set_xlabel(self.x_label)
        return figure


@dataclass(frozen=True)
class Sheet(Drawing):
    """The pictures of an experiment, with the captions of rows and columns."""

    def draw(self, findings: Findings) -> Any:
        """See :meth:`Drawing.draw`."""
        from matplotlib.figure import Figure

        pictures = findings.pictures
        if pictures is None:
            return None
        n_rows, n_columns, height, width = pictures.images.shape[:4]
        figure = Figure(figsize=(n_columns + 0.9, height / width * n_rows + 0.45))
        edge = 0.9 / figure.get_figwidth()
        top = 1 - 0.3 / figure.get_figheight()
        panels = np.atleast_2d(figure.subplots(n_rows, n_columns, squeeze=False))
        figure.subplots_adjust(edge, 0.02, 0.995, top, 0.04, 0.04)
        for i in range(n_rows):
            for j in range(n_columns):
                axes, image = panels[i, j], pictures.images[i, j]
                axes.imshow(image if image.shape[2] == 3 else image[..., 0], cmap="gray", vmin=0, vmax=255)
                axes.set_xticks([])
                axes.set_yticks([])
                axes.grid(visible=False)
                axes.spines[:].set_visible(False)
                if i == 0:
                    axes.set_title(pictures.columns[j], fontsize=8, pad=3)
                if j == 0:
                    axes.set_ylabel(pictures.rows[i], fontsize=8, rotation=0, ha="right", va="center", labelpad=4)
        return figure


def require_matplotlib() -> None:
    """Raise where figures cannot be drawn: matplotlib comes with an extra, since nothing else needs it."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError("Figures need matplotlib. Install it with `pip install 'ksame[papers]'`.") from error


def draw(drawing: Drawing, findings: Findings) -> dict[str, bytes]:
    """Return the figure as files, by their ending; none where there is nothing to draw."""
    require_matplotlib()
    import matplotlib

    matplotlib.use("agg")
    with matplotlib.rc_context(_STYLE):
        figure = drawing.draw(findings)
        if figure is None:
            return {}
        files = {}
        for ending, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": "ksame"})):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=ending, metadata=metadata)
            files[ending] = buffer.getvalue()
    return files


def _axes(y: str, label: str = "") -> tuple[Any, Any]:
    """Return an empty figure and its axes, the upright one labelled for a column."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.set_ylabel((label or _LABELS.get(y, y)) + (", %" if y in _SHARES else ""))
    return figure, axes


def _unit(column: str) -> int:
    return 100 if column in _SHARES else 1


def _chosen(rows: Sequence[Row], where: Mapping[str, Any], *columns: str) -> list[Row]:
    """Return the rows that have these columns, and in them the wanted values."""

    def fits(row: Row) -> bool:
        for name, wanted in where.items():
            if name not in row or row[name] not in (wanted if isinstance(wanted, tuple) else (wanted,)):
                return False
        return True

    return [row for row in rows if fits(row) and all(name in row for name in columns)]


def _grouped(rows: Sequence[Row], series: Sequence[str]) -> dict[str, list[Row]]:
    lines: dict[str, list[Row]] = {}
    for row in rows:
        label = ", ".join(str(row[name]) for name in series if row.get(name) not in (None, ""))
        lines.setdefault(label, []).append(row)
    return lines
