"""What Gross, Airoldi, Malin and Sweeney (2005) claim, and how we judge it."""

from __future__ import annotations

from ksame.papers.claims import Claims, Judgement, agree_if, by_name, by_subject_only, listed, names, one_in_k, pct
from ksame.papers.experiment import Rows

LABELS = ("gender", "expression")
PROTOCOLS = ("another photograph", "same photograph")
BLURS = ("pixelation", "blur", "blur, sigma a variance")
SELECT = {"k-Same": None, "k-Same-Select gender": "gender", "k-Same-Select expression": "expression"}
"""Which label each keeps."""

_PCA = "833 people, a fifth train PCA with Mahalanobis distances, other photographs are hidden"
_SVM = "linear kernel, five folds by subject"

_WHOSE = dict(zip(PROTOCOLS, ("another", "the gallery's own"), strict=True))

CLAIMS = Claims()


@CLAIMS.add("fig3", "Fig. 3b", "two local minima at k = 3 and 7", "one face; depth of the shallower dip")
def _profile(rows: Rows) -> Judgement:
    """k-Same keeps the two dips at the pupils in the profile across the eyes."""
    dips = {}
    for shown in dict.fromkeys(rows.column("shown").tolist()):
        line = rows.where(shown=shown).column("grey").astype(float)
        at = [round(share * (len(line) - 1)) for share in (0.27, 0.5, 0.73)]
        left, middle, right = (line[max(0, x - 5) : x + 6] for x in at)
        dips[shown] = float(middle.max() - max(left.min(), right.min()))
    depths = ", ".join(f"{shown} {depth:.0f}" for shown, depth in dips.items())
    seen = f"grey values from the bridge of the nose down to the eyes: {depths}"
    return agree_if(all(v > 5 for v in dips.values()), seen, "the dips are lost at some k", partly=True)


@CLAIMS.add("fig6", "Fig. 6a, b", "above 90 %", _PCA)
def _slow_fall(rows: Rows) -> Judgement:
    """Recognition stays high over the first five levels of blur and pixelation."""
    seen, kept, strict = [], [], []
    for protocol in PROTOCOLS:
        hidden = rows.where(protocol=protocol)
        untouched = hidden.value("rank1", method="untouched")
        of = {m: hidden.curve("level", "rank1", method=m) for m in BLURS}
        few = {m: {x: v for x, v in c.items() if x <= (9 if m == "pixelation" else 17)} for m, c in of.items()}
        seen.append(f"{protocol}: untouched {pct(untouched)}, {by_name(few, ', ')}")
        kept.append(min(*few["pixelation"].values(), *few[BLURS[2]].values()))
        strict.append(min(few["blur"].values()))
    why = (
        "another photograph, with another expression or from another year, is hard for PCA trained on other people; of "
        f"the gallery's own, pixelation and blur with sigma read as a variance leave {pct(kept[1])} or more, blur with "
        f"sigma a standard deviation {pct(strict[1])}"
    )
    return agree_if(kept[0] > 0.9, "; ".join(seen), why, partly=kept[1] > 0.75)


def _at(rows: Rows, levels: dict[str, int], need: float) -> Judgement:
    """Judge what is left at a level of each range, and say which ranges leave enough under which protocol."""
    seen, why, reached = [], [], {}
    for protocol in PROTOCOLS:
        hidden = rows.where(protocol=protocol)
        rates = {m: hidden.value("rank1", method=m, level=float(levels[m.split(",")[0]])) for m in BLURS}
        seen.append(f"{protocol}: " + ", ".join(f"{m} {levels[m.split(',')[0]]}: {pct(v)}" for m, v in rates.items()))
        enough = reached[protocol] = [m for m in BLURS if rates[m] >= need]
        rest = [m for m in BLURS if m not in enough]
        said = f"{names(enough) or 'nothing'} reach{'' if len(enough) > 1 else 'es'} {need:.0%}".replace("%", " %")
        if enough and rest:
            said += f", {names(rest)} do{'' if len(rest) > 1 else 'es'} not"
        why.append(f"with {_WHOSE[protocol]} photograph {said}")
    good = all("pixelation" in enough and len(enough) > 1 for enough in reached.values())
    return agree_if(good, "; ".join(seen), "; ".join(why), partly=bool(reached[PROTOCOLS[1]]))


@CLAIMS.add("fig6", "section 6.1", "p = 9, sigma = 14", _PCA)
def _forty(rows: Rows) -> Judgement:
    """At 40 % of the range recognition is almost perfect."""
    return _at(rows, {"pixelation": 9, "blur": 14}, 0.9)


@CLAIMS.add("fig6", "section 6.1", "p = 15, sigma = 25", _PCA)
def _seventy(rows: Rows) -> Judgement:
    """At 70 % of the range it is still 70 %."""
    return _at(rows, {"pixelation": 15, "blur": 25}, 0.65)


@CLAIMS.add("fig6", "Fig. 6c", "below 1/k", _PCA)
def _one_in_k(rows: Rows) -> Judgement:
    """k-Same and k-Same-Select stay below 1/k."""
    seen, rates = [], [(0.0, 0.0)]
    for protocol in (p for p in PROTOCOLS if rows.where(protocol=p).rows):
        hidden = rows.where(protocol=protocol)
        of = {m: hidden.curve("level", "rank1", method=m) for m in SELECT if hidden.where(method=m).rows}
        seen.append(f"{protocol}: {by_name(of, ', ')}")
        rates += [point for curve in of.values() for point in curve.items()]
    return one_in_k(rates, "; ".join(seen))


