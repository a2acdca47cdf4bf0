"""Who is in the gallery, who is probed, who trains: splits in which nothing leaks, by construction.

A gallery, probes and a training set are only ever made together, as a :class:`Split`, which refuses people and
photographs that are on two sides where the protocol keeps them apart.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ksame.attacks.base import AttackData, Imitation
from ksame.errors import InputError, parameter_error
from ksame.faces.faceset import FaceSet, quantise

TRAINING = 0.3
"""Share of the people who train a recogniser (Gross et al. 2006, section 5.2; 2005 takes 20 to 30 %)."""


@dataclass(frozen=True, eq=False)
class Split:
    """Gallery, probes before de-identification, and training set."""

    # of the same people
    gallery: FaceSet
    probes: FaceSet
    training: FaceSet | None  # of other people
    # whether probes may be the photographs of the gallery, as in Newton et al. (2005). Otherwise they are other
    # photographs of the same people, as FERET's fa and fb are
    same_photographs: bool

    def __post_init__(self) -> None:
        people, pictures = set(self.gallery.subjects), _photographs(self.gallery)
        missing = set(self.probes.subjects) - people
        if missing:
            raise InputError(f"Probes must show people of the gallery; {min(missing)} is not in it.")
        if not self.same_photographs:
            _refuse(pictures & _photographs(self.probes), "photographs are in the gallery and among the probes")
        if self.training is not None:
            _refuse(set(self.training.subjects) & people, "people are in the training set and in the gallery")
            attacked = pictures | _photographs(self.probes)
            _refuse(attacked & _photographs(self.training), "photographs are in the training set and attacked too")

    def attacked(self, released: FaceSet, imitate: Imitation | None = None) -> AttackData:
        """Return what an attacker holds once the probes were released, with the subjects that they stand for."""
        others = set(released.subjects) - set(self.probes.subjects)
        if others:
            raise InputError(f"Only the probes may be released; {min(others)} is not among them.")
        return AttackData(self.gallery, released, self.training, imitate)


def same_photograph_split(faces: FaceSet, *, training: float = 0.0, seed: int = 0) -> Split:
    """Split people into those who train and those attacked, whose photographs are gallery and probes at once.

    ``training``: share of the people who train; nobody by default, as in Newton et al. (2005).
    """
    learn, others = _people(faces, training, seed)
    return Split(others, others, learn, same_photographs=True)


def other_photograph_split(faces: FaceSet, *, training: float = TRAINING, seed: int = 0) -> Split:
    """Split as in FERET: one photograph of everybody in the gallery, the others are probes.

    Who trains, and which photograph goes into the gallery, is drawn at random. People with a single photograph are in
    the gallery only.
    """
    learn, others = _people(faces, training, seed)
    first = _one_each(others.subjects, np.random.default_rng([seed, 1]))
    if first.all():
        raise InputError("No person has two photographs; there is nothing to probe with. Use same_photograph_split.")
    return Split(others.take(first), others.take(~first), learn, same_photographs=False)


def label_split(
    faces: FaceSet, label: str, *, gallery: str, probes: str, training: float = TRAINING, seed: int = 0
) -> Split:
    """Split by a label, such as neutral faces in the gallery and smiling ones as probes (Gross et al. 2006, Fig. 5).

    Faces with other values of the label are left out, and so are probes of people without a gallery face.
    """
    learn, others = _people(faces, training, seed)
    values = others.attribute(label)
    for value in (gallery, probes):
        if value not in values:
            raise InputError(f"No face has the {label} {value!r}; there are: {', '.join(sorted(set(values)))}.")
    in_gallery = others.take(values == gallery)
    probed = (values == probes) & np.isin(others.subjects, in_gallery.subjects)
    if not probed.any():
        raise InputError(f"Nobody has faces of both the {label} {gallery!r} and {probes!r}.")
    return Split(in_gallery, others.take(probed), learn, same_photographs=False)


def _people(faces: FaceSet, training: float, seed: int) -> tuple[FaceSet | None, FaceSet]:
    """Draw the people who train; return their faces and those of the others."""
    if not 0.0 <= training < 1.0:
        raise parameter_error("training", "split", "a share in [0, 1)", training)
    who = np.unique(faces.subjects)
    count = round(training * len(who))
    if count == 0:
        return None, faces
    if count == len(who):
        raise InputError(f"{len(who)} people are too few to set a share of {training:g} apart for training.")
    chosen = np.random.default_rng([seed, 0]).choice(who, size=count, replace=False)
    learn = np.isin(faces.subjects, chosen)
    return faces.take(learn), faces.take(~learn)


def _one_each(subjects: NDArray[np.str_], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Mark one face per subject, drawn at random."""
    order = rng.permutation(len(subjects))
    _, first = np.unique(subjects[order], return_index=True)
    marked = np.zeros(len(subjects), dtype=bool)
    marked[order[first]] = True
    return marked


def _photographs(faces: FaceSet) -> set[str]:
    """Return what identifies the photographs: their 8-bit pixels, whatever they are called."""
    return {hashlib.sha256(image.tobytes()).hexdigest() for image in quantise(faces.images)}


def _refuse(shared: set[str], what: str) -> None:
    if shared:
        raise InputError(f"{len(shared)} {what}; a split must keep them apart. Remove the doubles and split again.")
