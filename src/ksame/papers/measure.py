"""What all experiments do: release faces by the pipeline that users run, attack them, and note the rate."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray, IntArray
from ksame.attacks import AttackData, Recogniser, Split, clopper_pearson, other_photograph_split, run_attack
from ksame.attacks.base import Coder
from ksame.attacks.coders import euclidean
from ksame.deidentify import Provenance, deidentify
from ksame.errors import KsameWarning
from ksame.faces.faceset import FaceSet, quantise
from ksame.methods import Method, Problem
from ksame.papers.data import MIN_PEOPLE, SHOT, NotAvailableError, Wanted
from ksame.papers.experiment import Pictures, Row, Task
from ksame.privacy.models import patterns
from ksame.recipes import Recipe, recipe
from ksame.utility import label_utility
from ksame.utility.classifiers import Kernel


@dataclass(frozen=True, eq=False)
class Released:
    """A release, with the truth that only an experiment may know."""

    faces: FaceSet  # with subjects and labels of the originals they stand for
    source: IntArray  # the first original each stands for
    levels: FloatArray | None = None  # how strongly each was distorted, where the method decides that face by face

    def of(self, originals: Sequence[int]) -> FaceSet:
        """Return the released faces that stand for these originals, in that order."""
        place = {int(source): i for i, source in enumerate(self.source)}
        return self.faces.take([place[i] for i in originals])


_KEEP = Provenance(names="keep")
"""Experiments are about pictures as they are named, look-alikes included."""


def released(
    faces: FaceSet, how: Recipe | str, seed: int, *, reference: FaceSet | None = None, **params: Any
) -> Released:
    """Release faces by a recipe, or its name and parameters; see :func:`ksame.deidentify`.

    Warnings are the subject of an experiment, so none is shown.
    """
    chosen = recipe(how, **params) if isinstance(how, str) else how
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KsameWarning)
        made, linkage = deidentify(faces, chosen, seed=seed, reference=reference, provenance=_KEEP, remember=False)
    place = {name: i for i, name in enumerate(faces.names)}
    source = np.array([place[face.sources[0]] for face in linkage.faces], dtype=np.intp)
    level = [face.figures.get("level") for face in linkage.faces]
    alone = all(len(face.sources) == 1 and face.group is None for face in linkage.faces)
    marks = faces.landmarks[source] if alone and faces.landmarks is not None else None
    labels = {name: values[source] for name, values in faces.attributes.items()}
    out = FaceSet(made.faces, np.array([face.subject for face in linkage.faces]), marks, labels)
    return Released(out, source, None if None in level else np.array(level, dtype=np.float64))


def released_codes(codes: FloatArray, subjects: NDArray[Any], method: Method, seed: int) -> tuple[FloatArray, IntArray]:
    """Run a method on codes, without decoding or rounding; return codes and the first original each stands for."""
    outcome = method.run(Problem(codes, subjects), np.random.default_rng(seed))
    source = np.array([sources[0] for sources in outcome.sources], dtype=np.intp)
    return outcome.surrogates[outcome.rows], source


def photograph_split(task: Task, people: int, training: float, seed: int, **wanted: Any) -> Split:
    """Split as in FERET: one photograph of everybody in the gallery, another to be hidden, other people to train.

    Where few people have a second photograph, those with one only train, and fill the gallery.
    """
    several = task.faces(people, expressions=("neutral", "smile"), **wanted)
    if not task.data.real:
        return other_photograph_split(several, training=training, seed=seed)
    alone = task.faces(people, **wanted)
    rest = alone.take(~np.isin(alone.subjects, several.subjects))
    if len(rest) < several.n_subjects:
        return other_photograph_split(several, training=training, seed=seed)
    order = np.random.default_rng([seed, 2]).permutation(len(rest))
    count = round(training * len(alone))
    first = several.attributes[SHOT] == "0"
    gallery = joined(several.take(first), rest.take(np.sort(order[count:])))
    return Split(gallery, several.take(~first), rest.take(np.sort(order[:count])), same_photographs=False)


def one_each(faces: FaceSet) -> FaceSet:
    """Return the first face of everybody."""
    return faces.take(np.sort(np.unique(faces.subjects, return_index=True)[1]))


def joined(a: FaceSet, b: FaceSet) -> FaceSet:
    """Return the faces of two sets together."""
    marks = None
    if a.landmarks is not None and b.landmarks is not None:
        marks = np.concatenate([a.landmarks, b.landmarks])
    labels = {name: np.concatenate([a.attributes[name], b.attributes[name]]) for name in a.attributes}
    images, subjects = np.concatenate([a.images, b.images]), np.concatenate([a.subjects, b.subjects])
    return FaceSet(images, subjects, marks, labels, (*a.names, *b.names))


def balanced(task: Task, people: int, **wanted: Any) -> FaceSet:
    """Return one face of everybody, half of them neutral and half smiling.

    Of people who do not exist it is drawn by lot which; of photographs, as many of each are taken as there are.
    """
    rng = np.random.default_rng([task.seed, 3])
    if task.data.real:
        faces = task.data.faces(Wanted(10**6, seed=task.seed, **wanted), task.progress)
        kinds = [np.flatnonzero(faces.attribute("expression") == kind) for kind in ("neutral", "smile")]
        each = min(*(len(kind) for kind in kinds), task.scale.people(people) // 2)
        if each < MIN_PEOPLE:
            raise NotAvailableError(f"needs {MIN_PEOPLE} neutral and {MIN_PEOPLE} smiling faces; there are {each}")
        return faces.take(np.sort(np.concatenate([rng.choice(kind, each, replace=False) for kind in kinds])))
    faces = task.faces(people, expressions=("neutral", "smile"), **wanted)
    return faces.take(2 * np.arange(len(faces) // 2) + rng.permutation(np.arange(len(faces) // 2) % 2))


@dataclass(frozen=True, eq=False)
class Trained:
    """A recogniser that is trained once and then stays as it is, and remembers the gallery it saw last.

    Repeating an experiment on the same originals costs a fraction of the time; the distances are the same.
    """

    coder: Coder
    gallery: FaceSet
    codes: FloatArray

    @classmethod
    def on(cls, recogniser: Coder, gallery: FaceSet, training: FaceSet | None = None) -> Trained:
        """Train a recogniser, on the gallery itself where there is no training set."""
        coder = recogniser.fit(gallery if training is None else training)
        return cls(coder, gallery, coder.encode(gallery))

    @property
    def name(self) -> str:
        """The recogniser's."""
        return self.coder.name

    def params(self) -> dict[str, Any]:
        """Return those of the recogniser."""
        return self.coder.params()

    def fit(self, training: FaceSet) -> Trained:
        """Return this one: it was trained."""
        return self

    def encode(self, faces: FaceSet) -> FloatArray:
        """Return codes, (n_faces, n_features)."""
        if faces.shape == self.gallery.shape and np.array_equal(faces.images, self.gallery.images):
            return self.codes
        return self.coder.encode(faces)

    def distances(self, probes: FaceSet, gallery: FaceSet) -> FloatArray:
        """Return distances, (n_probes, n_gallery)."""
        return euclidean(self, probes, gallery)


