"""Newton, Sweeney and Malin (2005): masks fail, k-Same keeps recognition at or below 1/k."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ksame.attacks import AttackData, Eigenfaces, run_attack
from ksame.attacks.base import Imitation
from ksame.faces.faceset import FaceSet
from ksame.methods.grouping import greedy, squared_distances
from ksame.papers.claims import pct
from ksame.papers.experiment import Findings, Row, Rows, Task
from ksame.papers.figures import Bars, Curves, Sheet
from ksame.papers.measure import Released, Trained, attack, layout, mean_rate, released, stacked
from ksame.papers.newton2005_claims import ATTACKS, CLAIMS, PARTS
from ksame.papers.paper import Paper
from ksame.recipes import Recipe, recipe
from ksame.utility import mean_loss, measure_loss

PEOPLE = 200
"""Faces of an experiment "unless otherwise noted" (section 5.2)."""

MANY = 805
RUNS = 20
KS = (2, 3, 5, 10, 50, 100)
METHODS = {"k-Same-Pixel": "k-same-pixel", "k-Same-Eigen": "k-same-eigen"}
THRESHOLDS = (*range(0, 256, 5), 65, 118)
NOISE = tuple(range(0, 13001, 1000))

PAPER = Paper(
    "newton2005",
    "E. Newton, L. Sweeney, B. Malin. Preserving Privacy by De-Identifying Face Images. IEEE TKDE 17(2), 2005.",
    "FERET: 200 people unless said otherwise, 805 for k-Same; 99 x 134 pixels in grey",
    CLAIMS,
)


def _loss(faces: FaceSet, made: Released) -> float:
    """Return the mean Euclidean loss in grey values (eq. 2)."""
    pairs = zip(made.source, made.faces.images, strict=True)
    return mean_loss([measure_loss(faces.images[i], after) for i, after in pairs]).euclidean


@PAPER.experiment("fig2", "Fig. 2", Sheet("fig2", "Two people, blacked out and averaged."))
def losses(task: Task) -> Findings:
    """What BlackOut and Average lose."""
    faces = task.faces(PEOPLE)
    rows: list[Row] = []
    pairs = [faces.take([i, i + 1]) for i in range(0, len(faces) - 1, 2)]
    sheet = []
    for method in ("blackout", "average"):
        made = [released(pair, method, task.seed) for pair in pairs]
        each = [_loss(pair, m) for pair, m in zip(pairs, made, strict=True)]
        spread = {"loss": float(np.mean(each)), "least": min(each), "most": max(each)}
        rows.append({"method": method, **spread, "pairs": len(each)})
        sheet.append(made[0].of([0, 1]))
    columns = ("original", "BlackOut", "Average")
    pictures = layout([pairs[0], *sheet], ("face 1", "face 2"), columns)
    return Findings(rows, (f"{len(pairs)} pairs of people, loss of eq. 2 in grey values of 0 to 255",), pictures)


@PAPER.experiment(
    "table",
    "section 5.3",
    Sheet("masks", "Three people behind each mask."),
    Bars("table", "Recognition of masked faces, all components.", "method", ("attack",), {"components": "all"}),
)
def ad_hoc(task: Task) -> Findings:
    """Masks under three attacks."""
    faces = task.faces(PEOPLE)
    methods: list[tuple[str, str, dict[str, Any]]] = [
        ("bar mask", "bar-mask", {}),
        ("T mask", "t-mask", {}),
        ("blackout", "blackout", {}),
        *((f"pixelation {p}", "pixelate", {"p": p}) for p in (15, 20, 30)),
    ]
    rows, sheet = [], [faces.take(range(3))]
    for label, name, params in task.progress(methods, "masks"):
        made = released(faces, name, task.seed, **params)
        data = AttackData(faces, made.faces)
        rows += [attack(scenario, Eigenfaces(), data, method=label, components="all") for scenario in ATTACKS]
        few = [n for n in (10, 30) if n < len(faces)]
        rows += [attack("naive", Eigenfaces(n), data, method=label, components=str(n)) for n in few]
        sheet.append(made.of(range(3)))
    captions = ("original", *(label for label, _, _ in methods))
    notes = (
        f"{len(faces)} people; Eigenfaces with all components, trained on the gallery",
        "naive matching also with the first 10 and 30 components only: the paper does not say how many it kept",
    )
    return Findings(rows, notes, layout(sheet, ("", "", ""), captions))


@PAPER.experiment(
    "fig6a",
    "Fig. 6a",
    Curves("fig6a", "Recognition of black-and-white faces.", "threshold", ("attack",), x_label="threshold, grey value"),
)
def thresholds(task: Task) -> Findings:
    """Threshold."""
    faces = task.faces(PEOPLE)
    rows = []
    values = task.scale.levels(sorted(set(THRESHOLDS)), keep=(5, 65, 118, 120, 250))
    for t in task.progress(values, "thresholds"):
        made = released(faces, "threshold", task.seed, t=float(t))
        data = AttackData(faces, made.faces)
        rows += [attack(scenario, Eigenfaces(), data, threshold=t) for scenario in ATTACKS]
    return Findings(rows, (f"{len(faces)} people; Eigenfaces with all components",))


def _always(made: FaceSet) -> Imitation:
    """Return the attacker's own run of a method, done already."""
    return lambda originals: made


