"""What Gross, Sweeney, de la Torre and Baker (2006) claim, and how we judge it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ksame.papers.claims import Claims, Judgement, agree_if, by_name, by_subject_only, listed, names, one_in_k, pct
from ksame.papers.experiment import Rows

_SPLIT = "249 people, 30 % train, neutral gallery, smiling probes, five splits"
_FERET = "275 people, 30 % train, another photograph in the gallery, five splits"

METHODS = ("k-Same", "k-Same-M")

CLAIMS = Claims()


def _gap(pixel: dict[int, float], model: dict[int, float]) -> float:
    """Return how much k-Same-M is above k-Same on average over the k that both have."""
    gaps = [model[k] - pixel[k] for k in pixel if k > 1 and k in model]
    return float(np.mean(gaps)) if gaps else float("nan")


@CLAIMS.add(
    "fig2", "Figs. 2 and 3", "visibly higher quality", "100 people; strength of edges in the middle of the face"
)
def _ghosts(rows: Rows) -> Judgement:
    """k-Same-M faces show no ghosts where k-Same's do."""
    of = {m: rows.curve("k", "sharpness", method=m) for m in METHODS}
    ghosts = [k for k, v in of["k-Same"].items() if of["k-Same-M"][k] <= v]
    why = f"at k = {names(ghosts)} k-Same has more edges, since its ghosts are edges too"
    partly = len(ghosts) < len(of["k-Same"])
    return agree_if(not ghosts, f"sharpness, of the originals': {by_name(of)}", why, partly=partly)


@CLAIMS.add("fig5", "Fig. 5a", "below 1/k at all k", _SPLIT)
def _below(rows: Rows) -> Judgement:
    """k-Same and k-Same-M stay below 1/k."""
    of = {m: {k: v for k, v in rows.curve("k", "rank1", method=m).items() if k > 1} for m in METHODS}
    return one_in_k([point for curve in of.values() for point in curve.items()], by_name(of))


@CLAIMS.add("fig5", "Fig. 5a", "slightly", _SPLIT)
def _order(rows: Rows) -> Judgement:
    """k-Same is recognised slightly less than k-Same-M."""
    pixel, model = (rows.curve("k", "rank1", method=m) for m in METHODS)
    gap = _gap(pixel, model)
    seen = f"k-Same-M minus k-Same {100 * gap:+.1f} points on average; untouched {pct(pixel[1])} and {pct(model[1])}"
    why = "they lie ten points apart or more" if abs(gap) >= 0.1 else "they lie close, but in the other order"
    if gap < 0 and model[1] < pixel[1]:
        why += (
            ": inside the mesh there is no hair and no outline, so that k-Same-M has less to be recognised by from the "
            "start"
        )
    return agree_if(0 <= gap < 0.1, seen, why, partly=abs(gap) < 0.1)


@CLAIMS.add("fig5", "Fig. 5b", "curves in order of k", _SPLIT)
def _cmc(rows: Rows) -> Judgement:
    """The match curve of k-Same-M declines steadily with k."""
    ten = {row["curve"]: row["within"] for row in rows.where(rank=10).rows if row["curve"].startswith("k-Same-M")}
    order = sorted(ten, key=lambda name: int(name.rsplit(" ", 1)[1]) if "k =" in name else 1)
    values = [ten[name] for name in order]
    rates = ", ".join(f"{n.removeprefix('k-Same-M, ')} {pct(ten[n])}" for n in order)
    drops = [a >= b - 0.03 for a, b in pairwise(values)]
    seen = f"right person among the first ten: {rates}"
    return agree_if(all(drops), seen, "not at every step", partly=values[0] > values[-1])


@CLAIMS.add("fig6", "Fig. 6", "substantially higher than blur", "radial kernel, five folds by subject")
def _utility(rows: Rows) -> Judgement:
    """Select keeps expression far better than blur."""
    folds = ("subject", "group")
    of = {(m, f): rows.curve("k", "accuracy", method=m, folds=f) for m in METHODS for f in folds}
    blur = rows.curve("sigma", "accuracy", method="blur", folds="subject")
    seen = "; ".join(f"{m} by {f} {listed(curve)}" for (m, f), curve in of.items()) + f"; blur {listed(blur)}"
    good = {}
    for fold in folds:
        selected = [v for m in METHODS for k, v in of[m, fold].items() if k > 1]
        above = bool(selected) and min(selected) > min(blur.values())
        good[fold] = (above, above and np.mean(selected) > np.mean(list(blur.values())) + 0.02)
    if good["subject"][1] and not good["group"][1]:
        return by_subject_only(seen)
    why = "blur harms the reading of expression little here, so that Select is hardly above it"
    return agree_if(good["subject"][1], seen, why, partly=good["subject"][0])


