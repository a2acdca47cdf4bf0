"""Second pass over the frames: every track is meshed along its path, and propagated beyond its ends.

A chunk of frames at a time: what is independent of each other goes through ``map``, which may begin before its results
are asked for, and the rows of all tracks are written before those of the next. Nothing depends on how many threads it
has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.models import Face
from ksame.scene.observe import Map, Observations
from ksame.scene.observe.confirm import Verdict
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
from ksame.scene.track.segments import Segment, drop_parts, in_front, leave_to_nearest, rows_of
from ksame.scene.track.storage import BOX

# By eye on clips of people who cross, turn and leave.
_SPLIT = 8  # meshed frames of a track in a chunk from which on they are meshed in two parts, each by itself
_MISSING = {"before": 2, "gap": 2, "after": 6}  # frames for which a propagated face may be missing


@dataclass(frozen=True, eq=False)
class _Propagation:
    """Where a track is propagated: before its first detection, after its last, or in a gap where it was lost."""

    segment: Segment
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
        self._begun: dict[int, Segment] = {}  # of the next chunk, by the number of the track

    def chunk(
        self,
        tracks: Sequence[Growing],
        frames: Sequence[Decoded],
        history: Sequence[Decoded],
        following: Iterable[Decoded] = (),
    ) -> list[Decoded]:
        """Go on by some frames of a shot; ``history`` has those before them that are still decoded.

        Those of the next chunk may be ``following``: they are decoded and returned, and meshing goes on there already.
        """
        self._decoded = {frame.index: frame for frame in (*history, *frames)}
        first, end = frames[0].index, frames[-1].index + 1
        seen, config = self._observations, self._mesher.config
        keys = slice(*np.searchsorted(seen.keyframes, [min(self._decoded), end]))
        self._min_sides = dict(zip(seen.keyframes[keys].tolist(), seen.min_sides[keys].tolist(), strict=True))
        self._written = {index: boxes for index, boxes in self._written.items() if index in self._decoded}
        going = [track for track in tracks if not track.ended and not track.dropped and track.begins < end]
        begun, self._begun = self._begun, {}
        segments = [self._segment(track, frames, begun.get(track.number)) for track in going]
        asked = self._map(self._ask, [question for segment in segments for question in self._questions(segment)])
        following = list(following)
        more = {}
        for segment in segments:
            for faces in segment.meshed:
                segment.faces |= faces
            more[segment] = iter(self._map(partial(self._mesh_skipped, frames=frames), [segment]))
            self._begin_next(segment, following)
        for _ in asked:
            pass
        drop_parts(segments)
        segments = [segment for segment in segments if not segment.track.dropped]
        self._confirm(segments)  # first: nobody makes room for what is no face
        for segment in segments:
            track = segment.track
            track.dropped = track.verdict is Verdict.NO_FACE and track.score < config.score and track.ends < end
        segments = [segment for segment in segments if not segment.track.dropped]
        for segment in segments:
            segment.faces |= next(more[segment])
        leave_to_nearest(segments, first, end)
        for segment in segments:
            for index, face in sorted(segment.faces.items()):
                if face is not None:
                    chain = segment.track.chain
                    segment.track.chain = Chain(face, index) if chain is None else chain.to(index, face)
        self._extend(segments, frames)
        leave_to_nearest(segments, first, end)
        self._confirm(segments, propagated=True)
        for segment in segments:
            self._write(segment, rows_of(segment, first, end))
        return following

    def _min_score(self, track: Growing) -> float:
        """Return the score to go on with a track: higher where it never was sure."""
        config = self._mesher.config
        return config.low if track.score >= config.score else config.doubtful

    def _segment(self, track: Growing, frames: Sequence[Decoded], begun: Segment | None) -> Segment:
        """Return what was begun of a track, if it is where it seemed to be; else begin anew."""
        chain, score = track.chain, self._min_score(track)
        if begun and begun.start and chain and begun.start.face is chain.face and begun.score == score:
            return begun
        return self._begin(track, frames, chain, score)

    def _begin(self, track: Growing, frames: Sequence[Decoded], start: Chain | None, score: float) -> Segment:
        """Mesh a track in the frames from its first to its last detection."""
        first, end = frames[0].index, frames[-1].index + 1
        path = track.path(self._observations, first if start is None else min(first, start.frame), end)
        inside = [frame for frame in frames if track.begins <= frame.index <= track.ends]
        halves = _halves(sampled(inside, path, None if start is None else start.frame), path)
        mesh = partial(mesh_path, self._mesher, expected=path, start=start, score=score)
        return Segment(track, path, start, score, iter(self._map(mesh, halves)))

    def _begin_next(self, segment: Segment, frames: Sequence[Decoded]) -> None:
        """Begin the next chunk of a track that goes on, from where it seems to be; :meth:`_segment` looks again."""
        track, last = segment.track, max(segment.faces, default=-1)
        face = segment.faces.get(last)
        if frames and face is not None and last + 1 == frames[0].index and track.ends > last:
            meshed = any(face and face.mesh for face in segment.faces.values())
            score = self._mesher.config.low if meshed else segment.score
            self._begun[track.number] = self._begin(track, frames, Chain(face, last), score)

    def _mesh_skipped(self, segment: Segment, frames: Sequence[Decoded]) -> dict[int, Face | None]:
        """Mesh frames that were skipped and in which the face was not calm after all."""
        faces, start = dict(segment.faces), segment.start
        if start is not None and start.frame == frames[0].index - 1:
            faces[start.frame] = start.face
        wanted = skipped(faces, segment.path)
        meshed: dict[int, Face | None] = {}
        for gap in _consecutive(frame for frame in frames if frame.index in wanted):
            before = gap[0].index - 1
            face = faces.get(before)
            chain = None if face is None else Chain(face, before)
            meshed |= mesh_path(self._mesher, gap, segment.path, chain, segment.score)
        return meshed

    def _extend(self, segments: Sequence[Segment], frames: Sequence[Decoded]) -> None:
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

    def _questions(self, segment: Segment) -> Iterator[tuple[Segment, int, Face]]:
        """Yield the detections of which second opinions can be asked while it is meshed, if it needs any."""
        for index, place in sorted(segment.path.items()):
            if segment.track.verdict is not Verdict.FACE and place.detection and index in self._min_sides:
                yield segment, index, place.detection

    def _ask(self, question: tuple[Segment, int, Face]) -> None:
        """Ask for second opinions on a detection, unless another one of the track is a face already."""
        segment, index, detection = question
        if not segment.sure:
            segment.opinions[index] = self._mesher.confirm(self._decoded[index].rgb, detection)
            segment.sure = segment.sure or segment.opinions[index] is Verdict.FACE

    def _confirm(self, segments: Sequence[Segment], *, propagated: bool = False) -> None:
        """Ask for second opinions on tracks that none has confirmed yet, keyframe by keyframe."""
        for segment in segments:
            faces = segment.extended if propagated else {i: place.detection for i, place in segment.path.items()}
            known = {} if propagated else segment.opinions
            for index, face in sorted(faces.items()):
                if segment.track.verdict is Verdict.FACE:
                    break
                if face is None or face.score == 0 or index not in self._min_sides:
                    continue
                if in_front(segment, index, face, segments):
                    continue
                if index not in known:
                    known[index] = self._mesher.confirm(self._decoded[index].rgb, face)
                segment.track.verdict = max(segment.track.verdict, known[index])

    def _write(self, segment: Segment, rows: Mapping[int, NDArray[np.float32]]) -> None:
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


def _propagations(
    segment: Segment, frames: Sequence[Decoded], decoded: Mapping[int, Decoded]
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
