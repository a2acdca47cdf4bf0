"""What Newton, Sweeney and Malin (2005) claim, and how we judge it."""

from __future__ import annotations

import numpy as np

from ksame.papers.claims import Claims, Judgement, Verdict, agree_if, listed, names, one_in_k, pct
from ksame.papers.experiment import Rows

ATTACKS = ("naive", "reverse", "parrot")
METHODS = ("k-Same-Pixel", "k-Same-Eigen")
PARTS = ("distances", "grouping", "together")

_TABLE = "200 people, same photographs in the gallery, Eigenfaces"

CLAIMS = Claims()


@CLAIMS.add("fig2", "Fig. 2", "losses 14,187 and 14,869 against 2,143 and 2,153", "mean loss over 100 pairs of people")
def _fig2(rows: Rows) -> Judgement:
    """Average keeps more of a face than BlackOut and protects as well."""
    black, mean = (rows.value("loss", method=m) for m in ("blackout", "average"))
    seen = f"BlackOut {black:,.0f}, Average {mean:,.0f}: {black / mean:.1f} times"
    return agree_if(black > 3 * mean, seen, "the losses lie closer together")


def _all_components(rows: Rows, method: str) -> dict[str, float]:
    """Return recognition by each attack with all components."""
    return {a: rows.value("rank1", method=method, attack=a, components="all") for a in ATTACKS}


@CLAIMS.add("table", "section 5.3", "100 % and 100 %", _TABLE)
def _masks_parrot(rows: Rows) -> Judgement:
    """Bar and T mask fall to parrot recognition."""
    said = {m: _all_components(rows, m) for m in ("bar mask", "T mask")}
    seen = "; ".join(f"{m}: " + ", ".join(f"{a} {pct(v[a])}" for a in ATTACKS) for m, v in said.items())
    fallen = all(v["parrot"] > 0.99 for v in said.values())
    return agree_if(fallen, seen, "masks still hide some people from parrots here")


@CLAIMS.add("table", "section 5.3", "2 % and 1 %", _TABLE)
def _masks_naive(rows: Rows) -> Judgement:
    """Bar and T mask fool naive recognition."""
    full = {m: rows.value("rank1", method=m, attack="naive", components="all") for m in ("bar mask", "T mask")}
    few = {m: rows.value("rank1", method=m, attack="naive", components="10") for m in full}
    seen = f"all components {listed(full)}; first ten {listed(few)}"
    ordered = full["T mask"] < full["bar mask"]
    why = (
        f"{'the order agrees, the rates are higher' if ordered else 'rates and order differ'}: hair, chin and "
        "background inside the crop help naive matching"
    )
    if all(few[m] < full[m] for m in full):
        why += "; fewer components leave less"
    return agree_if(max(full.values()) < 0.05, seen, why, partly=ordered and full["bar mask"] < 0.9)


@CLAIMS.add("table", "section 5.3", "99 to 99.8 % naive, 100 % parrot, blocks of 15, 20 and 30 pixels", _TABLE)
def _pixelation(rows: Rows) -> Judgement:
    """Pixelation falls to naive recognition already."""
    sizes = (15, 20, 30)
    by_size = {p: _all_components(rows, f"pixelation {p}") for p in sizes}
    of = {attack: {p: rates[attack] for p, rates in by_size.items()} for attack in ATTACKS}
    seen = (
        f"originals looked up among pixelated faces {listed(of['reverse'])}; pixelated faces among originals "
        f"{listed(of['naive'])}; parrot {listed(of['parrot'])}"
    )
    if min(min(of["reverse"].values()), min(of["parrot"].values())) >= 0.98:
        how = (
            "with originals as probes and pixelated faces as candidates: means over blocks are an orthogonal "
            "projection, so the detail that is lost adds the same to every distance; the other way round it adds each "
            "candidate's own detail, and the smoothest candidates win"
        )
        return Judgement(seen, Verdict.AGREE, how)
    return agree_if(False, seen, "some faces are lost behind large blocks", partly=of["reverse"][15] > 0.8)


