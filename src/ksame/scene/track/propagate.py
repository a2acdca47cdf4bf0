"""Second pass over the frames: every track is meshed along its path, and propagated beyond its ends.

A chunk of frames at a time: what is independent of each other goes through ``map``, and the rows of all tracks are
written before the next chunk is decoded. Nothing depends on how many threads ``map`` has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.geometry import centre, overlap, side
from ksame.models import Face
from ksame.scene.observe import Map, Observations
from ksame.scene.observe.confirm import Verdict
from ksame.scene.observe.detect import same_face
from ksame.scene.observe.mesh import (
    Around,
    Chain,
    Decoded,
    Expected,
    Extension,
    FaceMesher,
    extend,
    mesh_path,
    sampled,
    skipped,
)
from ksame.scene.observe.portraits import with_portrait
from ksame.scene.track.growing import Growing
from ksame.scene.track.storage import BOX, row_of

_CLASH = 0.45  # overlap of two tracks from which on they are one face
_AWAY = 0.1  # sides that a frame away from a detection counts when two tracks are on one face
_SPLIT = 8  # meshed frames of a track in a chunk from which on they are meshed in two parts, each by itself
_MISSING = 6  # frames for which a face is searched for after its last detection
_BLINK = 2  # the same before its first


@dataclass(eq=False)
class _Work:
    """One track in one chunk: its path, and what was seen of it."""

    track: Growing
    path: dict[int, Expected]
    faces: dict[int, Face | None] = field(default_factory=dict)
    extended: dict[int, Face] = field(default_factory=dict)

    def take_away(self, index: int) -> None:
        """Leave the face in a frame to another track; a detection keeps its box."""
        if self.extended.pop(index, None) is None:
            self.faces[index] = self.path[index].detection

    @property
    def seen(self) -> dict[int, Face | None]:
        """All faces, by frame."""
        return self.faces | self.extended


class _Kind(Enum):
    """Where a track is propagated: before its first detection, after its last, or where it was lost between."""

    BEFORE = "before"
    AFTER = "after"
    GAP = "gap"


@dataclass(frozen=True, eq=False)
class _Way:
    """One propagation of one track."""

    item: _Work
    kind: _Kind
    start: Chain
    frames: Sequence[Decoded]
    max_missing: int


class Propagator:
    """Writes the rows of all tracks, chunk by chunk.

    Parameters
    ----------
    mesher : FaceMesher
    observations : Observations
    map : callable
        Applies a function to independent items.
    """

    def __init__(self, mesher: FaceMesher, observations: Observations, map: Map) -> None:
        self._mesher, self._observations, self._map = mesher, observations, map
        self._boxes: dict[int, list[tuple[int, FloatArray]]] = {}  # tracks in the frames that are still decoded

    def chunk(self, tracks: Sequence[Growing], frames: Sequence[Decoded], history: Sequence[Decoded]) -> None:
        """Go on by some frames of a shot; ``history`` has those before them that are still decoded."""
        pixels = {frame.index: frame for frame in (*history, *frames)}
        self._boxes = {index: boxes for index, boxes in self._boxes.items() if index in pixels}
        first, end = frames[0].index, frames[-1].index + 1
        active = [track for track in tracks if not track.ended and track.begins < end]
        work = [_Work(track, track.path(self._observations, min(first, _since(track, first)), end)) for track in active]
        self._mesh(work, frames)
        self._drop_parts(work)
        work = [item for item in work if not item.track.dropped]
        self._confirm(work, pixels)  # first: nobody makes room for what is no face
        for item in work:
            doubtful = item.track.verdict is Verdict.NO_FACE and item.track.score < self._mesher.config.score
            item.track.dropped = item.track.ended = doubtful and item.track.ends < end
        work = [item for item in work if not item.track.dropped]
        self._mesh_skipped(work, pixels, first)
        self._part(work, first, end)
        for item in work:
            for index, face in sorted(item.faces.items()):
                item.track.chain = _onwards(item.track.chain, index, face)
        self._extend(work, frames, history)
        self._part(work, first, end)
        self._confirm(work, pixels, propagated=True)
        for item in work:
            self._write(item, self._rows(item, first, end), pixels)

    def _needed(self, track: Growing) -> float:
        """Return the score to go on with a track: higher where it never was sure."""
        config = self._mesher.config
        return config.low if track.score >= config.score else config.doubtful

    def _mesh(self, work: Sequence[_Work], frames: Sequence[Decoded]) -> None:
        """Mesh every track in the frames from its first to its last detection."""
        tasks: list[tuple[_Work, list[Decoded]]] = []
        for item in work:
            track = item.track
            inside = [frame for frame in frames if track.begins <= frame.index <= track.ends]
            kept = sampled(inside, item.path, None if track.chain is None else track.chain.frame)
            tasks += [(item, part) for part in _parts(kept, item.path)]
        done = self._map(
            lambda task: mesh_path(
                self._mesher, task[1], task[0].path, task[0].track.chain, self._needed(task[0].track)
            ),
            tasks,
        )
        for (item, _), faces in zip(tasks, done, strict=True):
            item.faces |= faces

    def _drop_parts(self, work: Sequence[_Work]) -> None:
        """Drop tracks that begin as a part of another's face, such as a mouth taken for one."""
        for item in work:
            track = item.track
            if track.first >= 0:
                continue
            places = [(index, place.detection) for index, place in item.path.items() if place.detection is not None]
            track.dropped = track.ended = all(
                any(self._hides(other, index, detection, item) for other in work if other is not item)
                for index, detection in places
            )

    def _hides(self, other: _Work, index: int, detection: Face, item: _Work) -> bool:
        """Tell whether a detection lies in the face of another track that is surer."""
        if other.track.dropped or (other.track.score, item.track.number) < (item.track.score, other.track.number):
            return False
        face = other.faces.get(index)
        return face is not None and same_face(np.array(detection.box), np.array(face.box))

    def _mesh_skipped(self, work: Sequence[_Work], pixels: dict[int, Decoded], first: int) -> None:
        """Mesh frames that were skipped and in which the face was not calm after all."""

        def mend(item: _Work) -> dict[int, Face | None]:
            faces, chain = dict(item.faces), item.track.chain
            if chain is not None and chain.frame == first - 1:
                faces[chain.frame] = chain.face
            mended: dict[int, Face | None] = {}
            for _, group in groupby(enumerate(skipped(faces, item.path)), key=lambda pair: pair[1] - pair[0]):
                gap = [index for _, index in group]
                before = faces.get(gap[0] - 1)
                start = None if before is None else Chain(before, gap[0] - 1)
                frames = [pixels[index] for index in gap]
                mended |= mesh_path(self._mesher, frames, item.path, start, self._needed(item.track))
            return mended

        for item, mended in zip(work, self._map(mend, work), strict=True):
            item.faces |= mended

    def _extend(self, work: Sequence[_Work], frames: Sequence[Decoded], history: Sequence[Decoded]) -> None:
        """Propagate tracks beyond their first and their last detection."""
        boxes = defaultdict(list, {index: list(known) for index, known in self._boxes.items()})
        for item in work:
            for index, face in item.faces.items():
                if face is not None and item.track.verdict is not Verdict.NO_FACE:
                    boxes[index].append((item.track.number, np.array(face.box)))
        end = frames[-1].index + 1
        keys = {int(frame): float(least) for frame, least in self._keys((*history, *frames)[0].index, end)}

        def one(task: _Way) -> Extension:
            number = task.item.track.number
            around = {
                frame.index: Around(
                    [pair for pair in boxes.get(frame.index, ()) if pair[0] != number], keys.get(frame.index)
                )
                for frame in task.frames
            }
            score = self._needed(task.item.track)
            return extend(self._mesher, task.frames, task.start, around, score, task.max_missing)

        tasks = [way for item in work for way in _ways(item, frames, history)]
        for task, extension in zip(tasks, self._map(one, tasks), strict=True):
            item, track = task.item, task.item.track
            item.extended = {**extension.faces, **item.extended}
            if task.kind is not _Kind.GAP:
                track.met = track.met if extension.met is None else extension.met
            if task.kind is _Kind.AFTER:
                track.chain, track.ended = extension.chain, extension.ended

    def _keys(self, first: int, end: int) -> Iterator[tuple[int, float]]:
        """Return the keyframes from ``first`` to before ``end``, and the smallest side each was searched for."""
        seen = self._observations
        low, high = np.searchsorted(seen.keyframes, [first, end])
        return zip(seen.keyframes[low:high], seen.min_sides[low:high], strict=True)

    def _confirm(self, work: Sequence[_Work], pixels: dict[int, Decoded], *, propagated: bool = False) -> None:
        """Ask for second opinions on tracks that none has confirmed yet, keyframe by keyframe."""
        keys = {int(frame) for frame, _ in self._keys(min(pixels), max(pixels) + 1)}

        def judged(item: _Work) -> Verdict:
            verdict = item.track.verdict
            faces = item.extended if propagated else {i: place.detection for i, place in item.path.items()}
            for index, face in sorted(faces.items()):
                if face is None or face.score == 0 or index not in keys or _in_front(item, index, face, work):
                    continue
                verdict = max(verdict, self._mesher.confirm(pixels[index].rgb, face))
                if verdict is Verdict.FACE:
                    break
            return verdict

        asked = [item for item in work if item.track.verdict is not Verdict.FACE]
        for item, verdict in zip(asked, self._map(judged, asked), strict=True):
            item.track.verdict = verdict

    def _rows(self, item: _Work, first: int, end: int) -> dict[int, NDArray[np.float32]]:
        """Return the rows of a track up to the frame before ``end``, skipped frames interpolated, NaN where unseen."""
        track = item.track
        rows = {index: row_of(face) for index, face in item.seen.items()}
        marks = {first - 1: track.tail} if track.tail is not None else {}
        marks |= {index: rows[index] for index in sorted(item.faces)}
        for (a, before), (b, after) in pairwise(marks.items()):
            for index in range(a + 1, b):
                rows[index] = before + (after - before) * np.float32((index - a) / (b - a))
        cursor = (
            first if track.first >= 0 else min((i for i, face in item.seen.items() if face is not None), default=end)
        )
        return {index: rows.get(index, row_of(None)) for index in range(cursor, end)}

    def _part(self, work: Sequence[_Work], first: int, end: int) -> None:
        """Where two tracks are on one face, leave it to the one that is nearer to where it should be."""
        rows = [self._rows(item, first, end) for item in work]
        for index in range(first, end):
            here = [(item, row[index]) for item, row in zip(work, rows, strict=True) if index in row]
            here = [(item, row) for item, row in here if not np.isnan(row[0])]
            if len(here) < 2:
                continue
            boxes = np.array([row[BOX] for _, row in here], dtype=np.float64)
            alike = overlap(boxes, boxes)
            strays = [_stray(item, index, box) for (item, _), box in zip(here, boxes, strict=True)]
            for i in range(len(here)):
                for k in range(i):
                    if alike[i, k] > _CLASH and not np.isnan(here[i][1][0]) and not np.isnan(here[k][1][0]):
                        item, row = here[i] if strays[i] >= strays[k] else here[k]
                        row[:] = np.nan
                        item.take_away(index)

    def _write(self, item: _Work, rows: dict[int, NDArray[np.float32]], pixels: dict[int, Decoded]) -> None:
        track = item.track
        for index, row in rows.items():
            track.first = index if track.first < 0 else track.first
            track.buffer.append(row)
            track.tail = row
            if not np.isnan(row[0]):
                track.last, track.n_seen = index, track.n_seen + 1
                if track.verdict is not Verdict.NO_FACE:
                    self._boxes.setdefault(index, []).append((track.number, np.array(row[BOX], dtype=np.float64)))
        for index, face in sorted(item.seen.items()):
            if face is not None and face.mesh is not None and index in pixels:
                track.score = 1.0
                track.best = with_portrait(track.best, index, pixels[index].rgb, face)


