"""Following faces from frame to frame, and back to where they began.

A face with a mesh is followed by it. One without, or whose mesh is no longer believed, is looked for by the detector
in the part of the frame where it should be. Detections over the whole frame say which faces are new, and confirm
those that are followed: first the sure ones, then the doubtful (Zhang et al. 2022, ByteTrack, section 3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import numpy as np

from ksame.faces.faceset import ByteArray, FloatArray
from ksame.geometry import centre, overlap, side
from ksame.models import Face as Detection
from ksame.models import FaceDetector, FaceMesh, Mesh
from ksame.scene.looking.confirming import Examiner, Verdict
from ksame.scene.looking.detecting import Search, same_face, search_near
from ksame.scene.looking.faces import Face, Found, found_by
from ksame.scene.looking.options import Looking
from ksame.scene.looking.storage import Spool

_AGREE = 0.35  # overlap of a mesh with the detection it was begun from
_JUMP = 0.6  # how far a mesh may move between frames, in sides
_SWELL = 1.5  # how many times larger or smaller it may become
_CLASH = 0.45  # overlap of two followed faces from which on they are one
_UNSEEN = 3  # how often in a row the detector may not see what a mesh follows
_SURELY = 1.4  # a search surely finds faces so many times larger than the smallest it looks for
_OUT_OF_SIGHT = 5  # frames after which a face that comes back must look like itself
_STRANGER = 0.3  # likeness below which it does not
_DOUBTED = 4  # frames for which a face may be missing that was never surely seen, or only just
_KNOWN = 5  # frames in which a face was seen before one may go by without looking
_LARGE = 72.0  # side of a face from which on every second frame is looked at
_CALM = 0.1  # sides that such a face may move between frames, and be off its place, or grow, meanwhile
_NEARBY = 6  # frames for which a missing face is looked for at its place; after that, in searches of whole frames
_BLINK = 2  # frames that may be missing on the way back
_MEMORY = 16 << 20  # bytes of frames kept for the way back
_MOST = 96 << 20  # the same where fewer do not reach back to the last search for all faces


@dataclass(frozen=True, eq=False)
class Moment:
    """A frame: its number, its pixels, and whether it may go by without looking at faces that are calm.

    It may if it comes so soon after the last that little can have changed, is not searched as a whole, and is not the
    last of its shot.
    """

    frame: int
    rgb: ByteArray
    brief: bool


class _Rest(Enum):
    """A frame that goes by without looking at a face."""

    RESTS = "rests"


_Step: TypeAlias = "Found | _Rest | None"


@dataclass(frozen=True, eq=False)
class _Way:
    """One face followed through some frames: what was found in each, and a copy of the face after the last."""

    steps: list[_Step]
    goal: Face


class Eyes:
    """The networks, and what they tell about one face in one frame.

    Faces are recognised only when all were followed: a recogniser takes as much memory as all the rest.
    """

    def __init__(self, options: Looking) -> None:
        self.options = options
        self.detector = FaceDetector()
        self.mesh = FaceMesh()
        self._examiner = Examiner(self.detector)

    def take(self, rgb: ByteArray, detection: Detection) -> Found:
        """Return a detected face, with its mesh where one is believed."""
        return found_by(self._fit(rgb, detection), detection)

    def follow(self, rgb: ByteArray, last: Found, expected: FloatArray, score: float) -> Found | None:
        """Return a face about where it is expected, by its mesh or by a detection of at least ``score``."""
        if last.mesh is not None:
            mesh = self._step(rgb, last.mesh, centre(expected) - centre(last.box))
            if mesh is not None:
                return found_by(mesh, None)
        detection = search_near(self.detector, rgb, expected, last.roll, score)
        return None if detection is None else self.take(rgb, detection)

    def near(self, rgb: ByteArray, found: Found) -> Detection | None:
        """Ask the detector for a face that a mesh follows."""
        return search_near(self.detector, rgb, found.box, found.roll, self.options.low)

    def examine(self, rgb: ByteArray, detection: Detection) -> Verdict:
        """Say by second opinions whether a detection is a face."""
        return self._examiner.judge(rgb, detection, self.options)

    def _fit(self, rgb: ByteArray, detection: Detection) -> Mesh | None:
        if detection.side < self.options.mesh_side:
            return None
        mesh = self.mesh.fit(rgb, detection)
        agrees = overlap(found_by(mesh, None).box, np.array(detection.box))[0, 0] > _AGREE
        return mesh if mesh.presence >= self.options.presence and agrees else None

    def _step(self, rgb: ByteArray, mesh: Mesh, move: FloatArray) -> Mesh | None:
        shifted = Mesh(mesh.points + np.append(move, 0.0), mesh.presence, mesh.blendshapes, mesh.pose)
        now = self.mesh.follow(rgb, shifted)
        before, after = found_by(shifted, None).box, found_by(now, None).box
        size = side(before)
        sane = 1 / _SWELL < side(after) / size < _SWELL and np.hypot(*(centre(after) - centre(before))) < _JUMP * size
        believed = now.presence >= self.options.presence and side(after) >= self.options.mesh_side
        return now if believed and sane else None


class Follower:
    """Everyone in the shot so far.

    Parameters
    ----------
    eyes : Eyes
    pool : Executor
        Runs what is independent of each other.
    new_spool : callable
        Returns where the rows of a new face go, by its number.
    """

    def __init__(self, eyes: Eyes, pool: Executor, new_spool: Callable[[int], Spool]) -> None:
        self.eyes = eyes
        self.faces: list[Face] = []
        self.closed: list[Face] = []
        self._pool = pool
        self._new_spool = new_spool
        self._count = 0
        self._ways: dict[int, Future[_Way]] = {}  # on which faces have set out
        self._past: deque[tuple[ByteArray, list[FloatArray]]] = deque()  # frames of this shot and the boxes in them

    def cut(self) -> None:
        """End all: a new shot begins."""
        self.closed += self.faces
        self.faces = []
        self._ways = {}
        self._past.clear()

    def advance(self, frames: Sequence[Moment], search: Future[Search], following: Sequence[Moment] = ()) -> None:
        """Go on by several frames.

        Everyone is followed through all of them at once, each in a thread, and on through the frames that come next;
        meanwhile these are gone through in order. Whoever turns out to have gone astray on the way is followed anew
        from there.

        Parameters
        ----------
        frames : sequence of Moment
        search : future Search
            Of the last of them.
        following : sequence of Moment
            Those of the next call, if it belongs to the same shot.
        """
        ways = {
            self._ways.get(face.number) or self._pool.submit(self._way, frames, face): face.number
            for face in self.faces
        }
        gone: dict[int, _Way] = {}
        ahead: dict[int, Future[_Way]] = {}
        for way in as_completed(ways):  # whoever arrives first goes on first
            number = ways[way]
            gone[number] = way.result()
            if following:
                ahead[number] = self._pool.submit(self._way, following, gone[number].goal)
        self._go(frames, search.result(), {number: way.steps for number, way in gone.items()})
        self._ways = {}
        for face in self.faces if following else ():
            if face.number in gone and face.stands_as(gone[face.number].goal):
                self._ways[face.number] = ahead.pop(face.number)
            else:
                self._ways[face.number] = self._pool.submit(self._way, following, face)
        for wrong in ahead.values():
            wrong.cancel()

    def _go(self, frames: Sequence[Moment], search: Search, ways: dict[int, list[_Step]]) -> None:
        """Take down some frames in order, with what was found on the ways that faces went."""
        for i, moment in enumerate(frames):
            steps = [
                ways[face.number][i]
                if face.number in ways
                else self._pool.submit(self._follow, moment.rgb, face).result()
                for face in self.faces
            ]
            resting = [step is _Rest.RESTS for step in steps]
            seen = [
                face.rest() if isinstance(step, _Rest) else step for face, step in zip(self.faces, steps, strict=True)
            ]
            self._part(moment.rgb, seen)
            for face, step, one in zip(self.faces, steps, seen, strict=True):
                if one is None and step is not None:
                    ways.pop(face.number, None)
            self._take(moment, seen, resting, search if i == len(frames) - 1 else None)

    def _way(self, frames: Sequence[Moment], face: Face) -> _Way:
        """Follow one face through some frames, without touching it.

        Where it turns out not to have been calm while it rested, the frames that went by are looked at after all.
        """
        steps: list[_Step] = []
        ahead = face.ahead()
        for i, moment in enumerate(frames):
            if _may_rest(moment, ahead):
                ahead.rest()
                steps.append(_Rest.RESTS)
                continue
            found = self._follow(moment.rgb, ahead)
            if ahead.guessed and (found is None or _strayed(found, ahead)):
                missed = range(i - ahead.guessed, i)
                ahead.guessed = 0
                for k in missed:
                    steps[k] = late = self._follow(frames[k].rgb, ahead)
                    ahead.write(late)
            ahead.write(found)
            steps.append(found)
        return _Way(steps, ahead)

    def _take(self, moment: Moment, seen: list[Found | None], resting: Sequence[bool], search: Search | None) -> None:
        """Take down what was seen in a frame, and begin the faces that a search found."""
        frame, rgb = moment.frame, moment.rgb
        fresh: list[Detection] = []
        if search is not None:
            fresh = self._confirm(rgb, seen, search)
            self._examine(rgb, [(face, one.detection) for face, one in zip(self.faces, seen, strict=True) if one])
        for face, found, rests in zip(self.faces, seen, resting, strict=True):
            if rests:
                continue
            face.write(found)
            if found is not None:
                face.portray(frame, rgb, found)
        boxes = [found.box for found in seen if found is not None]
        begun: list[tuple[Face, Detection]] = []
        for detection, found in zip(fresh, self._pool.map(lambda d: self.eyes.take(rgb, d), fresh), strict=True):
            if not any(same_face(np.array(detection.box), box) for box in boxes):
                one = _apart(found, detection, boxes)
                boxes.append(one.box)
                begun.append((self._begin(frame, rgb, one, detection), detection))
        self._examine(rgb, begun)
        self._remember(rgb, boxes)
        lost = [face for face in self.faces if face.missing > self._patience(face)]
        self.closed += lost
        self.faces = [face for face in self.faces if face not in lost]

    def _examine(self, rgb: ByteArray, detected: Iterable[tuple[Face, Detection | None]]) -> None:
        """Ask for second opinions on faces that were detected and that none has confirmed yet."""
        asked = [(face, d) for face, d in detected if d is not None and face.verdict is not Verdict.FACE]
        verdicts = self._pool.map(lambda pair: self.eyes.examine(rgb, pair[1]), asked)
        for (face, _), verdict in zip(asked, verdicts, strict=True):
            face.verdict = max(face.verdict, verdict)

    def _follow(self, rgb: ByteArray, face: Face) -> Found | None:
        if face.missing > _NEARBY:
            return None
        return self.eyes.follow(rgb, face.last, face.expected(), self._needed(face))

    def _needed(self, face: Face) -> float:
        """Return how sure the detector must be to go on with a face: surer where it never was sure."""
        options = self.eyes.options
        return options.low if face.sure >= options.score else options.doubtful

    def _patience(self, face: Face) -> int:
        """Return for how many frames a face may be missing: no longer than it was seen, less if never surely."""
        options = self.eyes.options
        return min(options.patience, max(_DOUBTED, face.n_seen)) if face.sure >= options.score else _DOUBTED

    def _part(self, rgb: ByteArray, seen: list[Found | None]) -> None:
        """Where two followed faces became one, let the one go that looks less like it."""
        for i in range(len(seen)):
            for j in range(i):
                a, b = seen[i], seen[j]
                if a is None or b is None or overlap(a.box, b.box)[0, 0] <= _CLASH:
                    continue
                likeness = [self.faces[k].likeness(rgb, found) for found, k in ((a, i), (b, j))]
                nearness = [_offset(found, self.faces[k]) for found, k in ((a, i), (b, j))]
                worse = i if (likeness[0] - nearness[0], j) < (likeness[1] - nearness[1], i) else j
                seen[worse] = None

    def _confirm(self, rgb: ByteArray, seen: list[Found | None], search: Search) -> list[Detection]:
        """Compare what is followed with what was detected; return the detections of nobody known."""
        options = self.eyes.options
        places = [face.expected() if found is None else found.box for face, found in zip(self.faces, seen, strict=True)]
        free = list(range(len(self.faces)))
        left: list[Detection] = []
        for sure in (True, False):
            some = [d for d in search.found if (d.score >= options.score) == sure]
            for d, k in _match(some, places, free, self.faces):
                if k is None or not self._rejoin(rgb, k, d, seen):
                    left.append(d)
                else:
                    free.remove(k)
                    self.faces[k].unsupported = 0
        for k in free:
            found, face = seen[k], self.faces[k]
            if found is None or found.detection is not None or side(found.box) < _SURELY * search.least:
                continue
            near = self._pool.submit(self.eyes.near, rgb, found).result()
            face.unsupported = 0 if near is not None else face.unsupported + 1
            if face.unsupported > _UNSEEN:
                seen[k] = None
        known = [found.box for found in seen if found is not None]
        left = [d for d in left if d.score >= options.doubtful]
        return [d for d in left if not any(same_face(np.array(d.box), box) for box in known)]

    def _rejoin(self, rgb: ByteArray, k: int, detection: Detection, seen: list[Found | None]) -> bool:
        """Give a detection to the face it was matched with, unless that was gone and comes back as somebody else."""
        face, found = self.faces[k], seen[k]
        if found is None:
            found = self._pool.submit(self.eyes.take, rgb, detection).result()
            others = [one.box for n, one in enumerate(seen) if one is not None and n != k]
            if any(same_face(np.array(detection.box), box) for box in others):
                return False
            found = _apart(found, detection, others)
            if face.missing >= _OUT_OF_SIGHT:
                stranger = found.mesh is not None and bool(face.best) and face.likeness(rgb, found) < _STRANGER
                if stranger or detection.score < self.eyes.options.score:
                    return False
            seen[k] = found
        elif found.detection is None:
            seen[k] = Found(found.box, found.mesh, detection)
        return True

    def _begin(self, frame: int, rgb: ByteArray, found: Found, detection: Detection) -> Face:
        """Begin a face, going back to where it appeared, and return it."""
        before: list[tuple[ByteArray, Found | None]] = []
        ahead = Face(0, 0, Spool(None), found)
        ahead.write(Found(found.box, found.mesh, detection))
        for past, boxes in reversed(self._past):
            earlier = self._pool.submit(self._follow, past, ahead).result()
            if earlier is not None and any(same_face(earlier.box, box) for box in boxes):
                break
            ahead.write(earlier)
            if ahead.missing > _BLINK:
                break
            before.append((past, earlier))
            if earlier is not None:
                boxes.append(earlier.box)
        while before and before[-1][1] is None:
            before.pop()
        self._count += 1
        face = Face(self._count, frame - len(before), self._new_spool(self._count), found)
        for back, (past, earlier) in enumerate(reversed(before)):
            face.write(earlier)
            if earlier is not None:
                face.portray(face.first + back, past, earlier)
        face.write(Found(found.box, found.mesh, detection))
        face.portray(frame, rgb, found)
        self.faces.append(face)
        return face

    def _remember(self, rgb: ByteArray, boxes: Iterable[FloatArray]) -> None:
        self._past.append((rgb, list(boxes)))
        options, size = self.eyes.options, rgb.nbytes
        # Before the first frame in which a face is seen, as many frames as the margin are filled.
        least = max(options.full_every - options.margin, min(options.full_every, _MOST // size), 1)
        while len(self._past) > max(least, min(_MEMORY // size, options.tiny_every)):
            self._past.popleft()


def _may_rest(moment: Moment, face: Face) -> bool:
    """Tell whether a frame may go by without looking at a face that is calm and followed well.

    Every second frame may; of small faces, on which blinks and speech are too small to be seen, two of three.
    """
    length = side(face.last.box)
    calm = np.hypot(*face.speed) < _CALM * length
    fresh = face.guessed < (1 if length >= _LARGE else 2)
    well = face.last.mesh is not None and face.missing == 0 and face.n_seen > _KNOWN
    return moment.brief and bool(calm) and fresh and well


def _strayed(found: Found, face: Face) -> bool:
    """Tell whether a face is elsewhere, or of another size, than was expected while it rested."""
    swollen = abs(side(found.box) / side(face.last.box) - 1)
    return swollen > _CALM or _offset(found, face) > _CALM


def _apart(found: Found, detection: Detection, others: Sequence[FloatArray]) -> Found:
    """Return a face without its mesh where that slipped onto somebody else, as of a face half hidden by another."""
    slipped = any(overlap(found.box, box)[0, 0] > _CLASH for box in others)
    return found_by(None, detection) if slipped else found


def _offset(found: Found, face: Face) -> float:
    """Return how far a face is from where it was expected, in sides."""
    return float(np.hypot(*(centre(found.box) - centre(face.expected())))) / max(side(found.box), 1.0)


def _match(
    detections: Sequence[Detection], places: Sequence[FloatArray], free: Sequence[int], faces: Sequence[Face]
) -> list[tuple[Detection, int | None]]:
    """Pair detections with the faces that are free, nearest pairs first."""
    pairs = []
    for i, detection in enumerate(detections):
        box = np.array(detection.box)
        for k in free:
            size = max(side(places[k]), 1.0)
            off = float(np.hypot(*(centre(box) - centre(places[k])))) / size
            reach = 0.6 + 0.1 * min(faces[k].missing, 10)
            if off < reach and 0.5 < side(box) / size < 2.0:
                pairs.append((off, i, k))
    taken: dict[int, int] = {}
    for _, i, k in sorted(pairs):
        if i not in taken and k not in taken.values():
            taken[i] = k
    return [(detection, taken.get(i)) for i, detection in enumerate(detections)]