@PAPER.experiment(
    "fig6b",
    "Fig. 6b",
    Curves(
        "fig6b",
        "Recognition of noisy faces; in black and white, pixels are flipped.",
        "pixels",
        ("kind", "attack"),
        x_label="pixels made noisy, of 13,266",
    ),
)
def noise(task: Task) -> Findings:
    """Noise.

    Random values at the same positions of all images; and flipped pixels in black and white.
    """
    faces = task.faces(PEOPLE)
    rows: list[Row] = []
    pixels = faces.shape[1] * faces.shape[2]
    for m in task.progress(task.scale.levels(NOISE, keep=(6000, 9000, 13000)), "noise"):
        for kind, name in (("grey", "noise"), ("black and white", "noise-bw")):
            made = released(faces, name, task.seed, m=m)
            labels = {"pixels": m, "share": m / pixels, "kind": kind}
            own = released(faces, name, task.seed + 1, m=m).of(range(len(faces)))
            tries = AttackData(faces, made.faces, imitate=_always(own))
            rows += [attack(s, Eigenfaces(), AttackData(faces, made.faces), **labels) for s in ATTACKS]
            rows.append({**attack("parrot", Eigenfaces(), tries, **labels), "attack": "parrot, own noise"})
    notes = (
        f"{len(faces)} people of {pixels} pixels; Eigenfaces with all components",
        "parrot recognition with the release as gallery, and with a gallery that the attacker made noisy again",
    )
    return Findings(rows, notes)


@PAPER.experiment("fig7a", "Fig. 7a", Sheet("fig7a", "One person released at rising k."))
def sheet(task: Task) -> Findings:
    """k-Samed faces."""
    faces = task.faces(PEOPLE)
    ks = [k for k in KS if k <= len(faces)]
    made = {label: [released(faces, _recipe_of(name, k), task.seed) for k in ks] for label, name in METHODS.items()}
    rows: list[Row] = []
    for label, each in made.items():
        rows += [{"method": label, "k": k, "loss": _loss(faces, at_k)} for k, at_k in zip(ks, each, strict=True)]
    columns = [stacked([faces.take([0])] * len(METHODS))]
    columns += [stacked([each[c].of([0]) for each in made.values()]) for c in range(len(ks))]
    return Findings(rows, (), layout(columns, tuple(METHODS), ("original", *(f"k = {k}" for k in ks))))


def _recipe_of(name: str, k: int) -> Recipe:
    return recipe(name, k=k, distance="eigen") if name == "k-same-pixel" else recipe(name, k=k)


