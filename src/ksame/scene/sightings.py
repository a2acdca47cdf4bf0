"""Who was seen where: sightings of faces, tracks of sightings, people with tracks.

Points are those of :class:`ksame.models.Mesh`: x and y in pixels of the frame, z away from the viewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ksame.errors import InputError
from ksame.faces.faceset import FloatArray, IntArray

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


class How(IntEnum):
    """How a face came to be known in a frame."""

    SEEN = 0
    """Found by the detector, or followed by its mesh, which believed in it."""
    FILLED = 1
    """Between, before or after frames where it was seen: its place is reckoned, not seen."""
    ADDED = 2
    """Put in by hand."""


@dataclass(frozen=True, eq=False)
class Sighting:
    """One face in one frame.

    Attributes
    ----------
    person : str
        Such as "P1".
    track : int
        Number of its track.
    frame : int
    box : (float, float, float, float)
        Left, top, width and height in pixels.
    points : ndarray of shape (478, 3) or None
        The mesh; None where there is none to be believed, so that the face must be masked.
    blendshapes : ndarray of shape (52,)
        Zero without a mesh.
    pose : ndarray of shape (3,)
        Yaw, pitch and roll in degrees; zero without a mesh.
    how : How
    confirmed : bool
        Whether it surely is a face. What is not is masked in its own size, never replaced, and counts as nobody.
    """

    person: str
    track: int
    frame: int
    box: tuple[float, float, float, float]
    points: FloatArray | None
    blendshapes: FloatArray
    pose: FloatArray
    how: How
    confirmed: bool = True


@dataclass(frozen=True, eq=False)
class Track:
    """One face through consecutive frames; rows are frames, without gaps.

    The arrays may lie on disk (memory maps): a recording may be hours long.

    Attributes
    ----------
    number : int
    person : str
    first : int
        Number of the first frame.
    boxes : ndarray of shape (n_frames, 4)
    points : ndarray of shape (n_frames, 478, 3), float32
        NaN where there is no mesh to be believed.
    blendshapes : ndarray of shape (n_frames, 52), float32
    poses : ndarray of shape (n_frames, 3), float32
    how : ndarray of shape (n_frames,), uint8
        A :class:`How` for each frame.
    confirmed : bool
        Whether a second opinion in any frame says that this is a face; without one it has no points.
    """

    number: int
    person: str
    first: int
    boxes: NDArray[np.float32]
    points: NDArray[np.float32]
    blendshapes: NDArray[np.float32]
    poses: NDArray[np.float32]
    how: NDArray[np.uint8]
    confirmed: bool = True

    def __len__(self) -> int:
        return len(self.boxes)

    @property
    def end(self) -> int:
        """The number of the frame after the last."""
        return self.first + len(self)

    def meshed(self) -> NDArray[np.bool_]:
        """Tell which frames have a mesh, (n_frames,)."""
        return ~np.isnan(self.points[:, 0, 0])

    def at(self, frame: int) -> Sighting | None:
        """Return the sighting in a frame, or None outside the track."""
        i = frame - self.first
        if not 0 <= i < len(self):
            return None
        points = np.asarray(self.points[i], dtype=np.float64)
        x, y, width, height = self.boxes[i].tolist()
        return Sighting(
            self.person,
            self.number,
            frame,
            (x, y, width, height),
            None if np.isnan(points[0, 0]) else points,
            np.asarray(self.blendshapes[i], dtype=np.float64),
            np.asarray(self.poses[i], dtype=np.float64),
            How(int(self.how[i])),
            self.confirmed,
        )


@dataclass(frozen=True, eq=False)
class Person:
    """Somebody seen in one or more tracks.

    Attributes
    ----------
    name : str
        "P1", "P2" and so on, by how much of the recording they are in; after them "U1", "U2" and so on, what is
        perhaps no face.
    embedding : ndarray of shape (128,) or None
        Mean SFace embedding over the best frames, of unit length; None if no frame was good enough.
    best : tuple of (int, int)
        Track number and frame of the sharpest, most frontal sightings, the best first.
    """

    name: str
    embedding: FloatArray | None
    best: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, eq=False)
class Found:
    """A face as it was found, before a person edited the tracks.

    Attributes
    ----------
    person : str
        The name it was given.
    first : int
        Number of the first frame.
    boxes : ndarray of shape (n_frames, 4)
    confirmed : bool
    """

    person: str
    first: int
    boxes: NDArray[np.float32]
    confirmed: bool = True


@dataclass(frozen=True, eq=False)
class Cast:
    """Everyone in one photograph or recording.

    Attributes
    ----------
    size : (int, int)
        Width and height of the frames.
    n_frames : int
    people : tuple of Person
    tracks : tuple of Track
    cuts : ndarray of shape (n_cuts,)
        Numbers of the frames with which a new shot begins, the first frame not counted.
    found : tuple of Found, optional
        Where a person may have edited the tracks: everyone as they were found. None where the tracks are just that.
    source : str
        SHA-256 of what was looked at; empty where it is not known.
    """

    size: tuple[int, int]
    n_frames: int
    people: tuple[Person, ...]
    tracks: tuple[Track, ...]
    cuts: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    found: tuple[Found, ...] | None = None
    source: str = ""

    def __post_init__(self) -> None:
        names = {person.name for person in self.people}
        for track in self.tracks:
            if track.person not in names:
                raise InputError(f"Track {track.number} belongs to {track.person!r}, who is not among the people.")
            if track.first < 0 or track.end > self.n_frames:
                raise InputError(f"Track {track.number} leaves the recording's {self.n_frames} frames.")

    def at(self, frame: int) -> list[Sighting]:
        """Return everyone in a frame, the nearest to the camera (largest box) last."""
        seen = [sighting for track in self.tracks if (sighting := track.at(frame)) is not None]
        return sorted(seen, key=lambda sighting: sighting.box[2] * sighting.box[3])

    @property
    def unsure(self) -> frozenset[str]:
        """Names of those who are perhaps nobody: none of their tracks is confirmed, and they have at least one."""
        known = {track.person for track in self.tracks if track.confirmed}
        return frozenset(track.person for track in self.tracks) - known

    def of(self, person: str) -> Sequence[Track]:
        """Return the tracks of a person."""
        return [track for track in self.tracks if track.person == person]
