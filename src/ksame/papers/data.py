"""Where the faces of an experiment come from: people who do not exist, or a folder of photographs."""

from __future__ import annotations

import csv
import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray
from ksame.errors import InputError, KsameError
from ksame.faces.faceset import FaceSet, quantise
from ksame.faces.landmarks import eyes_and_nose
from ksame.faces.registration import Template, register
from ksame.papers.layouts import Picture, find_pictures
from ksame.photographs import load_photographs, predicted_labels
from ksame.progress import Progress, silent
from ksame.synthetic import synthetic

SHOT = "shot"
"""Label that numbers the pictures of a person: the first is the gallery's, the second the one to be hidden."""

MIN_PEOPLE = 10
"""People below which an experiment says nothing."""

_MAX_PEOPLE = 1000
_MAX_SHOTS = 10  # pictures of a person
_LIGHT = ("flat", "front")  # of the pictures in which illumination does not vary


class NotAvailableError(KsameError):
    """The data cannot serve an experiment, for instance as nobody has two pictures."""


@dataclass(frozen=True)
class Wanted:
    """The faces an experiment asks for."""

    people: int  # or as many as there are
    # one picture of everybody for each pair, numbered by the label :data:`SHOT`. Where pictures carry no such
    # labels, other pictures of the same people stand in, as many as they have, two at least
    expressions: Sequence[str] = ("neutral",)
    illuminations: Sequence[str] = ("flat",)
    size: tuple[int, int] = (134, 99)  # height and width
    grey: bool = True
    # with hair and chin, and the mesh as landmarks; otherwise cut tight round eyes and nose, which are the
    # landmarks
    whole: bool = False
    seed: int = 0  # of the choice of people


class Data(Protocol):
    """Where faces come from: what reports call it, a digest of the very pictures, and whether they show real people."""

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def digest(self) -> str: ...  # noqa: D102

    @property
    def real(self) -> bool: ...  # noqa: D102

    def faces(self, wanted: Wanted, progress: Progress = silent) -> FaceSet:
        """Return faces; raises NotAvailableError where too few people have enough pictures."""
        ...


@dataclass(frozen=True)
class SyntheticData:
    """People who do not exist, as many as a paper had."""

    name = "synthetic people"
    digest = "synthetic"
    real = False

    def faces(self, wanted: Wanted, progress: Progress = silent) -> FaceSet:
        """See :meth:`Data.faces`."""
        expressions, lights = wanted.expressions, wanted.illuminations
        n, shots, seed = wanted.people, len(expressions) * len(lights), wanted.seed
        painted = synthetic(n, shots, seed=seed, expressions=expressions, illuminations=lights, progress=progress)
        return _cut(_numbered(painted, np.tile(np.arange(shots), wanted.people)), wanted)


