"""Collect views of everyone from the frames, and their neutral shapes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from ksame.arrays import ByteArray, FloatArray
from ksame.heads.head import Head, Region, expression_of, neutral_shape
from ksame.heads.surrogate import Skin
from ksame.models import Mesh, Recogniser, Source, five_points
from ksame.scene.decide.counting import is_person
from ksame.scene.decide.reading import read
from ksame.scene.decide.subject import Piece, Subject, View
from ksame.scene.media import Frame
from ksame.scene.observe import DetectorConfig
from ksame.scene.track import People
from ksame.scene.track.tracks import Track, Tracks
from ksame.spaces.facemodel import face_model

VIEWS_PER_FILE = 2
"""Views of a person in one recording by which surrogates are judged; judging costs as much for each."""
_MAX_VIEWS = 6  # of one person over all files
# Side above which the square of a view is reduced: recognisers look at 112 pixels. At 256, SFace's likeness of 30 heads
# was nearer to that of the published picture (0.025 below it, correlation 0.89) than at 400 (0.033, 0.86).
_MAX_SIDE = 256.0
_SAMPLES = 7  # frames over which a neutral shape is averaged, by choice
_FRONTAL = 30.0  # degrees of yaw within which a frame is good for an average, by choice
_MARGIN = 0.75  # half of the piece that is cut out, in sides: half the diagonal of a tilted square is 0.71


@dataclass(frozen=True, eq=False)
class FileViews:
    """What one photograph or recording shows of everyone in it."""

    views: dict[str, tuple[View, ...]]  # by person; people without a mesh have none
    confirmed: set[str]  # who is a person beyond doubt

    def stored(self, folder: Path) -> FileViews:
        """Return the same with the pieces of all views in a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        views = {
            name: tuple(view.stored(folder / f"{name}-{i}.npz") for i, view in enumerate(taken))
            for name, taken in self.views.items()
        }
        return replace(self, views=views)


def collect_views(
    frames: Callable[[Collection[int]], Iterable[Frame]],
    tracks: Tracks,
    recogniser: Recogniser,
    config: DetectorConfig,
) -> FileViews:
    """Take views of everyone; ``frames`` returns those of some numbers, or more, and is called once."""
    by_number = {track.number: track for track in tracks.tracks}
    due: dict[int, list[Track]] = defaultdict(list)
    for person in tracks.people:
        for number, index in person.best[:VIEWS_PER_FILE]:
            due[index].append(by_number[number])
    neutrals = {track.number: neutral_of(track) for there in due.values() for track in there}
    views: dict[str, list[View]] = defaultdict(list)
    confirmed: set[str] = set()
    last = max(due, default=-1)
    for frame in frames(due.keys()) if due else ():
        for track in due.get(frame.index, ()):
            face, neutral = track.at(frame.index), neutrals[track.number]
            if face is None or face.mesh is None or neutral is None:
                continue
            views[track.person].append(_view(frame.pixels, face.mesh, neutral, recogniser))
            if track.person not in confirmed and is_person(frame.pixels, face, config):
                confirmed.add(track.person)
        if frame.index >= last:
            break
    return FileViews({name: tuple(taken) for name, taken in views.items()}, confirmed)


def subjects_of(files: Sequence[FileViews], people: People) -> list[Subject]:
    """Gather the views of everyone over all files of a batch, and what is read from them."""
    model = face_model()
    subjects = []
    for name in people.ordered:
        places = people.keys(name)
        views = [view for number, local in places for view in files[number].views.get(local, ())]
        if views:
            code = np.mean([view.code for view in views], axis=0)
            woman = bool(np.mean([view.woman for view in views]) > 0)
            born = float(model.predicted(code[None], "born")[0])
            skin = Skin(*np.mean([view.skin for view in views], axis=0).tolist())
            confirmed = any(local in files[number].confirmed for number, local in places)
            confirmed &= name not in people.unmatched | people.unconfirmed
            subjects.append(Subject(name, woman, born, skin, code, tuple(views[:_MAX_VIEWS]), confirmed))
    return subjects


def neutral_of(track: Track) -> FloatArray | None:
    """Return the neutral shape, (478, 3), of whoever a track shows, by its meshes alone; None without a mesh.

    It is the average over frames in which the face is seen well, each without its expression.
    """
    good = track.poses.any(axis=1)  # as good as asking for meshes, without reading them all
    frontal = good & (abs(track.poses[:, 0]) < _FRONTAL) & (track.source == Source.DETECTED)
    rows = np.flatnonzero(frontal if frontal.any() else good)
    if not len(rows):
        return None
    if len(rows) > _SAMPLES:
        rows = rows[np.linspace(0, len(rows) - 1, _SAMPLES).round().astype(int)]
    aligned = Head.of(track.points[rows].astype(np.float64)).aligned
    shapes = [neutral_shape(aligned[i], expression_of(track.blendshapes[row])) for i, row in enumerate(rows)]
    return np.asarray(np.mean(shapes, axis=0))


def _view(pixels: ByteArray, mesh: Mesh, neutral: FloatArray, recogniser: Recogniser) -> View:
    """Cut the square about a head out of a frame, reduced where it is large."""
    region = Region.of(Head.of(mesh.points), neutral)
    centre, half = region.outline.mean(axis=0), _MARGIN * region.side
    low = np.floor(centre - half).astype(int).clip(0)
    high = np.ceil(centre + half).astype(int) + 1
    part = pixels[low[1] : high[1], low[0] : high[0]]
    points = mesh.points - [*low, 0.0]
    factor = _MAX_SIDE / region.side
    if factor < 1:
        size = tuple(max(1, round(side * factor)) for side in part.shape[1::-1])
        part = np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        points = points * factor
    piece = Piece(np.ascontiguousarray(part), points, neutral)
    embedding = recogniser.embed(part, five_points(points))
    return View(piece, embedding, *read(pixels, mesh, embedding))
