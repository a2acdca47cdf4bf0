"""One track in one chunk of frames, and which of several tracks a face is left to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.geometry import centre, overlap, side
from ksame.models import Face
from ksame.scene.observe.confirm import Verdict
from ksame.scene.observe.detect import same_face
from ksame.scene.observe.mesh import Chain, Expected
from ksame.scene.track.growing import Growing
from ksame.scene.track.storage import BOX, row_of

# By eye on clips of people who cross, turn and leave.
_CLASH = 0.45  # overlap of two tracks from which on they are one face
_AWAY = 0.1  # sides that a frame away from a detection counts when two tracks are on one face


@dataclass(eq=False)
class Segment:
    """One track in one chunk: its path, what was seen along it, and where it was propagated."""

    track: Growing
    path: dict[int, Expected]
    start: Chain | None  # from where it was meshed
    score: float  # that a detection near the path must have
    meshed: Iterator[dict[int, Face | None]]  # yields the faces along the path, without frames that are skipped
    faces: dict[int, Face | None] = field(default_factory=dict)
    extended: dict[int, Face] = field(default_factory=dict)
    opinions: dict[int, Verdict] = field(default_factory=dict)  # second opinions on its detections that are known
    sure: bool = False  # whether one of them says that it is a face

    @property
    def seen(self) -> dict[int, Face | None]:
        """All faces, by frame."""
        return self.faces | self.extended


def drop_parts(segments: Sequence[Segment]) -> None:
    """Drop tracks that begin as a part of the face of a surer one, such as a mouth taken for a face."""

    def hidden(segment: Segment, index: int, detection: Face) -> bool:
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
            seen = [(i, place.detection) for i, place in segment.path.items() if place.detection is not None]
            segment.track.dropped = bool(seen) and all(hidden(segment, index, face) for index, face in seen)


def in_front(segment: Segment, index: int, detection: Face, segments: Sequence[Segment]) -> bool:
    """Tell whether the face of a longer track is in the middle of a detection: second opinions would see that one."""
    box = np.array(detection.box)
    for other in segments:
        face = other.faces.get(index)
        if face is not None and len(other.track.frames) > len(segment.track.frames):
            middle = centre(np.array(face.box))
            if np.all(middle > box[:2]) and np.all(middle < box[:2] + box[2:]):
                return True
    return False


def rows_of(segment: Segment, first: int, end: int) -> dict[int, NDArray[np.float32]]:
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


def leave_to_nearest(segments: Sequence[Segment], first: int, end: int) -> None:
    """Where two tracks are on one face, leave it to the one that is nearer to where it should be."""
    all_rows = [rows_of(segment, first, end) for segment in segments]
    for index in range(first, end):
        there = [k for k, row in enumerate(all_rows) if index in row and not np.isnan(row[index][0])]
        boxes = {k: np.array(all_rows[k][index][BOX], dtype=np.float64) for k in there}
        gone: set[int] = set()
        for i, k in ((i, k) for i in there for k in there if k < i):
            if not gone & {i, k} and overlap(boxes[i], boxes[k])[0, 0] > _CLASH:
                farther = i if _off(segments[i], index, boxes[i]) >= _off(segments[k], index, boxes[k]) else k
                gone.add(farther)
                if segments[farther].extended.pop(index, None) is None:  # else a detection keeps its box
                    segments[farther].faces[index] = segments[farther].path[index].detection


def _off(segment: Segment, index: int, box: FloatArray) -> tuple[bool, bool, float]:
    """Return whether a track is no face, is propagated, and how far it is from its path and its next detection."""
    off = float(np.hypot(*(centre(box) - centre(segment.path[index].box)))) / max(side(box), 1.0)
    no_face = segment.track.verdict is Verdict.NO_FACE
    return no_face, index in segment.extended, off + _AWAY * int(np.abs(segment.track.frames - index).min())