@CLAIMS.add("fig6", "Fig. 6, beyond", "folds by subject only", "the same faces, folds by group")
def _utility_groups(rows: Rows) -> Judgement:
    """What remains of that when equal faces stay in one fold."""
    lost = {}
    for m in METHODS:
        subject, group = (rows.curve("k", "accuracy", method=m, folds=f) for f in ("subject", "group"))
        last = max(k for k in group if k in subject)
        lost[m] = (last, subject[last], group[last])
    seen = ", ".join(f"{m} k = {k}: {pct(a)} by subject, {pct(b)} by group" for m, (k, a, b) in lost.items())
    why = "part of the gain is an artefact: by subject the same bytes stand in training and test"
    return agree_if(all(abs(a - b) < 0.03 for _, a, b in lost.values()), seen, why, partly=True)


@CLAIMS.add("fig6", "Fig. 6a", "slightly better", "radial kernel, five folds")
def _utility_model(rows: Rows) -> Judgement:
    """k-Same-M keeps expression slightly better than k-Same."""
    curves = [[rows.curve("k", "accuracy", method=m, folds=f) for m in METHODS] for f in ("subject", "group")]
    gap, fair = (_gap(*pair) for pair in curves)
    seen = f"k-Same-M minus k-Same {100 * gap:+.1f} points by subject, {100 * fair:+.1f} by group"
    if gap > 0 and not fair > 0:
        return by_subject_only(seen)
    return agree_if(gap > 0, seen, "both are read nearly always by subject folds", partly=abs(gap) < 0.03)


@CLAIMS.add("fig8", "Fig. 8a", "unchanged at 2 and 4; 40 % at 8", _FERET)
def _pixelation(rows: Rows) -> Judgement:
    """Pixelation hardly lowers recognition at p = 2 and 4, and leaves much at p = 8."""
    rates = rows.curve("p", "rank1", attack="naive")
    seen = listed(rates)
    flat = all(rates[p] > rates[1] - 0.03 for p in (2, 4) if p in rates)
    if not flat:
        why = "some people are lost at p = 2 and 4 already"
    elif rates[1] < 0.4:
        why = (
            f"recognition at small p stays as it was, but that is only {pct(rates[1])}: these photographs of a person "
            f"are too different for PCA to leave the paper's 40 % at p = 8; {pct(rates[8] / rates[1])} of it is left"
        )
    else:
        why = f"recognition at small p stays as it was; at p = 8 less is left than the paper's 40 %: {pct(rates[8])}"
    return agree_if(flat and rates[8] > 0.3, seen, why, partly=flat)


@CLAIMS.add("fig8", "Fig. 8b", "higher than original recognition", _FERET)
def _automatic_parrot(rows: Rows) -> Judgement:
    """The automatic parrot recognises more than on untouched faces, but for the highest level."""
    parrot = rows.curve("p", "rank1", attack="automatic-parrot")
    untouched = rows.value("rank1", attack="naive", p=1)
    seen = f"untouched {pct(untouched)}; automatic parrot {listed(parrot)}"
    lower = [p for p, rate in parrot.items() if rate < untouched - 0.005]
    near = all(parrot[p] >= untouched - 0.03 for p in parrot if p <= 8)
    why = f"lower at p = {', '.join(map(str, lower))}" + (", for blocks of up to 8 by no more than 3 points" * near)
    return agree_if(set(lower) <= {max(parrot)}, seen, why, partly=near)


@CLAIMS.add("fig9", "Fig. 9", "small gains at 2 and 4, loss at 8", _FERET)
def _enhancement(rows: Rows) -> Judgement:
    """Resolution enhancement helps at p = 2 and 4 and hurts at p = 8."""
    plain, sharp = (rows.curve("p", "rank1", attack=a) for a in ("naive", "enhancement"))
    gains = {p: sharp[p] - plain[p] for p in sharp}
    seen = ", ".join(f"p = {p}: {100 * g:+.1f} points" for p, g in gains.items())
    helps = all(gains[p] >= 0 for p in (2, 4) if p in gains)
    why = []
    if all(abs(gains[p]) < 0.005 for p in (2, 4) if p in gains):
        why.append("hardly anything is lost at p = 2 and 4 that could be won back")
    elif not helps:
        why.append("it does not help at both p = 2 and 4")
    if gains[8] > 0:
        why.append("it gains at p = 8: its prior was learned from faces and the attacker found the exact blocks")
    elif gains[8] == 0:
        why.append("nothing is lost at p = 8")
    return agree_if(helps and gains[8] < 0, seen, "; ".join(why), partly=helps or gains[8] > 0)
