"""Gross, Airoldi, Malin and Sweeney (2005): pixelation, blur, k-Same and k-Same-Select, in privacy and in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ksame.attacks import Embedding, Mahalanobis, Recogniser, Split, run_attack, same_photograph_split
from ksame.faces.faceset import FaceSet, quantise
from ksame.models import SFace
from ksame.papers.experiment import Experiment, Findings, Row, Task
from ksame.papers.figures import Curves, Sheet
from ksame.papers.gross2005_claims import CLAIMS
from ksame.papers.measure import Trained, balanced, label_rows, layout, photograph_split, rated, released
from ksame.papers.paper import Paper

PEOPLE, EXPRESSIVE = 833, 584
WATCHED = 100
"""People shown to the deep recogniser, whose time is that of pictures; the paper had all of them seen by FaceIt."""

SIZE = (92, 81)
TRAINING = 0.2
PIXELATION = (1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21)
BLUR = (1, 5, 9, 14, 17, 21, 25, 29, 33, 37)
KS = (2, 4, 6, 10, 14, 20, 26, 32, 40)
_BLURS = ("blur", "blur, sigma a variance")
SELECT = (("k-Same", None), ("k-Same-Select gender", "gender"), ("k-Same-Select expression", "expression"))


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


def pixelated(task: Task) -> Findings:
    """Fig. 1."""
    return _sheet(task, task.faces(60, size=SIZE), "pixelate", "p", (3, 5, 7, 9, 15))


def blurred(task: Task) -> Findings:
    """Fig. 2."""
    return _sheet(task, task.faces(60, size=SIZE), "blur", "sigma", (5.0, 9.0, 13.0, 17.0, 25.0))


def averaged(task: Task) -> Findings:
    """Fig. 3."""
    faces = balanced(task, 400, size=SIZE)
    return _sheet(task, faces, "k-same-pixel", "k", [k for k in (2, 3, 5, 10, 20) if 2 * k <= len(faces)])


def selected(task: Task) -> Findings:
    """Fig. 4."""
    faces = balanced(task, 400, size=SIZE)
    ks = [k for k in (2, 3, 5, 10, 20) if 4 * k <= len(faces)]
    return _sheet(task, faces, "k-same-pixel", "k", ks, select="expression")


def principal_components(task: Task) -> Findings:
    """Fig. 6: PCA with Mahalanobis distances, the eigenspace of a fifth of the people."""
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


def network(task: Task) -> Findings:
    """Fig. 7: a deep recogniser, SFace, where the paper had FaceIt."""
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
    rows = [
        rated(run_attack("naive", recogniser, split.attacked(split.probes)), method="untouched", level=0, share=0.0)
    ]
    tries: list[tuple[str, str, dict[str, Any], float]] = []
    for p in _thinned(task, PIXELATION, (3, 5, 9, 15), thin):
        tries.append(("pixelation", "pixelate", {"p": p}, share(PIXELATION, p)))
    for sigma in _thinned(task, BLUR, (5, 14, 25), thin):
        for label, width in _readings(sigma).items():
            tries.append((label, "blur", {"sigma": width}, share(BLUR, sigma)))
    one = split.probes.take(np.sort(np.unique(split.probes.subjects, return_index=True)[1]))
    for label, select in SELECT:
        if select is not None and select not in one.attributes:
            continue
        fewest = len(one) if select is None else min(np.unique(one.attribute(select), return_counts=True)[1])
        for k in _thinned(task, KS, (2, 10), thin):
            if k <= fewest:
                tries.append((label, "k-same-pixel", {"k": k, "select": select}, share((1, *KS), k)))
    for label, name, params, level in task.track(tries, "releases"):
        probes = one if name == "k-same-pixel" else split.probes
        made = released(probes, name, task.seed, **params)
        result = run_attack("naive", recogniser, split.attacked(made.faces))
        rows.append(rated(result, method=label, level=_level(name, params, level), share=level))
    return rows


def _readings(sigma: float) -> dict[str, float]:
    """Return the width of a blur in pixels: the paper calls its sigma a standard deviation and a variance."""
    return {"blur": float(sigma), "blur, sigma a variance": float(np.sqrt(sigma))}


def _level(name: str, params: dict[str, Any], level: float) -> float:
    """Return the strength as the paper gives it: p, sigma or k."""
    if name == "blur":
        return round(BLUR[0] + level * (BLUR[-1] - BLUR[0]), 6)
    return float(next(iter(params.values())))


def _thinned(task: Task, levels: Sequence[int], keep: Sequence[int], most: int) -> list[int]:
    there = task.scale.levels(levels, keep=keep)
    if len(there) <= most:
        return there
    places = {round(i) for i in np.linspace(0, len(there) - 1, most)}
    return [level for i, level in enumerate(there) if i in places or level in keep]


def utility(task: Task) -> Findings:
    """Fig. 8: gender and expression read by a linear support vector machine."""
    sets = {"gender": task.faces(PEOPLE, size=SIZE), "expression": balanced(task, EXPRESSIVE, size=SIZE)}
    rows: list[Row] = []
    for label, faces in sets.items():
        rows += label_rows(faces, label, "linear", task.seed, method="untouched", level=0, share=0.0)
        smallest = min(np.unique(faces.attribute(label), return_counts=True)[1])
        ks = [k for k in task.scale.levels(KS, keep=(2, 10)) if k <= smallest]
        tries: list[tuple[str, str, dict[str, Any], float]] = [
            *(("pixelation", "pixelate", {"p": p}, share(PIXELATION, p)) for p in task.scale.levels(PIXELATION[1::2])),
            *(
                (name, "blur", {"sigma": width}, share(BLUR, s))
                for s in task.scale.levels(BLUR[1::2])
                for name, width in _readings(s).items()
            ),
            *(("k-Same", "k-same-pixel", {"k": k}, share((1, *KS), k)) for k in ks),
            *(("k-Same-Select", "k-same-pixel", {"k": k, "select": label}, share((1, *KS), k)) for k in ks),
        ]
        for name, how, params, level in task.track(tries, label):
            made = released(faces, how, task.seed, **params)
            value = _level(how, params, level)
            rows += label_rows(made.faces, label, "linear", task.seed, method=name, level=value, share=level)
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
    dealt = FaceSet(faces.images, faces.subjects, faces.landmarks, {**faces.attributes, label: lot}, faces.names)
    made = released(dealt, "k-same-pixel", task.seed, k=k, select=label)
    return label_rows(made.faces, label, "linear", task.seed, method="k-Same-Select by lot", level=k)


def _profile(name: str) -> Curves:
    return Curves(
        f"{name}b",
        "Grey values along the line of the eyes.",
        "x",
        "grey",
        ("shown",),
        x_label="pixel",
        y_label="grey value",
        share=False,
        marks=False,
    )


def _recognition(name: str) -> tuple[Curves, ...]:
    ks = tuple(label for label, _ in SELECT)
    return (
        Curves(f"{name}a", "Blur.", "level", "rank1", ("method", "protocol"), {"method": _BLURS}, "sigma"),
        Curves(f"{name}b", "Pixelation.", "level", "rank1", ("protocol",), {"method": ("pixelation",)}, "p"),
        Curves(
            f"{name}c",
            "k-Same and k-Same-Select.",
            "level",
            "rank1",
            ("method", "protocol"),
            {"method": ks},
            "k",
            bound=True,
        ),
        Curves(
            f"{name}-scale",
            "All methods on the common scale of section 6, 0 to 100 % of each range; another photograph is hidden.",
            "share",
            "rank1",
            ("method",),
            {"method": (*_BLURS, "pixelation", *ks), "protocol": "another photograph"},
            "share of the range",
        ),
    )


PAPER = Paper(
    "gross2005",
    "R. Gross, E. Airoldi, B. Malin, L. Sweeney. Integrating Utility into Face De-identification. PET 2005.",
    "FERET: 833 people, 584 of them neutral and smiling; 81 x 92 pixels in grey",
    (
        Experiment("fig1", "Fig. 1", "Pixelation", pixelated, (Sheet("fig1a", "Pixelated faces."), _profile("fig1"))),
        Experiment("fig2", "Fig. 2", "Blur", blurred, (Sheet("fig2a", "Blurred faces."), _profile("fig2"))),
        Experiment("fig3", "Fig. 3", "k-Same", averaged, (Sheet("fig3a", "k-Samed faces."), _profile("fig3"))),
        Experiment("fig4", "Fig. 4", "k-Same-Select", selected, (Sheet("fig4", "Faces that keep their expression."),)),
        Experiment("fig6", "Fig. 6", "Recognition by PCA", principal_components, _recognition("fig6"), heavy=True),
        Experiment("fig7", "Fig. 7", "Recognition by a deep network", network, _recognition("fig7"), heavy=True),
        Experiment(
            "fig8",
            "Fig. 8",
            "Gender and expression that can still be read",
            utility,
            tuple(
                Curves(
                    f"fig8-{label}-{folds}",
                    f"{label.capitalize()}, folds by {folds}, on the common scale.",
                    "share",
                    "accuracy",
                    ("method",),
                    {"label": label, "folds": folds},
                    "share of the range",
                    f"{label} read rightly",
                )
                for label in ("gender", "expression")
                for folds in ("subject", "group")
            ),
            heavy=True,
        ),
    ),
    CLAIMS,
)
