"""Inventing a head: the region round it is taken away, and what the finisher makes of a drawing is put there.

What is written inside a region depends on the surrogate, on the place, pose and expression of the head, and on pixels
outside all regions that are taken away. No pixel inside one is ever read: ``tests/scene/test_invention.py`` fills them
with noise and compares the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import ByteArray, FloatArray
from ksame.heads.colour import colour_gain, in_bytes, recoloured, with_colour
from ksame.heads.detail import detail_gain, with_detail
from ksame.heads.drawing import Invention, draw
from ksame.heads.grain import grain_of, noise_of
from ksame.heads.head import Region, fill, filled
from ksame.heads.matching import MATCHED_FROM, matched
from ksame.heads.surroundings import Mask, surroundings_of
from ksame.models.finisher import SIZES, Finisher

_BELOW_LIP = (17, 200, 61, 291)  # points of the mesh: lower edge of the lip, chin, corners of the mouth
_SPECK = 21  # pixels about which the skin is smoothed where there may be specks
_AROUND = 3  # pixels about what is read of a square that cubic interpolation takes in, and one more


@dataclass(frozen=True)
class InventionConfig:
    """How a finished head is put into a frame.

    Attributes
    ----------
    max_enlarged : float
        How much larger a square may be in the frame than the size at which it is finished; by choice.
    band : float
        Width of the band round a region in which old and new are mixed, in sides of the square; by choice.
    fine : float
        In films a square is doubled before it is read, unless it is so many times smaller in the frame; by choice.
        Photographs, read cubically instead, were a little more natural (0.350 instead of 0.360,
        ``benchmarks.naturalness``).
    sharpening : float
        Of photographs; recordings would flicker. By ``benchmarks.naturalness`` on portraits that the finisher learned
        from, then by eye.
    sharpened_from : int
        Size from which on.
    grain : float
        In shares of the noise of the surroundings, which is estimated from their smoothest third; by choice.
    strip : int
        Rows that are worked on at a time, a multiple of ``GRAIN_SIDE``: heads of thousands of pixels take no more.
    """

    max_enlarged: float = 1.25
    band: float = 1 / 64
    fine: float = 1.5
    sharpening: float = 0.7
    sharpened_from: int = 256
    grain: float = 1.3
    strip: int = 512


INVENTION = InventionConfig()


@dataclass(frozen=True, eq=False)
class FinishedHead:
    """A finished head.

    Attributes
    ----------
    points : ndarray of shape (478, 2)
        Where its points lie in the square, in sides of it.
    square : ndarray of shape (size, size, 3)
        8-bit colours.
    grain : float
        Standard deviation of the grain that it gets, in 8-bit steps.
    """

    points: FloatArray
    square: ByteArray
    grain: float


def taken_away(shape: tuple[int, ...], outlines: Sequence[FloatArray]) -> Mask:
    """Return which pixels of a frame, (height, width), lie in any of the outlines, each (n, 2)."""
    hidden = np.zeros(shape[:2], dtype=np.uint8)
    for outline in outlines:
        fill(hidden, outline, 1)
    return hidden.view(bool)


def invent(out: ByteArray, hidden: Mask, invention: Invention, finisher: Finisher, size: int | None = None) -> None:
    """Put an invented head into a photograph, in place: see :func:`finish` and :func:`put`."""
    finished = finish(out, hidden, invention, finisher, size)
    if finished is not None:
        put(out, hidden, invention.region, finished, still=True)


def finish(
    frame: ByteArray, hidden: Mask, invention: Invention, finisher: Finisher, size: int | None = None
) -> FinishedHead | None:
    """Let the network make a head; None where it lies outside the frame.

    Parameters
    ----------
    frame : ndarray of shape (height, width, 3)
        Its hidden pixels are not read.
    hidden : ndarray of shape (height, width)
        All that is taken away, this head's region included.
    invention : Invention
    finisher : Finisher
    size : int, optional
        At which the head is finished; by default by its size in the frame.
    """
    region = invention.region
    size = size or next((s for s in SIZES if region.side <= INVENTION.max_enlarged * s), SIZES[-1])
    window, matrix = _window_of_square(region, size, frame.shape)
    part, hole = frame[window], hidden[window]
    if not part.size:
        return None
    surroundings, known = surroundings_of(part, hole, matrix, size, INVENTION.strip)
    surroundings = with_detail(surroundings, known, detail_gain(surroundings, known))
    gain = colour_gain(surroundings, known)
    square = finisher.finish(draw(invention, size), with_colour(surroundings, gain), known)
    if gain > 1:
        square = recoloured(square, gain**-0.5)
    if size >= MATCHED_FROM:
        square = matched(square, invention.points)
    if size == SIZES[-1]:
        _remove_specks(square, size * invention.points)
    return FinishedHead(invention.points, square, INVENTION.grain * noise_of(part, hole, INVENTION.strip))


def put(out: ByteArray, hidden: Mask, region: Region, finished: FinishedHead, *, still: bool) -> None:
    """Put a finished head into a frame, in place.

    Parameters
    ----------
    out : ndarray of shape (height, width, 3)
        Its hidden pixels are not read.
    hidden : ndarray of shape (height, width)
        What is taken away and not yet invented; the pixels of this head's region are struck off.
    region : Region
    finished : FinishedHead
    still : bool
        Whether it is a photograph, and not a frame of a film.
    """
    size = len(finished.square)
    window = _window_of_outline(region, out.shape)
    part, unknown = out[window], hidden[window]
    if not part.size:
        return
    inside = filled(part.shape, np.rint(region.outline) - _origin(window))  # the very pixels that were taken away
    matrix = _from_window(region.to_square(size), window)
    head = _sharpened(finished.square) if still and size >= INVENTION.sharpened_from else finished.square
    cubic = still and region.side <= 2 * size  # very large heads would take a second
    if not cubic and region.side > size / INVENTION.fine:
        head, matrix = _doubled(head, matrix, part.shape)
    _put(part, unknown, inside, head, matrix, region.side, finished.grain, cubic)
    np.logical_and(unknown, inside == 0, out=unknown)


def _doubled(head: ByteArray, matrix: FloatArray, shape: tuple[int, ...]) -> tuple[ByteArray, FloatArray]:
    """Return what shows of a square in a part of a frame at twice the size, and the matrix from there to it.

    Read linearly, it is almost as sharp as the square read cubically.
    """
    height, width = shape[:2]
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]]) @ matrix[:, :2].T + matrix[:, 2]
    low = np.floor(corners.min(axis=0)).astype(int) - _AROUND
    high = np.ceil(corners.max(axis=0)).astype(int) + _AROUND
    (left, top), (right, bottom) = low.clip(0, len(head) - 1), high.clip(1, len(head))
    doubled = 2 * matrix
    doubled[:, 2] += 0.5 - 2 * np.array([left, top])
    shown = head[top:bottom, left:right]
    return np.asarray(cv2.resize(shown, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)), doubled


def _reach(side: float) -> int:
    return max(1, round(INVENTION.band * side))


def spread_of(side: float) -> int:
    """Return how many pixels beyond its outline a head may change: the band, and as far as it is softened."""
    return 4 * _reach(side)


def _window_of_outline(region: Region, shape: tuple[int, ...]) -> tuple[slice, slice]:
    """Return the part of a frame that a head may change; an empty one where its outline lies outside the frame."""
    spread = spread_of(region.side)
    left, top, width, height = cv2.boundingRect(np.rint(region.outline).astype(np.int32))
    right, bottom = min(left + width, shape[1]), min(top + height, shape[0])
    left, top = max(left, 0), max(top, 0)
    if left >= right or top >= bottom:
        return slice(0, 0), slice(0, 0)
    return slice(max(0, top - spread), bottom + spread), slice(max(0, left - spread), right + spread)


def _window_of_square(region: Region, size: int, shape: tuple[int, ...]) -> tuple[tuple[slice, slice], FloatArray]:
    """Return the part of a frame about a region's square, and the matrix from there to the square."""
    matrix = region.to_square(size)
    square = np.array([[0, 0], [size, 0], [size, size], [0, size]]) - 0.5
    corners = (square - matrix[:, 2]) @ np.linalg.inv(matrix[:, :2]).T
    window = _window(corners, shape)
    return window, _from_window(matrix, window)


