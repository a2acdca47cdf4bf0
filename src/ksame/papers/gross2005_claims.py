"""What Gross, Airoldi, Malin and Sweeney (2005) claim, and how we judge it."""

from __future__ import annotations

from ksame.papers.claims import Claim, Judgement, agree_if, listed, pct
from ksame.papers.experiment import Rows

BLURS = ("pixelation", "blur", "blur, sigma a variance")
SELECT = ("k-Same", "k-Same-Select gender", "k-Same-Select expression")


def _profile(rows: Rows) -> Judgement:
    dips = {}
    for shown in dict.fromkeys(rows.column("shown").tolist()):
        line = rows.where(shown=shown).column("grey").astype(float)
        at = [round(share * (len(line) - 1)) for share in (0.27, 0.5, 0.73)]
        left, middle, right = (line[max(0, x - 5) : x + 6] for x in at)
        dips[shown] = float(middle.max() - max(left.min(), right.min()))
    seen = "grey values from the bridge of the nose down to the eyes: " + ", ".join(
        f"{n} {v:.0f}" for n, v in dips.items()
    )
    return agree_if(all(v > 5 for v in dips.values()), seen, "the dips are lost at some k", partly=True)


def _high(rows: Rows) -> Judgement:
    untouched = rows.one("rank1", method="untouched")
    of = {m: rows.curve("level", "rank1", method=m) for m in BLURS}
    seen = f"untouched {pct(untouched)}; " + "; ".join(f"{m} {listed(c)}" for m, c in of.items())
    kept = {m: all(v > 0.9 * untouched for v in list(c.values())[:3]) for m, c in of.items()}
    why = (
        f"recognition starts at {pct(untouched)}, since our probes are other photographs with another expression and "
        f"the eigenspace is that of other people; of that, more than 90 % stays over the first levels of "
        f"{', '.join(m for m, good in kept.items() if good) or 'none'}. A sigma of several pixels on a face 81 wide "
        "takes most away at once, so the paper's sigma must be a variance"
    )
    most = untouched > 0.9 and kept["pixelation"] and (kept["blur"] or kept["blur, sigma a variance"])
    partly = any(kept.values()) or of["pixelation"].get(5.0, 0.0) > 0.8 * untouched
    return agree_if(most, seen, why, partly=partly)


def _at(rows: Rows, levels: dict[str, int], need: float, otherwise: str) -> Judgement:
    untouched = rows.one("rank1", method="untouched")
    rates = {m: rows.one("rank1", method=m, level=float(levels[m.split(",")[0]])) for m in BLURS}
    seen = ", ".join(
        f"{m} {levels[m.split(',')[0]]}: {pct(v)} ({pct(v / untouched)} of untouched)" for m, v in rates.items()
    )
    enough = {m: v >= need for m, v in rates.items()}
    good = enough["pixelation"] and (enough["blur"] or enough["blur, sigma a variance"])
    partly = any(v >= need * untouched for v in rates.values())
    return agree_if(good, seen, otherwise, partly=partly)


def _forty(rows: Rows) -> Judgement:
    why = (
        "the probe is another photograph, so that even untouched faces are not all recognised; blocks of 9 pixels on a "
        "face of 81 take a third of what is left"
    )
    return _at(rows, {"pixelation": 9, "blur": 14}, 0.9, why)


def _seventy(rows: Rows) -> Judgement:
    why = "less is left here: the probe is another photograph, and blocks of 15 pixels leave five across a face"
    return _at(rows, {"pixelation": 15, "blur": 25}, 0.65, why)


def _one_in_k(rows: Rows) -> Judgement:
    of = {m: rows.curve("level", "rank1", method=m) for m in SELECT if rows.where(method=m).rows}
    seen = "; ".join(f"{m} {listed(c)}" for m, c in of.items())
    most = max(v * k for c in of.values() for k, v in c.items())
    return agree_if(most <= 1 + 1e-9, seen, "above 1/k")


def _dominate(rows: Rows) -> Judgement:
    naive = {m: max(rows.curve("level", "rank1", method=m).values()) for m in BLURS}
    worst = {m: min(rows.curve("level", "rank1", method=m).values()) for m in BLURS}
    half = rows.one("rank1", method="k-Same", level=2.0)
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
        blur, mild, blocks = (_rates(rows, label, m, "subject") for m in (*BLURS[1:], BLURS[0]))
        seen.append(
            f"{label}: untouched {pct(base)}, blur {listed(blur)}, with sigma a variance {listed(mild)}, pixelation "
            f"{listed(blocks)}"
        )
        flat.append(max(min(blur.values()), min(mild.values())) > base - 0.05)
        falls.append(blocks[max(blocks)] < base - 0.02)
    why = "one of the four curves does otherwise: see the figures"
    return agree_if(all(flat) and all(falls), "; ".join(seen), why, partly=any(flat) or any(falls))


_PCA = "833 people, a fifth train PCA with Mahalanobis distances, other photographs are hidden"
_SVM = "linear kernel, five folds by subject"

CLAIMS = (
    Claim(
        "profile",
        "Fig. 3b",
        "k-Same keeps the two dips at the pupils in the profile across the eyes",
        "two local minima at k = 3 and 7",
        "one face; depth of the shallower dip",
        "fig3",
        _profile,
    ),
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
        "100 people, SFace",
        "fig7",
        _one_in_k,
    ),
    Claim(
        "commercial",
        "Fig. 7a, b",
        "Blur and pixelation have to be strong to hide people from it too",
        "same observations as for PCA, lower rates",
        "100 people, SFace",
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
