"""What Gross, Airoldi, Malin and Sweeney (2005) claim, and how we judge it."""

from __future__ import annotations

import numpy as np

from ksame.papers.claims import Claim, Judgement, agree_if, listed, pct
from ksame.papers.experiment import Rows

SELECT = ("k-Same", "k-Same-Select gender", "k-Same-Select expression")


def _high(rows: Rows) -> Judgement:
    untouched = rows.one("rank1", method="untouched")
    of = {m: rows.curve("level", "rank1", method=m) for m in ("pixelation", "blur")}
    seen = f"untouched {pct(untouched)}; " + "; ".join(f"{m} {listed(c)}" for m, c in of.items())
    kept = all(np.mean([v > 0.9 * untouched for v in list(c.values())[:3]]) == 1 for c in of.values())
    absolute = kept and untouched > 0.9
    why = (
        f"recognition falls slowly from the start, but starts at {pct(untouched)}: our probes are other photographs "
        "with another expression, and the eigenspace is that of other people"
    )
    return agree_if(absolute, seen, why, partly=kept or of["pixelation"].get(9, 0.0) > 0.7 * untouched)


def _at(rows: Rows, levels: dict[str, int], need: float, otherwise: str) -> Judgement:
    untouched = rows.one("rank1", method="untouched")
    rates = {m: rows.one("rank1", method=m, level=float(x) if m == "blur" else x) for m, x in levels.items()}
    seen = ", ".join(f"{m} {levels[m]}: {pct(v)} ({pct(v / untouched)} of untouched)" for m, v in rates.items())
    return agree_if(
        all(v >= need for v in rates.values()),
        seen,
        otherwise,
        partly=any(v >= need * untouched for v in rates.values()),
    )


def _forty(rows: Rows) -> Judgement:
    why = "as good as untouched for pixelation at the most; blur of the same share of its range takes more away here"
    return _at(rows, {"pixelation": 9, "blur": 14}, 0.95, why)


def _seventy(rows: Rows) -> Judgement:
    why = (
        "less is left here: the probe is another photograph, and blur with sigma 25 covers a third of an 81-pixel face"
    )
    return _at(rows, {"pixelation": 15, "blur": 25}, 0.65, why)


def _one_in_k(rows: Rows) -> Judgement:
    of = {m: rows.curve("level", "rank1", method=m) for m in SELECT if rows.where(method=m).rows}
    seen = "; ".join(f"{m} {listed(c)}" for m, c in of.items())
    most = max(v * k for c in of.values() for k, v in c.items())
    return agree_if(most <= 1 + 1e-9, seen, "above 1/k")


def _dominate(rows: Rows) -> Judgement:
    naive = {m: max(rows.curve("level", "rank1", method=m).values()) for m in ("pixelation", "blur")}
    worst = {m: min(rows.curve("level", "rank1", method=m).values()) for m in ("pixelation", "blur")}
    half = rows.one("rank1", method="k-Same", level=2)
    seen = f"k-Same k = 2: {pct(half)}; " + ", ".join(f"{m} {pct(naive[m])} to {pct(worst[m])}" for m in naive)
    why = "the strongest blur or pixelation leaves less than k-Same at k = 2, but promises nothing"
    return agree_if(half <= min(worst.values()), seen, why, partly=half < min(naive.values()))


def _weaker(rows: Rows) -> Judgement:
    of = {m: rows.curve("level", "rank1", method=m) for m in ("pixelation", "blur")}
    seen = f"untouched {pct(rows.one('rank1', method='untouched'))}; " + "; ".join(
        f"{m} {listed(c)}" for m, c in of.items()
    )
    strong = all(list(c.values())[1] > 0.5 for c in of.values())
    why = "lower from the start than PCA"
    return agree_if(strong, seen, why, partly=True)


def _rates(rows: Rows, label: str, method: str, folds: str) -> dict[float, float]:
    return rows.curve("level", "accuracy", method=method, label=label, folds=folds)


def _select(rows: Rows) -> Judgement:
    seen, rises = [], []
    for label in ("gender", "expression"):
        base = rows.one("accuracy", method="untouched", label=label, folds="subject")
        select, plain = (_rates(rows, label, m, "subject") for m in ("k-Same-Select", "k-Same"))
        seen.append(f"{label}: untouched {pct(base)}, Select {listed(select)}, k-Same {listed(plain)}")
        last = max(select)
        rises.append(select[last] >= base and select[last] > plain[last] and plain[last] < base)
    why = "Select is above k-Same, but one of the three comparisons does not hold for every label"
    return agree_if(all(rises), "; ".join(seen), why, partly=any(rises))


