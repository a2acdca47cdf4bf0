"""What photographs, recordings and image sequences have in common: frames in order, each with its time."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Container, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Literal, TypeAlias

from av.video.frame import VideoFrame

from ksame.errors import InputError
from ksame.files import sha256_of
from ksame.pictures import Pixels
from ksame.scene.media.threads import prefetch, queue_length

Kind = Literal["photograph", "video", "folder"]
DecodedFrame: TypeAlias = "tuple[Timestamp, Pixels | Callable[[], Pixels] | None, VideoFrame | None]"
SWSCALE_MATRICES = {1: 1, 4: 4, 5: 5, 6: 5, 7: 7, 9: 9, 10: 9}
"""swscale's number for a matrix of ISO/IEC 23091-2."""


class Frame:
    """One picture of a recording.

    Parameters
    ----------
    index : int
    time : float
        In seconds, as the file tells it.
    pixels : ndarray of shape (height, width, 3), or callable
        RGB, upright, read-only; or what makes them when they are asked for.
    native : VideoFrame, optional
        As it was decoded, with all its bits.
    """

    def __init__(
        self, index: int, time: float, pixels: Pixels | Callable[[], Pixels], native: VideoFrame | None = None
    ) -> None:
        self.index, self.time, self.native = index, time, native
        self._pixels = pixels
        self._lock = Lock()

    @property
    def pixels(self) -> Pixels:
        """RGB values, of shape (height, width, 3)."""
        with self._lock:
            if callable(self._pixels):
                self._pixels = self._pixels()
                self._pixels.flags.writeable = False
            return self._pixels


class FrameStream(Iterator[Frame]):
    """Frames in order, with a hint for progress of how many there are. Close it where not all are wanted."""

    def __init__(self, frames: Generator[Frame, None, None], n_expected: int) -> None:
        self._frames, self._n_expected = frames, n_expected

    def __next__(self) -> Frame:
        return next(self._frames)

    def __length_hint__(self) -> int:
        return self._n_expected

    def close(self) -> None:
        """Decode no more."""
        self._frames.close()


@dataclass(frozen=True)
class Timestamp:
    """When a frame is shown and for how long, in units of the recording's time base."""

    pts: int
    duration: int


@dataclass(frozen=True)
class ColourSpace:
    """How the planes of a recording stand for colours, in the numbers of ISO/IEC 23091-2."""

    matrix: int
    primaries: int
    transfer: int
    full_range: bool = False

    @property
    def swscale_matrix(self) -> int:
        """The number that swscale has for the matrix."""
        return SWSCALE_MATRICES[self.matrix]

    @property
    def range(self) -> int:
        """The number that FFmpeg has for the range of values: 1 is limited, 2 full."""
        return 2 if self.full_range else 1

    @property
    def as_rgb(self) -> ColourSpace:
        """The same colours as RGB values, which use the full range."""
        return replace(self, full_range=True)

    @classmethod
    def default_for(cls, size: tuple[int, int]) -> ColourSpace:
        """Return what players assume for pictures of a size: BT.709 from HD on, BT.601 below."""
        return cls(1, 1, 1) if min(size) >= 720 else cls(6, 6, 6)


@dataclass(frozen=True)
class StreamInfo:
    """How a recording is coded."""

    codec: str
    pixel_format: str
    bits: int  # per channel
    colours: ColourSpace
    bit_rate: int  # of the video, in bits per second; 0 where it is not known
    interlaced: bool
    n_video: int  # streams of the file
    n_audio: int


class Media(ABC):
    """Frames in order from one file or folder. :func:`ksame.scene.media.open_media` makes them."""

    kind: Kind = "video"
    has_sound = False
    aspect = Fraction(1)  # width of a pixel by its height
    loop = 0  # how often an animation is repeated: 0 for ever, -1 never
    metadata_keys: tuple[str, ...] = ()  # of metadata that can be kept
    stream: StreamInfo | None = None  # of a recording whose planes can be taken over as they are
    orientation = 0  # of its decoded frames, for :func:`ksame.pictures.orient`

    def __init__(
        self, path: Path, size: tuple[int, int], n_frames: int, *, exact: bool, rate: Fraction, time_base: Fraction
    ) -> None:
        self.path = path
        self.size = size  # width and height, upright
        self.n_frames = n_frames  # an estimate until all were counted: once :meth:`frames` has run to its end
        self.exact = exact
        self.rate = rate  # frames per second, on average
        self.time_base = time_base  # seconds in one unit of a time stamp
        self._pts = array("q")
        self._durations = array("q")

    @property
    def duration(self) -> float:
        """How long the frames are shown, in seconds."""
        if self.exact and len(self._pts) == self.n_frames:
            return float((self._pts[-1] + self._durations[-1] - self._pts[0]) * self.time_base)
        return float(self.n_frames / self.rate)

    @property
    def damaged(self) -> tuple[int, ...]:
        """Numbers of the frames that are black because they could not be decoded."""
        return ()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that is read."""
        return sha256_of(*self._files())

    def timestamp(self, index: int) -> Timestamp:
        """Return when a frame is shown; only frames that :meth:`frames` has come past are known."""
        if index >= len(self._pts):
            raise InputError(f"{self.path}: frame {index} has not been read yet, so that its time is not known.")
        return Timestamp(self._pts[index], self._durations[index])

    def frames(self, start: int = 0, *, only: Container[int] | None = None, late: bool = False) -> FrameStream:
        """Return the frames from number ``start`` on, or of all frames ``only`` some, in constant memory.

        All others are decoded and passed over, so that those that come are the same as without them. Those of a
        recording are made RGB ahead of the caller, or ``late``, by whoever asks for their pixels: it takes less memory.
        A frame that cannot be decoded raises an :class:`InputError`.
        """
        wanted = range(start, sys.maxsize) if only is None else only
        return FrameStream(self._frames(wanted, late), max(0, self.n_frames - start))

    def _frames(self, wanted: Container[int], late: bool) -> Generator[Frame, None, None]:
        index = 0
        frames = self._decode(wanted)
        with closing(prefetch(frames if late else _with_pixels(frames), queue_length(self.size))) as decoded:
            for timestamp, pixels, native in decoded:
                if index == len(self._pts):
                    self._pts.append(max(timestamp.pts, self._pts[-1] + 1) if index else timestamp.pts)
                    self._durations.append(timestamp.duration)
                if pixels is not None:
                    if not callable(pixels):
                        pixels.flags.writeable = False
                    yield Frame(index, float(self._pts[index] * self.time_base), pixels, native)
                index += 1
        if index == 0:
            raise InputError(f"{self.path}: not a single frame could be decoded.")
        self.n_frames, self.exact = index, True

    @abstractmethod
    def _decode(self, wanted: Container[int]) -> Generator[DecodedFrame, None, None]:
        """Yield all frames; those that are not wanted have no pixels."""

    def _files(self) -> list[Path]:
        return [self.path]


def _with_pixels(frames: Generator[DecodedFrame, None, None]) -> Generator[DecodedFrame, None, None]:
    with closing(frames):
        for timestamp, pixels, native in frames:
            yield timestamp, pixels() if callable(pixels) else pixels, native