@dataclass(frozen=True, eq=False)
class FolderData:
    """Photographs of a data set, with the face found in each."""

    name: str
    digest: str
    stock: FaceSet  # all faces, 224 x 176 pixels with their mesh
    withheld: tuple[str, ...] = ()  # pictures that could not be used, and why
    notes: tuple[str, ...] = ()  # what was read from the faces because the data set does not say it

    real = True

    @classmethod
    def load(cls, folder: Path, layout: str = "auto", progress: Progress = silent) -> FolderData:
        """Find the pictures of a data set and the face in each; what cannot be used is withheld and named."""
        layout, pictures = find_pictures(folder, layout)
        chosen = _few(pictures)
        with tempfile.TemporaryDirectory(prefix="ksame-") as scratch:
            table = Path(scratch) / "labels.csv"
            with table.open("w", newline="", encoding="utf-8") as handle:
                writer = csv.writer(handle)
                writer.writerow(["file", "subject", "gender", "expression", "illumination"])
                for picture in chosen:
                    said = (picture.gender, picture.expression, picture.illumination)
                    writer.writerow([picture.path.relative_to(folder).as_posix(), picture.subject, *said])
            portraits = load_photographs(folder, labels=table, skip_unreadable=True, progress=progress)
        faces = portraits.faces
        labels, notes = {name: values.copy() for name, values in faces.attributes.items()}, []
        for label in ("gender", "expression"):
            unknown = labels[label] == ""
            if unknown.any():
                predicted, accuracy = predicted_labels(portraits, label)
                labels[label] = np.where(unknown, predicted, labels[label])
                notes.append(f"{label} of {int(unknown.sum())} pictures was read from the faces; {accuracy}")
        missing = tuple(f"{w.source}: {w.reason}" for w in portraits.withheld) + portraits.unreadable
        stock = FaceSet(quantise(faces.images), faces.subjects, faces.landmarks, labels, faces.names)
        return cls(f"{folder.name} ({layout})", _digest(folder, chosen), stock, missing, tuple(notes))

    def faces(self, wanted: Wanted, progress: Progress = silent) -> FaceSet:
        """See :meth:`Data.faces`."""
        pairs = [(e, i) for i in wanted.illuminations for e in wanted.expressions]
        rows: dict[str, list[int]] = {}
        for subject in dict.fromkeys(self.stock.subjects):
            shots = self._shots(np.flatnonzero(self.stock.subjects == subject), pairs)
            if len(shots) >= min(2, len(pairs)):
                rows[str(subject)] = shots
        if len(rows) < MIN_PEOPLE:
            raise NotAvailableError(
                f"needs {len(pairs)} pictures of everybody; {len(rows)} people of {self.name} have two or more"
            )
        who = np.array(sorted(rows))
        if len(who) > wanted.people:
            chosen = np.random.default_rng([wanted.seed, wanted.people]).choice(who, wanted.people, replace=False)
            who = np.sort(chosen)
        taken = [(i, shot) for subject in who for shot, i in enumerate(rows[subject])]
        some = _numbered(self.stock.take([i for i, _ in taken]), np.array([shot for _, shot in taken]))
        return _cut(some, wanted)

    def _shots(self, rows: NDArray[np.intp], wanted: Sequence[tuple[str, str]]) -> list[int]:
        """Return the pictures of a person for the wanted expressions and lights, or simply the first ones."""
        if len(wanted) == 1:
            neutral = [i for i in rows if self.stock.attributes["expression"][i] == wanted[0][0]]
            return [int((neutral or list(rows))[0])]
        lights = self.stock.attributes["illumination"]
        said = [i for i in rows if lights[i]]
        if not said:
            return [int(i) for i in rows[: len(wanted)]]
        if len({light for _, light in wanted}) == 1:  # expressions vary, under one light
            frontal = [i for i in said if lights[i] in _LIGHT]
            faces = self.stock.attributes["expression"]
            firsts = [next((i for i in frontal if faces[i] == expression), None) for expression, _ in wanted]
        else:  # light varies, of a neutral face
            neutral = [i for i in said if self.stock.attributes["expression"][i] == "neutral"]
            each = {str(lights[i]): i for i in reversed(neutral)}
            firsts = [*each.values()][::-1][: len(wanted)]
        return [int(i) for i in firsts if i is not None]


def _few(pictures: Sequence[Picture]) -> list[Picture]:
    """Return at most so many people, those with several pictures first, and so many pictures of each."""
    of: dict[str, list[Picture]] = {}
    for picture in pictures:
        of.setdefault(picture.subject, []).append(picture)
    people = sorted(of, key=lambda subject: (-min(len(of[subject]), _MAX_SHOTS), subject))[:_MAX_PEOPLE]
    chosen = [picture for subject in sorted(people) for picture in of[subject][:_MAX_SHOTS]]
    if len(people) < MIN_PEOPLE:
        raise InputError(f"An experiment needs {MIN_PEOPLE} people or more; found {len(people)}.")
    return chosen


def _digest(folder: Path, pictures: Sequence[Picture]) -> str:
    listed = [f"{p.path.relative_to(folder).as_posix()} {p.subject} {p.path.stat().st_size}" for p in pictures]
    return hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16]


def _numbered(faces: FaceSet, shots: NDArray[np.intp]) -> FaceSet:
    return replace(faces, attributes={**faces.attributes, SHOT: shots.astype(np.str_)})


def _cut(faces: FaceSet, wanted: Wanted) -> FaceSet:
    """Register faces to a size, whole with their mesh, or tight round eyes and nose."""
    meshes = np.asarray(faces.landmarks)
    template = (Template.portrait if wanted.whole else Template.eyes_and_nose)(wanted.size[1], wanted.size[0])
    moved = [register(image, own, template) for image, own in zip(faces.images, eyes_and_nose(meshes), strict=True)]
    images: NDArray[np.float32] = np.stack([image for image, _ in moved])
    marks: FloatArray
    if wanted.whole:
        marks = np.stack([move.apply(mesh[:, :2]) for (_, move), mesh in zip(moved, meshes, strict=True)])
    else:
        marks = np.tile(np.array(template.points), (len(faces), 1, 1))
    released: ByteArray = quantise(images.mean(axis=3, keepdims=True) if wanted.grey else images)
    return FaceSet(released, faces.subjects, marks, faces.attributes, faces.names)
