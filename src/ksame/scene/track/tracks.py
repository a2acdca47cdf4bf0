"""Tracks of faces, and the people they belong to.

Points are those of :class:`ksame.models.Mesh`: x and y in pixels of the frame, z away from the viewer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray, IntArray
from ksame.errors import InputError
from ksame.models import Face, Mesh, Pose, Source, five_points

N_POINTS = 478
NOT_SURE = "not sure that this is a face"
"""Why a detection that nothing confirmed is masked."""


def in_order(name: str) -> tuple[str, int]:
    """Return by what names are sorted: by their words, then by their number; so "P" stands before "U".

    Examples
    --------
    >>> sorted(["U1", "P10", "P2", "guest"], key=in_order)
    ['P2', 'P10', 'U1', 'guest']
    """
    words = name.rstrip("0123456789")
    return words, int(name[len(words) :] or 0)


@dataclass(frozen=True, eq=False)
class Track:
    """One face through consecutive frames; rows are frames, without gaps.

    The arrays may lie on disk (memory maps): a recording may be hours long.
    """

    number: int
    person: str
    first: int  # number of the first frame
    boxes: NDArray[np.float32]  # (n_frames, 4)
    points: NDArray[np.float32]  # (n_frames, 478, 3): NaN where there is no mesh to be believed
    blendshapes: NDArray[np.float32]  # (n_frames, 52)
    poses: NDArray[np.float32]  # (n_frames, 3)
    source: NDArray[np.uint8]  # (n_frames,): a :class:`ksame.models.Source` for each frame
    # whether a second opinion in any frame says that this is a face; without one it has no points
    confirmed: bool = True

    def __len__(self) -> int:
        return len(self.boxes)

    @property
    def end(self) -> int:
        """The number of the frame after the last."""
        return self.first + len(self)

    def without_meshes(self) -> Track:
        """Return the boxes only; the rest takes no memory."""
        n = len(self)
        return replace(
            self,
            boxes=np.array(self.boxes),
            points=np.broadcast_to(np.float32(np.nan), (n, N_POINTS, 3)),
            blendshapes=np.broadcast_to(np.float32(0), self.blendshapes.shape),
            poses=np.broadcast_to(np.float32(0), self.poses.shape),
            source=np.array(self.source),
        )

    def meshed(self) -> NDArray[np.bool_]:
        """Tell which frames have a mesh, (n_frames,)."""
        return ~np.isnan(self.points[:, 0, 0])

    def at(self, frame: int) -> Face | None:
        """Return the face in a frame, or None outside the track."""
        i = frame - self.first
        if not 0 <= i < len(self):
            return None
        x, y, width, height = self.boxes[i].tolist()
        points = np.asarray(self.points[i])  # memory maps are slow to work with
        mesh = None
        if not math.isnan(points[0, 0]):
            mesh = Mesh(points, 1.0, np.asarray(self.blendshapes[i]), Pose(*self.poses[i].tolist()))
        return Face(
            (x, y, width, height),
            np.full((5, 2), np.nan) if mesh is None else five_points(mesh),
            mesh=mesh,
            confirmed=self.confirmed,
            source=Source(int(self.source[i])),
            track=self.number,
            person=self.person,
        )


@dataclass(frozen=True, eq=False)
class Person:
    """Somebody with one or more tracks."""

    # "P1", "P2" and so on, by how much of the recording they are in; after them "U1", "U2" and so on, what is
    # perhaps no face
    name: str
    # (128,): mean SFace embedding over the best frames, of unit length; None if no frame was good enough
    embedding: FloatArray | None
    best: tuple[tuple[int, int], ...] = ()  # track number and frame of the sharpest, most frontal faces, the best first


@dataclass(frozen=True, eq=False)
class OriginalTrack:
    """A face as it was found, before a person edited the tracks: its name, first frame, and boxes, (n_frames, 4)."""

    person: str
    first: int
    boxes: NDArray[np.float32]
    confirmed: bool = True


@dataclass(frozen=True, eq=False)
class Tracks:
    """Everyone in one photograph or recording."""

    size: tuple[int, int]  # width and height of the frames
    n_frames: int
    people: tuple[Person, ...]
    tracks: tuple[Track, ...]
    # (n_cuts,): numbers of the frames with which a new shot begins, the first frame not counted
    cuts: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    # where a person may have edited the tracks: everyone as they were found; see :attr:`as_found`
    originals: tuple[OriginalTrack, ...] | None = None
    source: str = ""  # SHA-256 of the recording; empty where it is not known

    def __post_init__(self) -> None:
        names = {person.name for person in self.people}
        for track in self.tracks:
            if track.person not in names:
                raise InputError(f"Track {track.number} belongs to {track.person!r}, who is not among the people.")
            if track.first < 0 or track.end > self.n_frames:
                raise InputError(f"Track {track.number} leaves the recording's {self.n_frames} frames.")

    def at(self, frame: int) -> list[Face]:
        """Return everyone in a frame, the nearest to the camera (largest box) last."""
        faces = [face for track in self.tracks if (face := track.at(frame)) is not None]
        return sorted(faces, key=lambda face: face.box[2] * face.box[3])

    @property
    def as_found(self) -> tuple[OriginalTrack, ...]:
        """Everyone as they were found; these very tracks, where nobody has edited them."""
        if self.originals is not None:
            return self.originals
        return tuple(OriginalTrack(t.person, t.first, t.boxes, t.confirmed) for t in self.tracks)

    @property
    def unconfirmed(self) -> frozenset[str]:
        """Names of those who are perhaps nobody: none of their tracks is confirmed, and they have at least one."""
        confirmed = {track.person for track in self.tracks if track.confirmed}
        return frozenset(track.person for track in self.tracks) - confirmed

    def without_meshes(self) -> Tracks:
        """Return the same without meshes and expressions, all in memory: a small part of it, and no file is open."""
        return replace(self, tracks=tuple(track.without_meshes() for track in self.tracks))

    def of(self, person: str) -> Sequence[Track]:
        """Return the tracks of a person."""
        return [track for track in self.tracks if track.person == person]
