"""Verdicts follow from the numbers, and reasons are true of them."""

import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks.papers_table import claims_table

from ksame.faces.filters import pixelate
from ksame.papers import PAPERS, load_paper
from ksame.papers.claims import BY_SUBJECT_ONLY
from ksame.papers.experiment import Rows

PAGE = (Path(__file__).parents[2] / "docs" / "papers.md").read_text(encoding="utf-8")


def judged(verdict, reason):
    claim = {"paper": "p", "name": "n", "where": "", "statement": "", "reported": "", "how": "", "seen": ""}
    return {"claims": [{**claim, "verdict": verdict, "reason": reason}]}


def claim(paper, name):
    return next(c for c in load_paper(paper).claims if c.name == name)


def curve(rates, **labels):
    return [{**labels, "p": p, "rank1": rate} for p, rate in rates.items()]


@pytest.mark.parametrize(
    ("rates", "verdict", "told", "untold"),
    [
        ({1: 0.8, 2: 0.8, 4: 0.79, 8: 0.75}, "agree", "", "more"),
        ({1: 0.112, 2: 0.112, 4: 0.1, 8: 0.1}, "partly", "only 11.2 %", "more is left"),
        ({1: 0.8, 2: 0.8, 4: 0.8, 8: 0.2}, "partly", "less is left", "more is left"),
        ({1: 0.8, 2: 0.7, 4: 0.5, 8: 0.2}, "differs", "lost at p = 2 and 4", "stays as it was"),
    ],
)
def test_the_reason_at_p_8_is_true_of_the_numbers(rates, verdict, told, untold):
    found = claim("gross2006", "pixelation").judge(Rows(curve(rates, attack="naive")))
    assert found.verdict.value == verdict
    assert told in found.reason
    assert untold not in found.reason


def test_pixelation_is_judged_with_originals_as_probes():
    rates = {"naive": 0.3, "reverse": 1.0, "parrot": 1.0}
    rows = [
        {"method": f"pixelation {p}", "attack": attack, "components": "all", "rank1": rate}
        for p in (15, 20, 30)
        for attack, rate in rates.items()
    ]
    found = claim("newton2005", "pixelation").judge(Rows(rows))
    assert found.verdict.value == "agree"
    assert "originals looked up among pixelated faces 15: 100 %" in found.seen
    assert "30.0 %" in found.seen


def test_the_reason_given_for_it_holds():
    """Block means are an orthogonal projection: the lost detail of a probe adds the same to every distance."""
    faces = np.random.default_rng(0).random((6, 30, 24, 1))
    blocks = pixelate(faces, 7)
    flat, coarse = faces.reshape(6, -1), blocks.reshape(6, -1)
    square = ((flat[:, None] - coarse[None]) ** 2).sum(axis=2)
    inside = ((coarse[:, None] - coarse[None]) ** 2).sum(axis=2)
    detail = ((flat - coarse) ** 2).sum(axis=1)
    np.testing.assert_allclose(square, inside + detail[:, None])


def folds(values, **labels):
    return [
        {**labels, "method": m, "folds": f, "accuracy": a, x: at}
        for (m, f), per in values.items()
        for x, of in per.items()
        for at, a in of.items()
    ]


def test_agreement_by_subject_folds_alone_is_half_of_one():
    values = {(m, "subject"): {"k": {1: 0.7, 2: 0.9, 10: 1.0}} for m in ("k-Same", "k-Same-M")} | {
        (m, "group"): {"k": {1: 0.7, 2: 0.6, 10: 0.2}} for m in ("k-Same", "k-Same-M")
    }
    blur = {("blur", "subject"): {"sigma": {1: 0.7, 20: 0.65}}}
    found = claim("gross2006", "utility").judge(Rows([*folds(values), *folds(blur)]))
    assert (found.verdict.value, found.reason) == ("partly", BY_SUBJECT_ONLY)
    good = {key: {"k": {1: 0.9, 2: 0.95, 10: 1.0}} for key in values}
    assert claim("gross2006", "utility").judge(Rows([*folds(good), *folds(blur)])).verdict.value == "agree"


@pytest.mark.parametrize(
    ("first", "second", "printed"),
    [
        (("differs", "it rained"), ("partly", "it rained"), "synthetic **differs**, portraits **partly**: it rained"),
        (("partly", "wind; it rained"), ("partly", "sun; it rained"), "**partly**: wind; it rained; sun"),
        (
            ("partly", "it rained; wind"),
            ("differs", "it rained; sun"),
            "synthetic **partly**: wind; portraits **differs**: sun; both: it rained",
        ),
        (("agree", ""), ("differs", "it rained"), "synthetic **agree**; portraits **differs**: it rained"),
    ],
)
def test_what_holds_for_both_is_printed_once(first, second, printed):
    assert f"| {printed} |" in claims_table(judged(*first), judged(*second))


@pytest.mark.parametrize("name", PAPERS)
def test_no_verdict_of_the_page_but_agreement_stands_without_a_reason(name):
    section = PAGE.split(f"### {name}\n")[1].split("\n###")[0].split("<!--")[0]
    for row in section.splitlines()[4:]:
        verdict = row.rsplit(" | ", 1)[-1].rstrip(" |")
        for part in verdict.split("; portraits ") if row.startswith("| ") else ():
            assert "**agree**" in part or "**reported**" in part or ": " in part, row[:80]
        clauses = [clause for clause in re.split(r"[;:] |\*\*", verdict) if len(clause) > 30]
        assert len(clauses) == len(set(clauses)), row[:80]
