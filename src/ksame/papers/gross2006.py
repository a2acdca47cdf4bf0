"""Gross, Sweeney, de la Torre and Baker (2006): k-Same-M, and how not to protect privacy by pixelation."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ksame.attacks import AttackResult, Eigenfaces, Split, label_split, run_attack
from ksame.faces.faceset import FaceSet, quantise
from ksame.papers.data import SHOT
from ksame.papers.experiment import Findings, Row, Task
from ksame.papers.figures import Curves, Sheet
from ksame.papers.gross2006_claims import CLAIMS
from ksame.papers.measure import balanced, label_rows, layout, mean_rate, one_each, photograph_split, released, stacked
from ksame.papers.paper import Paper
from ksame.recipes import recipe
from ksame.spaces import AamSpace

PEOPLE = 249
FERET = 275
SPLITS = 5
TRAINING = 0.3
SMALL = (92, 81)
KS = (2, 3, 4, 5, 8, 10, 15, 20)
BLOCKS = (2, 4, 6, 8, 10, 12, 16)
SIGMAS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0)
RANKS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50)

_WHOLE = {"size": (112, 88), "whole": True}


METHODS = {"k-Same": partial(recipe, "k-same-pixel"), "k-Same-M": partial(recipe, "k-same-m", coding="aam")}
PAPER = Paper(
    "gross2006",
    "R. Gross, L. Sweeney, F. de la Torre, S. Baker. Model-Based Face De-Identification. PRIV 2006.",
    "Multi-PIE: 249 people, neutral and smiling; FERET: 275 people, fa and fb",
    CLAIMS,
)

_BY_FOLDS = ("method", "folds")
_READ: Any = {"y": "accuracy", "y_label": "expression read rightly"}


@PAPER.experiment(
    "fig2",
    "Figs. 2 and 3",
    Sheet("fig2", "Two people released by averages of pixels and of model parameters."),
)
def sheets(task: Task) -> Findings:
    """k-Same and k-Same-M.

    Averages of pixels with their ghosts, averages of model parameters without.
    """
    faces = task.faces(100, size=(168, 132), grey=False, whole=True)
    ks = [k for k in (2, 4, 8, 10) if k <= len(faces)]
    made = {name: [released(faces, of(k=k), task.seed) for k in ks] for name, of in METHODS.items()}
    lines = [(name, who) for who in (0, 1) for name in METHODS]
    columns = [stacked([faces.take([who]) for _, who in lines])]
    columns += [stacked([made[name][c].of([who]) for name, who in lines]) for c in range(len(ks))]
    pictures = layout(columns, [name for name, _ in lines], ("original", *(f"k = {k}" for k in ks)))
    notes = (f"{len(faces)} people; k-Same averages registered pixels, k-Same-M parameters of a model built on them",)
    whole = _sharpness(faces)
    rows: list[Row] = [
        {"method": name, "k": k, "sharpness": _sharpness(at_k.faces) / whole, "people": len(faces)}
        for name, each in made.items()
        for k, at_k in zip(ks, each, strict=True)
    ]
    return Findings(rows, (*notes, "sharpness: edges between brow and chin, as a share of the originals'"), pictures)


def _sharpness(faces: FaceSet) -> float:
    """Return the mean strength of edges in the middle of the face; ghosts blur them."""
    _, height, width, _ = faces.shape
    rows, columns = slice(int(0.38 * height), int(0.75 * height)), slice(int(0.3 * width), int(0.7 * width))
    grey = faces.images[:, rows, columns].mean(axis=3, dtype=np.float64)
    down, across = np.gradient(grey, axis=(1, 2))
    return float(np.hypot(down, across).mean())


def _neutral_smile(task: Task, seed: int, **wanted: Any) -> Split:
    """Split into neutral gallery, smiling probes and 30 % who train; of photographs, another day stands for a smile."""
    if task.data.real:
        return photograph_split(task, PEOPLE, TRAINING, seed, **wanted)
    faces = task.faces(PEOPLE, expressions=("neutral", "smile"), **wanted)
    return label_split(faces, SHOT, gallery="0", probes="1", training=TRAINING, seed=seed)


def _rendered(split: Split) -> Split:
    """Return a split whose faces are seen through an appearance model, as k-Same-M's are: the mesh on plain grey."""
    assert split.training is not None  # noqa: S101 -- a share of the people trains
    model = _model(split.training)
    gallery, probes, training = (_seen(model, faces) for faces in (split.gallery, split.probes, split.training))
    return Split(gallery, probes, training, same_photographs=False)


