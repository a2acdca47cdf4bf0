"""Who is who, live: everyone is masked until they are confirmed, told from others, and judged with their surrogate."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ksame.arrays import FloatArray
from ksame.live.background import Background, Change, Work
from ksame.live.config import LiveConfig
from ksame.models import Face, Recogniser, Source
from ksame.scene.decide import Arrivals, Decision, Subject, Treatment, collect_views, neutral_of, subjects_of
from ksame.scene.media import Frame
from ksame.scene.observe.confirm import Verdict
from ksame.scene.observe.mesh import FaceMesher
from ksame.scene.track import People, Person, Track, Tracks

_FACING = 40.0  # degrees of yaw up to which a view tells who somebody is, by choice
_MIN_SIDE = 32.0  # pixels from which on it does, by choice

View = tuple[Frame, Face]
"""A face with a mesh, and the frame in which it was seen."""


@dataclass(frozen=True, eq=False)
class Known:
    """Somebody who has been told from others."""

    name: str
    embedding: FloatArray  # (d,): sum of all that was seen of them
    decision: Decision
    neutral: FloatArray  # (478, 3)

    def likeness(self, embedding: FloatArray) -> float:
        """Return the cosine between somebody and this person."""
        return float(self.embedding @ embedding / max(float(np.linalg.norm(self.embedding)), 1e-9))


@dataclass(eq=False)
class _Candidate:
    """Views of a track that is to be told from others, and when to look at it (again)."""

    views: list[View] = field(default_factory=list)
    due: float = -np.inf


@dataclass(eq=False)
class LivePeople:
    """Everyone who is there, and everyone who is remembered."""

    config: LiveConfig
    mesher: FaceMesher  # confirms faces
    recogniser: Recogniser  # tells people apart
    arrivals: Arrivals | None  # decides; None where everyone is masked
    background: Background  # where all that is done

    def __post_init__(self) -> None:
        self.known: dict[str, Known] = {}  # those seen last at the end
        self._tracks: dict[int, str] = {}  # who is who now
        self._candidates: dict[int, _Candidate] = {}
        self._n_people = 0
        self._free = True
        self._replaced: set[str] = set()

    def settle(self) -> None:
        """Put into effect what has been found out about somebody."""
        self._free = self.background.free

    def named(self, face: Face) -> Face:
        """Return a face with the name of the person; none where it is not known yet who it is."""
        return replace(face, person=self._tracks.get(face.track, ""))

    @property
    def decisions(self) -> Mapping[str, Decision]:
        """What becomes of everyone who is known."""
        return {name: known.decision for name, known in self.known.items()}

    def neutral(self, track: int) -> FloatArray | None:
        """Return the neutral shape of whoever a track shows."""
        known = self.known.get(self._tracks.get(track, ""))
        return None if known is None else known.neutral

    @property
    def n_people(self) -> int:
        """How many people were told from each other."""
        return self._n_people

    @property
    def n_never_replaced(self) -> int:
        """How many of them the judge knew in every face."""
        return self._n_people - len(self._replaced)

    def watch(self, frame: Frame, faces: Sequence[Face]) -> None:
        """Collect views of everyone in a frame, and see to whoever is waiting longest."""
        if self.arrivals is None:
            return
        here = {face.track for face in faces}
        self._tracks = {track: name for track, name in self._tracks.items() if track in here}
        self._candidates = {track: each for track, each in self._candidates.items() if track in here}
        for face in faces:
            if _tells(face):
                self._collect(frame, face)
        waiting = [
            (candidate.due, track)
            for track, candidate in self._candidates.items()
            if frame.time >= candidate.due and len(candidate.views) >= self._wanted(track)
        ]
        if waiting and self._free:
            track = min(waiting)[1]
            views = self._candidates[track].views
            again = track in self._tracks
            self._candidates[track] = _Candidate(due=frame.time + (self.config.recheck if again else self.config.retry))
            if again:
                self.background.start(self._check(self.arrivals, track, views), lambda: self._mask(track))
            else:
                self.background.start(self._identify(self.arrivals, track, views))

    def _wanted(self, track: int) -> int:
        return 1 if track in self._tracks else self.config.views

    def _collect(self, frame: Frame, face: Face) -> None:
        """Keep a view where there are too few, or replace the oldest."""
        candidate = self._candidates.setdefault(face.track, _Candidate())
        views = candidate.views
        if not views or frame.time - views[-1][0].time >= self.config.between_views:
            views.append((frame, face))
            del views[: -self._wanted(face.track)]

    def _check(self, arrivals: Arrivals, track: int, views: Sequence[View]) -> Work:
        """Judge a person again, in what is published by now; whoever is known in it is masked, and decided anew."""
        known = self.known.get(self._tracks[track])

        def work() -> Change | None:
            subject, _ = self._subject("P0", views)
            passed = subject is not None and known is not None and arrivals.passes(subject, known.decision.surrogate)
            return None if passed else lambda: self._mask(track)

        return work

    def _mask(self, track: int) -> None:
        """Forget who a track shows, so that it is masked until that is found out anew."""
        self._tracks.pop(track, None)
        self._candidates.pop(track, None)

    def _identify(self, arrivals: Arrivals, track: int, views: Sequence[View]) -> Work:
        """Tell somebody from all others, and decide what becomes of them."""
        elsewhere = {name for other, name in self._tracks.items() if other != track}
        new_name = f"P{self._n_people + 1}"

        def work() -> Change | None:
            frame, face = views[-1]
            if self.mesher.confirm(frame.pixels, face) is not Verdict.FACE:
                return None
            name = self._name(views, elsewhere) or new_name
            subject, neutral = self._subject(name, views)
            if subject is None or neutral is None:
                return None
            decision = arrivals.decide(subject)
            embedding = np.sum([view.embedding for view in subject.views], axis=0)
            return lambda: self._introduce(track, Known(name, embedding, decision, neutral))

        return work

    def _introduce(self, track: int, known: Known) -> None:
        """Let everyone know who somebody is."""
        before = self.known.pop(known.name, None)
        if before is None:
            self._n_people += 1
        else:
            known = replace(known, embedding=known.embedding + before.embedding)
        self.known[known.name] = known
        if known.decision.treatment is Treatment.REPLACE:
            self._replaced.add(known.name)
            self._tracks[track] = known.name
        self._forget()

    def _name(self, views: Sequence[View], elsewhere: Collection[str]) -> str | None:
        """Return who of those who are known is seen; nobody who is there in another track."""
        embedding = np.sum([self.recogniser.embed(frame.pixels, face.landmarks) for frame, face in views[-2:]], axis=0)
        embedding = embedding / max(float(np.linalg.norm(embedding)), 1e-9)
        alike = {name: known.likeness(embedding) for name, known in self.known.items() if name not in elsewhere}
        name = max(alike, key=alike.__getitem__, default=None)
        return name if name is not None and alike[name] >= self.config.job.tracker.same_person else None

    def _subject(self, name: str, views: Sequence[View]) -> tuple[Subject | None, FloatArray | None]:
        """Return somebody as the decision wants them, and their neutral shape, from views as from a short film."""
        track = _short_track(name, [face for _, face in views])
        frames = [Frame(i, frame.time, frame.pixels) for i, (frame, _) in enumerate(views)]
        best = tuple((track.number, i) for i in reversed(range(len(views))))
        height, width = frames[0].pixels.shape[:2]
        tracks = Tracks((width, height), len(frames), (Person(name, None, best),), (track,))
        taken = collect_views(lambda _: frames, tracks, self.recogniser, self.config.job.tracker.detector)
        subjects = subjects_of([taken], People({(0, name): name}))
        return (subjects[0] if subjects else None), neutral_of(track)

    def _forget(self) -> None:
        """Forget who was seen longest ago, where too many are remembered."""
        here = set(self._tracks.values())
        gone = [name for name in self.known if name not in here]
        for name in gone[: max(0, len(self.known) - self.config.remembered)]:
            del self.known[name]


def _tells(face: Face) -> bool:
    """Tell whether a face is seen well enough to know who it is."""
    return face.mesh is not None and abs(face.mesh.pose.yaw) <= _FACING and face.side >= _MIN_SIDE


def _short_track(name: str, faces: Sequence[Face]) -> Track:
    """Return views of a face as a track of as many frames."""
    meshes = [face.mesh for face in faces if face.mesh is not None]
    return Track(
        1,
        name,
        0,
        np.array([face.box for face in faces], dtype=np.float32),
        np.array([mesh.points for mesh in meshes], dtype=np.float32),
        np.array([mesh.blendshapes for mesh in meshes], dtype=np.float32),
        np.array([(mesh.pose.yaw, mesh.pose.pitch, mesh.pose.roll) for mesh in meshes], dtype=np.float32),
        np.full(len(faces), Source.DETECTED, dtype=np.uint8),
    )
