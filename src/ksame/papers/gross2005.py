"""Gross, Airoldi, Malin and Sweeney (2005): pixelation, blur, k-Same and k-Same-Select, in privacy and in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ksame.attacks import Embedding, Mahalanobis, Recogniser, Split, same_photograph_split
from ksame.faces.faceset import FaceSet, quantise
from ksame.models import SFace
from ksame.papers.experiment import Findings, Row, Task
from ksame.papers.figures import Curves, Sheet
from ksame.papers.gross2005_claims import BLURS, CLAIMS, PROTOCOLS, SELECT
from ksame.papers.measure import Trained, attack, balanced, label_rows, layout, one_each, photograph_split, released
from ksame.papers.paper import Paper

PEOPLE, EXPRESSIVE = 833, 584
WATCHED = 100
"""People shown to the deep recogniser, whose time is that of pictures; the paper had all of them seen by FaceIt."""

SIZE = (92, 81)
TRAINING = 0.2
PIXELATION = (1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21)
BLUR = (1, 5, 9, 14, 17, 21, 25, 29, 33, 37)
KS = (2, 4, 6, 10, 14, 20, 26, 32, 40)

PAPER = Paper(
    "gross2005",
    "R. Gross, E. Airoldi, B. Malin, L. Sweeney. Integrating Utility into Face De-identification. PET 2005.",
    "FERET: 833 people, 584 of them neutral and smiling; 81 x 92 pixels in grey",
    CLAIMS,
)


def _profile(name: str) -> Curves:
    caption = "Grey values along the line of the eyes."
    return Curves(f"{name}b", caption, "x", ("shown",), x_label="pixel", y="grey", marks=False)


def _recognition(name: str) -> tuple[Curves, ...]:
    scale = "All methods on the common scale of section 6, 0 to 100 % of each range; another photograph is hidden."
    lines, ks, (blocks, *blurs) = ("method", "protocol"), tuple(SELECT), BLURS
    shown = {"method": (*BLURS, *ks), "protocol": PROTOCOLS[0]}
    return (
        Curves(f"{name}a", "Blur.", "level", lines, {"method": tuple(blurs)}, "sigma"),
        Curves(f"{name}b", "Pixelation.", "level", ("protocol",), {"method": blocks}, "p"),
        Curves(f"{name}c", "k-Same and k-Same-Select.", "level", lines, {"method": ks}, "k", bound=True),
        Curves(f"{name}-scale", scale, "share", ("method",), shown, "share of the range"),
    )


def _reading(label: str, folds: str) -> Curves:
    name, caption = f"fig8-{label}-{folds}", f"{label.capitalize()}, folds by {folds}, on the common scale."
    chosen, y_label = {"label": label, "folds": folds}, f"{label} read rightly"
    return Curves(name, caption, "share", ("method",), chosen, "share of the range", "accuracy", y_label)


def share(values: Sequence[float], level: float) -> float:
    """Return a strength on the common scale of section 6: 0 for the weakest, 1 for the strongest of its range.

    Examples
    --------
    >>> share(PIXELATION, 9), round(share(BLUR, 25), 2)
    (0.4, 0.67)
    """
    return (level - values[0]) / (values[-1] - values[0])


def _sheet(task: Task, faces: FaceSet, name: str, parameter: str, levels: Sequence[Any], **fixed: Any) -> Findings:
    """Show a face at rising strength, and the grey values along the line of the eyes (Figs. 1b to 3b)."""
    shown, captions = [faces.take([0])], ["original"]
    for level in levels:
        shown.append(released(faces, name, task.seed, **{parameter: level}, **fixed).of([0]))
        captions.append(f"{parameter} = {level}")
    row = round(float(np.asarray(faces.landmarks)[0, :2, 1].mean()))
    rows: list[Row] = []
    for caption, face in zip(captions, shown, strict=True):
        line = quantise(face.images)[0, row, :, 0]
        rows += [{"shown": caption, "x": x, "grey": int(value)} for x, value in enumerate(line)]
    return Findings(rows, (), layout(shown, ("",), captions))


@PAPER.experiment("fig1", "Fig. 1", Sheet("fig1a", "Pixelated faces."), _profile("fig1"))
def pixelated(task: Task) -> Findings:
    """Pixelation."""
    return _sheet(task, task.faces(60, size=SIZE), "pixelate", "p", (3, 5, 7, 9, 15))


@PAPER.experiment("fig2", "Fig. 2", Sheet("fig2a", "Blurred faces."), _profile("fig2"))
def blurred(task: Task) -> Findings:
    """Blur."""
    return _sheet(task, task.faces(60, size=SIZE), "blur", "sigma", (5.0, 9.0, 13.0, 17.0, 25.0))


@PAPER.experiment("fig3", "Fig. 3", Sheet("fig3a", "k-Samed faces."), _profile("fig3"))
def averaged(task: Task) -> Findings:
    """k-Same."""
    faces = balanced(task, 400, size=SIZE)
    return _sheet(task, faces, "k-same-pixel", "k", [k for k in (2, 3, 5, 10, 20) if 2 * k <= len(faces)])


@PAPER.experiment("fig4", "Fig. 4", Sheet("fig4", "Faces that keep their expression."))
def selected(task: Task) -> Findings:
    """k-Same-Select."""
    faces = balanced(task, 400, size=SIZE)
    ks = [k for k in (2, 3, 5, 10, 20) if 4 * k <= len(faces)]
    return _sheet(task, faces, "k-same-pixel", "k", ks, select="expression")


@PAPER.experiment("fig6", "Fig. 6", *_recognition("fig6"), heavy=True)
def principal_components(task: Task) -> Findings:
    """Recognition by PCA.

    With Mahalanobis distances, in the eigenspace of a fifth of the people.
    """
    rows: list[Row] = []
    notes = ["the paper calls sigma a standard deviation and a variance; both readings are run"]
    splits = {
        "another photograph": photograph_split(task, PEOPLE, TRAINING, task.seed, size=SIZE),
        "same photograph": same_photograph_split(task.faces(PEOPLE, size=SIZE), training=TRAINING, seed=task.seed),
    }
    for protocol, split in splits.items():
        knows = Trained.on(Mahalanobis(), split.gallery, split.training)
        rows += [{"protocol": protocol, **row} for row in _curves(task, split, knows)]
        count = 0 if split.training is None else split.training.n_subjects
        notes.append(
            f"{protocol}: {split.gallery.n_subjects} people in the gallery, {len(split.probes)} pictures hidden, "
            f"{count} people trained {knows.params().get('components')} components; 81 x 92 pixels"
        )
    notes.append("which of a person's photographs is the gallery's is drawn by lot: both expressions are on both sides")
    return Findings(rows, tuple(notes))


@PAPER.experiment("fig7", "Fig. 7", *_recognition("fig7"), heavy=True)
def network(task: Task) -> Findings:
    """Recognition by a deep network.

    SFace, where the paper had FaceIt.
    """
    split = photograph_split(task, WATCHED, TRAINING, task.seed, size=(168, 132), grey=False, whole=True)
    rows = [{"protocol": "another photograph", **row} for row in _curves(task, split, Embedding(SFace()), thin=4)]
    notes = (
        f"{split.gallery.n_subjects} people in the gallery, {len(split.probes)} other photographs hidden; 132 x 168 "
        "pixels in colour, so that a level of the common scale is weaker here than at 81 x 92",
        "blurred and pixelated faces are shown to the network with the points of their originals: the attacker marks "
        "them by hand",
    )
    return Findings(rows, notes)


def _curves(task: Task, split: Split, recogniser: Recogniser, thin: int = 100) -> list[Row]:
    """Attack probes released by every method at every strength, on the common scale of section 6 too."""

    def few(levels: Sequence[int], *keep: int) -> list[int]:
        return replace(task.scale, max_levels=thin).levels(task.scale.levels(levels, keep), keep)

    untouched = attack("naive", recogniser, split.attacked(split.probes), method="untouched", level=0, share=0.0)
    tries = _masks(few(PIXELATION, 3, 5, 9, 15), few(BLUR, 5, 14, 25))
    singles = one_each(split.probes)
    for label, select in SELECT.items():
        if select is None or select in singles.attributes:
            counts = [len(singles)] if select is None else np.unique(singles.attribute(select), return_counts=True)[1]
            tries += _averages(label, [k for k in few(KS, 2, 10) if k <= min(counts)], select)
    rows = [untouched]
    for name, params, labels in task.progress(tries, "releases"):
        probes = singles if name == "k-same-pixel" else split.probes
        made = released(probes, name, task.seed, **params)
        rows.append(attack("naive", recogniser, split.attacked(made.faces), **labels))
    return rows


Try = tuple[str, dict[str, Any], Row]
"""A recipe's name, its parameters, and what to call it: method, strength as the paper gives it, and on its scale."""


