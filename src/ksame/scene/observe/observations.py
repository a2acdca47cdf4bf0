"""Detecting faces on keyframes: every keyframe by itself, whatever was seen in the others."""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray, IntArray
from ksame.errors import InputError
from ksame.models import Face, FaceDetector
from ksame.scene.media import Frame
from ksame.scene.observe.config import DetectorConfig
from ksame.scene.observe.cuts import CutFinder
from ksame.scene.observe.detect import Map, Search, schedule, search
from ksame.scene.observe.portraits import N_LOOK, look_of
from ksame.scene.observe.rows import RowBuffer

_BOX, _SCORE, _LANDMARKS, _LOOK = slice(0, 4), 4, slice(5, 15), slice(15, 15 + N_LOOK)
_WIDTH = 15 + N_LOOK
_WAITING, _MAX_WAITING = 8, 64 << 20  # keyframes that are searched or wait, and the bytes that they may take, by choice


@dataclass(frozen=True, eq=False)
class Observations:
    """What was detected on the keyframes of a recording."""

    size: tuple[int, int]  # width and height of the frames
    n_frames: int
    cuts: IntArray  # frames with which a new shot begins, the first frame not counted
    keyframes: IntArray  # their frames, rising; the first and the last frame of every shot are among them
    min_sides: FloatArray  # the smallest face that each keyframe was searched for
    starts: IntArray  # where the rows of each keyframe begin, (n_keyframes + 1,)
    rows: NDArray[np.float32]  # the detections, (n_faces, width); may lie on disk

    def face(self, row: int) -> Face:
        """Return a detection."""
        values = np.array(self.rows[row], dtype=np.float64)
        x, y, width, height = values[_BOX].tolist()
        return Face((x, y, width, height), values[_LANDMARKS].reshape(5, 2), float(values[_SCORE]))

    def boxes(self, rows: slice | IntArray) -> FloatArray:
        """Return the boxes of detections, (n, 4)."""
        return np.array(self.rows[rows, _BOX], dtype=np.float64)

    def scores(self, rows: slice) -> FloatArray:
        """Return the scores of detections, (n,)."""
        return np.array(self.rows[rows, _SCORE], dtype=np.float64)

    def looks(self, rows: slice) -> FloatArray:
        """Return small registered pictures of detections, (n, N_LOOK), of unit length."""
        return np.array(self.rows[rows, _LOOK], dtype=np.float64)

    def shots(self) -> Iterator[tuple[int, int, slice]]:
        """Yield the first frame of every shot, the first of the next, and its keyframes."""
        edges = [0, *self.cuts.tolist(), self.n_frames]
        places = np.searchsorted(self.keyframes, edges).tolist()
        for i in range(len(edges) - 1):
            yield edges[i], edges[i + 1], slice(places[i], places[i + 1])


@dataclass(frozen=True, eq=False)
class _Keyframe:
    """A frame that is to be searched, and how."""

    frame: int
    rgb: ByteArray
    how: Search


def observe(
    frames: Iterable[Frame],
    size: tuple[int, int],
    config: DetectorConfig,
    *,
    still: bool = False,
    file: Path | None = None,
    map: Map = map,
) -> Observations:
    """Detect faces on the keyframes of a recording.

    Parameters
    ----------
    frames : iterable of Frame
        In order, numbered from 0; gone through once.
    size : (int, int)
        Width and height.
    still : bool
        A photograph: searched for small and turned faces at once.
    file : Path, optional
        Where the detections are kept; in memory by default.
    map : callable
        Searches several keyframes at a time, or parts of a photograph. The result does not depend on it.
    """
    # One of both only: tasks of an executor must not wait for others of it.
    map_keyframes, map_parts = (builtins.map, map) if still else (map, builtins.map)
    detector, finder = FaceDetector(), CutFinder()
    buffer = RowBuffer(_WIDTH, file)
    keyframes: list[int] = []
    min_sides: list[float] = []
    starts, cuts = [0], list[int]()
    waiting: deque[tuple[_Keyframe, Iterator[tuple[list[NDArray[np.float32]], float]]]] = deque()

    def search_one(key: _Keyframe) -> tuple[list[NDArray[np.float32]], float]:
        faces, min_side = search(detector, key.rgb, key.how, config, map_parts)
        return [_row(key.rgb, face) for face in faces], min_side

    def begin(key: _Keyframe) -> None:
        waiting.append((key, iter(map_keyframes(search_one, [key]))))

    def collect(n_waiting: int) -> None:
        while len(waiting) > n_waiting:
            key, found = waiting.popleft()
            rows, min_side = next(found)
            for row in rows:
                buffer.append(row)
            keyframes.append(key.frame)
            min_sides.append(min_side)
            starts.append(len(buffer))

    last: _Keyframe | None = None  # the frame before this one, as the last of its shot
    due: _Keyframe | None = None  # the same frame, if it is a keyframe in any case
    number, at, since = 0, 0, -np.inf  # of keyframes in this shot; frame and time of the last one
    n_frames = 0
    for n_frames, frame in enumerate(frames, start=1):
        index = n_frames - 1
        rgb = checked(frame, index, size)
        if finder.is_cut(rgb):
            cuts.append(index)
            due, number = _as_last(last, due), 0
        if due is not None:
            collect(max(2, min(_WAITING, _MAX_WAITING // rgb.nbytes)) - 1)
            begin(due)
        due, last = None, _Keyframe(index, rgb, Search(share=None))
        if number == 0 or index - at >= config.detect_every or frame.time - since >= config.detect_seconds:
            due = _Keyframe(index, rgb, Search(still=True) if still else schedule(number, config))
            number, at, since = number + 1, index, frame.time
    due = _as_last(last, due)
    if due is not None:
        begin(due)
    collect(0)
    at_cuts, at_keyframes, at_rows = (np.array(values, dtype=np.intp) for values in (cuts, keyframes, starts))
    return Observations(size, n_frames, at_cuts, at_keyframes, np.array(min_sides), at_rows, buffer.rows())


def checked(frame: Frame, index: int, size: tuple[int, int]) -> ByteArray:
    """Return the pixels of a frame; an InputError says that it is not the one expected."""
    rgb = np.ascontiguousarray(frame.pixels)
    if frame.index != index or rgb.shape != (size[1], size[0], 3) or rgb.dtype != np.uint8:
        raise InputError(
            f"Expected frame {index} as 8-bit RGB of {size[0]}x{size[1]} pixels. "
            f"Got frame {frame.index}, {rgb.dtype}, of the shape {rgb.shape}."
        )
    return rgb


def _as_last(last: _Keyframe | None, due: _Keyframe | None) -> _Keyframe | None:
    """Return the search of the last frame of a shot: never a coarse one, since no later one finds who is left out."""
    return due if due is not None and not due.how.coarse else last


def _row(rgb: ByteArray, face: Face) -> NDArray[np.float32]:
    row = [*face.box, face.score, *face.landmarks.ravel(), *look_of(rgb, face.landmarks)]
    return np.array(row, dtype=np.float32)