def _since(track: Growing, first: int) -> int:
    """Return the first frame in which the place of a track must be known, to go on from there."""
    return first if track.chain is None else track.chain.frame


def _parts(frames: list[Decoded], path: Mapping[int, Expected]) -> list[list[Decoded]]:
    """Split the frames of a path into two that can be meshed by themselves, the second from a detection on."""
    if len(frames) >= _SPLIT:
        detected = [i for i, frame in enumerate(frames) if i > 0 and path[frame.index].detection is not None]
        middle = min(detected, key=lambda i: (abs(i - len(frames) / 2), i), default=0)
        if middle > 0:
            return [frames[:middle], frames[middle:]]
    return [frames] if frames else []


def _onwards(chain: Chain | None, index: int, face: Face | None) -> Chain | None:
    if face is None:
        return chain
    return Chain(face, index) if chain is None else chain.to(index, face)


def _in_front(item: _Work, index: int, detection: Face, work: Sequence[_Work]) -> bool:
    """Tell whether the face of a longer track is in the middle of a detection: second opinions would see that one."""
    box = np.array(detection.box)
    for other in work:
        face = other.faces.get(index)
        if other is not item and face is not None and len(other.track.frames) > len(item.track.frames):
            middle = centre(np.array(face.box))
            if np.all(middle > box[:2]) and np.all(middle < box[:2] + box[2:]):
                return True
    return False