def _masks(blocks: Sequence[int], sigmas: Sequence[int]) -> list[Try]:
    """Return pixelation and blur; the paper calls its sigma a standard deviation and a variance, so both are tried."""
    tries: list[Try] = [("pixelate", {"p": p}, _labels("pixelation", PIXELATION, p)) for p in blocks]
    for sigma in sigmas:
        for method, width in zip(BLURS[1:], (float(sigma), float(np.sqrt(sigma))), strict=True):
            tries.append(("blur", {"sigma": width}, _labels(method, BLUR, sigma)))
    return tries


def _averages(method: str, ks: Sequence[int], select: str | None) -> list[Try]:
    return [("k-same-pixel", {"k": k, "select": select}, _labels(method, (1, *KS), k)) for k in ks]


def _labels(method: str, values: Sequence[int], level: int) -> Row:
    return {"method": method, "level": float(level), "share": share(values, level)}


@PAPER.experiment(
    "fig8",
    "Fig. 8",
    *(_reading(label, folds) for label in ("gender", "expression") for folds in ("subject", "group")),
    heavy=True,
)
def utility(task: Task) -> Findings:
    """Gender and expression that can still be read."""
    sets = {"gender": task.faces(PEOPLE, size=SIZE), "expression": balanced(task, EXPRESSIVE, size=SIZE)}
    rows: list[Row] = []
    for label, faces in sets.items():
        rows += label_rows(faces, label, "linear", task.seed, method="untouched", level=0, share=0.0)
        smallest = min(np.unique(faces.attribute(label), return_counts=True)[1])
        ks = [k for k in task.scale.levels(KS, keep=(2, 10)) if k <= smallest]
        tries = _masks(task.scale.levels(PIXELATION[1::2]), task.scale.levels(BLUR[1::2]))
        tries += [*_averages("k-Same", ks, None), *_averages("k-Same-Select", ks, label)]
        for name, params, labels in task.progress(tries, label):
            made = released(faces, name, task.seed, **params)
            rows += label_rows(made.faces, label, "linear", task.seed, **labels)
        rows += _by_lot(task, faces, label, min(10, smallest))
    notes = (
        f"gender of {len(sets['gender'])} people, expression of {len(sets['expression'])}; one face each, linear "
        "kernel, five folds",
        "folds by subject as in the paper, and by group: faces that are equal byte for byte stay in one fold",
        "by lot: k-Same-Select keeps labels that were dealt out at random, which no face can show",
    )
    return Findings(rows, notes)


def _by_lot(task: Task, faces: FaceSet, label: str, k: int) -> list[Row]:
    """Select a label that means nothing: what is read from it is an artefact of the folds."""
    lot = np.random.default_rng([task.seed, 4]).permutation(faces.attribute(label))
    dealt = replace(faces, attributes={**faces.attributes, label: lot})
    made = released(dealt, "k-same-pixel", task.seed, k=k, select=label)
    return label_rows(made.faces, label, "linear", task.seed, method="k-Same-Select by lot", level=k)
