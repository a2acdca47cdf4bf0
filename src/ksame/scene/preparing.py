"""Between looking and replacing: what everyone looks like on average, and the views by which surrogates are judged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from ksame.faces.faceset import ByteArray, FloatArray
from ksame.models import Recogniser, five_points
from ksame.scene.looking.storage import give_back_memory
from ksame.scene.media import Frame
from ksame.scene.replacing.face import Glimpse, Reference, average
from ksame.scene.replacing.identities import View
from ksame.scene.replacing.light import exponential
from ksame.scene.replacing.rim import ring_window
from ksame.scene.replacing.surrogate import without_expression
from ksame.scene.sightings import Cast, How, Sighting, Track
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.geometry import with_forehead

SAMPLES = 5
"""Frames over which a person's look in one track is averaged."""
VIEWS = 2
"""Views of a person in one recording by which surrogates are judged."""
_FRONTAL = 30.0  # degrees of yaw within which a frame is good for an average
_LARGEST = 420.0  # pixels across a face above which a view is reduced: recognisers look at 112


class References:
    """The references of all tracks of a recording; their textures on disk where a folder is given."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._kept: dict[int, Reference] = {}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def add(self, track: int, reference: Reference) -> None:
        """Keep the reference of a track."""
        if self._folder is not None:
            np.save(self._folder / f"{track}.npy", np.stack([reference.seen, reference.soft]).astype(np.float16))
            none = np.empty((0, 3), dtype=np.float32)
            reference = replace(reference, seen=none, soft=none)
        self._kept[track] = reference

    def __contains__(self, track: int) -> bool:
        return track in self._kept

    def __getitem__(self, track: int) -> Reference:
        reference = self._kept[track]
        if self._folder is None:
            return reference
        seen, soft = np.load(self._folder / f"{track}.npy").astype(np.float32)
        return replace(reference, seen=seen, soft=soft)


@dataclass(frozen=True, eq=False)
class Prepared:
    """What one photograph or recording gives for choosing surrogates.

    Attributes
    ----------
    references : References
    views : dict of person to tuple of View
        Empty for people without a believable mesh.
    codes : dict of person to ndarray of shape (n_codes,)
        Who they are in the face model, without expression; secret.
    """

    references: References
    views: dict[str, tuple[View, ...]]
    codes: dict[str, FloatArray]


def prepare(
    frames: Iterable[Frame], cast: Cast, recogniser: Recogniser, *, people: set[str], folder: Path | None = None
) -> Prepared:
    """Go through the frames once and gather references and views of ``people``.

    Parameters
    ----------
    frames : iterable of Frame
        From number 0 on; read as far as needed.
    folder : Path, optional
        Where textures are kept; None keeps them in memory.
    """
    wanted = [track for track in cast.tracks if track.person in people]
    samples = {track.number: _sampled(track) for track in wanted}
    best = {person.name: person.best[:VIEWS] for person in cast.people if person.name in people}
    looks = {number for pairs in best.values() for number in pairs}
    due: dict[int, list[Track]] = defaultdict(list)
    for track in wanted:
        for index in {*samples[track.number], *(f for t, f in looks if t == track.number)}:
            due[index].append(track)
    open_tracks: dict[int, list[Glimpse]] = defaultdict(list)
    raw: dict[str, list[_Raw]] = defaultdict(list)
    references = References(folder)
    last = max(due, default=-1)
    for frame in frames if due else ():
        for track in due.get(frame.index, ()):
            face = track.at(frame.index)
            if face is None or face.points is None:
                continue
            if (track.number, frame.index) in looks:
                raw[track.person].append(_view(frame.pixels, face, face.points, recogniser))
                give_back_memory()
            if frame.index in samples[track.number]:
                glimpse = Glimpse.of(frame.pixels, face.points, face.blendshapes)
                open_tracks[track.number].append(glimpse)
                if frame.index == max(samples[track.number]):
                    references.add(track.number, average(open_tracks.pop(track.number)))
        if frame.index >= last:
            break
    known = {v.track: references[v.track] for mine in raw.values() for v in mine if v.track in references}
    views = {
        name: tuple(View(v.pixels, v.points, known[v.track], v.embedding) for v in mine if v.track in known)
        for name, mine in raw.items()
    }
    codes = {name: _code(dict.fromkeys(view.reference for view in views[name])) for name in views if views[name]}
    return Prepared(references, views, codes)


def _code(references: Iterable[Reference]) -> FloatArray:
    """Return who a person is in the face model, without expression, on average over references."""
    model = face_model()
    codes = [
        without_expression(model.encode(one.shape, model.evened(exponential(one.seen))), one.expression)
        for one in references
    ]
    return np.asarray(np.mean(codes, axis=0))


@dataclass(frozen=True, eq=False)
class _Raw:
    track: int
    pixels: ByteArray
    points: FloatArray
    embedding: FloatArray


def _sampled(track: Track) -> set[int]:
    """Choose frames, evenly spread, in which the face is seen well; any with a mesh where there are none."""
    good = track.poses.any(axis=1)  # as good as asking for meshes, without reading them all
    frontal = good & (abs(track.poses[:, 0]) < _FRONTAL) & (track.how == How.SEEN)
    rows = np.flatnonzero(frontal if frontal.any() else good)
    if len(rows) > SAMPLES:
        rows = rows[np.linspace(0, len(rows) - 1, SAMPLES).round().astype(int)]
    return {int(row) + track.first for row in rows}


def _view(pixels: ByteArray, face: Sighting, mesh: FloatArray, recogniser: Recogniser) -> _Raw:
    window = ring_window(with_forehead(mesh[:, :2]), pixels.shape)
    part = pixels[window]
    points = mesh - [window[1].start, window[0].start, 0.0]
    factor = _LARGEST / float(np.ptp(points[:, 0]))
    if factor < 1:
        size = tuple(max(1, round(side * factor)) for side in part.shape[1::-1])
        part = np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        points = points * factor
    return _Raw(face.track, np.ascontiguousarray(part), points, recogniser.embed(part, five_points(points)))
