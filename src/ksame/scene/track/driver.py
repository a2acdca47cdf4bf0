"""From frames to tracks: detect on keyframes, associate, mesh along the paths, fill, smooth and join."""

from __future__ import annotations

import shutil
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from ksame.errors import InputError
from ksame.models import SFace
from ksame.progress import Progress, silent
from ksame.scene.media import Frame
from ksame.scene.memory import give_back_memory
from ksame.scene.observe import DetectorConfig, Map, Observations, observe
from ksame.scene.observe.confirm import Verdict
from ksame.scene.observe.mesh import Decoded, FaceMesher
from ksame.scene.observe.observations import checked
from ksame.scene.observe.portraits import N_BEST
from ksame.scene.observe.rows import RowBuffer
from ksame.scene.track.associate import associate
from ksame.scene.track.config import TrackerConfig
from ksame.scene.track.growing import Growing, merged
from ksame.scene.track.interpolate import fill, write_points
from ksame.scene.track.join import UNCONFIRMED, Stretch, join, unit_mean
from ksame.scene.track.propagate import Propagator
from ksame.scene.track.storage import BOX, WIDTH, begin, finish, new_arrays
from ksame.scene.track.tracks import Person, Track, Tracks, in_order

Frames = Callable[[int], Iterable[Frame]]
"""Returns the frames of a recording from a number on; called twice."""

_AGREEING = 3  # frames in which a doubtful detection must be seen to count
_RECOGNISED = 3  # of the best pictures of a track, by which people are told apart
_WAITING = 200  # pictures kept until a recogniser is asked about them: it takes as much memory as the rest
_KEYFRAMES = 4  # in a chunk
_MAX_CHUNK = 128 << 20  # bytes of frames in a chunk, by choice
_MAX_AHEAD = 64 << 20  # and in one that is decoded, and begun, while the one before is finished
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
    """Find everyone in a photograph or a recording, whose frames have a ``size`` (width, height).

    Parameters
    ----------
    work : Path, optional
        Folder where the finished tracks are kept, for :func:`load_tracks`; unfinished ones are begun anew. Memory then
        does not grow with the length of the recording. None keeps all in memory.
    still : bool
        A photograph: small and turned faces are searched for at once, and every face is somebody else.
    recogniser : SFace, optional
        Tells people apart.
    map : callable
        Works on independent frames and faces; an executor's for several at a time. The result does not depend on it.
    """
    tracker = tracker or TrackerConfig()
    if still:
        detector = tracker.detector
        low, doubtful = (min(score, detector.still) for score in (detector.low, detector.doubtful))
        tracker = replace(tracker, detector=replace(detector, doubtful=doubtful, low=low))
    growing = None if work is None else begin(work)
    file = None if growing is None else growing / "detections.rows"
    seen = observe(progress(frames(0), "detecting faces"), size, tracker.detector, still=still, file=file, map=map)
    give_back_memory()
    recogniser = recogniser or SFace()
    tracks: list[Growing] = []
    waiting: list[Growing] = []
    for track in _grown(lambda start: progress(frames(start), "meshing faces"), seen, tracker, growing, map):
        if not _counts(track, tracker.detector, still=still):
            track.buffer.drop()
            continue
        tracks.append(track)
        waiting.append(track)
        if sum(len(track.best) for track in waiting) > _WAITING:
            _recognise(waiting, recogniser, map)
            recogniser.forget()
            waiting = []
    give_back_memory()
    _recognise(waiting, recogniser, map)
    result = _finished(seen, tracks, tracker, work, still=still)
    if growing is not None:
        shutil.rmtree(growing, ignore_errors=True)
    return result


def _grown(
    frames: Frames, seen: Observations, tracker: TrackerConfig, folder: Path | None, map: Map
) -> Iterator[Growing]:
    """Yield the tracks of every shot; shots before the first face and frames after the last are not asked for."""
    if not len(seen.rows):
        return
    detector = tracker.detector
    mesher = FaceMesher(detector)
    stream: Iterator[Decoded] | None = None
    number, at = 0, 0  # of the last track, and of the next frame
    for shot, (first, end, keyframes) in enumerate(seen.shots()):
        tracks = []
        for tracklet in associate(seen, keyframes, detector, tracker):
            number += 1
            file = None if folder is None else folder / f"{number}.rows"
            tracks.append(Growing.of(number, shot, tracklet, seen, RowBuffer(WIDTH, file)))
        if not tracks:
            continue
        if stream is None:
            stream, at = _decoded(frames(first), first, seen, detector.brief), first
        for _ in islice(stream, first - at):
            pass
        at = first
        propagator = Propagator(mesher, seen, map)
        history: deque[Decoded] = deque()
        every = _keyframes_at_a_time(seen.size, detector)
        stops = [*(int(key) + 1 for key in seen.keyframes[keyframes][every:-1:every]), end]
        following: list[Decoded] = []
        for stop, after in pairwise([*stops, end]):
            chunk = following or list(islice(stream, stop - at))
            soon = islice(stream, after - stop if (after - stop) * chunk[0].rgb.nbytes <= _MAX_AHEAD else 0)
            following = propagator.chunk(tracks, chunk, history, soon)
            at = stop + len(following)
            history.extend(chunk)
            _forget(history, tracker)
            if all(track.ended or track.dropped for track in tracks):
                break
        yield from merged(tracks)
    if stream is not None and at == seen.n_frames and next(stream, None) is not None:
        raise InputError("There are more frames now than when faces were detected. Has the file changed?")