@CLAIMS.add("fig7", "Fig. 7c", "well below 1/k (FaceIt)", "100 people, SFace")
def _one_in_k_deep(rows: Rows) -> Judgement:
    """So they do against a recogniser that was not trained on the set."""
    return _one_in_k(rows)


@CLAIMS.add("fig7", "Fig. 7a, b", "same observations as for PCA, lower rates", "100 people, SFace")
def _commercial(rows: Rows) -> Judgement:
    """Blur and pixelation have to be strong to hide people from it too."""
    of = {m: rows.curve("level", "rank1", method=m) for m in ("pixelation", "blur")}
    seen = f"untouched {pct(rows.value('rank1', method='untouched'))}; {by_name(of)}"
    strong = all(list(c.values())[1] > 0.5 for c in of.values())
    return agree_if(strong, seen, "weak levels hide people from it already", partly=True)


@CLAIMS.add("fig6", "section 6.1", "lower at every level; k = 2 about 50 %", _PCA)
def _formal_better(rows: Rows) -> Judgement:
    """Formal methods always protect better than blur and pixelation."""
    hidden = rows.where(protocol=PROTOCOLS[1])
    of = {m: hidden.curve("level", "rank1", method=m) for m in BLURS}
    half = hidden.value("rank1", method="k-Same", level=2.0)
    spans = ", ".join(f"{m} {pct(max(c.values()))} to {pct(min(c.values()))}" for m, c in of.items())
    seen = f"same photograph: k-Same k = 2 {pct(half)}; {spans}"
    why = "the strongest blur or pixelation leaves less than k-Same at k = 2, but promises nothing"
    lowest = min(min(c.values()) for c in of.values())
    return agree_if(half <= lowest, seen, why, partly=half < min(max(c.values()) for c in of.values()))


def _rates(rows: Rows, label: str, method: str, folds: str) -> dict[float, float]:
    return rows.curve("level", "accuracy", method=method, label=label, folds=folds)


@CLAIMS.add("fig8", "Fig. 8c", "rises above the baseline; falls", _SVM)
def _select(rows: Rows) -> Judgement:
    """Select raises what can be read with k, k-Same loses it."""
    seen, rises, honest = [], [], []
    for label in LABELS:
        base = rows.value("accuracy", method="untouched", label=label, folds="subject")
        select, plain = (_rates(rows, label, m, "subject") for m in ("k-Same-Select", "k-Same"))
        seen.append(f"{label}: untouched {pct(base)}, Select {listed(select)}, k-Same {listed(plain)}")
        last = max(select)
        rises.append(select[last] >= base and select[last] > plain[last] and plain[last] < base)
        apart = _rates(rows, label, "k-Same-Select", "group")
        honest.append(bool(apart) and apart[max(apart)] >= base)
    if all(rises) and not all(honest):
        return by_subject_only("; ".join(seen))
    why = "not for every label does Select end above the baseline and above k-Same, and k-Same below the baseline"
    return agree_if(all(rises), "; ".join(seen), why, partly=any(rises))


@CLAIMS.add("fig8", "Fig. 8c, beyond", "folds by subject only", "folds by group, and labels dealt by lot")
def _select_groups(rows: Rows) -> Judgement:
    """What remains of the rise when equal faces stay in one fold."""
    seen, same = [], []
    for label in LABELS:
        select = {f: _rates(rows, label, "k-Same-Select", f) for f in ("subject", "group")}
        lot = {f: rows.where(method="k-Same-Select by lot", label=label, folds=f) for f in ("subject", "group")}
        said = [f"{f} {pct(float(r.column('accuracy')[0]))}" for f, r in lot.items() if r.rows]
        k = max(k for k in select["group"] if k in select["subject"])
        seen.append(
            f"{label}, k = {k:g}: {pct(select['subject'][k])} by subject, {pct(select['group'][k])} by group; labels "
            f"dealt by lot: {', '.join(said)}"
        )
        same.append(abs(select["subject"][k] - select["group"][k]) < 0.03)
    why = "by subject the same bytes stand in training and test; what folds by group leave is the honest figure"
    return agree_if(all(same), "; ".join(seen), why, partly=True)


@CLAIMS.add("fig8", "Fig. 8a, b", "constant; falls", _SVM)
def _masks_use(rows: Rows) -> Judgement:
    """Blur leaves gender and expression readable, pixelation does not."""
    seen, flat, falls = [], [], []
    for label in LABELS:
        base = rows.value("accuracy", method="untouched", label=label, folds="subject")
        blur, mild, blocks = (_rates(rows, label, m, "subject") for m in (*BLURS[1:], BLURS[0]))
        seen.append(
            f"{label}: untouched {pct(base)}, blur {listed(blur)}, with sigma a variance {listed(mild)}, pixelation "
            f"{listed(blocks)}"
        )
        flat.append(max(min(blur.values()), min(mild.values())) > base - 0.05)
        falls.append(blocks[max(blocks)] < base - 0.02)
    kept = [label for label, good in zip(LABELS, flat, strict=True) if not good]
    stays = [label for label, good in zip(LABELS, falls, strict=True) if not good]
    why = "; ".join(
        [f"blur costs {label} more than 5 points" for label in kept]
        + [f"pixelation costs {label} less than 2 points" for label in stays]
    )
    return agree_if(all(flat) and all(falls), "; ".join(seen), why, partly=any(flat) or any(falls))