def _from_window(matrix: FloatArray, window: tuple[slice, slice]) -> FloatArray:
    """Return a matrix, (2, 3), that takes pixels of a frame as one that takes those of a part of it."""
    return np.column_stack([matrix[:, :2], matrix[:, 2] + matrix[:, :2] @ _origin(window)])


def _put(
    part: ByteArray,
    unknown: Mask,
    inside: NDArray[np.uint8],
    head: ByteArray,
    matrix: FloatArray,
    side: float,
    grain: float,
    cubic: bool,
) -> None:
    """Put a finished square into a part of a frame, in place, where it shows; with grain, in 8-bit steps."""
    reach, spread = _reach(side), spread_of(side)
    for start in range(0, len(part), INVENTION.strip):
        end = start + INVENTION.strip
        strip, wide = slice(start, end), slice(max(0, start - spread), end + spread)
        new = _warped(head, matrix, part[strip].shape, start, cubic=cubic)
        share = _share(inside[wide], reach)[start - wide.start :][: len(new)]
        _put_strip(part[strip], unknown[strip], inside[strip], share, new, grain)


def _warped(
    head: ByteArray, matrix: FloatArray, shape: tuple[int, ...], row: int, *, cubic: bool
) -> NDArray[np.float32]:
    """Return the rows of a part of a frame from ``row`` on, as many as ``shape`` has, as the head shows in them."""
    moved = matrix.copy()
    moved[:, 2] += matrix[:, 1] * row
    flags = (cv2.INTER_CUBIC if cubic else cv2.INTER_LINEAR) | cv2.WARP_INVERSE_MAP
    warped = cv2.warpAffine(head, moved, shape[1::-1], flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(warped, dtype=np.float32)


def _put_strip(
    part: ByteArray,
    unknown: Mask,
    inside: NDArray[np.uint8],
    share: NDArray[np.float32],
    head: NDArray[np.float32],
    grain: float,
) -> None:
    """Mix a head, (height, width, 3), into some rows of a frame, in place: by its share, and with grain."""
    new = cv2.addWeighted(head, 1, grain_of(part.shape), grain, 0, dst=head)
    known = (~unknown).view(np.uint8)
    old = cv2.bitwise_and(part, part, mask=known)  # hidden pixels are not read, even where they count nothing
    mixed = cv2.blendLinear(new, old.astype(np.float32), share, 1 - share, dst=new)
    change = (share > 0).view(np.uint8) & (known | inside)
    cv2.copyTo(in_bytes(mixed), change, part)


def _remove_specks(square: ByteArray, points: FloatArray) -> None:
    """Smooth the skin below the lower lip, in place: at its largest size the network paints dark specks there.

    Points are of shape (478, 2), in pixels of the square.
    """
    lip, chin, left, right = points[list(_BELOW_LIP)]
    middle, half = lip + 0.4 * (chin - lip), 0.5 * np.array([0.8 * np.hypot(*(right - left)), np.hypot(*(chin - lip))])
    rows, columns = _window(middle + half * [[-1, -1], [1, 1]], square.shape)
    part = square[rows, columns]
    if part.size:
        y, x = np.ogrid[rows, columns]
        apart = np.hypot((x - middle[0]) / max(half[0], 1), (y - middle[1]) / max(half[1], 1))
        share = np.clip(4 * (1 - apart), 0, 1)[..., None]
        part[:] = np.rint(part + share * (cv2.medianBlur(part, _SPECK).astype(np.float32) - part))


def _sharpened(head: ByteArray) -> ByteArray:
    """Sharpen a finished square: networks that learn from differences paint a little softly."""
    soft = cv2.GaussianBlur(head, (0, 0), 1.0)
    return np.asarray(cv2.addWeighted(head, 1 + INVENTION.sharpening, soft, -INVENTION.sharpening, 0))


def _share(inside: NDArray[np.uint8], reach: int) -> NDArray[np.float32]:
    """Return how much of the new head shows: all of it inside its region, fading beyond, over ``reach`` pixels."""
    shrink = max(1, reach // 8)  # a wide fade is computed small: it is smooth
    size = tuple(-(-length // shrink) for length in inside.shape[::-1])
    small = inside if shrink == 1 else cv2.resize(inside, size, interpolation=cv2.INTER_AREA)
    near = reach // shrink
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * near + 1, 2 * near + 1))
    grown = cv2.dilate(small, kernel).astype(np.float32) / np.float32(255)
    soft = cv2.GaussianBlur(grown, (0, 0), max(0.5, near / 2), borderType=cv2.BORDER_REPLICATE)
    if shrink > 1:
        soft = cv2.resize(soft, inside.shape[::-1], interpolation=cv2.INTER_LINEAR)
    return np.maximum(soft, inside > 0, dtype=np.float32)


def _window(outline: FloatArray, shape: tuple[int, ...]) -> tuple[slice, slice]:
    """Return the part of a frame of ``shape`` about an outline, (n, 2)."""
    low = np.floor(outline.min(axis=0)).astype(int) - 1
    high = np.ceil(outline.max(axis=0)).astype(int) + 2
    left, top = low.clip(0, (shape[1], shape[0]))
    right, bottom = high.clip((left, top), (shape[1], shape[0]))
    return slice(int(top), int(bottom)), slice(int(left), int(right))


def _origin(window: tuple[slice, slice]) -> FloatArray:
    return np.array([window[1].start, window[0].start], dtype=np.float64)
