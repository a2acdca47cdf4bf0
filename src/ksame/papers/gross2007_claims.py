"""What Gross and Sweeney (2007) claim, and how we judge it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from ksame.papers.claims import Claims, Judgement, Verdict, agree_if, listed, names, one_in_k, pct
from ksame.papers.experiment import Rows

IMAGES, CLASSES, SUBJECTS = "k-Same on images", "k-Same on images, by class", "k-Same on subjects (ours)"
NOT_ROUNDED = "naive, before rounding"
EXACT, ROBUST = "automatic parrot, exact detector", "automatic parrot, robust detector"
PLACES = ("office building", "street corner")

CLAIMS = Claims()


def _both(rows: Rows, method: str, y: str = "rank1") -> list[dict[int, float]]:
    """Return recognition over k of single pictures, and of all pictures of a person together."""
    return [rows.curve("k", y, method=method, attack=how) for how in ("naive", "pooled")]


def _far_above(rows: Rows, claimed: Callable[[int], bool]) -> Judgement:
    """Judge whether single pictures are named above 1/k at every k of which that is claimed."""
    rates, pooled = _both(rows, IMAGES)
    ks = [k for k in rates if claimed(k)]
    over = [k for k in ks if rates[k] > 1 / k + 1e-9]
    where = f"above 1/k at k = {', '.join(map(str, over))} only" if over else "single pictures stay at or below 1/k"
    why = (
        f"of k = {ks[0]} to {ks[-1]}, {where}: presumably two pictures of a person are hardly more alike than those of "
        "two people, and seldom in one group"
    )
    partly = bool(over) or any(v > 1 / k for k, v in pooled.items())
    return agree_if(over == ks, f"{listed(rates)}; pooled {listed(pooled)}", why, partly=partly)


@CLAIMS.add(
    "fig5a",
    "Fig. 5a",
    "well above 1/k at all k",
    "203 people, three expressions, appearance parameters, nearest neighbour",
)
def _repeated_expression(rows: Rows) -> Judgement:
    """k-Same leaves recognition far above 1/k when people appear with several expressions."""
    return _far_above(rows, lambda k: True)


@CLAIMS.add(
    "fig5b", "Fig. 5b", "above 1/k for lower k", "249 people, five lights, appearance parameters, nearest neighbour"
)
def _repeated_light(rows: Rows) -> Judgement:
    """k-Same leaves recognition above 1/k for small k when people appear in several lights."""
    return _far_above(rows, lambda k: k <= 5)


@CLAIMS.add(
    "fig5a",
    "section II-C",
    "similar results",
    "k-Same within each expression, single pictures and all of a person pooled",
)
def _class_information(rows: Rows) -> Judgement:
    """Class information does not help k-Same with repeated people."""
    single, pooled = _both(rows, CLASSES)
    seen = f"single pictures {listed(single)}; pooled {listed(pooled)}"
    over = [k for k, v in pooled.items() if v > 1 / k + 1e-9]
    why = "within a class nobody appears twice, so Theorem 2 holds for one picture at a time: no more than 1/k is named"
    if over:
        why += (
            f"; who sees all pictures of a person intersects the groups and names more than 1/k at k = {names(over)}, "
            "as the paper warns"
        )
    else:
        why += "; all pictures of a person together name no more than 1/k either"
    if all(v > 1 / k for k, v in single.items()):
        return Judgement(seen, Verdict.AGREE)
    return Judgement(seen, Verdict.PARTLY if over else Verdict.DIFFERS, why)


@CLAIMS.add("fig5a", "ours", "not in the paper", "groups of people instead of pictures; largest of all runs")
def _subject_level(rows: Rows) -> Judgement:
    """k-Same on subjects keeps 1/k where people repeat."""
    rates, pooled = _both(rows, SUBJECTS, "most")
    points = [*rates.items(), *pooled.items()]
    largest = max(rate * k for k, rate in points)
    return one_in_k(points, f"{listed(rates)}; largest share of 1/k, pooled too, {largest:.2f}")


@CLAIMS.add("fig8", "Fig. 8a", "high levels needed; defeated", "150 people, neutral gallery, smiling probes")
def _ad_hoc_parrot(rows: Rows) -> Judgement:
    """Ad-hoc pixelation protects only with large blocks, and falls to the automatic parrot."""
    naive = rows.curve("level", "rank1", method="ad-hoc", attack="naive")
    parrot = rows.curve("level", "rank1", method="ad-hoc", attack=EXACT)
    seen = f"naive {listed(naive)}; automatic parrot {listed(parrot)}"
    defeated = all(parrot[p] >= naive[p] - 0.02 for p in naive)
    gain = max(parrot[p] - naive[p] for p in naive)
    why = f"the parrot gains {100 * gain:.1f} points over naive matching at most"
    return agree_if(defeated and gain > 0.1, seen, why, partly=defeated)


@CLAIMS.add("fig8", "Fig. 8b", "prevented", "the papers' exact detector and a robust one")
def _epsilon_parrot(rows: Rows) -> Judgement:
    """The epsilon-map's perturbation prevents the automatic parrot."""
    of = {how: rows.curve("level", "rank1", method="epsilon-map", attack=how) for how in ("naive", EXACT, ROBUST)}
    seen = "; ".join(f"{how} {listed({f'{e:.0e}': v for e, v in curve.items()})}" for how, curve in of.items())
    same = all(abs(of["naive"][e] - of[EXACT][e]) < 0.02 for e in of["naive"])
    through = any(of[ROBUST][e] > of["naive"][e] + 0.03 for e in of["naive"])
    why = (
        "the perturbation blinds the papers' detector of equal pixels and no other: one that allows for small "
        "differences sees the blocks, and its parrot gains on naive matching again"
    )
    return agree_if(same and not through, seen, why, partly=same)


