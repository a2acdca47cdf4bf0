"""From frames to tracks: detect on keyframes, associate, mesh along the paths, fill, smooth and join."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from ksame.arrays import FloatArray
from ksame.errors import InputError
from ksame.models import SFace
from ksame.progress import Progress, silent
from ksame.scene.observe import DetectorConfig, Frame, Map, Observations, observe
from ksame.scene.observe.confirm import Verdict
from ksame.scene.observe.mesh import Decoded, FaceMesher
from ksame.scene.observe.observations import checked
from ksame.scene.observe.portraits import N_BEST
from ksame.scene.observe.rows import RowBuffer
from ksame.scene.track.associate import associate
from ksame.scene.track.config import TrackerConfig
from ksame.scene.track.growing import Growing
from ksame.scene.track.interpolate import Filled, fill, write_points
from ksame.scene.track.join import UNSURE, Stretch, join, mean_embedding
from ksame.scene.track.propagate import Propagator
from ksame.scene.track.storage import BOX, WIDTH, Place, finish, new_arrays, tracks_of
from ksame.scene.track.tracks import Person, Track, Tracks, in_order

Frames = Callable[[int], Iterable[Frame]]
"""Returns the frames of a recording from a number on; called twice."""

_AGREEING = 3  # frames in which a doubtful detection must be seen to count
_RECOGNISED = 3  # of the best pictures of a track, by which people are told apart
_WAITING = 200  # pictures kept until a recogniser is asked about them
_KEYFRAMES = 4  # in a chunk
_MEMORY, _MAX_MEMORY = 16 << 20, 96 << 20  # bytes of frames kept to propagate backwards; and where fewer are too few


def find_tracks(
    frames: Frames,
    size: tuple[int, int],
    work: Path | None = None,
    tracker: TrackerConfig | None = None,
    *,
    still: bool = False,
    recogniser: SFace | None = None,
    map: Map = map,
    progress: Progress = silent,
) -> Tracks:
    """Find everyone in a photograph or a recording.

    Memory does not grow with the length of the recording where ``work`` is given.

    Parameters
    ----------
    frames : callable
        Returns the frames from a number on, in order; called twice.
    size : (int, int)
        Width and height of the frames.
    work : Path, optional
        Folder where the finished tracks are kept, for :func:`load_tracks`; unfinished ones are begun anew. None keeps
        all in memory.
    tracker : TrackerConfig, optional
    still : bool
        A photograph: small and turned faces are searched for at once, and every face is somebody else.
    recogniser : SFace, optional
        Tells people apart.
    map : callable
        Works on independent frames and faces; an executor's for several at a time. The result does not depend on it.
    progress : callable
        Shows progress.
    """
    tracker = tracker or TrackerConfig()
    detector = tracker.detector
    if still:
        low = min(detector.low, detector.still)
        detector = replace(detector, doubtful=min(detector.doubtful, detector.still), low=low)
    growing = None
    if work is not None:
        finish(work, None)
        growing = work / "growing"
        shutil.rmtree(growing, ignore_errors=True)
        growing.mkdir(parents=True)
    file = None if growing is None else growing / "detections.rows"
    seen = observe(progress(frames(0), "detecting faces"), size, detector, still=still, file=file, map=map)
    recognition = _Recognition(recogniser or SFace())
    tracks: list[Growing] = []
    if len(seen.rows):
        pass_two = _Pass(seen, detector, tracker, growing, map)
        for closed in pass_two.run(progress(frames(0), "meshing faces")):
            kept = [track for track in closed if _counts(track, detector, still=still)]
            for track in closed:
                if track not in kept:
                    track.buffer.drop()
            tracks += kept
            recognition.wait(kept)
    recognition.recognise()
    result = _finished(seen, tracks, recognition, tracker, work, still=still)
    if growing is not None:
        shutil.rmtree(growing, ignore_errors=True)
    return result


class _Pass:
    """The second pass: shot by shot, chunk by chunk."""

    def __init__(
        self,
        seen: Observations,
        detector: DetectorConfig,
        tracker: TrackerConfig,
        growing: Path | None,
        map: Map,
    ) -> None:
        self._seen, self._detector, self._tracker, self._growing, self._map = seen, detector, tracker, growing, map
        self._mesher = FaceMesher(detector)

    def run(self, frames: Iterable[Frame]) -> Iterator[list[Growing]]:
        """Yield the tracks of every shot."""
        stream = self._decoded(frames)
        count = 0
        for shot, (first, end, keyframes) in enumerate(self._seen.shots()):
            tracks = []
            for tracklet in associate(self._seen, keyframes, self._detector, self._tracker):
                count += 1
                file = None if self._growing is None else self._growing / f"{count}.rows"
                tracks.append(Growing.of(count, shot, tracklet, self._seen, RowBuffer(WIDTH, file)))
            propagator = Propagator(self._mesher, self._seen, self._map)
            history: deque[Decoded] = deque()
            at = first
            for stop in self._stops(keyframes, end):
                chunk = [next(stream) for _ in range(at, stop)]
                at = stop
                propagator.chunk(tracks, chunk, history)
                history.extend(chunk)
                self._forget(history)
            yield merged(tracks)
        if next(stream, None) is not None:
            raise InputError("There are more frames now than when faces were detected. Has the file changed?")

    def _stops(self, keyframes: slice, end: int) -> list[int]:
        """Return the ends of the chunks of a shot: the frames after every few keyframes."""
        frames = self._seen.keyframes[keyframes]
        return [*(int(frame) + 1 for frame in frames[_KEYFRAMES:-1:_KEYFRAMES]), end]

    def _decoded(self, frames: Iterable[Frame]) -> Iterator[Decoded]:
        before = -np.inf
        index = -1
        for index, frame in enumerate(frames):
            rgb = checked(frame, index, self._seen.size)
            yield Decoded(index, rgb, frame.time - before < self._detector.brief)
            before = frame.time
        if index + 1 < self._seen.n_frames:
            raise InputError("There are fewer frames now than when faces were detected. Has the file changed?")

    def _forget(self, history: deque[Decoded]) -> None:
        """Keep as many frames as a face may have gone unnoticed for, unless they are very large."""
        size, every = history[-1].rgb.nbytes, 2 * self._detector.detect_every
        fewest = max(every - self._tracker.margin, min(every, _MAX_MEMORY // size), 1)
        while len(history) > max(fewest, min(_MEMORY // size, self._detector.tiny_every)):
            history.popleft()


def merged(tracks: Sequence[Growing]) -> list[Growing]:
    """Join tracks that became one another when they were propagated: the face had moved too fast."""
    by_number = {track.number: track for track in tracks}
    pairs = set()
    for track in tracks:
        other = None if track.met is None else by_number.get(track.met)
        if other is not None and not track.dropped and not other.dropped:
            pairs |= {(a.number, b.number) for a, b in ((track, other), (other, track)) if a.ends < b.begins}
    for a, b in sorted(pairs, reverse=True):
        earlier, later = by_number.get(a), by_number.get(b)
        if earlier is None or later is None or not earlier.first < later.first:
            continue
        del by_number[b]
        by_number[a] = earlier.followed_by(later)
    return list(by_number.values())


def _counts(track: Growing, config: DetectorConfig, *, still: bool) -> bool:
    """Tell whether a track is one: seen surely once, or doubtfully several times, and perhaps a face."""
    if track.dropped or track.first < 0 or track.verdict is Verdict.NO_FACE:
        return False
    return still or track.score >= config.score or track.n_seen >= _AGREEING


class _Recognition:
    """Embeddings of tracks; pictures wait until there are many, since a recogniser takes as much memory as the rest."""

    def __init__(self, recogniser: SFace) -> None:
        self._recogniser = recogniser
        self._waiting: list[Growing] = []
        self.embeddings: dict[int, FloatArray] = {}
        self.pictures: dict[int, list[tuple[int, float]]] = {}

    def wait(self, tracks: Sequence[Growing]) -> None:
        """Take tracks that are complete."""
        self._waiting += tracks
        if sum(len(track.best) for track in self._waiting) > _WAITING:
            self.recognise()
            self._recogniser.forget()

    def recognise(self) -> None:
        """Recognise all tracks that wait, and let their pictures go."""
        for track in self._waiting:
            best, track.best = track.best, []
            self.embeddings[track.number] = np.empty((0, 128))
            self.pictures[track.number] = []
            if best and track.verdict is Verdict.FACE:
                vectors = [self._recogniser.embed(p.pixels, p.points) for p in best[:_RECOGNISED]]
                self.embeddings[track.number] = np.array(vectors)
                self.pictures[track.number] = [(p.frame, p.quality) for p in best]
        self._waiting = []


def _finished(
    seen: Observations,
    tracks: Sequence[Growing],
    recognition: _Recognition,
    config: TrackerConfig,
    work: Path | None,
    *,
    still: bool,
) -> Tracks:
    """Fill, smooth and join the tracks."""
    tracks = sorted(tracks, key=lambda track: (track.first, track.number))
    bounds = list(pairwise([0, *seen.cuts.tolist(), seen.n_frames]))
    all_filled: list[Filled] = []
    stretches: list[Stretch] = []
    confirmed = [track.verdict is Verdict.FACE for track in tracks]
    for track, sure in zip(tracks, confirmed, strict=True):
        rows = track.buffer.rows(track.last - track.first + 1)
        all_filled.append(fill(rows, track.first, bounds[track.shot], config, confirmed=sure))
        entry, last = (np.array(rows[i, BOX], dtype=np.float64) for i in (0, -1))
        vectors = recognition.embeddings[track.number]
        stretches.append(Stretch(track.first, track.last + 1, entry, last, vectors, track.shot))
    arrays = new_arrays(sum(len(filled) for filled in all_filled), work)
    places, start = [], 0
    for number, (track, filled, sure) in enumerate(zip(tracks, all_filled, confirmed, strict=True), start=1):
        span = slice(start, start + len(filled))
        for name in ("boxes", "poses", "blendshapes", "source"):
            arrays[name][span] = getattr(filled, name)
        write_points(track.buffer.rows(track.last - track.first + 1), filled, arrays["points"][span])
        track.buffer.drop()
        places.append(Place(number, filled.first, start, len(filled), sure))
        start += len(filled)
    groups = list(range(len(tracks))) if still else join(stretches, config.same_person)
    names = _names(groups, all_filled, confirmed)
    result = tracks_of(arrays, places, names)
    people = _people(names, result, stretches, [recognition.pictures[track.number] for track in tracks])
    found = Tracks(seen.size, seen.n_frames, people, result, seen.cuts)
    if work is not None:
        finish(work, found)
    return found


def _names(groups: Sequence[int], all_filled: Sequence[Filled], confirmed: Sequence[bool]) -> list[str]:
    """Call people P1, P2 and so on, and what is perhaps no face U1 and so on, by how many pixels they are in."""
    amount = dict.fromkeys(groups, 0.0)
    for group, filled in zip(groups, all_filled, strict=True):
        amount[group] += float(np.prod(filled.boxes[:, 2:], axis=1).sum())
    order = sorted(amount, key=lambda group: (-amount[group], group))
    sure = {group for group, is_face in zip(groups, confirmed, strict=True) if is_face}
    names: dict[int, str] = {}
    for letter, members in (("P", [g for g in order if g in sure]), (UNSURE, [g for g in order if g not in sure])):
        names |= {group: f"{letter}{i}" for i, group in enumerate(members, 1)}
    return [names[group] for group in groups]


def _people(
    names: Sequence[str],
    tracks: Sequence[Track],
    stretches: Sequence[Stretch],
    pictures: Sequence[Sequence[tuple[int, float]]],
) -> tuple[Person, ...]:
    people = []
    for name in sorted(set(names), key=in_order):
        members = [i for i, other in enumerate(names) if other == name]
        best = sorted(
            (-quality, tracks[i].number, frame)
            for i in members
            for frame, quality in pictures[i]
            if not np.isnan(tracks[i].points[frame - tracks[i].first, 0, 0])
        )
        chosen = tuple((number, frame) for _, number, frame in best[:N_BEST])
        people.append(Person(name, mean_embedding([stretches[i] for i in members]), chosen))
    return tuple(people)
