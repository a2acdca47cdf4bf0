"""What a photograph, a recording and a folder of pictures have in common: frames in order, each with its time."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from ksame.errors import InputError
from ksame.scene.media.threads import ahead, depth

Pixels = NDArray[np.uint8]
PixelT = TypeVar("PixelT", np.uint8, np.uint16)
Read: TypeAlias = "tuple[Stamp, Pixels | None, VideoFrame | None]"
MATRICES = {1: 1, 4: 4, 5: 5, 6: 5, 7: 7, 9: 9, 10: 9}
"""swscale's matrix for a colour space as files name it."""
_HD_HEIGHT = 720
Kind = Literal["photograph", "video", "folder"]


@dataclass(frozen=True, eq=False)
class Frame:
    """One picture of a recording.

    Attributes
    ----------
    index : int
    time : float
        In seconds, as the file tells it.
    pixels : ndarray of shape (height, width, 3), uint8
        RGB, upright, read-only.
    native : VideoFrame, optional
        The same as it was decoded, with all its bits.
    """

    index: int
    time: float
    pixels: Pixels
    native: VideoFrame | None = None


@dataclass(frozen=True)
class Stamp:
    """When a frame is shown and for how long, in units of the recording's time base."""

    at: int
    duration: int


@dataclass(frozen=True)
class Colours:
    """How the planes of a recording stand for colours, in the numbers of ISO/IEC 23091-2.

    Attributes
    ----------
    matrix, primaries, transfer : int
    full : bool
        Whether values use the full range.
    """

    matrix: int
    primaries: int
    transfer: int
    full: bool = False

    @property
    def swscale(self) -> int:
        """The number that swscale has for the matrix."""
        return MATRICES[self.matrix]

    @classmethod
    def usual(cls, size: tuple[int, int]) -> Colours:
        """Return what players assume for pictures of a size."""
        return cls(1, 1, 1) if min(size) >= _HD_HEIGHT else cls(6, 6, 6)


@dataclass(frozen=True)
class Coding:
    """How a recording is coded.

    Attributes
    ----------
    codec : str
    pixels : str
        Pixel format.
    bits : int
        Of a channel.
    colours : Colours
    bit_rate : int
        Of the pictures, in bits per second; 0 where it is not known.
    interlaced : bool
    streams : (int, int)
        How many pictures and sounds there are.
    """

    codec: str
    pixels: str
    bits: int
    colours: Colours
    bit_rate: int = 0
    interlaced: bool = False
    streams: tuple[int, int] = (1, 0)


class Media(ABC):
    """Frames in order from one file or folder. :func:`ksame.scene.media.open_media` makes them.

    Attributes
    ----------
    path : Path
    kind : "photograph", "video" or "folder"
    size : (int, int)
        Width and height, upright.
    n_frames : int
        An estimate until ``exact``; all frames have been counted once :meth:`frames` has run to its end.
    exact : bool
    rate : Fraction
        Frames per second, on average.
    time_base : Fraction
        Seconds in one unit of a time stamp.
    has_sound : bool
    aspect : Fraction
        Width of a pixel by its height.
    entries : tuple of str
        Metadata that can be kept, by name.
    coding : Coding or None
        Of a recording whose planes can be taken over as they are.
    turn : int
        How its decoded frames have to be turned; see :func:`turned`.
    """

    kind: Kind = "video"
    has_sound = False
    aspect = Fraction(1)
    entries: tuple[str, ...] = ()
    coding: Coding | None = None
    turn = 0

    def __init__(
        self, path: Path, size: tuple[int, int], n_frames: int, *, exact: bool, rate: Fraction, time_base: Fraction
    ) -> None:
        self.path = path
        self.size = size
        self.n_frames = n_frames
        self.exact = exact
        self.rate = rate
        self.time_base = time_base
        self._at = array("q")
        self._durations = array("q")

    def __repr__(self) -> str:
        width, height = self.size
        return f"{type(self).__name__}({str(self.path)!r}, {width}x{height}, {self.n_frames} frames)"

    @property
    def duration(self) -> float:
        """How long the frames are shown, in seconds."""
        if self.exact and len(self._at) == self.n_frames:
            return float((self._at[-1] + self._durations[-1] - self._at[0]) * self.time_base)
        return float(self.n_frames / self.rate)

    @property
    def damaged(self) -> tuple[int, ...]:
        """Numbers of the frames that are black because they could not be decoded."""
        return ()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that is read."""
        digest = hashlib.sha256()
        for path in self._files():
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        return digest.hexdigest()

    def stamp(self, index: int) -> Stamp:
        """Return when a frame is shown; only frames that :meth:`frames` has come past are known."""
        if index >= len(self._at):
            raise InputError(f"{self.path}: frame {index} has not been read yet, so that its time is not known.")
        return Stamp(self._at[index], self._durations[index])

    def frames(self, start: int = 0) -> Iterator[Frame]:
        """Yield the frames from number ``start`` on, in constant memory.

        Frames before ``start`` are decoded and passed over, so that what follows is the same as without them.

        Raises
        ------
        InputError
            When a frame cannot be decoded.
        """
        index = 0
        with closing(ahead(self._read(start), depth(self.size))) as read:  # type: ignore[type-var]
            for stamp, pixels, native in read:
                if index == len(self._at):
                    if index and stamp.at <= self._at[-1]:
                        stamp = Stamp(self._at[-1] + 1, stamp.duration)
                    self._at.append(stamp.at)
                    self._durations.append(stamp.duration)
                if pixels is not None:
                    pixels.flags.writeable = False
                    yield Frame(index, float(self._at[index] * self.time_base), pixels, native)
                index += 1
        if index == 0:
            raise InputError(f"{self.path}: not a single frame could be decoded.")
        self.n_frames, self.exact = index, True

    @abstractmethod
    def _read(self, start: int) -> Iterator[Read]:
        """Yield all frames; those before number ``start`` may have no pixels."""

    def _files(self) -> list[Path]:
        return [self.path]


def turned(pixels: NDArray[PixelT], turn: int) -> NDArray[PixelT]:
    """Turn a picture counterclockwise by ``turn % 4`` quarters, after a left-right flip if ``turn`` is above 3."""
    if turn >= 4:
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(np.rot90(pixels, turn % 4))