@CLAIMS.add("table", "section 5.3", "0 % in every attack", _TABLE)
def _blackout(rows: Rows) -> Judgement:
    """Black-out leaves a guess."""
    rates = _all_components(rows, "blackout")
    chance = 1 / rows.value("n", method="blackout", attack="naive", components="all")
    return agree_if(max(rates.values()) <= chance + 1e-9, f"{listed(rates)}, a guess", "more than a guess")


@CLAIMS.add("fig6a", "Fig. 6a", "30 % at 118 (naive), 29 % at 120 (reverse)", _TABLE)
def _threshold_peak(rows: Rows) -> Judgement:
    """Threshold: naive and reverse recognition have a low maximum in the middle of the scale."""
    naive, reverse = (rows.curve("threshold", "rank1", attack=a) for a in ("naive", "reverse"))
    t, r = max(naive, key=lambda x: naive[x]), max(reverse, key=lambda x: reverse[x])
    seen = f"naive at most {pct(naive[t])} at {t}; reverse at most {pct(reverse[r])} at {r}"
    middle = 60 <= t <= 180
    why = "the peak lies in the middle of the grey scale as in the paper" if middle else "the peak lies at an end"
    if naive[t] > 0.4:
        why += (
            ", but is higher, presumably as our pictures are registered by a mesh, which keeps light and dark in place"
        )
    if reverse[r] > 0.9:
        why += "; reverse matching, whose face space is black and white too, names nearly all"
    return agree_if(abs(naive[t] - 0.3) < 0.1 and abs(reverse[r] - 0.29) < 0.1, seen, why, partly=middle)


@CLAIMS.add("fig6a", "Fig. 6a", "above 10 % from 5 to 250; 100 % at 65", _TABLE)
def _threshold_parrot(rows: Rows) -> Judgement:
    """Threshold: parrot recognition stays above 10 % nearly everywhere."""
    inside = {t: v for t, v in rows.curve("threshold", "rank1", attack="parrot").items() if 5 <= t <= 250}
    worst = min(inside, key=lambda t: inside[t])
    seen = f"at least {pct(inside[worst])} (at {worst}) from 5 to 250; {pct(inside.get(65, float('nan')))} at 65"
    low = [t for t, v in inside.items() if v <= 0.1]
    why = f"at {names(low)} it does not"
    if all(t < 50 or t > 180 for t in low):
        why += "; nearly every picture is all white or all black there, as few pixels are so bright or dark here"
    middle = min(v for t, v in inside.items() if 50 <= t <= 180)
    return agree_if(not low, seen, why, partly=middle > 0.5)


@CLAIMS.add("fig6b", "Fig. 6b", "9,000 of 13,266 pixels: 1 % naive, 70 % reverse; 6,000: 23 % naive", _TABLE)
def _noise_reverse(rows: Rows) -> Judgement:
    """Noise: reverse recognition is far stronger than naive."""
    naive, reverse = (rows.curve("pixels", "rank1", attack=a, kind="grey") for a in ("naive", "reverse"))
    seen = f"9,000 pixels: naive {pct(naive[9000])}, reverse {pct(reverse[9000])}; 6,000: naive {pct(naive[6000])}"
    return agree_if(reverse[9000] > 3 * naive[9000] and reverse[9000] > 0.5, seen, "reverse is not much stronger here")


@CLAIMS.add("fig6b", "section 5.3", "decrease after about half", _TABLE)
def _noise_bw(rows: Rows) -> Judgement:
    """Flipped pixels in black and white lower recognition after about half of them."""
    naive = rows.curve("pixels", "rank1", attack="naive", kind="black and white")
    start, end, half = naive[0], naive[13000], naive[6000]
    if start <= end:
        why = f"no fall: a threshold of 65 leaves no more than {pct(start)} to begin with"
    else:
        why = f"it falls from {pct(start)} to {pct(half)} already before half of the pixels are flipped"
    good = end < start / 2 <= half
    return agree_if(good, f"naive {listed(naive)}", why, partly=start > end)


