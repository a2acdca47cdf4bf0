"""Verdicts follow from the numbers, and reasons are true of them."""

import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks.papers_table import claims_table

from ksame.faces.filters import pixelate
from ksame.papers.claims import BY_SUBJECT_ONLY
from ksame.papers.experiment import Rows
from ksame.papers.run import PAPERS, load_paper

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


def repeated(naive, pooled, method="k-Same on images"):
    both = (("naive", naive), ("pooled", pooled))
    return [
        {"method": method, "k": k, "attack": attack, "rank1": rate, "most": rate}
        for attack, rates in both
        for k, rate in rates.items()
    ]


def office(pictures, n=250):
    rows = []
    for models in ("mean", "images"):
        labels = {"place": "office building", "models": models}
        for k, (rate, low) in pictures.items():
            rows.append({**labels, "k": k, "attack": "naive", "rank1": rate, "low": low, "n": n})
            exact = {"rank1": 0.9 / k, "low": 0.0, "cut_off": 0.007}
            rows.append({**labels, "k": k, "attack": "naive, before rounding", **exact})
    return rows


def levels(rates):
    """Rates by protocol, method and level."""
    return [
        {"protocol": protocol, "method": method, "level": float(level), "rank1": rate}
        for protocol, methods in rates.items()
        for method, of in methods.items()
        for level, rate in of.items()
    ]


def flips(rates):
    return [{"attack": "naive", "kind": "black and white", "pixels": m, "rank1": rate} for m, rate in rates.items()]


LOW = {"pixelation": {9: 0.3, 15: 0.1}, "blur": {14: 0.1, 25: 0.0}, "blur, sigma a variance": {14: 0.4, 25: 0.2}}
OWN = {"pixelation": {9: 0.75, 15: 0.2}, "blur": {14: 0.1, 25: 0.0}, "blur, sigma a variance": {14: 0.95, 25: 0.5}}
FORTY = levels({"another photograph": LOW, "same photograph": OWN})


@pytest.mark.parametrize(
    ("paper", "name", "rows", "verdict", "told", "untold"),
    [
        # single pictures are above 1/k at some k: the reason must not say that they stay below
        ("gross2007", "repeated-light", repeated({2: 0.55, 3: 0.39, 5: 0.18, 7: 0.15}, {2: 0.5, 5: 0.2}), "partly",
         "of k = 2 to 5, above 1/k at k = 2, 3 only", "stays below"),
        ("gross2007", "repeated-light", repeated({2: 0.4, 5: 0.1}, {2: 0.6, 5: 0.1}), "partly",
         "single pictures stay at or below 1/k", "only"),
        # pooling gains a little, and still no more than 1/k are named
        ("gross2007", "class-information",
         repeated({2: 0.45, 3: 0.26}, {2: 0.46, 3: 0.30}, "k-Same on images, by class"), "differs",
         "all pictures of a person together name no more than 1/k", "gains nothing"),
        # an exact interval that includes 1/k is about 1/k
        ("gross2007", "office", office({2: (0.5, 0.43), 10: (0.12, 0.08)}), "agree", "", "more than"),
        ("gross2007", "office", office({2: (0.5, 0.43), 10: (0.16, 0.11), 20: (0.06, 0.03)}), "partly",
         "at k = 10 more than 1/k", "20"),
        ("gross2006", "automatic-parrot",
         curve({1: 0.112}, attack="naive") + curve({2: 0.112, 4: 0.1, 8: 0.125, 16: 0.05}, attack="automatic-parrot"),
         "partly", "lower at p = 4, 16", "at least as high for small blocks"),
        ("gross2006", "enhancement",
         curve({1: 0.1, 2: 0.1, 4: 0.1, 8: 0.1}, attack="naive")
         + curve({2: 0.112, 4: 0.112, 8: 0.1}, attack="enhancement"), "partly", "nothing is lost at p = 8", "prior"),
        ("newton2005", "noise-bw", flips({0: 0.035, 3000: 0.02, 6000: 0.005, 9000: 0.0, 13000: 0.0}), "partly",
         "before half", "after"),
        ("newton2005", "noise-bw", flips({0: 0.8, 3000: 0.8, 6000: 0.7, 9000: 0.2, 13000: 0.0}), "agree", "", "before"),
        ("newton2005", "noise-all",
         [{"attack": a, "kind": "grey", "pixels": 13000, "rank1": rate, "n": 200}
          for a, rate in {"naive": 0.005, "reverse": 0.03, "parrot, own noise": 0.0, "parrot": 1.0}.items()], "partly",
         "reverse matching finds people; a parrot who has the released pictures", "and parrot matching"),
        ("gross2005", "forty", FORTY, "partly",
         "with the gallery's own photograph blur, sigma a variance reaches 90 %, pixelation and blur do not",
         "it needs"),
        ("gross2005", "seventy", FORTY, "differs", "nothing reaches 65 %", "reaches 65 %, "),
    ],
)  # fmt: skip
def test_reasons_are_true_of_the_numbers(paper, name, rows, verdict, told, untold):
    found = claim(paper, name).judge(Rows(rows))
    assert found.verdict.value == verdict
    assert told in found.reason
    assert untold not in found.reason


@pytest.mark.parametrize(
    ("first", "second", "printed"),
    [
        (("differs", "it rained"), ("partly", "it rained"), "synthetic **differs**, portraits **partly**: it rained"),
        (("partly", "it rained"), ("partly", "it rained"), "**partly**: it rained"),
        (
            ("partly", "wind; it rained"),
            ("partly", "sun; it rained"),
            "**partly**: synthetic: wind; portraits: sun; both: it rained",
        ),
        (("agree", ""), ("agree", "it rained"), "**agree**: portraits: it rained"),
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