@CLAIMS.add("fig8", "Fig. 8b", "gradual for 1e-3 to 1e-7, lower levels", "naive recognition and mean side of a block")
def _epsilon_gradual(rows: Rows) -> Judgement:
    """The epsilon-map lowers recognition gradually at lower levels than ad-hoc pixelation."""
    naive = list(rows.curve("level", "rank1", method="epsilon-map", attack="naive").items())
    blocks = rows.curve("level", "blocks", method="epsilon-map", attack="naive")
    ordered = [rate for _, rate in sorted(naive, key=lambda pair: -pair[0])]
    seen = ", ".join(f"{e:.0e}: {pct(rate)} at {blocks[e]:.1f} pixels" for e, rate in naive)
    falling = all(a >= b - 0.01 for a, b in pairwise(ordered))
    mild = max(blocks.values()) < 24
    large = "blocks have to be large: as they make faces alike, the nearest person comes nearer before it goes away"
    why = f"recognition falls with epsilon, but {large}" if falling else large
    return agree_if(falling and mild, seen, why, partly=falling)


@CLAIMS.add(
    "fig10", "Fig. 10", "below 1/k", "249 people, five lights: four in the gallery, one hidden; reference = gallery"
)
def _office(rows: Rows) -> Judgement:
    """The (epsilon,k)-map holds naive recognition at about 1/k in the office building."""
    office = rows.where(place=PLACES[0])
    exact, cut = (office.curve("k", y, models="mean", attack=NOT_ROUNDED) for y in ("rank1", "cut_off"))
    of = {m: office.curve("k", "rank1", models=m, attack="naive") for m in ("mean", "images")}
    seen = (
        f"before rounding {listed(exact)}; as pictures {listed(of['mean'])} (models are images: {listed(of['images'])})"
    )
    lows = office.curve("k", "low", models="mean", attack="naive")
    over = [k for k, low in lows.items() if low > 1 / k]  # beyond what chance explains
    near = all(v <= 1 / k + 0.01 for k, v in exact.items())
    why = (
        f"as pictures, where up to {pct(max(cut.values()))} of the pixels are cut off at black and white and all are "
        f"rounded, ties break and at k = {names(over)} more than 1/k are named"
    )
    if near:
        why = f"as numbers the faces are named about 1/k of the time or less; {why}"
    return agree_if(near and not over, seen, why if over else "more than 1/k before rounding", partly=near)


@CLAIMS.add(
    "fig10", "Fig. 7, beyond", "not measured by the paper", "the same releases, and a reference of other people"
)
def _other_attacks(rows: Rows) -> Judgement:
    """What reverse, parrot and the street corner leave; no bound is claimed."""
    seen = []
    for place in PLACES:
        for how in ("naive", "reverse", "parrot"):
            if (place, how) != (PLACES[0], "naive"):
                curve = rows.curve("k", "rank1", place=place, models="mean", attack=how)
                seen.append(f"{place}, {how}: {listed({k: v for k, v in curve.items() if k in (2, 5, 10)})}")
    parrot = rows.where(models="mean", attack="parrot").column("rank1")
    who = "everybody, since no two of them are alike" if parrot.min() == 1.0 else f"{pct(float(parrot.min()))} or more"
    return Judgement("; ".join(seen), Verdict.REPORTED, f"a parrot who has the released pictures names {who}")
