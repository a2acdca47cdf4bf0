"""Gross and Sweeney (2007): k-Same fails when subjects repeat; epsilon-map and (epsilon,k)-map."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray, IntArray
from ksame.attacks import AttackData, Eigenfaces, ModelNeighbour, Posterior, Recogniser, rank1_scores
from ksame.deidentify import pose
from ksame.errors import KsameWarning
from ksame.faces.faceset import FaceSet, quantise, subject_means
from ksame.faces.filters import pixelate
from ksame.methods import KSame
from ksame.papers.data import SHOT, NotAvailableError
from ksame.papers.experiment import Findings, Row, Task
from ksame.papers.figures import Curves, Sheet
from ksame.papers.gross2007_claims import CLAIMS, CLASSES, EXACT, IMAGES, NOT_ROUNDED, PLACES, ROBUST, SUBJECTS
from ksame.papers.measure import attack, joined, layout, mean_rate, released, released_codes
from ksame.papers.paper import Paper
from ksame.recipes import Recipe, recipe
from ksame.spaces import AamSpace, FaceModels, PixelSpace
from ksame.spaces.reference import cross_squared_distances

KS = (2, 3, 4, 5, 7, 10, 15, 20)
EXPRESSIONS = ("neutral", "surprise", "squint")
LIGHTS = ("flat", "front", "left", "right", "top")
BLOCKS = (2, 4, 6, 8, 10, 12, 16, 20, 24)
EPSILONS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
RUNS = 5
PAPER = Paper(
    "gross2007",
    "R. Gross, L. Sweeney. Towards Real-World Face De-Identification. BTAS 2007.",
    "Multi-PIE: 203 people with three expressions, 249 under five lights, 150 for pixelation",
    CLAIMS,
)


def _single_and_pooled(name: str) -> tuple[Curves, Curves]:
    """Return the figures of recognition by single pictures, and by all pictures of a person together."""
    single = Curves(name, "Single released pictures.", "k", ("method",), {"attack": "naive"}, bound=True)
    pooled = "All released pictures of a person together."
    return single, Curves(f"{name}-pooled", pooled, "k", ("method",), {"attack": "pooled"}, bound=True)


@PAPER.experiment("fig5a", "Fig. 5a", *_single_and_pooled("fig5a"))
def expressions(task: Task) -> Findings:
    """k-Same where people have several expressions."""
    return _repeated(task, task.faces(203, expressions=EXPRESSIONS, size=(112, 88), whole=True), "expression")


@PAPER.experiment("fig5b", "Fig. 5b", *_single_and_pooled("fig5b"))
def lights(task: Task) -> Findings:
    """k-Same where people are seen in several lights."""
    return _repeated(task, task.faces(249, illuminations=LIGHTS, size=(112, 88), whole=True), "illumination")


def _repeated(task: Task, faces: FaceSet, varied: str) -> Findings:
    codes = AamSpace(width=64).fit(faces).encode(faces)
    people = faces.n_subjects
    rows: list[Row] = []
    for k in task.progress([k for k in task.scale.levels(KS, keep=(2, 5)) if 2 * k <= people], "k-Same"):
        runs = [_ways(codes, faces, k, task.seed + run) for run in range(task.scale.runs(RUNS))]
        for way in runs[0]:
            for how in ("naive", "pooled"):
                scores = [_scores(codes, faces.subjects, *run[way], pooled=how == "pooled") for run in runs]
                rows.append(mean_rate(scores, method=way, k=k, attack=how))
    notes = (
        f"{len(faces)} pictures of {people} people, varying in {varied}; {codes.shape[1]} appearance parameters",
        "the gallery holds all originals; a released picture is named when its nearest original shows its person",
        "pooled: all released pictures of a person together, as a tracker has them",
    )
    return Findings(rows, notes)


def _ways(codes: FloatArray, faces: FaceSet, k: int, seed: int) -> dict[str, tuple[FloatArray, IntArray]]:
    """Release by image, by image within the class of a shot, and by subject."""
    method = KSame(k)
    apart = np.array([f"picture {i}" for i in range(len(codes))])  # as if each showed somebody else
    shots = faces.attribute(SHOT)
    parts = []
    for shot in np.unique(shots):
        rows = np.flatnonzero(shots == shot)
        if len(rows) >= k:
            part, source = released_codes(codes[rows], faces.subjects[rows], method, seed)
            parts.append((part, rows[source]))
    return {
        IMAGES: released_codes(codes, apart, method, seed),
        CLASSES: (np.concatenate([p for p, _ in parts]), np.concatenate([s for _, s in parts])),
        SUBJECTS: released_codes(codes, faces.subjects, method, seed),
    }


def _scores(
    originals: FloatArray, subjects: NDArray[Any], made: FloatArray, source: IntArray, *, pooled: bool
) -> FloatArray:
    """Return how often released codes are named by their nearest original, singly or all of a person together."""
    distances, truth = cross_squared_distances(made, originals), subjects[source]
    if pooled:
        distances, truth = subject_means(distances, truth)
    return rank1_scores(np.sqrt(distances), subjects, truth)


@PAPER.experiment(
    "fig8",
    "Fig. 8",
    Curves(
        "fig8",
        "Recognition over the side of a block; the epsilon-map from 1e-3 (left) to 1e-7.",
        "blocks",
        ("method", "attack"),
        {"method": ("ad-hoc", "epsilon-map")},
        "side of a block in pixels, mean",
    ),
)
def pixelation(task: Task) -> Findings:
    """Ad-hoc pixelation and the epsilon-map.

    The same blocks for all faces against the map's own for each.
    """
    faces = task.faces(150, expressions=("neutral", "smile"), size=(134, 99))
    gallery, probes = (faces.take(faces.attribute(SHOT) == shot) for shot in ("0", "1"))
    rows: list[Row] = [attack("naive", Eigenfaces(), AttackData(gallery, probes), method="untouched", blocks=1.0)]
    for p in task.progress(task.scale.levels(BLOCKS, keep=(8, 16)), "pixelation"):
        made = released(probes, "pixelate", task.seed, p=p)
        rows += _attacked(gallery, made.faces, method="ad-hoc", level=p, blocks=float(p))
    for epsilon in task.progress(task.scale.levels(EPSILONS, keep=(1e-3, 1e-7)), "epsilon-map"):
        made = released(probes, "epsilon-map", task.seed, reference=gallery, epsilon=epsilon)
        mean = 0.0 if made.levels is None else float(made.levels.mean())
        rows += _attacked(gallery, made.faces, method="epsilon-map", level=epsilon, blocks=mean)
    notes = (
        f"{gallery.n_subjects} people in the gallery, {len(probes)} to be hidden, nearest neighbour among pixels",
        "blocks: side in pixels, for the epsilon-map on average; scale of the likelihood as the package reckons it",
        "exact detector: runs of equal pixels, as the papers have it; robust detector: near-equal pixels count too",
    )
    return Findings(rows, notes)


def _attacked(gallery: FaceSet, made: FaceSet, **labels: Any) -> list[Row]:
    data = AttackData(gallery, made)
    rows = [attack("naive", Eigenfaces(), data, **labels)]
    robust = attack("automatic-parrot", Eigenfaces(), data, **labels)
    rows.append({**robust, "attack": ROBUST})
    sides = np.array([run_length(image) for image in quantise(made.images)[..., 0]])
    scores = np.zeros(len(made))
    recogniser = Eigenfaces().fit(gallery)
    for p in np.unique(sides):
        alike = sides == p
        seen = gallery.with_images(pixelate(gallery.images, int(p)).clip(0.0, 1.0))
        distances = recogniser.distances(made.take(alike), seen)
        scores[alike] = rank1_scores(distances, gallery.subjects, made.subjects[alike])
    rows.append(mean_rate([scores], **labels, attack=EXACT, recogniser="eigenfaces"))
    return rows


def run_length(image: NDArray[Any]) -> int:
    """Return the commonest length of runs of equal pixels along both axes; 1 for a picture that is not pixelated.

    ``image`` is of shape (height, width).

    Examples
    --------
    >>> run_length(np.kron(np.arange(9).reshape(3, 3), np.ones((4, 4))))
    4
    """
    votes: Counter[int] = Counter()
    for lines in (image, image.T):
        for line in lines:
            ends = np.flatnonzero(np.concatenate([np.diff(line) != 0, [True]]))
            lengths = np.diff(np.concatenate([[-1], ends]))
            votes.update(
                {int(n): int(n) * int(c) for n, c in zip(*np.unique(lengths, return_counts=True), strict=True)}
            )
    return votes.most_common(1)[0][0]


@PAPER.experiment("fig9", "Fig. 9", Sheet("fig9", "Four people at rising k."))
def sheet(task: Task) -> Findings:
    """Faces equally like k people."""
    faces = task.faces(100, size=(134, 99))
    ks = [k for k in (2, 5, 10, 20) if k <= len(faces)]
    if len(faces) < 4:
        raise NotAvailableError("needs four people")
    made = [released(faces, "epsilon-k-map", task.seed, k=k) for k in ks]
    everywhere = sorted(set.intersection(*({int(i) for i in each.source} for each in made)))[:4]  # some are withheld
    if len(everywhere) < 4:
        raise NotAvailableError("needs four people who are released at every k")
    shown = [each.of(everywhere) for each in made]
    pictures = layout([faces.take(everywhere), *shown], ("", "", "", ""), ("original", *(f"k = {k}" for k in ks)))
    return Findings([{"k": k, "people": len(faces)} for k in ks], (), pictures)


@PAPER.experiment(
    "fig10",
    "Fig. 10",
    Curves(
        "fig10",
        "Naive recognition in the office building and at the street corner.",
        "k",
        ("place", "models", "attack"),
        {"attack": ("naive", NOT_ROUNDED), "place": PLACES},
        bound=True,
    ),
    Curves(
        "fig10-others",
        "Reverse and parrot recognition, against which nothing is claimed.",
        "k",
        ("place", "attack"),
        {"attack": ("reverse", "parrot"), "models": "mean"},
        bound=True,
    ),
    heavy=True,
)
def equalised(task: Task) -> Findings:
    """The (epsilon,k)-map in both scenarios.

    In the office the people of the reference are those to be hidden; at the street corner they are others.
    """
    gallery, probes, reference = _office(task)
    judges: Sequence[tuple[str, Recogniser]] = (
        ("images", ModelNeighbour(PixelSpace())),
        ("mean", Posterior(PixelSpace())),
    )
    before = AttackData(gallery, probes)
    rows = [attack("naive", judge, before, place="untouched", models=models, k=1) for models, judge in judges]
    for k in task.progress(task.scale.levels(KS, keep=(2, 5, 10)), "(epsilon,k)-map"):
        for place, others in zip(PLACES, (gallery, reference), strict=True):
            if others.n_subjects < k:
                continue
            for models, judge in judges:
                how = recipe("epsilon-k-map", k=k, models=models)
                labels = {"place": place, "models": models, "k": k}
                rows.append(_before_rounding(gallery, probes, others, how, **labels))
                data = AttackData(gallery, released(probes, how, task.seed, reference=others).faces)
                rows += [attack(s, judge, data, **labels) for s in ("naive", "reverse", "parrot")]
    notes = (
        f"{gallery.n_subjects} people: {len(gallery)} pictures in the gallery, {len(probes)} to be hidden; at the "
        f"street corner the reference is {reference.n_subjects} other people",
        "images: a person is any of its pictures, judged by the nearest picture; mean: the mean of them, judged by the "
        "nearest mean",
        "before rounding: the same faces as numbers, before they are cut off at black and white and rounded to 8 bits",
    )
    return Findings(rows, notes)


def _office(task: Task) -> tuple[FaceSet, FaceSet, FaceSet]:
    """Return the gallery, the pictures to be hidden, and other people for the street corner.

    Where few people have several pictures, those with one are the other people, and fill the gallery.
    """
    size = (92, 81)
    several = task.faces(349, illuminations=LIGHTS, size=size)
    who, rng = np.unique(several.subjects), np.random.default_rng(task.seed)
    alone = task.faces(349, size=size) if task.data.real else several
    rest = np.setdiff1d(alone.subjects, who)
    if len(rest) < len(who):
        away = np.isin(several.subjects, rng.choice(who, len(who) * 2 // 7, replace=False))
        reference, known = several.take(away), several.take(~away)
        last = _last_shots(known)
        return known.take(~last), known.take(last), reference
    away = np.isin(alone.subjects, rng.choice(rest, min(100, len(rest) // 2), replace=False))
    last = _last_shots(several)
    filling = alone.take(~away & ~np.isin(alone.subjects, who))
    return joined(several.take(~last), filling), several.take(last), alone.take(away)


def _before_rounding(gallery: FaceSet, probes: FaceSet, others: FaceSet, how: Recipe, **labels: Any) -> Row:
    """Return how often the faces are named as numbers, before they become pictures; and how many pixels are cut off."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KsameWarning)
        problem, space = pose(probes, how, others)
    numbers = replace(problem, written=None)  # nothing is made up for what writing will change
    made = how.method.run(numbers, np.random.default_rng(0)).surrogates
    known = FaceModels(space.encode(gallery), gallery.subjects)
    models = known.means() if labels["models"] == "mean" else known
    scores = rank1_scores(models.distances(made), models.subjects, probes.subjects)
    cut = float(((made < 0) | (made > 1)).mean())
    return {**mean_rate([scores], **labels, attack=NOT_ROUNDED), "cut_off": cut}


def _last_shots(faces: FaceSet) -> NDArray[np.bool_]:
    shots = faces.attribute(SHOT).astype(int)
    last = {subject: shots[faces.subjects == subject].max() for subject in np.unique(faces.subjects)}
    return np.array([shot == last[subject] for shot, subject in zip(shots, faces.subjects, strict=True)])
