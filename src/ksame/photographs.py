"""From portraits to face sets: detect the one face, mesh it, crop it upright."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.errors import InputError
from ksame.faces.faceset import FaceSet
from ksame.faces.folder import Entry, gather, list_entries, read_each
from ksame.faces.landmarks import eyes_and_nose
from ksame.faces.reading import StrPath
from ksame.faces.registration import Template, register
from ksame.models import BLENDSHAPES, Face, FaceDetector, FaceMesh, Mesh
from ksame.progress import Progress, silent
from ksame.scheduling import Scheduler
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.labels import ACCURACY, age_bands, expression, genders, skin_tones

PRESENCE = 0.5
"""Probability below which a mesh is not believed."""

TURNS = (90, 180, 270)
"""Turns of a picture that are tried when no face is found upright."""


@dataclass(frozen=True)
class Withheld:
    """A photograph from which no single face could be taken: its name, whom it shows, and why."""

    source: str
    subject: str
    reason: str


@dataclass(frozen=True, eq=False)
class Portraits:
    """What a folder of photographs held."""

    faces: FaceSet  # one crop per photograph, with the 478 points of its mesh in three dimensions
    blendshapes: FloatArray  # (n_faces, 52): expression weights of each face
    withheld: tuple[Withheld, ...]  # photographs from which no single face could be taken
    unreadable: tuple[str, ...]  # files that are no pictures, and why


def portrait_mesh(
    picture: NDArray[Any], detector: FaceDetector | None = None, mesher: FaceMesh | None = None
) -> Mesh | str:
    """Return the mesh of the one face of a portrait, or the reason why there is none.

    Parameters
    ----------
    picture : ndarray of shape (height, width, 1 or 3), float in [0, 1]
    detector, mesher : optional
        To be used again for many portraits.
    """
    detector, mesher = detector or FaceDetector(), mesher or FaceMesh()
    upright = detector.detect(picture)
    first = _mesh_of_one(picture, upright, mesher)
    if not isinstance(first, str) or len(upright) > 1:
        return first
    turned = detector.detect(picture, tiny=max(picture.shape[:2]) <= 2500, rotations=TURNS)
    second = _mesh_of_one(picture, turned, mesher)
    return second if not isinstance(second, str) or not upright else first


def _mesh_of_one(picture: NDArray[Any], faces: list[Face], mesher: FaceMesh) -> Mesh | str:
    if not faces:
        return "no face found"
    if len(faces) > 1:
        return f"{len(faces)} faces found; a portrait shows one person"
    mesh = mesher.fit(picture, faces[0])
    if mesh.presence < PRESENCE:
        return f"a face found, but its mesh is not believed (presence {mesh.presence:.2f})"
    return mesh


def load_photographs(
    folder: StrPath,
    *,
    labels: StrPath | None = None,
    template: Template | None = None,
    skip_unreadable: bool = False,
    scheduler: Scheduler | None = None,
    progress: Progress = silent,
) -> Portraits:
    """Load a folder of photographs, one person in each.

    Raises InputError when files cannot be read, or no photograph shows exactly one face.

    Parameters
    ----------
    folder, labels
        As for :func:`ksame.load_folder`; landmarks in the table are not needed.
    template : Template, optional
        For eyes and nose; 176 x 224 pixels with room for the whole face by default.
    skip_unreadable : bool
        Leave unreadable files out and list them, instead of raising.
    scheduler : Scheduler, optional
        Where faces are found: see :func:`ksame.scheduling.open_scheduler`. By default one after the other, here.
    """
    folder = Path(folder)
    taken, unreadable = read_each(
        [replace(entry, path=entry.path.absolute()) for entry in list_entries(folder, labels)],
        partial(_take, template or Template.portrait()),
        skip_unreadable=skip_unreadable,
        scheduler=scheduler,
        progress=progress,
    )
    withheld = tuple(
        Withheld(str(entry.path.resolve().relative_to(folder.resolve())), entry.subject, portrait)
        for entry, portrait in taken
        if isinstance(portrait, str)
    )
    kept = [(entry, portrait) for entry, portrait in taken if not isinstance(portrait, str)]
    if not kept:
        raise InputError(
            f"{folder}: no photograph shows exactly one face that could be meshed "
            f"(for instance {withheld[0].source}: {withheld[0].reason})."
        )
    entries, portraits = [entry for entry, _ in kept], [portrait for _, portrait in kept]
    faces = gather(folder, entries, np.stack([p.image for p in portraits]), np.stack([p.points for p in portraits]))
    return Portraits(faces, np.stack([p.blendshapes for p in portraits]), withheld, unreadable)


@lru_cache(maxsize=1)
def _networks() -> tuple[FaceDetector, FaceMesh]:
    return FaceDetector(), FaceMesh()


def _take(template: Template, entry: Entry, picture: NDArray[np.float32]) -> tuple[Entry, _Portrait | str]:
    mesh = portrait_mesh(picture, *_networks())
    return entry, mesh if isinstance(mesh, str) else _crop(picture, mesh, template)


def portrait_of(picture: NDArray[Any], mesh: Mesh, subject: str, template: Template | None = None) -> FaceSet:
    """Crop a meshed face out of a photograph, as a face set of one."""
    portrait = _crop(np.asarray(picture, dtype=np.float32), mesh, template or Template.portrait())
    return FaceSet(portrait.image[None], np.array([subject]), portrait.points[None])


@dataclass(frozen=True, eq=False)
class _Portrait:
    image: NDArray[np.float32]
    points: FloatArray
    blendshapes: FloatArray


def _crop(picture: NDArray[np.float32], mesh: Mesh, template: Template) -> _Portrait:
    colour = np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture
    face, move = register(colour, eyes_and_nose(mesh.points[None])[0], template)
    scale = float(np.hypot(move.a, move.b))
    depth = -mesh.points[:, 2:] * scale  # the mesh measures away from the viewer
    return _Portrait(face, np.concatenate([move.apply(mesh.points[:, :2]), depth], axis=1), mesh.blendshapes)


def predicted_labels(portraits: Portraits, label: str) -> tuple[NDArray[np.str_], str]:
    """Read a label from the faces, and say how often that is right.

    Parameters
    ----------
    label : {"gender", "age_band", "skin_tone", "expression"}
        All images of a person get the label that most of them have, except expression.

    Returns
    -------
    values : ndarray of shape (n_faces,)
    accuracy : str
        How often the prediction was right where it was measured.
    """
    faces = portraits.faces
    if label == "expression":
        names = [dict(zip(BLENDSHAPES, row, strict=True)) for row in portraits.blendshapes]
        return np.array([expression(weights) for weights in names]), ACCURACY["expression"]
    readers = {"gender": genders, "age_band": age_bands, "skin_tone": skin_tones}
    if label not in readers:
        have = ", ".join(sorted(faces.attributes)) or "none"
        raise InputError(
            f"The photographs carry no label {label!r} (labels they carry: {have}), and it cannot be predicted: "
            f"only {', '.join([*readers, 'expression'])} can. Add a column of that name to labels.csv."
        )
    model = face_model()
    codes = np.stack(
        [
            model.encode(points, model.texture_of(image, points))
            for image, points in zip(faces.images, faces.landmarks if faces.landmarks is not None else (), strict=True)
        ]
    )
    values = readers[label](model, codes)
    for subject in np.unique(faces.subjects):
        rows = faces.subjects == subject
        kinds, counts = np.unique(values[rows], return_counts=True)
        values[rows] = kinds[counts.argmax()]
    return values, ACCURACY[label]
