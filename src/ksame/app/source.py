"""Where faces come from: a folder of registered faces, a folder of photographs, or people who do not exist."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ksame.app import talk
from ksame.deidentify import Provenance
from ksame.errors import KsameWarning, NotRegisteredError, PrivacyWarning, parameter_error
from ksame.faces import FaceSet, Template, load_folder, register
from ksame.faces.landmarks import eyes_and_nose
from ksame.photographs import Portraits, load_photographs, predicted_labels
from ksame.privacy.linkage import WithheldFace
from ksame.recipes import Recipe
from ksame.scheduling import LOCAL, open_scheduler
from ksame.synthetic import synthetic

_MESHED = ("aam", "model")


@dataclass(frozen=True)
class Request:
    """The options that say where faces come from."""

    faces: str
    labels: Path | None = None
    template: Template | None = None
    skip_unreadable: bool = False
    scheduler: str = LOCAL
    workers: int | None = None


@dataclass(frozen=True, eq=False)
class Source:
    """Faces, what is missing among them, and files that were no pictures."""

    faces: FaceSet
    provenance: Provenance = Provenance()  # noqa: RUF009 -- frozen
    unreadable: tuple[str, ...] = ()


def load_source(request: Request, recipe: Recipe) -> Source:
    """Load what the recipe needs: registered faces as they are, photographs by finding the face in each."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always", KsameWarning)
        source = _load(request, recipe)
    for warning in given:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    said = tuple(str(w.message) for w in given if issubclass(w.category, PrivacyWarning))
    return replace(source, provenance=replace(source.provenance, warnings=said))


def _load(request: Request, recipe: Recipe) -> Source:
    kind, _, number = request.faces.partition(":")
    if kind == "synthetic":
        return Source(_nobodies(number, request))
    folder = Path(request.faces)
    if recipe.space.name in _MESHED:
        return _photographs(folder, request, recipe, request.template)
    try:
        loaded = load_folder(
            folder,
            labels=request.labels,
            template=request.template,
            skip_unreadable=request.skip_unreadable,
            progress=talk.progress,
        )
    except NotRegisteredError:
        talk.say("The pictures have several sizes: looking for the face in each.")
        return _photographs(folder, request, recipe, request.template or Template.eyes_and_nose())
    return Source(loaded.faces, Provenance(unreadable=len(loaded.unreadable)), loaded.unreadable)


def load_reference(where: Path, faces: FaceSet, recipe: Recipe) -> FaceSet:
    """Load other people at the size of the faces; ``builtin`` stands for people who do not exist."""
    _, height, width, channels = faces.shape
    if str(where) == "builtin":
        others = _builtin(faces)
    elif recipe.space.name in _MESHED:
        others = load_photographs(where, template=Template.portrait(width, height), progress=talk.progress).faces
    else:
        try:
            others = load_folder(where, progress=talk.progress).faces
        except NotRegisteredError:
            template = Template.eyes_and_nose(width, height)
            others = load_photographs(where, template=template, progress=talk.progress).faces
    if channels == 1 and others.shape[3] == 3:
        return others.with_images(others.images.mean(axis=3, keepdims=True))
    return others


def _builtin(faces: FaceSet, people: int = 200) -> FaceSet:
    """Return people who do not exist, their eyes and noses where those of the faces are on average."""
    _, height, width, _ = faces.shape
    target = Template.eyes_and_nose(width, height)
    if faces.landmarks is not None:
        points = eyes_and_nose(faces.landmarks).mean(axis=0)
        target = replace(target, points=tuple((float(x), float(y)) for x, y in points))
    others = synthetic(people, seed=1_000_003, progress=talk.progress)
    meshes = np.asarray(others.landmarks)
    marks = eyes_and_nose(meshes)
    moved = [register(image, own, target) for image, own in zip(others.images, marks, strict=True)]
    return FaceSet(
        np.stack([image for image, _ in moved]),
        np.char.add("builtin ", others.subjects),
        np.stack([move.apply(mesh) for (_, move), mesh in zip(moved, meshes, strict=True)]),
        others.attributes,
    )


def _nobodies(number: str, request: Request) -> FaceSet:
    counts = re.fullmatch(r"(\d{1,12})(?:x(\d{1,12}))?", number)
    if counts is None:
        expected = "synthetic:N or synthetic:NxIMAGES, such as synthetic:40x3, for people who do not exist"
        raise parameter_error("FACES", "ksame", expected, request.faces)
    people, per_person = int(counts[1]), int(counts[2] or 1)
    size = (request.template.height, request.template.width) if request.template else (224, 176)
    expressions = ("neutral", "smile", "surprise", "squint", "disgust")
    kinds = expressions[: max(1, per_person)]
    return synthetic(people, per_person, size=size, expressions=kinds, progress=talk.progress)


def _photographs(folder: Path, request: Request, recipe: Recipe, template: Template | None) -> Source:
    with open_scheduler(request.scheduler, request.workers) as scheduler:
        portraits = load_photographs(
            folder,
            labels=request.labels,
            template=template,
            skip_unreadable=request.skip_unreadable,
            scheduler=scheduler,
            progress=talk.progress,
        )
    provenance = Provenance(
        tuple(WithheldFace(source=w.source, subject=w.subject, reason=w.reason) for w in portraits.withheld),
        len(portraits.unreadable),
    )
    faces = portraits.faces
    if recipe.select is not None and recipe.select not in faces.attributes:
        faces, note = _with_predicted(portraits, recipe.select)
        provenance = replace(provenance, labels=note)
    return Source(faces, provenance, portraits.unreadable)


def _with_predicted(portraits: Portraits, label: str) -> tuple[FaceSet, str]:
    values, accuracy = predicted_labels(portraits, label)
    note = f"{label} was predicted from the faces; {accuracy}"
    warnings.warn(f"No label {label!r} was given: {note}", KsameWarning, stacklevel=2)
    faces = portraits.faces
    return replace(faces, attributes={**faces.attributes, label: values}), note


def parse_size(size: str | None) -> Template | None:
    """Return the template for a size such as ``99x134``."""
    if size is None:
        return None
    sides = re.fullmatch(r"(\d{1,12})x(\d{1,12})", size.lower())
    if sides is None:
        raise parameter_error("size", "ksame", "WIDTHxHEIGHT, such as 99x134", size)
    return Template.eyes_and_nose(int(sides[1]), int(sides[2]))