def _groups(rows: Rows) -> Judgement:
    seen, same = [], []
    for label in ("gender", "expression"):
        select = {f: _rates(rows, label, "k-Same-Select", f) for f in ("subject", "group")}
        lot = {f: rows.where(method="k-Same-Select by lot", label=label, folds=f) for f in ("subject", "group")}
        said = [f"{f} {pct(float(r.column('accuracy')[0]))}" for f, r in lot.items() if r.rows]
        k = max(k for k in select["group"] if k in select["subject"])
        seen.append(
            f"{label}, k = {k:g}: {pct(select['subject'][k])} by subject, {pct(select['group'][k])} by group; labels "
            f"dealt by lot: {', '.join(said)}"
        )
        same.append(abs(select["subject"][k] - select["group"][k]) < 0.03)
    why = (
        "by subject the same bytes stand in training and test, so that even labels dealt by lot are read; what folds "
        "by group leave is the honest figure"
    )
    return agree_if(all(same), "; ".join(seen), why, partly=True)


def _masks(rows: Rows) -> Judgement:
    seen, flat, falls = [], [], []
    for label in ("gender", "expression"):
        base = rows.one("accuracy", method="untouched", label=label, folds="subject")
        blur, blocks = (_rates(rows, label, m, "subject") for m in ("blur", "pixelation"))
        seen.append(f"{label}: untouched {pct(base)}, blur {listed(blur)}, pixelation {listed(blocks)}")
        flat.append(min(blur.values()) > base - 0.05)
        falls.append(blocks[max(blocks)] < base - 0.02)
    why = "blur costs use as well here, at the strong end of its range"
    return agree_if(all(flat) and all(falls), "; ".join(seen), why, partly=all(falls) or all(flat))


_PCA = "833 people, a fifth train PCA with Mahalanobis distances, other photographs are hidden"
_SVM = "linear kernel, five folds by subject"

CLAIMS = (
    Claim(
        "slow-fall",
        "Fig. 6a, b",
        "Recognition stays high over the first five levels of blur and pixelation",
        "above 90 %",
        _PCA,
        "fig6",
        _high,
    ),
    Claim(
        "forty",
        "section 6.1",
        "At 40 % of the range recognition is almost perfect",
        "p = 9, sigma = 14",
        _PCA,
        "fig6",
        _forty,
    ),
    Claim(
        "seventy", "section 6.1", "At 70 % of the range it is still 70 %", "p = 15, sigma = 25", _PCA, "fig6", _seventy
    ),
    Claim("one-in-k", "Fig. 6c", "k-Same and k-Same-Select stay below 1/k", "below 1/k", _PCA, "fig6", _one_in_k),
    Claim(
        "one-in-k-deep",
        "Fig. 7c",
        "So they do against a recogniser that was not trained on the set",
        "well below 1/k (FaceIt)",
        "150 people, SFace",
        "fig7",
        _one_in_k,
    ),
    Claim(
        "commercial",
        "Fig. 7a, b",
        "Blur and pixelation have to be strong to hide people from it too",
        "same observations as for PCA, lower rates",
        "150 people, SFace",
        "fig7",
        _weaker,
    ),
    Claim(
        "formal-better",
        "section 6.1",
        "Formal methods always protect better than blur and pixelation",
        "lower at every level; k = 2 about 50 %",
        _PCA,
        "fig6",
        _dominate,
    ),
    Claim(
        "select",
        "Fig. 8c",
        "Select raises what can be read with k, k-Same loses it",
        "rises above the baseline; falls",
        _SVM,
        "fig8",
        _select,
    ),
    Claim(
        "select-groups",
        "Fig. 8c, beyond",
        "What remains of the rise when equal faces stay in one fold",
        "folds by subject only",
        "folds by group, and labels dealt by lot",
        "fig8",
        _groups,
    ),
    Claim(
        "masks-use",
        "Fig. 8a, b",
        "Blur leaves gender and expression readable, pixelation does not",
        "constant; falls",
        _SVM,
        "fig8",
        _masks,
    ),
)