@PAPER.experiment(
    "fig7b",
    "Fig. 7b",
    Curves(
        "fig7b",
        "Naive, reverse and parrot recognition of k-Samed faces and the bound.",
        "k",
        ("method", "attack"),
        bound=True,
        logarithmic=True,
    ),
)
def curves(task: Task) -> Findings:
    """Recognition of k-Samed faces."""
    faces = task.faces(MANY)
    runs = task.scale.runs(RUNS)
    ks = [k for k in KS if 2 * k <= len(faces)]
    knows = Trained.on(Eigenfaces(), faces)
    rows: list[Row] = []
    for k in task.progress(ks, "k-Same"):
        for label, name in METHODS.items():
            scores = []
            for run in range(runs):
                made = released(faces, _recipe_of(name, k), task.seed + run)
                data = AttackData(faces, made.faces)
                scores.append(run_attack("naive", knows, data).scores)
                if run == 0:
                    both = [attack(s, Eigenfaces(), data, method=label, k=k) for s in ("reverse", "parrot")]
                    rows += [{**row, "runs": 1} for row in both]
            rows.append(mean_rate(scores, method=label, k=k, attack="naive", recogniser="eigenfaces"))
    notes = (
        f"{len(faces)} people, naive matching averaged over {runs} runs, reverse and parrot matching of one run",
        "neighbours are sought among eigenface coefficients that hold 95 % of the variance, as is k-Same-Eigen's mean",
    )
    return Findings(rows, notes)


@PAPER.experiment("loss", "section 5.4", Bars("loss", "Mean Euclidean loss in grey values.", "method", y="loss"))
def equal_protection(task: Task) -> Findings:
    """Loss at equal protection.

    What k-Same, noise and black-out lose where each leaves no more than a guess.
    """
    faces = task.faces(PEOPLE)
    knows = Trained.on(Eigenfaces(), faces)
    rows: list[Row] = []
    pixels = faces.shape[1] * faces.shape[2]
    tried: Sequence[tuple[str, str, dict[str, Any]]] = (
        ("k-Same, k = 100", "k-same-pixel", {"k": min(100, len(faces) // 2)}),
        ("k-Same, k = all", "average", {}),
        ("noise, 13,000 pixels", "noise", {"m": min(13000, pixels)}),
        ("blackout", "blackout", {}),
    )
    for label, name, params in tried:
        made = released(faces, name, task.seed, **params)
        rate = attack("naive", knows, AttackData(faces, made.faces), method=label)
        rows.append({**rate, "loss": _loss(faces, made)})
    return Findings(rows, (f"{len(faces)} people, guessing names {pct(1 / len(faces))}",))


_TIME = "Processor seconds over the number of faces."


@PAPER.experiment(
    "time",
    "section 4.2",
    Curves("time", _TIME, "n", ("part",), {"part": PARTS}, "faces", y="seconds", logarithmic=True),
)
def linear_time(task: Task) -> Findings:
    """Time of k-Same."""
    numbers = task.scale.levels((500, 1000, 2000, 4000), keep=(500, 4000))
    rng = np.random.default_rng(task.seed)
    rows: list[Row] = []
    for n in task.progress(numbers, "timing"):
        codes = rng.standard_normal((n, 60))
        spent = []
        for _ in range(3):
            start = time.process_time()
            distances = squared_distances(codes)
            middle = time.process_time()
            greedy(distances, 10, np.random.default_rng(task.seed))
            end = time.process_time()
            spent.append((middle - start, end - middle, end - start))
        best = zip(PARTS, np.min(spent, axis=0), strict=True)
        rows += [{"n": n, "part": part, "seconds": max(float(seconds), 1e-4)} for part, seconds in best]
    for part in PARTS:
        timed = Rows(rows).where(part=part)
        slope = float(np.polyfit(np.log(timed.column("n")), np.log(timed.column("seconds")), 1)[0])
        rows.append({"part": f"{part}, exponent", "exponent": slope})
    return Findings(rows, ("processor seconds, k = 10, 60 coefficients a face; time is not repeatable to the digit",))
