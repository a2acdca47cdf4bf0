"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ksame.attacks import SCENARIOS
from ksame.audit.charts import cmc_chart, diversity_chart, poc_chart
from ksame.audit.judging import REPEATED, is_direct
from ksame.audit.result import AccuracyRecord, AttackRecord, AuditResult, Exposed
from ksame.errors import UsageError
from ksame.faces.reading import StrPath
from ksame.files import make_folder, write_atomic
from ksame.utility.poc import PocPoint, poc

NUMBERS = "audit.json"
"""File of all numbers, beside the report."""

# by outcome: words, what the style sheet calls it, and words for a cell of the table
_OUTCOMES: dict[str | None, tuple[str, str, str]] = {
    "holds": ("Promise holds", "holds", "holds"),
    "broken": ("Promise broken", "broken", "broken"),
    "too few faces to say": ("Too few faces to say", "few", "too few"),
    None: ("Nothing promised", "", "not covered"),
}
_UPPER_LIMIT = "An upper limit: it takes an attacker who can repeat the alteration on photographs of their own."


@dataclass(frozen=True)
class _Scenario:
    """What the page shows of one scenario."""

    name: str
    summary: str
    attacks: tuple[AttackRecord, ...]
    notes: tuple[str, ...]
    chart: Markup


def render_report(result: AuditResult) -> str:
    """Return the page. It holds originals where the result has pictures, so it stays with the publisher."""
    page = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    page.filters.update(pct=_pct, span=_span, css=_css, accuracy=_accuracy, named=_named(result))
    page.filters.update(badge=lambda verdict: _OUTCOMES[verdict][1], brief=lambda verdict: _OUTCOMES[verdict][2])
    outcome, badge, _ = _OUTCOMES[result.verdict.outcome]
    curves = poc(PocPoint(p.method, p.parameter, p.privacy, p.utility) for p in result.compared)
    utility, bound = result.utility, None if result.promise is None else result.promise.bound
    drawn = None
    if utility.diversity_before is not None and utility.diversity_after is not None:
        drawn = Markup(diversity_chart(utility.diversity_before, utility.diversity_after))  # noqa: S704 -- ours
    return page.from_string(_file("report.html.jinja")).render(
        r=result,
        css=Markup(_file("report.css")),  # noqa: S704 -- ours
        bound=bound,
        badge=badge,
        outcome=outcome,
        scenarios=_scenarios(result.attacks, bound),
        diversity=drawn,
        curves=curves,
        poc=Markup(poc_chart(curves, result.compared[0].measure)) if result.compared else None,  # noqa: S704 -- ours
    )


def require_place(report: Path, *folders: Path, force: bool) -> None:
    """Raise where a report may not be written: over something else, or among pictures that are to be published.

    ``*folders``: folders of pictures in which it must not lie. ``force``: whether an earlier report may be replaced.
    """
    if report.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{report}: a report is an HTML file; give a name such as report.html.")
    for folder in folders:
        if report.resolve().is_relative_to(folder.resolve()):
            raise UsageError(
                f"{report} lies inside {folder}. The report shows originals and says who became whom, so it must not "
                "lie among released pictures; choose a place outside."
            )
    for path in (report, report.with_name(NUMBERS)):
        if path.exists() and not force:
            raise UsageError(f"{path} exists. Choose another place, or replace it with --force.")


def write_report(result: AuditResult, report: StrPath) -> None:
    """Write the page, and ``audit.json`` beside it; each appears whole or not at all, readable by its owner only."""
    report = Path(report)
    contents = {report: render_report(result).encode(), report.with_name(NUMBERS): result.to_json()}
    make_folder(report.parent)
    for path, data in contents.items():
        write_atomic(path, data, private=True)


def _scenarios(attacks: Sequence[AttackRecord], bound: float | None) -> list[_Scenario]:
    scenarios = []
    for name in dict.fromkeys(attack.scenario for attack in attacks):
        same = tuple(attack for attack in attacks if attack.scenario == name)
        covered = bound if any(attack.covered for attack in same) else None
        summary = SCENARIOS[name].summary if name in SCENARIOS else name
        limit = f" {_UPPER_LIMIT}" if name == REPEATED else ""
        chart = Markup(cmc_chart(same, covered))  # noqa: S704 -- ours, and names are escaped
        notes = (f"Guessing reaches {_pct(same[0].chance)}.", *_notes(same))
        scenarios.append(_Scenario(name, _sentence(summary) + limit, same, notes, chart))
    return scenarios


def _notes(attacks: Sequence[AttackRecord]) -> tuple[str, ...]:
    """Return every note once, with the recogniser's name where not all say it."""
    said: dict[str, list[str]] = {}
    for attack in attacks:
        for note in attack.notes:
            said.setdefault(note, []).append(attack.recogniser)
    return tuple(
        _sentence(note if len(who) == len(attacks) else f"{', '.join(who)}: {note}") for note, who in said.items()
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _named(result: AuditResult) -> Callable[[Exposed], str]:
    """Return what says which attacks name a person, all of them in one word."""
    direct = len([attack for attack in result.attacks if is_direct(attack)])

    def words(face: Exposed) -> str:
        if not face.named_by:
            return "never more likely than not"
        if len(face.named_by) == direct > 1:
            return f"named by all {direct} direct attacks"
        return "named by " + "; ".join(face.named_by)

    return words


def _pct(share: float | None) -> str:
    """Return a share in per cent.

    Examples
    --------
    >>> _pct(0.1234), _pct(1.0), _pct(0.0004), _pct(None)
    ('12.3\u2009%', '100\u2009%', '0.04\u2009%', '–')
    """
    if share is None:
        return "–"
    value = 100 * share
    digits = 2 if 0 < value < 0.095 else 1
    text = f"{value:.{digits}f}"
    return (text.rstrip("0").rstrip(".") if value in (0.0, 100.0) else text) + "\u2009%"


def _span(interval: tuple[float, float]) -> str:
    low, high = (f"{100 * end:.1f}" for end in interval)
    return f"{low}–{high}\u2009%"


def _css(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.2f}%"


def _accuracy(accuracy: AccuracyRecord | None) -> str:
    return "too few" if accuracy is None else _pct(accuracy.rate)


def _file(name: str) -> str:
    return files("ksame.audit").joinpath(name).read_text(encoding="utf-8")