def _model(faces: FaceSet) -> AamSpace:
    return AamSpace(shape=None, texture=None).fit(faces)


def _seen(model: AamSpace, faces: FaceSet) -> FaceSet:
    return faces.with_images(quantise(model.decode(model.encode(faces))))


@PAPER.experiment(
    "fig5",
    "Fig. 5",
    Curves("fig5a", "Rank-1 recognition; k = 1 is untouched.", "k", ("method",), bound=True),
    Curves(
        "fig5b",
        "Cumulative match of k-Same-M.",
        "rank",
        ("curve",),
        {"curve": ("k-Same-M, untouched", *(f"k-Same-M, k = {k}" for k in KS))},
        y="within",
    ),
    heavy=True,
)
def recognition(task: Task) -> Findings:
    """Recognition of k-Same and k-Same-M."""
    attacks: dict[tuple[str, int], list[AttackResult]] = {}
    ks = task.scale.levels(KS, keep=(2, 5, 10))
    for number in task.progress(range(task.scale.runs(SPLITS)), "splits"):
        seed = task.seed + number
        whole = _neutral_smile(task, seed, **_WHOLE)
        views = {"k-Same": _neutral_smile(task, seed), "k-Same-M": _rendered(whole)}
        for name, split in views.items():
            attacks.setdefault((name, 1), []).append(run_attack("naive", Eigenfaces(), split.attacked(split.probes)))
            probes = split.probes if name == "k-Same" else whole.probes
            for k in ks:
                if 2 * k <= probes.n_subjects:
                    made = released(one_each(probes), METHODS[name](k=k), seed)
                    result = run_attack("naive", Eigenfaces(), split.attacked(made.faces))
                    attacks.setdefault((name, k), []).append(result)
    rows: list[Row] = []
    for (name, k), results in sorted(attacks.items()):
        rows.append(mean_rate([r.scores for r in results], method=name, k=k, attack="naive", recogniser="eigenfaces"))
        rows += _cmc(results, curve=f"{name}, " + (f"k = {k}" if k > 1 else "untouched"))
    splits, some = len(attacks["k-Same", 1]), results[0]
    notes = (
        f"{splits} splits: {some.n_gallery} faces in the gallery, {some.n_probes} hidden, rest trains",
        "k-Same is matched with registered originals, k-Same-M with originals seen through the same kind of model",
    )
    return Findings(rows, notes)


def _cmc(results: list[AttackResult], **labels: Any) -> list[Row]:
    mean = np.mean([result.cmc for result in results], axis=0)
    return [{**labels, "rank": r, "within": float(mean[r - 1])} for r in RANKS if r <= len(mean)]