def attack(scenario: str, recogniser: Recogniser, data: AttackData, **labels: Any) -> Row:
    """Run an attack and return its rate, with its exact interval, as a row with these labels."""
    result = run_attack(scenario, recogniser, data)
    low, high = result.interval
    return {**labels, "attack": result.scenario, "recogniser": result.recogniser, "rank1": result.rank1, "low": low,
            "high": high, "n": result.n_probes}  # fmt: skip


def mean_rate(scores: Iterable[NDArray[Any]], **labels: Any) -> Row:
    """Return the mean rate over runs as a row: mean, smallest and largest run, and the exact interval of one run."""
    rates = [np.asarray(s, dtype=np.float64) for s in scores]
    means = [float(s.mean()) for s in rates]
    rate, n = float(np.mean(means)), len(rates[0])
    low, high = clopper_pearson(rate * n, n)
    return {**labels, "rank1": rate, "least": min(means), "most": max(means), "low": low, "high": high, "n": n,
            "runs": len(means)}  # fmt: skip


def label_rows(faces: FaceSet, label: str, kernel: Kernel, seed: int, **labels: Any) -> list[Row]:
    """Read a label from released faces by support vector machines; one row for each way to make folds."""
    flat = faces.images.reshape(len(faces), -1)
    readings = label_utility(
        flat.astype(np.float64),
        faces.attribute(label),
        subjects=faces.subjects,
        groups=patterns(quantise(faces.images)),
        name=label,
        seed=seed,
    )
    reading = next(reading for reading in readings if reading.kernel == kernel)
    rows = []
    for folds, accuracy in (("subject", reading.by_subject), ("group", reading.by_group)):
        if accuracy is not None:
            rows.append(
                {**labels, "label": label, "kernel": kernel, "folds": folds, "accuracy": accuracy.rate,
                 "low": accuracy.interval[0], "high": accuracy.interval[1], "n": accuracy.n_faces,
                 "majority": reading.majority}
            )  # fmt: skip
    return rows


def stacked(faces: Sequence[FaceSet]) -> FaceSet:
    """Return single faces below one another, as a column of :func:`layout`."""
    return FaceSet(np.concatenate([f.images for f in faces]), np.arange(len(faces)).astype(str))


def layout(columns: Sequence[FaceSet], rows: Sequence[str], captions: Sequence[str]) -> Pictures:
    """Lay out face sets of equal length side by side, one column each, one row per face."""
    images = np.stack([quantise(faces.images) for faces in columns], axis=1)
    return Pictures(images, tuple(rows), tuple(captions))
