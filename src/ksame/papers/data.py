"""Where the faces of an experiment come from: people who do not exist, or a folder of photographs."""

from __future__ import annotations

import csv
import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
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
from ksame.progress import Track, silent
from ksame.synthetic import synthetic

SHOT = "shot"
"""Label that numbers the pictures of a person: the first is the gallery's, the second the one to be hidden."""

FEWEST = 10
"""People below which an experiment says nothing."""

_MOST = 1000
_SHOTS = 10  # pictures of a person that are read at most
_ROOM, _UPRIGHT = 1.65, 224 / 176  # size of a portrait whose face is a little larger than in a tight cut, and its shape
_LIGHT = ("flat", "front")  # of the pictures in which illumination does not vary


class NotAvailableError(KsameError):
    """The data cannot serve an experiment, for instance as nobody has two pictures."""


class Data(Protocol):
    """Faces by what an experiment wants."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    @property
    def digest(self) -> str:
        """Names the very pictures: results of other pictures are not used again."""
        ...

    @property
    def real(self) -> bool:
        """Whether the pictures show people who exist."""
        ...

    def faces(
        self,
        people: int,
        *,
        expressions: Sequence[str] = ("neutral",),
        illuminations: Sequence[str] = ("flat",),
        size: tuple[int, int] = (134, 99),
        grey: bool = True,
        whole: bool = False,
        seed: int = 0,
        track: Track = silent,
    ) -> FaceSet:
        """Return faces of ``people`` people, or of as many as there are.

        Parameters
        ----------
        expressions, illuminations : sequence of str
            One picture of everybody for each pair, numbered by the label :data:`SHOT`. Where pictures carry no such
            labels, other pictures of the same people stand in, as many as they have, two at least.
        size : (int, int)
            Height and width.
        grey : bool
        whole : bool
            With hair and chin, and the mesh as landmarks; otherwise cut tight round eyes and nose, which are the
            landmarks.
        seed : int
            Of the choice of people.

        Raises
        ------
        NotAvailableError
            Where too few people have enough pictures.
        """
        ...


@dataclass(frozen=True)
class SyntheticData:
    """People who do not exist, as many as a paper had."""

    name = "synthetic people"
    digest = "synthetic"
    real = False

    def faces(
        self,
        people: int,
        *,
        expressions: Sequence[str] = ("neutral",),
        illuminations: Sequence[str] = ("flat",),
        size: tuple[int, int] = (134, 99),
        grey: bool = True,
        whole: bool = False,
        seed: int = 0,
        track: Track = silent,
    ) -> FaceSet:
        """See :meth:`Data.faces`."""
        shots = len(expressions) * len(illuminations)
        painted = synthetic(people, shots, seed=seed, expressions=expressions, illuminations=illuminations, track=track)
        numbered = _numbered(painted, np.tile(np.arange(shots), people))
        return _cut(numbered, size, grey=grey, whole=whole)


@dataclass(frozen=True, eq=False)
class FolderData:
    """Photographs of a data set, with the face found in each.

    Attributes
    ----------
    name : str
    digest : str
    stock : FaceSet
        All faces, 224 x 176 pixels with their mesh.
    withheld : tuple of str
        Pictures that could not be used, and why.
    notes : tuple of str
        What was read from the faces because the data set does not say it.
    """

    name: str
    digest: str
    stock: FaceSet
    withheld: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    real = True

    @classmethod
    def load(cls, folder: Path, layout: str = "auto", track: Track = silent) -> FolderData:
        """Find the pictures of a data set and the face in each; what cannot be used is withheld and named.

        Parameters
        ----------
        folder : Path
        layout : str
            One of :data:`ksame.papers.layouts.LAYOUTS`, or ``auto``.
        """
        found, pictures = find_pictures(folder, layout)
        chosen = _few(pictures)
        with tempfile.TemporaryDirectory(prefix="ksame-") as scratch:
            table = Path(scratch) / "labels.csv"
            with table.open("w", newline="", encoding="utf-8") as handle:
                writer = csv.writer(handle)
                writer.writerow(["file", "subject", "gender", "expression", "illumination"])
                for picture in chosen:
                    said = (picture.gender, picture.expression, picture.illumination)
                    writer.writerow([picture.path.relative_to(folder).as_posix(), picture.subject, *said])
            portraits = load_photographs(folder, labels=table, skip_unreadable=True, track=track)
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
        return cls(f"{folder.name} ({found})", _digest(folder, chosen), stock, missing, tuple(notes))

    def faces(
        self,
        people: int,
        *,
        expressions: Sequence[str] = ("neutral",),
        illuminations: Sequence[str] = ("flat",),
        size: tuple[int, int] = (134, 99),
        grey: bool = True,
        whole: bool = False,
        seed: int = 0,
        track: Track = silent,
    ) -> FaceSet:
        """See :meth:`Data.faces`."""
        wanted = [(e, i) for i in illuminations for e in expressions]
        rows: dict[str, list[int]] = {}
        for subject in dict.fromkeys(self.stock.subjects):
            mine = self._shots(np.flatnonzero(self.stock.subjects == subject), wanted)
            if len(mine) >= min(2, len(wanted)):
                rows[str(subject)] = mine
        if len(rows) < FEWEST:
            raise NotAvailableError(
                f"needs {len(wanted)} pictures of everybody; {len(rows)} people of {self.name} have two or more"
            )
        who = np.array(sorted(rows))
        if len(who) > people:
            who = np.sort(np.random.default_rng([seed, people]).choice(who, people, replace=False))
        taken = [(i, shot) for subject in who for shot, i in enumerate(rows[subject])]
        some = _numbered(self.stock.take([i for i, _ in taken]), np.array([shot for _, shot in taken]))
        return _cut(some, size, grey=grey, whole=whole)

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

    def save(self, file: Path) -> None:
        """Write the faces to a private file, for other processes; see :func:`load_saved`."""
        marks = self.stock.landmarks
        assert marks is not None  # noqa: S101 -- photographs always have a mesh
        labels = {f"label_{name}": values for name, values in self.stock.attributes.items()}
        file.touch(mode=0o600)
        np.savez(
            file,
            images=quantise(self.stock.images),
            subjects=self.stock.subjects,
            landmarks=marks,
            names=np.array(self.stock.names),
            said=np.array([self.name, self.digest]),
            withheld=np.array(self.withheld, dtype=np.str_),
            notes=np.array(self.notes, dtype=np.str_),
            **labels,  # type: ignore[arg-type]
        )


def load_saved(file: Path) -> FolderData:
    """Read what :meth:`FolderData.save` wrote."""
    with np.load(file, allow_pickle=False) as archive:
        labels = {name.removeprefix("label_"): archive[name] for name in archive.files if name.startswith("label_")}
        names = tuple(str(name) for name in archive["names"])
        stock = FaceSet(archive["images"], archive["subjects"], archive["landmarks"], labels, names)
        name, digest = (str(text) for text in archive["said"])
        withheld, notes = (tuple(str(text) for text in archive[what]) for what in ("withheld", "notes"))
    return FolderData(name, digest, stock, withheld, notes)


def _few(pictures: Sequence[Picture]) -> list[Picture]:
    """Return at most so many people, those with several pictures first, and so many pictures of each."""
    of: dict[str, list[Picture]] = {}
    for picture in pictures:
        of.setdefault(picture.subject, []).append(picture)
    people = sorted(of, key=lambda subject: (-min(len(of[subject]), _SHOTS), subject))[:_MOST]
    chosen = [picture for subject in sorted(people) for picture in of[subject][:_SHOTS]]
    if len(people) < FEWEST:
        raise InputError(f"An experiment needs {FEWEST} people or more; found {len(people)}.")
    return chosen


def _digest(folder: Path, pictures: Sequence[Picture]) -> str:
    listed = [f"{p.path.relative_to(folder).as_posix()} {p.subject} {p.path.stat().st_size}" for p in pictures]
    return hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16]


def _numbered(faces: FaceSet, shots: NDArray[np.intp]) -> FaceSet:
    attributes = {**faces.attributes, SHOT: shots.astype(np.str_)}
    return FaceSet(faces.images, faces.subjects, faces.landmarks, attributes, faces.names)


def _cut(faces: FaceSet, size: tuple[int, int], *, grey: bool, whole: bool) -> FaceSet:
    """Register faces to a size, whole with their mesh, or tight round eyes and nose."""
    meshes = np.asarray(faces.landmarks)
    points = eyes_and_nose(meshes)
    template = (Template.portrait if whole else Template.eyes_and_nose)(size[1], size[0])
    moved = [register(image, own, template) for image, own in zip(faces.images, points, strict=True)]
    images: NDArray[np.float32] = np.stack([image for image, _ in moved])
    marks: FloatArray
    if whole:
        marks = np.stack([move.apply(mesh[:, :2]) for (_, move), mesh in zip(moved, meshes, strict=True)])
    else:
        marks = np.tile(np.array(template.points), (len(faces), 1, 1))
    released: ByteArray = quantise(images.mean(axis=3, keepdims=True) if grey else images)
    return FaceSet(released, faces.subjects, marks, faces.attributes, faces.names)
