"""Collect views of everyone from the frames, and read gender, age and skin tone from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from ksame.arrays import ByteArray, FloatArray
from ksame.heads.head import EXPRESSION, Head, Region, expression_of
from ksame.heads.surrogate import tone_of
from ksame.models import Recogniser, five_points
from ksame.scene.decide.counting import PersonConfirmation
from ksame.scene.decide.neutral import neutral_of
from ksame.scene.decide.subject import Piece, Subject, View
from ksame.scene.media import Frame
from ksame.scene.track import People
from ksame.scene.track.tracks import Track, Tracks
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.labels import genders

VIEWS_PER_FILE = 2
"""Views of a person in one recording by which surrogates are judged; judging costs as much for each."""
_MAX_VIEWS = 6  # of one person over all files
# Side above which the square of a view is reduced: recognisers look at 112 pixels. At 256, SFace's likeness of 30 heads
# was nearer to that of the published picture (0.025 below it, correlation 0.89) than at 400 (0.033, 0.86).
_MAX_SIDE = 256.0
_MARGIN = 0.75  # half of the piece that is cut out, in sides: half the diagonal of a tilted square is 0.71


@dataclass(frozen=True, eq=False)
class Reading:
    """What is read from a person's face, to find somebody like them.

    Attributes
    ----------
    code : ndarray of shape (n_codes,)
        Who they are in the face model, without expression; secret.
    tone : float
        Log brightness of the skin.
    """

    code: FloatArray
    tone: float


@dataclass(frozen=True, eq=False)
class FileViews:
    """What one photograph or recording shows of everyone in it.

    Attributes
    ----------
    views : dict of person to tuple of View
        People without a mesh have none.
    readings : dict of person to list of Reading
    confirmed : set of str
        Who is a person beyond doubt.
    """

    views: dict[str, tuple[View, ...]]
    readings: dict[str, list[Reading]]
    confirmed: set[str]

    def stored(self, folder: Path) -> FileViews:
        """Return the same with the pieces of all views in a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        views = {
            name: tuple(view.stored(folder / f"{name}-{i}.npz") for i, view in enumerate(taken))
            for name, taken in self.views.items()
        }
        return replace(self, views=views)


def collect_views(
    frames: Iterable[Frame], cast: Tracks, recogniser: Recogniser, confirmation: PersonConfirmation
) -> FileViews:
    """Take views of everyone and read gender, age and skin tone from them.

    Parameters
    ----------
    frames : iterable of Frame
        Gone through once, up to the last that is needed.
    """
    best = {person.name: person.best[:VIEWS_PER_FILE] for person in cast.people}
    tracks = {track.number: track for track in cast.tracks}
    neutrals = {number: neutral_of(tracks[number]) for pairs in best.values() for number, _ in pairs}
    due: dict[int, list[Track]] = defaultdict(list)
    for pairs in best.values():
        for number, index in pairs:
            due[index].append(tracks[number])
    views: dict[str, list[View]] = defaultdict(list)
    readings: dict[str, list[Reading]] = defaultdict(list)
    confirmed: set[str] = set()
    last = max(due, default=-1)
    for frame in frames if due else ():
        for track in due.get(frame.index, ()):
            face, neutral = track.at(frame.index), neutrals[track.number]
            if face is None or face.mesh is None or neutral is None:
                continue
            views[track.person].append(_view(frame.pixels, face.mesh.points, neutral, recogniser))
            readings[track.person].append(read(frame.pixels, face.mesh.points, face.mesh.blendshapes))
            if track.person not in confirmed and confirmation.confirms(frame.pixels, face):
                confirmed.add(track.person)
        if frame.index >= last:
            break
    return FileViews({name: tuple(taken) for name, taken in views.items()}, dict(readings), confirmed)


def read(pixels: ByteArray, points: FloatArray, blendshapes: FloatArray) -> Reading:
    """Read who somebody is, without expression, from a mesh, (478, 3), in a frame."""
    model = face_model()
    rows = model.texture_of(pixels, points)
    away = dict(zip(EXPRESSION, -expression_of(blendshapes), strict=True))
    code = model.moved(model.encode(points * [1.0, 1.0, -1.0], rows)[None], away)[0]
    return Reading(code, tone_of(255 * model.warp.image(rows)))


def subjects_of(files: Sequence[FileViews], everyone: People) -> list[Subject]:
    """Gather views and codes of everyone over all files of a batch, in its order."""
    model = face_model()
    subjects = []
    for name in everyone.people:
        views: list[View] = []
        readings: list[Reading] = []
        confirmed = False
        for number, local in everyone.keys(name):
            views += files[number].views.get(local, ())
            readings += files[number].readings.get(local, ())
            confirmed |= local in files[number].confirmed
        if views:
            code = np.mean([reading.code for reading in readings], axis=0)
            woman = bool(genders(model, code[None])[0] == "F")
            born = float(model.predicted(code[None], "born")[0])
            tone = float(np.mean([reading.tone for reading in readings]))
            confirmed &= name not in everyone.unmatched | everyone.unconfirmed
            subjects.append(Subject(name, woman, born, tone, code, tuple(views[:_MAX_VIEWS]), confirmed))
    return subjects


def _view(pixels: ByteArray, mesh: FloatArray, neutral: FloatArray, recogniser: Recogniser) -> View:
    """Cut the square about a head out of a frame, reduced where it is large."""
    region = Region.of(Head.of(mesh), neutral)
    centre, half = region.outline.mean(axis=0), _MARGIN * region.side
    low = np.floor(centre - half).astype(int).clip(0)
    high = np.ceil(centre + half).astype(int) + 1
    part = pixels[low[1] : high[1], low[0] : high[0]]
    points = mesh - [*low, 0.0]
    factor = _MAX_SIDE / region.side
    if factor < 1:
        size = tuple(max(1, round(side * factor)) for side in part.shape[1::-1])
        part = np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        points = points * factor
    piece = Piece(np.ascontiguousarray(part), points, neutral)
    return View(piece, recogniser.embed(part, five_points(points)))