def _ways(item: _Work, frames: Sequence[Decoded], history: Sequence[Decoded]) -> list[_Way]:
    """Return where a track has to be propagated: beyond its detections, and both ways where it was lost between."""
    track, seen = item.track, {index: face for index, face in item.faces.items() if face is not None}
    ways = []
    if track.first < 0 and seen:
        at = min(seen)
        before = [frame for frame in (*history, *frames) if frame.index < at][::-1]
        ways.append(_Way(item, _Kind.BEFORE, Chain(seen[at], at), before, _BLINK))
    lost = [frame for frame in frames if frame.index in item.faces and frame.index not in seen]
    for _, group in groupby(enumerate(lost), key=lambda pair: pair[1].index - pair[0]):
        gap = [frame for _, frame in group]
        for edge, way in ((gap[-1].index + 1, gap[::-1]), (gap[0].index - 1, gap)):
            if edge in seen:
                ways.append(_Way(item, _Kind.GAP, Chain(seen[edge], edge), way, _BLINK))
    after = [frame for frame in frames if frame.index > track.ends]
    if track.chain is not None and after:
        ways.append(_Way(item, _Kind.AFTER, track.chain, after, _MISSING))
    return ways


def _stray(item: _Work, index: int, box: FloatArray) -> tuple[bool, bool, float]:
    """Return whether a track is no face, is propagated, and how far it is from its path and its next detection."""
    off = float(np.hypot(*(centre(box) - centre(item.path[index].box)))) / max(side(box), 1.0)
    no_face = item.track.verdict is Verdict.NO_FACE
    return no_face, index in item.extended, off + _AWAY * int(np.abs(item.track.frames - index).min())