@PAPER.experiment(
    "fig6",
    "Fig. 6",
    Curves("fig6a", "Accuracy over k; k = 1 is untouched.", "k", _BY_FOLDS, {"method": tuple(METHODS)}, **_READ),
    Curves("fig6b", "Accuracy over blur.", "sigma", _BY_FOLDS, {"method": "blur"}, **_READ),
)
def utility(task: Task) -> Findings:
    """Expression that can still be read.

    From k-Same-Select and k-Same-M-Select faces, and from blurred ones.
    """
    faces = {name: _expressive(task, **wanted) for name, wanted in (("k-Same", {}), ("k-Same-M", _WHOLE))}
    rows: list[Row] = []
    for name, originals in faces.items():
        seen = originals if name == "k-Same" else _seen(_model(originals), originals)
        rows += label_rows(seen, "expression", "rbf", task.seed, method=name, k=1)
        classes = min(np.unique(originals.attribute("expression"), return_counts=True)[1])
        for k in task.progress([k for k in task.scale.levels(KS, keep=(2, 10)) if 2 * k <= classes], "Select"):
            made = released(originals, METHODS[name](k=k, select="expression"), task.seed)
            rows += label_rows(made.faces, "expression", "rbf", task.seed, method=name, k=k)
    plain = faces["k-Same"]
    for sigma in task.progress(task.scale.levels(SIGMAS, keep=(8.0,)), "blur"):
        made = released(plain, "blur", task.seed, sigma=sigma)
        rows += label_rows(made.faces, "expression", "rbf", task.seed, method="blur", sigma=sigma)
    notes = (
        f"{len(plain)} faces of {plain.n_subjects} people; support vector machine with a radial kernel, five folds",
        "folds by subject as in the paper, and by group: faces that are equal byte for byte stay in one fold",
        "people are grouped once, and each group releases a neutral and a smiling face",
    )
    return Findings(rows, notes)


def _expressive(task: Task, **wanted: Any) -> FaceSet:
    if task.data.real:
        return balanced(task, 2 * PEOPLE, **wanted)
    return task.faces(PEOPLE, expressions=("neutral", "smile"), **wanted)


@PAPER.experiment(
    "fig8",
    "Fig. 8",
    Curves("fig8a", "Originals against pixelated faces.", "rank", ("curve",), {"attack": "naive"}, y="within"),
    Curves(
        "fig8b",
        "Automatic parrot: originals pixelated as the probe was found to be.",
        "rank",
        ("curve",),
        {"attack": "automatic-parrot"},
        y="within",
    ),
    heavy=True,
)
def pixelation(task: Task) -> Findings:
    """Pixelation and the automatic parrot."""
    return _blocks(task, BLOCKS, ("naive", "automatic-parrot"))


@PAPER.experiment(
    "fig9",
    "Fig. 9",
    Curves("fig9", "Pixelated faces as they are and enhanced.", "p", ("attack",), x_label="block, pixels"),
    heavy=True,
)
def enhancement(task: Task) -> Findings:
    """Resolution enhancement."""
    return _blocks(task, (2, 4, 8), ("naive", "enhancement"))


def _blocks(task: Task, blocks: tuple[int, ...], scenarios: tuple[str, ...]) -> Findings:
    attacks: dict[tuple[str, int], list[AttackResult]] = {}
    for number in task.progress(range(task.scale.runs(SPLITS)), "splits"):
        split = photograph_split(task, FERET, TRAINING, task.seed + number, size=SMALL)
        attacks.setdefault(("naive", 1), []).append(run_attack("naive", Eigenfaces(), split.attacked(split.probes)))
        for p in task.scale.levels(blocks, keep=(2, 4, 8)):
            data = split.attacked(released(split.probes, "pixelate", task.seed, p=p).faces)
            for scenario in scenarios:
                attacks.setdefault((scenario, p), []).append(run_attack(scenario, Eigenfaces(), data))
    rows: list[Row] = []
    for (scenario, p), results in sorted(attacks.items()):
        rows.append(mean_rate([r.scores for r in results], attack=scenario, p=p, recogniser="eigenfaces"))
        rows += _cmc(results, attack=scenario, curve="untouched" if p == 1 else f"p = {p}")
    some = attacks["naive", 1][0]
    notes = (
        f"{len(attacks['naive', 1])} splits: {some.n_gallery} faces in the gallery, {some.n_probes} pixelated, others "
        "train; 81 x 92 pixels as in the paper before, for this one does not say; Eigenfaces",
    )
    return Findings(rows, notes)
