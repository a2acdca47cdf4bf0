"""A track whose rows are being written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray, IntArray
from ksame.scene.observe import Observations
from ksame.scene.observe.confirm import Verdict
from ksame.scene.observe.mesh import Chain, Expected
from ksame.scene.observe.portraits import N_BEST, Portrait
from ksame.scene.observe.rows import RowBuffer
from ksame.scene.track.associate import Tracklet
from ksame.scene.track.storage import row_of


@dataclass(eq=False)
class Growing:
    """A track whose rows are being written."""

    number: int
    shot: int
    frames: IntArray  # of its detections, (n,)
    boxes: FloatArray  # of its detections, (n, 4)
    rows: IntArray  # where they are among the observations, (n,)
    score: float  # the highest of a detection; 1 once a mesh was believed
    buffer: RowBuffer  # what was seen in every frame from ``first`` on
    first: int = -1  # the first frame in which it was seen
    last: int = -1  # the last one
    n_seen: int = 0
    verdict: Verdict = Verdict.NO_FACE
    best: list[Portrait] = field(default_factory=list)  # its best pictures, until they are recognised
    pictures: list[tuple[int, float]] = field(default_factory=list)  # frame and quality of each, after that
    embeddings: FloatArray = field(default_factory=lambda: np.empty((0, 128)))  # of some of them
    chain: Chain | None = None  # where it is, to go on from
    tail: NDArray[np.float32] | None = None  # its last row
    ended: bool = False
    dropped: bool = False
    met: int | None = None  # number of the track it became when it was propagated beyond an end

    @classmethod
    def of(cls, number: int, shot: int, tracklet: Tracklet, observations: Observations, buffer: RowBuffer) -> Growing:
        """Begin to write a track."""
        rows, frames = (np.array(values, dtype=np.intp) for values in (tracklet.rows, tracklet.frames))
        return cls(number, shot, frames, observations.boxes(rows), rows, tracklet.score, buffer)

    @property
    def begins(self) -> int:
        """The frame of its first detection."""
        return int(self.frames[0])

    @property
    def ends(self) -> int:
        """The frame of its last detection."""
        return int(self.frames[-1])

    def written(self) -> NDArray[np.float32]:
        """Return its rows, from the first to the last in which it was seen."""
        return self.buffer.rows(self.last - self.first + 1)

    def path(self, observations: Observations, first: int, end: int) -> dict[int, Expected]:
        """Return where the face is expected in the frames from ``first`` to before ``end``."""
        at = np.arange(first, end)
        boxes = np.stack([np.interp(at, self.frames, column) for column in self.boxes.T], axis=1)
        inside = np.flatnonzero((self.frames >= first) & (self.frames < end))
        detections = {int(self.frames[i]): observations.face(int(self.rows[i])) for i in inside}
        return {int(t): Expected(box, detections.get(int(t))) for t, box in zip(at, boxes, strict=True)}

    def followed_by(self, later: Growing) -> Growing:
        """Return this track with the rows of another that is the same face from its first row on."""
        self.buffer.truncate(later.first - self.first)
        for _ in range(later.first - self.first - len(self.buffer)):
            self.buffer.append(row_of(None))
        for row in later.buffer.rows():
            self.buffer.append(row)
        later.buffer.drop()
        return replace(
            self,
            frames=np.concatenate([self.frames, later.frames]),
            last=later.last,
            n_seen=self.n_seen + later.n_seen,
            score=max(self.score, later.score),
            verdict=max(self.verdict, later.verdict),
            best=sorted([*self.best, *later.best], key=lambda p: (-p.quality, p.frame))[:N_BEST],
        )


def merged(tracks: Sequence[Growing]) -> list[Growing]:
    """Join tracks that became one another when they were propagated: the face had moved too fast."""
    by_number = {track.number: track for track in tracks}
    pairs = set()
    for track in tracks:
        other = None if track.met is None else by_number.get(track.met)
        if other is not None and not track.dropped and not other.dropped:
            pairs |= {(a.number, b.number) for a, b in ((track, other), (other, track)) if a.ends < b.begins}
    for a, b in sorted(pairs, reverse=True):
        earlier, later = by_number[a], by_number.get(b)
        if later is not None and earlier.first < later.first:
            del by_number[b]
            by_number[a] = earlier.followed_by(later)
    return list(by_number.values())
