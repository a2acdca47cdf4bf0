"""Second pass over the frames: every track is meshed along its path, and propagated beyond its ends.

A chunk of frames at a time: what is independent of each other goes through ``map``, and the rows of all tracks are
written before the next chunk is decoded. Nothing depends on how many threads ``map`` has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.geometry import centre, overlap, side
from ksame.models import Face
from ksame.scene.observe import Map, Observations
from ksame.scene.observe.confirm import Verdict
from ksame.scene.observe.detect import same_face
from ksame.scene.observe.mesh import (
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

# By eye on clips of people who cross, turn and leave.
_CLASH = 0.45  # overlap of two tracks from which on they are one face
_AWAY = 0.1  # sides that a frame away from a detection counts when two tracks are on one face
_SPLIT = 8  # meshed frames of a track in a chunk from which on they are meshed in two parts, each by itself
_MISSING = {"before": 2, "gap": 2, "after": 6}  # frames for which a propagated face may be missing


@dataclass(eq=False)
class _Segment:
    """One track in one chunk: its path, what was seen along it, and where it was propagated."""

    track: Growing
    path: dict[int, Expected]
    faces: dict[int, Face | None] = field(default_factory=dict)
    extended: dict[int, Face] = field(default_factory=dict)

    @property
    def seen(self) -> dict[int, Face | None]:
        """All faces, by frame."""
        return self.faces | self.extended


@dataclass(frozen=True, eq=False)
class _Propagation:
    """Where a track is propagated: before its first detection, after its last, or in a gap where it was lost."""

    segment: _Segment
    where: Literal["before", "gap", "after"]
    start: Chain
    frames: Sequence[Decoded]


class Propagator:
    """Writes the rows of all tracks of a shot, chunk by chunk; ``map`` applies a function to independent items."""

    def __init__(self, mesher: FaceMesher, observations: Observations, map: Map) -> None:
        self._mesher, self._observations, self._map = mesher, observations, map
        self._decoded: dict[int, Decoded] = {}  # the frames of this chunk, and those before that are still decoded
        self._min_sides: dict[int, float] = {}  # of these, the keyframes, and the smallest side searched for in each
        self._written: dict[int, list[tuple[int, FloatArray]]] = {}  # in these, numbers and boxes of tracks

    def chunk(self, tracks: Sequence[Growing], frames: Sequence[Decoded], history: Sequence[Decoded]) -> None:
        """Go on by some frames of a shot; ``history`` has those before them that are still decoded."""
        self._decoded = {frame.index: frame for frame in (*history, *frames)}
        first, end = frames[0].index, frames[-1].index + 1
        seen, config = self._observations, self._mesher.config
        keys = slice(*np.searchsorted(seen.keyframes, [min(self._decoded), end]))
        self._min_sides = dict(zip(seen.keyframes[keys].tolist(), seen.min_sides[keys].tolist(), strict=True))
        self._written = {index: boxes for index, boxes in self._written.items() if index in self._decoded}
        segments = []
        for track in tracks:
            if not track.ended and not track.dropped and track.begins < end:
                since = first if track.chain is None else min(first, track.chain.frame)
                segments.append(_Segment(track, track.path(seen, since, end)))
        self._mesh(segments, frames)
        _drop_parts(segments)
        segments = [segment for segment in segments if not segment.track.dropped]
        self._confirm(segments)  # first: nobody makes room for what is no face
        for segment in segments:
            track = segment.track
            track.dropped = track.verdict is Verdict.NO_FACE and track.score < config.score and track.ends < end
        segments = [segment for segment in segments if not segment.track.dropped]
        self._mesh_skipped(segments, first)
        _part(segments, first, end)
        for segment in segments:
            for index, face in sorted(segment.faces.items()):
                if face is not None:
                    chain = segment.track.chain
                    segment.track.chain = Chain(face, index) if chain is None else chain.to(index, face)
        self._extend(segments, frames)
        _part(segments, first, end)
        self._confirm(segments, propagated=True)
        for segment in segments:
            self._write(segment, _rows(segment, first, end))

    def _min_score(self, track: Growing) -> float:
        """Return the score to go on with a track: higher where it never was sure."""
        config = self._mesher.config
        return config.low if track.score >= config.score else config.doubtful

    def _mesh(self, segments: Sequence[_Segment], frames: Sequence[Decoded]) -> None:
        """Mesh every track in the frames from its first to its last detection."""
        tasks: list[tuple[_Segment, list[Decoded]]] = []
        for segment in segments:
            track = segment.track
            inside = [frame for frame in frames if track.begins <= frame.index <= track.ends]
            kept = sampled(inside, segment.path, None if track.chain is None else track.chain.frame)
            tasks += [(segment, half) for half in _halves(kept, segment.path)]
        meshed = self._map(lambda task: self._mesh_frames(task[0], task[1], task[0].track.chain), tasks)
        for (segment, _), faces in zip(tasks, meshed, strict=True):
            segment.faces |= faces

    def _mesh_frames(self, segment: _Segment, frames: list[Decoded], start: Chain | None) -> dict[int, Face | None]:
        return mesh_path(self._mesher, frames, segment.path, start, self._min_score(segment.track))

    def _mesh_skipped(self, segments: Sequence[_Segment], first: int) -> None:
        """Mesh frames that were skipped and in which the face was not calm after all."""

        def mesh(segment: _Segment) -> dict[int, Face | None]:
            faces, chain = dict(segment.faces), segment.track.chain
            if chain is not None and chain.frame == first - 1:
                faces[chain.frame] = chain.face
            meshed: dict[int, Face | None] = {}
            for gap in _consecutive(self._decoded[index] for index in skipped(faces, segment.path)):
                before = gap[0].index - 1
                face = faces.get(before)
                meshed |= self._mesh_frames(segment, gap, None if face is None else Chain(face, before))
            return meshed

        for segment, meshed in zip(segments, self._map(mesh, segments), strict=True):
            segment.faces |= meshed

    def _extend(self, segments: Sequence[_Segment], frames: Sequence[Decoded]) -> None:
        """Propagate tracks beyond their first and their last detection, and into gaps."""
        boxes = defaultdict(list, {index: list(written) for index, written in self._written.items()})
        for segment in segments:
            for index, face in segment.faces.items():
                if face is not None and segment.track.verdict is not Verdict.NO_FACE:
                    boxes[index].append((segment.track.number, np.array(face.box)))

        def propagate(task: _Propagation) -> Extension:
            track = task.segment.track
            others = {index: [pair for pair in pairs if pair[0] != track.number] for index, pairs in boxes.items()}
            score, max_missing = self._min_score(track), _MISSING[task.where]
            return extend(self._mesher, task.frames, task.start, others, self._min_sides, score, max_missing)

        tasks = [task for segment in segments for task in _propagations(segment, frames, self._decoded)]
        for task, extension in zip(tasks, self._map(propagate, tasks), strict=True):
            segment, track = task.segment, task.segment.track
            segment.extended = {**extension.faces, **segment.extended}
            if task.where != "gap" and extension.met is not None:
                track.met = extension.met
            if task.where == "after":
                track.chain, track.ended = extension.chain, extension.ended

    def _confirm(self, segments: Sequence[_Segment], *, propagated: bool = False) -> None:
        """Ask for second opinions on tracks that none has confirmed yet, keyframe by keyframe."""

        def judge(segment: _Segment) -> Verdict:
            verdict = segment.track.verdict
            faces = segment.extended if propagated else {i: place.detection for i, place in segment.path.items()}
            for index, face in sorted(faces.items()):
                if face is None or face.score == 0 or index not in self._min_sides:
                    continue
                if _in_front(segment, index, face, segments):
                    continue
                verdict = max(verdict, self._mesher.confirm(self._decoded[index].rgb, face))
                if verdict is Verdict.FACE:
                    break
            return verdict

        asked = [segment for segment in segments if segment.track.verdict is not Verdict.FACE]
        for segment, verdict in zip(asked, self._map(judge, asked), strict=True):
            segment.track.verdict = verdict

    def _write(self, segment: _Segment, rows: Mapping[int, NDArray[np.float32]]) -> None:
        track = segment.track
        for index, row in rows.items():
            track.first = index if track.first < 0 else track.first
            track.buffer.append(row)
            track.tail = row
            if not np.isnan(row[0]):
                track.last, track.n_seen = index, track.n_seen + 1
                if track.verdict is not Verdict.NO_FACE:
                    self._written.setdefault(index, []).append((track.number, np.array(row[BOX], dtype=np.float64)))
        for index, face in sorted(segment.seen.items()):
            if face is not None and face.mesh is not None:
                track.score = 1.0
                track.best = with_portrait(track.best, index, self._decoded[index].rgb, face)


def _consecutive(frames: Iterable[Decoded]) -> Iterator[list[Decoded]]:
    """Group frames that follow each other without a gap."""
    for _, group in groupby(enumerate(frames), key=lambda pair: pair[1].index - pair[0]):
        yield [frame for _, frame in group]


def _halves(frames: list[Decoded], path: Mapping[int, Expected]) -> list[list[Decoded]]:
    """Split the frames of a path into two that can be meshed by themselves, the second from a detection on."""
    if len(frames) >= _SPLIT:
        detected = [i for i, frame in enumerate(frames) if i > 0 and path[frame.index].detection is not None]
        middle = min(detected, key=lambda i: (abs(i - len(frames) / 2), i), default=0)
        if middle > 0:
            return [frames[:middle], frames[middle:]]
    return [frames] if frames else []


def _drop_parts(segments: Sequence[_Segment]) -> None:
    """Drop tracks that begin as a part of the face of a surer one, such as a mouth taken for a face."""

    def hidden(segment: _Segment, index: int, detection: Face) -> bool:
        track = segment.track
        for other in segments:
            surer = (other.track.score, track.number) >= (track.score, other.track.number)
            face = other.faces.get(index)
            if other is segment or not surer or other.track.dropped or face is None:
                continue
            if same_face(np.array(detection.box), np.array(face.box)):
                return True
        return False

    for segment in segments:
        if segment.track.first < 0:
            places = [(index, place.detection) for index, place in segment.path.items()]
            segment.track.dropped = all(hidden(segment, index, face) for index, face in places if face is not None)


def _in_front(segment: _Segment, index: int, detection: Face, segments: Sequence[_Segment]) -> bool:
    """Tell whether the face of a longer track is in the middle of a detection: second opinions would see that one."""
    box = np.array(detection.box)
    for other in segments:
        face = other.faces.get(index)
        if face is not None and len(other.track.frames) > len(segment.track.frames):
            middle = centre(np.array(face.box))
            if np.all(middle > box[:2]) and np.all(middle < box[:2] + box[2:]):
                return True
    return False


def _propagations(
    segment: _Segment, frames: Sequence[Decoded], decoded: Mapping[int, Decoded]
) -> Iterator[_Propagation]:
    """Yield where a track has to be propagated: beyond its detections, and both ways where it was lost between."""
    track, seen = segment.track, {index: face for index, face in segment.faces.items() if face is not None}
    if track.first < 0 and seen:
        at = min(seen)
        before = [frame for index, frame in decoded.items() if index < at][::-1]
        yield _Propagation(segment, "before", Chain(seen[at], at), before)
    lost = (frame for frame in frames if frame.index in segment.faces and frame.index not in seen)
    for gap in _consecutive(lost):
        for edge, inwards in ((gap[-1].index + 1, gap[::-1]), (gap[0].index - 1, gap)):
            if edge in seen:
                yield _Propagation(segment, "gap", Chain(seen[edge], edge), inwards)
    after = [frame for frame in frames if frame.index > track.ends]
    if track.chain is not None and after:
        yield _Propagation(segment, "after", track.chain, after)


def _rows(segment: _Segment, first: int, end: int) -> dict[int, NDArray[np.float32]]:
    """Return the rows of a track up to the frame before ``end``, skipped frames interpolated, NaN where unseen."""
    track, seen = segment.track, segment.seen
    rows = {index: row_of(face) for index, face in seen.items()}
    marks = {first - 1: track.tail} if track.tail is not None else {}
    marks |= {index: rows[index] for index in sorted(segment.faces)}
    for (a, before), (b, after) in pairwise(marks.items()):
        for index in range(a + 1, b):
            rows[index] = before + (after - before) * np.float32((index - a) / (b - a))
    begin = first if track.first >= 0 else min((index for index, face in seen.items() if face is not None), default=end)
    return {index: rows.get(index, row_of(None)) for index in range(begin, end)}


def _part(segments: Sequence[_Segment], first: int, end: int) -> None:
    """Where two tracks are on one face, leave it to the one that is nearer to where it should be."""
    rows = [_rows(segment, first, end) for segment in segments]
    for index in range(first, end):
        there = [k for k, row in enumerate(rows) if index in row and not np.isnan(row[index][0])]
        boxes = {k: np.array(rows[k][index][BOX], dtype=np.float64) for k in there}
        gone: set[int] = set()
        for i, k in ((i, k) for i in there for k in there if k < i):
            if not gone & {i, k} and overlap(boxes[i], boxes[k])[0, 0] > _CLASH:
                farther = i if _off(segments[i], index, boxes[i]) >= _off(segments[k], index, boxes[k]) else k
                gone.add(farther)
                if segments[farther].extended.pop(index, None) is None:  # else a detection keeps its box
                    segments[farther].faces[index] = segments[farther].path[index].detection


def _off(segment: _Segment, index: int, box: FloatArray) -> tuple[bool, bool, float]:
    """Return whether a track is no face, is propagated, and how far it is from its path and its next detection."""
    off = float(np.hypot(*(centre(box) - centre(segment.path[index].box)))) / max(side(box), 1.0)
    no_face = segment.track.verdict is Verdict.NO_FACE
    return no_face, index in segment.extended, off + _AWAY * int(np.abs(segment.track.frames - index).min())
