"""What the papers claim, what we see, and whether the two agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ksame.papers.data import NotAvailableError
from ksame.papers.experiment import Outcome, Rows


class Verdict(str, Enum):
    """Whether what we see is what a paper says."""

    AGREE = "agree"
    PARTLY = "partly"
    DIFFERS = "differs"
    REPORTED = "reported"  # nobody claims anything; the figure is there to be seen
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Judgement:
    """What we see, the verdict, and the reason where it is not plain agreement."""

    seen: str
    verdict: Verdict
    reason: str = ""


BY_SUBJECT_ONLY = (
    "it holds by folds of subjects only, where equal faces stand in training and test; with equal faces in one fold it "
    "does not"
)
"""Why a finding of the papers about labels counts as half of one: see the claims "what remains"."""


Judge = Callable[[Rows], Judgement]


@dataclass(frozen=True)
class Claim:
    """One statement of a paper."""

    name: str
    where: str  # figure, table or section
    statement: str  # in our words
    reported: str  # the paper's own figures
    how: str  # we measure it
    experiment: str  # whose numbers decide
    judge: Judge


class Claims(list[Claim]):
    """The claims of a paper, in its order. Each is a function that judges it, whose first line is what it says."""

    def add(self, experiment: str, where: str, reported: str, how: str) -> Callable[[Judge], Judge]:
        """Add a claim that bears the name of the function below; see :class:`Claim` for the rest."""

        def judged_by(judge: Judge) -> Judge:
            name, statement = judge.__name__.strip("_").replace("_", "-"), (judge.__doc__ or "").rstrip(".")
            self.append(Claim(name, where, statement, reported, how, experiment, judge))
            return judge

        return judged_by


@dataclass(frozen=True)
class Judged:
    """A claim and what became of it."""

    paper: str
    name: str
    where: str
    statement: str
    reported: str
    how: str
    seen: str
    verdict: str
    reason: str


def judge(paper: str, claims: Sequence[Claim], outcomes: Mapping[str, Outcome]) -> list[Judged]:
    """Judge the claims of a paper by what its experiments found."""
    judged = []
    for claim in claims:
        outcome = outcomes.get(claim.experiment)
        if outcome is None:
            continue
        try:
            if outcome.missing:
                raise NotAvailableError(outcome.missing)
            judgement = claim.judge(Rows(outcome.findings.rows))
        except NotAvailableError as reason:
            judgement = Judgement("–", Verdict.NOT_MEASURED, str(reason))
        said = (claim.name, claim.where, claim.statement, claim.reported, claim.how)
        judged.append(Judged(paper, *said, judgement.seen, judgement.verdict.value, judgement.reason))
    return judged


def pct(share: float) -> str:
    """Return a share in per cent, for sentences.

    Examples
    --------
    >>> pct(0.1234), pct(1.0), pct(0.0004), pct(0.0)
    ('12.3 %', '100 %', '0.04 %', '0 %')
    """
    value = 100.0 * share
    if value in (0.0, 100.0):
        return f"{value:.0f} %"
    return f"{value:.1f} %" if value >= 0.095 else f"{value:.2g} %"


def listed(curve: Mapping[Any, float], show: Callable[[float], str] = pct) -> str:
    """Return a curve in words.

    Examples
    --------
    >>> listed({2: 0.5, 5: 0.2})
    '2: 50.0 %, 5: 20.0 %'
    """
    return ", ".join(f"{x:g}: {show(y)}" if isinstance(x, float) else f"{x}: {show(y)}" for x, y in curve.items())


def by_subject_only(seen: str) -> Judgement:
    """Return half of an agreement; see :data:`BY_SUBJECT_ONLY`."""
    return Judgement(seen, Verdict.PARTLY, BY_SUBJECT_ONLY)


def by_name(curves: Mapping[str, Mapping[Any, float]], between: str = "; ") -> str:
    """Return several curves in words."""
    return between.join(f"{name} {listed(curve)}" for name, curve in curves.items())


def one_in_k(rates: Iterable[tuple[Any, Any]], seen: str) -> Judgement:
    """Return agreement where no rate, given with its k, is above 1/k."""
    return agree_if(max(rate * k for k, rate in rates) <= 1 + 1e-9, seen, "above 1/k")


def names(values: Iterable[Any]) -> str:
    """Return values as a list in a sentence.

    Examples
    --------
    >>> names(["bar", "T", 3]), names([2])
    ('bar, T and 3', '2')
    """
    texts = [str(value) for value in values]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def agree_if(good: bool, seen: str, otherwise: str, *, partly: bool = False) -> Judgement:
    """Return agreement where ``good``; else a difference (or half of one) with its reason."""
    if good:
        return Judgement(seen, Verdict.AGREE)
    return Judgement(seen, Verdict.PARTLY if partly else Verdict.DIFFERS, otherwise)
