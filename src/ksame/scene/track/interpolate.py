"""From what was seen of a face to a track without gaps.

Where a face was hidden its box is interpolated, and grown the more the longer ago it was seen. Some frames before it
appeared and after it vanished are filled too, but never across a cut. Meshes of heads turned too far are dropped, and
all those of what is perhaps no face, whose boxes keep their own size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.geometry import grown
from ksame.models import Source
from ksame.scene.track.config import TrackerConfig
from ksame.scene.track.smooth import CONTEXT, smooth
from ksame.scene.track.storage import BLENDSHAPES, BOX, POINTS, POSE
from ksame.scene.track.tracks import N_POINTS

_SLACK = 7.0  # degrees that a head must turn back before its mesh is believed again
_FLICKER = 3  # frames; meshes for fewer among frames without are dropped
_BRIDGE = 3  # frames without a mesh that are interpolated between two similar ones
_ALIKE = 0.2  # mean distance of the points of similar meshes, in sides of the face
# Growth of boxes without a mesh: where seen, where filled, more for every frame since it was seen, and at most.
_SEEN, _FILLED, _PER_FRAME, _MAX_GROWTH = 1.25, 1.35, 0.04, 1.8
_CHUNK = 256  # rows smoothed at a time


@dataclass(eq=False)
class Filled:
    """A track without gaps, but for its points; arrays as in :class:`ksame.scene.track.Track`."""

    first: int
    lead: int  # filled frames before the first that was seen
    boxes: FloatArray
    poses: FloatArray
    blendshapes: FloatArray
    source: NDArray[np.uint8]
    meshed: NDArray[np.bool_]  # where points will be
    measured: NDArray[np.bool_]  # where they were measured; elsewhere they are interpolated

    def __len__(self) -> int:
        return len(self.boxes)


def fill(
    rows: NDArray[np.float32], first: int, shot: tuple[int, int], config: TrackerConfig, *, confirmed: bool = True
) -> Filled:
    """Fill the gaps of a track.

    ``rows``, (n_rows, WIDTH), are what was seen from frame ``first`` on; the first and the last hold a box. A ``shot``
    is its first frame, and the first of the next. ``confirmed`` says that it surely is a face.
    """
    small = np.array(rows[:, : POINTS.start], dtype=np.float64)
    lead = min(config.margin, first - shot[0])
    trail = min(config.margin, shot[1] - first - len(rows))
    small = np.pad(small, ((lead, trail), (0, 0)), constant_values=np.nan)
    seen = ~np.isnan(small[:, 0])
    measured = _believed(small[:, POSE], config) if confirmed else np.zeros(len(small), dtype=bool)
    at = np.arange(len(small))
    boxes = np.stack([np.interp(at, at[seen], column) for column in small[seen][:, BOX].T], axis=1)
    meshed = measured.copy()
    poses = np.where(measured[:, None], small[:, POSE], 0.0)
    blendshapes = np.where(measured[:, None], small[:, BLENDSHAPES], 0.0)
    for begin, end in _bridges(rows, measured, lead):
        meshed[begin:end] = True
        for values in (poses, blendshapes):
            _bridge(values, begin, end)
    if confirmed:
        growth = np.where(seen, _SEEN, np.minimum(_FILLED + _PER_FRAME * _distance(seen), _MAX_GROWTH))
        boxes = np.where(meshed[:, None], boxes, grown(boxes, growth))
    source = np.where(seen & (measured | ~meshed), Source.DETECTED, Source.INTERPOLATED).astype(np.uint8)
    return Filled(first - lead, lead, boxes, poses, blendshapes, source, meshed, measured)


def write_points(rows: NDArray[np.float32], filled: Filled, out: NDArray[np.float32]) -> None:
    """Write the points of a track to ``out``, (len(filled), 478, 3), smoothed and bridged, NaN where there are none."""
    for begin in range(0, len(filled), _CHUNK):
        out[begin : begin + _CHUNK] = np.nan
    for begin, end in runs(filled.measured):
        for start in range(begin, end, _CHUNK):
            stop = min(start + _CHUNK, end)
            low, high = max(begin, start - CONTEXT), min(end, stop + CONTEXT)
            part = rows[low - filled.lead : high - filled.lead, POINTS].reshape(-1, N_POINTS, 3)
            even = smooth(np.asarray(part, dtype=np.float64), head=low == begin, tail=high == end)
            out[start:stop] = even[start - low : stop - low]
    for begin, end in runs(filled.meshed & ~filled.measured):
        _bridge(out, begin, end)


def runs(flags: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of every run of true values.

    Examples
    --------
    >>> list(runs(np.array([True, True, False, True])))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        yield int(begin), int(end)


def _believed(poses: FloatArray, config: TrackerConfig) -> NDArray[np.bool_]:
    """Tell which meshes are of heads not turned too far; with slack, so that it does not flicker."""
    believed = np.zeros(len(poses), dtype=bool)
    slack = 0.0
    for i, (yaw, pitch, _) in enumerate(poses):
        believed[i] = abs(yaw) <= config.yaw - slack and abs(pitch) <= config.pitch - slack  # false for NaN
        slack = 0.0 if believed[i] else _SLACK
    if len(believed) > 2 * _FLICKER:
        for begin, end in list(runs(believed)):
            if end - begin < _FLICKER:
                believed[begin:end] = False
    return believed


def _bridges(rows: NDArray[np.float32], measured: NDArray[np.bool_], lead: int) -> Iterator[tuple[int, int]]:
    """Yield short gaps between two meshes that are alike."""
    for begin, end in runs(~measured):
        if begin == 0 or end == len(measured) or end - begin > _BRIDGE:
            continue
        a, b = (rows[i - lead, POINTS].reshape(N_POINTS, 3)[:, :2] for i in (begin - 1, end))
        size = float(np.ptp(a, axis=0).mean())
        if float(np.hypot(*(a - b).T).mean()) < _ALIKE * size:
            yield begin, end


def _bridge(values: NDArray[Any], begin: int, end: int) -> None:
    """Interpolate rows between the one before ``begin`` and that of ``end``."""
    share = np.arange(1, end - begin + 1).reshape(-1, *[1] * (values.ndim - 1)) / (end - begin + 1)
    values[begin:end] = (1 - share) * values[begin - 1] + share * values[end]


def _distance(seen: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return for every frame how far the nearest is in which the face was seen."""
    at = np.arange(len(seen))
    before = np.maximum.accumulate(np.where(seen, at, -len(seen)))
    after = np.minimum.accumulate(np.where(seen, at, 2 * len(seen))[::-1])[::-1]
    return np.asarray(np.minimum(at - before, after - at))
