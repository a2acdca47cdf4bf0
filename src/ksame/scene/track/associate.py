"""Which detections on the keyframes of a shot are one face.

Keyframe after keyframe, the tracks so far are assigned to the detections so that the sum of distances is smallest:
first the sure detections, then the doubtful ones (Zhang et al. 2022, ByteTrack, section 3). Nothing but the stored
detections is needed. What is left apart here, because it moved too fast, is joined when both ends are propagated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ksame.arrays import FloatArray
from ksame.geometry import centre, side
from ksame.scene.observe import DetectorConfig, Observations
from ksame.scene.track.config import TrackerConfig

# By eye on clips of people who cross, turn and come back.
_REACH, _MORE, _MAX_REACH = 0.6, 0.1, 1.6  # how far off a detection may be, in sides; more per frame; at most
_ALIKE, _FAR = 0.5, 2.5  # likeness from which on it may be so far off
_PROVEN = 0.8  # score of a track that chooses first
_SIZES = 2.0  # how many times larger or smaller it may be
_LIKE = 0.3  # likeness below which a face that was out of sight is somebody else
_LOOK, _SIZE, _DOUBT = 1.0, 0.5, 2.0  # weights of unlike looks and sizes and of low scores beside the distance in sides
# Rounds: whether detections are sure, whether tracks are proven, and the cost of a track that stays alone.
# The near ones come first: else two tracks swap their faces so that a third, hidden one, does not stay alone.
_ROUNDS = ((True, True, 1.0), (True, True, 3.0), (True, False, 3.0), (False, False, 3.0))
_AHEAD = 12  # frames for which a speed is believed
_NEVER = 1e6


@dataclass(eq=False)
class Tracklet:
    """Detections that are one face."""

    frames: list[int]
    rows: list[int]  # of the observations
    score: float  # the highest
    boxes: list[FloatArray]  # the last two
    look: FloatArray  # how it looked last
    usual: FloatArray  # the sum of all looks

    def likeness(self, look: FloatArray) -> float:
        """Return how much a face looks like this one, as it was last or as it is usually."""
        return max(float(look @ self.look), float(look @ self.usual) / max(float(np.linalg.norm(self.usual)), 1e-6))

    def expected(self, frame: int) -> FloatArray:
        """Return the box where it should be."""
        box = self.boxes[-1].copy()
        if len(self.boxes) > 1:
            step = (centre(box) - centre(self.boxes[-2])) / (self.frames[-1] - self.frames[-2])
            box[:2] += step * min(frame - self.frames[-1], _AHEAD)
        return box

    def add(self, frame: int, row: int, score: float, box: FloatArray, look: FloatArray) -> None:
        """Take a detection."""
        self.frames.append(frame)
        self.rows.append(row)
        self.score = max(self.score, score)
        self.boxes = [*self.boxes[-1:], box]
        self.look, self.usual = look, self.usual + look


@dataclass(eq=False)
class Association:
    """Assigns the detections of one frame after the other to tracks, and knows nothing of later frames."""

    detector: DetectorConfig
    tracker: TrackerConfig
    active: list[Tracklet] = field(default_factory=list)  # those that may go on

    @property
    def _max_hidden(self) -> int:
        return 2 * self.detector.detect_every  # every second keyframe is searched for smaller faces

    def _patience(self, track: Tracklet) -> int:
        """Return for how many frames a face may be missing: no longer than it was seen, less if never surely."""
        if track.score < self.detector.score:
            return self._max_hidden
        return max(self._max_hidden, min(self.tracker.patience, track.frames[-1] - track.frames[0] + 1))

    def step(
        self, frame: int, boxes: FloatArray, scores: FloatArray, looks: FloatArray, first_row: int = 0
    ) -> list[Tracklet]:
        """Take the detections of a frame; return the tracks that end before it.

        Boxes are (n, 4), scores (n,) and looks (n, N_LOOK). A track knows its detections by their rows, of which
        ``first_row`` is the first.
        """
        scores = scores.copy()
        ended = [track for track in self.active if frame - track.frames[-1] > self._patience(track)]
        self.active = [track for track in self.active if track not in ended]
        free = list(self.active)
        for sure, proven, alone in _ROUNDS:
            rivals = np.flatnonzero(((scores >= self.detector.score) == sure) & (scores >= 0))
            choosing = [track for track in free if track.score >= _PROVEN or not proven]
            cost = _costs(choosing, frame, boxes[rivals], looks[rivals], self._max_hidden, sure=sure)
            cost += _DOUBT * (1 - scores[rivals])
            for k, n in _assigned(cost, alone):
                track, i = choosing[k], int(rivals[n])
                track.add(frame, first_row + i, float(scores[i]), boxes[i], looks[i])
                free.remove(track)
                scores[i] = -1.0  # taken
        for i in np.flatnonzero(scores >= self.detector.doubtful).tolist():
            self.active.append(Tracklet([frame], [first_row + i], float(scores[i]), [boxes[i]], looks[i], looks[i]))
        return ended


def associate(
    observations: Observations, keyframes: slice, detector: DetectorConfig, tracker: TrackerConfig
) -> list[Tracklet]:
    """Return the tracks of one shot, in the order in which they begin; ``keyframes`` are those of the shot."""
    association = Association(detector, tracker)
    closed: list[Tracklet] = []
    for key in range(*keyframes.indices(len(observations.keyframes))):
        frame = int(observations.keyframes[key])
        rows = slice(int(observations.starts[key]), int(observations.starts[key + 1]))
        boxes, scores, looks = observations.boxes(rows), observations.scores(rows), observations.looks(rows)
        closed += association.step(frame, boxes, scores, looks, rows.start)
    return sorted(closed + association.active, key=lambda track: (track.frames[0], track.rows[0]))


def _costs(
    tracks: Sequence[Tracklet], frame: int, boxes: FloatArray, looks: FloatArray, max_hidden: int, *, sure: bool
) -> FloatArray:
    """Return what it costs to give each detection to each track, (n_tracks, n_detections)."""
    cost = np.full((len(tracks), len(boxes)), _NEVER)
    for k, track in enumerate(tracks):
        expected, last, missing = track.expected(frame), track.boxes[-1], frame - track.frames[-1]
        size, hidden = max(side(last), 1.0), missing > max_hidden
        reach = min(_REACH + _MORE * missing, _MAX_REACH)
        for n, (box, look) in enumerate(zip(boxes, looks, strict=True)):
            off = min(np.hypot(*(centre(box) - centre(place))) for place in (expected, last)) / size
            ratio = abs(np.log(max(side(box), 1e-3) / size))
            like = track.likeness(look)
            near = off < (_FAR if like > _ALIKE and sure and not hidden else reach)
            if near and ratio < np.log(_SIZES) and not (hidden and (not sure or like < _LIKE)):
                cost[k, n] = off + _SIZE * ratio + _LOOK * (1 - like)
    return cost


def _assigned(cost: FloatArray, alone: float) -> list[tuple[int, int]]:
    """Return pairs of tracks and detections; staying without one costs a track ``alone``.

    Examples
    --------
    >>> _assigned(np.array([[0.1, 2.0], [0.5, 9.0]]), 1.0), _assigned(np.array([[0.1, 2.0], [0.5, 9.0]]), 3.0)
    ([(0, 0)], [(0, 1), (1, 0)])
    """
    if not cost.size:
        return []
    from scipy.optimize import linear_sum_assignment  # loaded where there is somebody to follow, not for photographs

    stay = np.full((len(cost), len(cost)), alone)
    pairs = zip(*linear_sum_assignment(np.hstack([cost, stay])), strict=True)
    return [(int(k), int(n)) for k, n in pairs if n < cost.shape[1] and cost[k, n] < alone]