def _keyframes_at_a_time(size: tuple[int, int], detector: DetectorConfig) -> int:
    """Return how many keyframes make a chunk; large frames would take much memory.

    Examples
    --------
    >>> [_keyframes_at_a_time(size, DetectorConfig()) for size in ((640, 480), (1920, 1080), (3840, 2160))]
    [4, 3, 1]
    """
    between = 3 * size[0] * size[1] * detector.detect_every
    return max(1, min(_KEYFRAMES, _MAX_CHUNK // between))


def _decoded(frames: Iterable[Frame], first: int, seen: Observations, brief: float) -> Iterator[Decoded]:
    before, end = -np.inf, first
    for index, frame in enumerate(frames, start=first):
        yield Decoded(index, checked(frame, index, seen.size), frame.time - before < brief)
        before, end = frame.time, index + 1
    if end < seen.n_frames:
        raise InputError("There are fewer frames now than when faces were detected. Has the file changed?")


def _forget(history: deque[Decoded], tracker: TrackerConfig) -> None:
    """Keep as many frames as a face may have gone unnoticed for, unless they are very large."""
    size, every = history[-1].rgb.nbytes, 2 * tracker.detector.detect_every
    min_frames = max(every - tracker.margin, min(every, _MAX_MEMORY // size), 1)
    while len(history) > max(min_frames, min(_MEMORY // size, tracker.detector.tiny_every)):
        history.popleft()


def _counts(track: Growing, config: DetectorConfig, *, still: bool) -> bool:
    """Tell whether a track is one: seen surely once, or doubtfully several times, and perhaps a face."""
    if track.dropped or track.first < 0 or track.verdict is Verdict.NO_FACE:
        return False
    return still or track.score >= config.score or track.n_seen >= _AGREEING


def _recognise(tracks: Sequence[Growing], recogniser: SFace, map: Map) -> None:
    """Give tracks their embeddings, and let their pictures go."""
    known = [track for track in tracks if track.best and track.verdict is Verdict.FACE]
    portraits = [portrait for track in known for portrait in track.best[:_RECOGNISED]]
    embeddings = iter(map(lambda portrait: recogniser.embed(portrait.pixels, portrait.points), portraits))
    for track in known:
        track.embeddings = np.array(list(islice(embeddings, min(len(track.best), _RECOGNISED))))
        track.pictures = [(portrait.frame, portrait.quality) for portrait in track.best]
    for track in tracks:
        track.best = []


def _finished(
    seen: Observations, growing: Sequence[Growing], config: TrackerConfig, work: Path | None, *, still: bool
) -> Tracks:
    """Fill, smooth and join the tracks."""
    growing = sorted(growing, key=lambda track: (track.first, track.number))
    shots = list(pairwise([0, *seen.cuts.tolist(), seen.n_frames]))
    confirmed = [track.verdict is Verdict.FACE for track in growing]
    all_filled, stretches = [], []
    for track, is_face in zip(growing, confirmed, strict=True):
        rows = track.written()
        all_filled.append(fill(rows, track.first, shots[track.shot], config, confirmed=is_face))
        entry, leave = (np.array(rows[i, BOX], dtype=np.float64) for i in (0, -1))
        stretches.append(Stretch(track.first, track.last + 1, entry, leave, track.embeddings, track.shot))
    groups = list(range(len(growing))) if still else join(stretches, config.same_person)
    amounts = [float(np.prod(filled.boxes[:, 2:], axis=1).sum()) for filled in all_filled]
    names = _names(groups, amounts, confirmed)
    arrays = new_arrays(sum(len(filled) for filled in all_filled), work)
    tracks: list[Track] = []
    start = 0
    for i, (track, filled) in enumerate(zip(growing, all_filled, strict=True)):
        views = {name: array[start : start + len(filled)] for name, array in arrays.items()}
        for name in ("boxes", "poses", "blendshapes", "source"):
            views[name][:] = getattr(filled, name)
        write_points(track.written(), filled, views["points"])
        track.buffer.drop()
        tracks.append(Track(i + 1, names[i], filled.first, **views, confirmed=confirmed[i]))
        start += len(filled)
    people = []
    for name in sorted(set(names), key=in_order):
        members = [i for i, other in enumerate(names) if other == name]
        best = sorted(
            (-quality, tracks[i].number, frame)
            for i in members
            for frame, quality in growing[i].pictures
            if not np.isnan(tracks[i].points[frame - tracks[i].first, 0, 0])
        )
        chosen = tuple((number, frame) for _, number, frame in best[:N_BEST])
        embeddings = np.concatenate([stretches[i].embeddings for i in members])
        people.append(Person(name, unit_mean(embeddings), chosen))
    result = Tracks(seen.size, seen.n_frames, tuple(people), tuple(tracks), seen.cuts)
    if work is not None:
        finish(work, result, arrays)
    return result


def _names(groups: Sequence[int], amounts: Sequence[float], confirmed: Sequence[bool]) -> list[str]:
    """Call people P1, P2 and so on, and what is perhaps no face U1 and so on, by how many pixels they are in."""
    amount = dict.fromkeys(groups, 0.0)
    for group, pixels in zip(groups, amounts, strict=True):
        amount[group] += pixels
    order = sorted(amount, key=lambda group: (-amount[group], group))
    faces = {group for group, is_face in zip(groups, confirmed, strict=True) if is_face}
    numbers, names = Counter[str](), dict[int, str]()
    for group in order:
        letter = "P" if group in faces else UNCONFIRMED
        numbers[letter] += 1
        names[group] = f"{letter}{numbers[letter]}"
    return [names[group] for group in groups]