@CLAIMS.add("fig6b", "section 5.3", "no better than 0.5 %", _TABLE)
def _noise_all(rows: Rows) -> Judgement:
    """Noise at 13,000 pixels protects as black-out does."""
    attacks = ("naive", "reverse", "parrot, own noise", "parrot")
    rates = {a: rows.value("rank1", attack=a, kind="grey", pixels=13000) for a in attacks}
    limit = 4 / rows.value("n", attack="naive", kind="grey", pixels=13000)  # a guess or little more
    more = [a for a, rate in rates.items() if rate >= limit]
    why = [f"in the 266 pixels that are left as they were {a} matching finds people" for a in more if a != "parrot"]
    if rates["parrot"] == 1.0:
        why.append("a parrot who has the released pictures themselves finds all")
    return agree_if(not more, listed(rates), "; ".join(why), partly=rates["naive"] < limit)


@CLAIMS.add(
    "fig7b",
    "Fig. 7b, Theorem 2",
    "below 1/k for k = 2 to 100; similarly in reverse and parrot",
    "805 people, k-Same-Pixel and -Eigen, naive over 20 runs, reverse and parrot",
)
def _one_in_k(rows: Rows) -> Judgement:
    """k-Same stays at or below 1/k in every attack."""
    worst = max(rows.rows, key=lambda row: row["rank1"] * row["k"])
    seen = (
        f"naive, k-Same-Pixel {listed(rows.curve('k', 'rank1', method='k-Same-Pixel', attack='naive'))}; "
        f"largest share of 1/k anywhere {worst['rank1'] * worst['k']:.3f}"
    )
    return one_in_k([(row["k"], row.get("most", row["rank1"])) for row in rows.rows], seen)


@CLAIMS.add(
    "fig7b", "section 5.4", "-1.6 % of 1/k at k = 2; -63 % (Pixel) and -81 % (Eigen) at k = 100", "the same runs"
)
def _below_one_in_k(rows: Rows) -> Judgement:
    """Recognition falls below 1/k the more, the larger k."""
    last = max(rows.column("k"))
    gaps = {(m, k): rows.value("rank1", method=m, attack="naive", k=k) * k - 1 for m in METHODS for k in (2, int(last))}
    seen = ", ".join(f"{m} k = {k}: {100 * v:+.1f} %" for (m, k), v in gaps.items())
    near = all(v > -0.1 for (_, k), v in gaps.items() if k == 2)
    return agree_if(
        near and all(v < -0.3 for (_, k), v in gaps.items() if k != 2),
        seen,
        "below 1/k at all k; how far depends on how alike the faces of a group are",
        partly=True,
    )


@CLAIMS.add("fig7b", "section 5.4", "mean absolute difference 0.0017", "the same runs")
def _pixel_eigen(rows: Rows) -> Judgement:
    """k-Same-Pixel and k-Same-Eigen are recognised alike."""
    pixel, eigen = (rows.where(method=m, attack="naive").column("rank1") for m in METHODS)
    gap = float(np.abs(pixel - eigen).mean())
    return agree_if(gap < 0.01, f"mean absolute difference {gap:.4f}", "the methods differ more than in the paper")


@CLAIMS.add("loss", "section 5.4", "order only", "mean Euclidean loss where each leaves a guess")
def _loss_order(rows: Rows) -> Judgement:
    """At equal protection k-Same loses less than noise, noise less than black-out."""
    loss = {row["method"]: row["loss"] for row in rows.rows}
    seen = ", ".join(f"{name} {value:,.0f}" for name, value in loss.items())
    ks, noisy, black = loss["k-Same, k = all"], loss["noise, 13,000 pixels"], loss["blackout"]
    first = ks < min(noisy, black)
    why = "k-Same loses least, but black-out loses less than noise" if first else "k-Same does not lose least"
    return agree_if(ks < noisy < black, seen, why, partly=first)


@CLAIMS.add("time", "section 4.2", "stated", "exponent fitted to processor time for 500 to 4,000 faces")
def _linear_time(rows: Rows) -> Judgement:
    """k-Same runs in linear time."""
    exponents = {part: rows.value("exponent", part=f"{part}, exponent") for part in PARTS}
    seen = ", ".join(f"{part} n^{value:.2f}" for part, value in exponents.items())
    why = (
        "each of the n/k groups looks at all faces that are left, so the time grows with the square of n; with all "
        "distances between the faces known beforehand, finding them is the square as well"
    )
    return agree_if(exponents["together"] < 1.2, seen, why)
