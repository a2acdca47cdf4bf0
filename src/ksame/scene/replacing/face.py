"""Painting a surrogate into a frame: c_t = identity + what the person does at t (algorithms of the AAM, in texture).

A person's *reference* is what they look like on average over a track: shape, texture and expression. A surrogate is
fitted to it once: lit as it is lit, meeting it at the rim. In every frame the difference between the person now and
the reference is added to both shape and texture, so that speech, blinks, gaze and passing shadows stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, floor, log2
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.faces.faceset import ByteArray, FloatArray
from ksame.scene.replacing.blurring import blurred, extent, in_colour, mixed
from ksame.scene.replacing.canvas import Canvas, Rows, canvas, keep_openings
from ksame.scene.replacing.light import DARK, Contrast, fit_light, logarithm, match_rim, matched_contrast
from ksame.scene.replacing.rim import Cover, cover_rim, ring_window
from ksame.scene.replacing.surrogate import Surrogate, expression_of
from ksame.spaces.facemodel.geometry import with_forehead

_HAIR = 0.32  # difference in log brightness from the surrogate's skin at which a forehead pixel is hair
_TINT = 0.25  # the same for colour
_FINE = 0.011  # blur, in widths of the face, with which a person is taken: the base holds no finer detail
_SOFT = 0.03  # and with which a frame is compared with the average: what is finer is the surrogate's own. Edges of the
# person's features and spectacles, a pixel beside where they were on average, would be drawn as ghosts.
_COARSER = 3.0  # pixels of blur from which on it is done on a coarser copy
_SHADE = 0.12  # what counts as light and shade that came over a face is wider than this, in widths of the face
_LINE = 1.2  # by what factor finer things may become brighter or darker than usual
_GREY = np.array([0.299, 0.587, 0.114], dtype=np.float32)
_GAIN = 1.6  # the most by which colours are multiplied or divided, in logarithms
_REPEAT = 256  # pixels after which noise repeats itself
_TOWARDS = np.array([1.0, 1.0, -1.0])  # depth grows away from the viewer in a mesh, towards them on the base
_SMALLEST = 40  # width of the smallest copy of a fitted surrogate


@dataclass(frozen=True, eq=False)
class Reference:
    """What a person looks like on average.

    Attributes
    ----------
    shape : ndarray of shape (478, 3)
        Aligned to the base, z towards the viewer.
    seen : ndarray of shape (n_pixels, 3)
        Log colours.
    soft : ndarray of shape (n_pixels, 3)
        Log colours without detail: what a frame is compared with.
    expression : ndarray of shape (n_expression,)
    grain : float
        Standard deviation of the noise, in 8-bit steps.
    moves : bool
        Whether it is the average of several frames: there is movement to be kept.
    """

    shape: FloatArray
    seen: Rows
    soft: Rows
    expression: FloatArray
    grain: float
    moves: bool = False

    @cached_property
    def contrast(self) -> FloatArray:
        """How lively the face is: the amounts of :class:`Contrast`."""
        return Contrast.of(canvas(), self.seen).amounts


@dataclass(frozen=True, eq=False)
class Fitted:
    """A surrogate made ready for one reference.

    Attributes
    ----------
    change : ndarray of shape (478, 3)
        From the reference's shape to the surrogate's, on the base.
    levels : tuple of ndarray of shape (height, width, 4)
        On the base and on smaller copies of it: by what the person's own softened colours are multiplied; then how
        much of the result shows, from 0 to 1, and above 1 how much of the person's own pixels stays.
    usual : tuple of ndarray of shape (height, width)
        On the same levels: the brightness, from 0 to 1, of the softened colours in the reference.
    grain : float
        Standard deviation of the frame's noise, in 8-bit steps.
    """

    change: FloatArray
    levels: tuple[NDArray[np.float32], ...]
    usual: tuple[NDArray[np.float32], ...]
    grain: float


def aligned(points: FloatArray, places: Canvas) -> tuple[FloatArray, FloatArray]:
    """Return a mesh, (478, 3), aligned to the base, and the matrix, (3, 2), that takes steps there to the frame."""
    centred, turn, scale = _alignment(points, places)
    return scale * (centred @ turn) + places.centred[0], _steps_to_frame(turn, scale)


def _alignment(points: FloatArray, places: Canvas) -> tuple[FloatArray, FloatArray, float]:
    """Return a mesh about its middle, and the rotation and the scale that bring it to the base."""
    seen = points * _TOWARDS
    centred = seen - np.add.reduce(seen) / len(seen)
    u, s, vt = np.linalg.svd(centred.T @ places.centred[1])
    turn = u @ vt
    if np.linalg.det(turn) < 0:
        u[:, 2] *= -1
        s[2] *= -1
        turn = u @ vt
    flat = centred.ravel()
    return centred, turn, float(s.sum() / (flat @ flat))


def _steps_to_frame(turn: FloatArray, scale: float) -> FloatArray:
    return np.asarray((turn.T / scale)[:, :2])


def softened(
    frame: NDArray[Any], points: FloatArray, strength: float
) -> tuple[tuple[slice, slice], NDArray[np.float32]]:
    """Return a window of a frame about a face, and it without its finest detail, float32 of 0 to 255.

    Parameters
    ----------
    strength : float
        Width of the blur, in widths of the face.
    """
    (left, top), (right, bottom) = (corner.tolist() for corner in extent(points))
    height, width = frame.shape[:2]
    sigma = max(strength * (right - left), 0.6)
    edge = 0.06 * (right - left)
    x, y = (max(0, min(floor(first - edge), size - 1)) for first, size in ((left, width), (top, height)))
    x_end, y_end = min(ceil(right + edge) + 1, width), min(ceil(bottom + edge) + 1, height)
    window = slice(y, max(y_end, y + 1)), slice(x, max(x_end, x + 1))
    if sigma > _COARSER:
        return window, blurred(frame[window].astype(np.float32), sigma)
    kernel = cv2.getGaussianKernel(2 * ceil(3 * sigma) + 1, sigma, cv2.CV_32F)
    return window, np.asarray(cv2.sepFilter2D(frame[window], cv2.CV_32F, kernel, kernel), dtype=np.float32)


def sample(frame: NDArray[Any], points: FloatArray, *strengths: float) -> list[Rows]:
    """Return the log colours, (n_pixels, 3), of a face in a frame, softened by each of some strengths.

    Parameters
    ----------
    points : ndarray of shape (478, 2 or 3)
    """
    places = canvas()
    extended = with_forehead(points[:, :2])
    x, y = places.warp.at_base(extended[places.picks])
    rows = []
    for strength in strengths:
        window, soft = softened(frame, extended, strength)
        left, top = np.float32(window[1].start), np.float32(window[0].start)
        taken = cv2.remap(soft, x - left, y - top, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        rows.append(logarithm(np.asarray(taken, dtype=np.float32)[places.warp.mask] / np.float32(255)))
    return rows


@dataclass(frozen=True, eq=False)
class Glimpse:
    """One person in one frame, to be averaged.

    Attributes
    ----------
    shape : ndarray of shape (478, 3)
        Aligned to the base.
    seen, soft : ndarray of shape (n_pixels, 3)
        As in :class:`Reference`.
    expression : ndarray of shape (n_expression,)
    grain : float
    """

    shape: FloatArray
    seen: NDArray[np.float16]
    soft: NDArray[np.float16]
    expression: FloatArray
    grain: float

    @classmethod
    def of(cls, frame: NDArray[Any], points: FloatArray, blendshapes: FloatArray) -> Glimpse:
        """Take a person from a frame; points of shape (478, 3) as in :class:`ksame.models.Mesh`."""
        seen, soft = (rows.astype(np.float16) for rows in sample(frame, points, _FINE, _SOFT))
        return cls(aligned(points, canvas())[0], seen, soft, expression_of(blendshapes), noise_of(frame, points))


def average(glimpses: Sequence[Glimpse]) -> Reference:
    """Average a person over frames."""

    def middle(rows: Sequence[NDArray[np.float16]]) -> Rows:
        return np.sort(np.stack(rows).astype(np.float32), axis=0)[len(rows) // 2]

    return Reference(
        np.mean([one.shape for one in glimpses], axis=0),
        middle([one.seen for one in glimpses]),
        middle([one.soft for one in glimpses]),
        np.mean([one.expression for one in glimpses], axis=0),
        float(np.median([one.grain for one in glimpses])),
        len(glimpses) > 1,
    )


def noise_of(frame: NDArray[Any], points: FloatArray) -> float:
    """Estimate the standard deviation of a frame's noise on a face, in 8-bit steps (Immerkær 1996)."""
    low = np.floor(points[:, :2].min(axis=0)).astype(int).clip(0)
    high = np.ceil(points[:, :2].max(axis=0)).astype(int) + 1
    grey = frame[low[1] : high[1], low[0] : high[0]].astype(np.float32).mean(axis=2)
    if min(grey.shape) < 5:
        return 0.0
    kernel = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], dtype=np.float32)
    response = np.abs(cv2.filter2D(grey, cv2.CV_32F, kernel))
    return float(np.median(response)) / 0.6745 / 6.0


def make_reference(frame: NDArray[Any], points: FloatArray, blendshapes: FloatArray) -> Reference:
    """Return the reference of a person seen once; points of shape (478, 3) as in :class:`ksame.models.Mesh`."""
    return average([Glimpse.of(frame, points, blendshapes)])


def fit_surrogate(surrogate: Surrogate, reference: Reference, cover: Cover = Cover.FACE) -> Fitted:
    """Light a surrogate as the reference is lit, and leave hair in front of the forehead, unless the ring is filled."""
    places = canvas()
    shape, texture = surrogate.look(reference.expression)
    plain = matched_contrast(places, reference.contrast, logarithm(texture))
    lit = plain + fit_light(places, reference.seen, plain)
    hair = 0.0 if cover is Cover.HEAD else _fringe(places, reference.seen, lit)
    lit = lit + match_rim(places, reference.seen, lit)
    change = keep_openings(shape - reference.shape, whole_mouth=reference.moves) * places.inwards[:, None]
    alpha = places.alpha * (1.0 - hair)
    gain = np.exp((lit - reference.soft).clip(-_GAIN, _GAIN))
    warp = places.warp
    sheet = warp.image(np.concatenate([gain, (alpha + places.own)[:, None]], axis=1))
    sheet[..., 3] *= warp.mask
    usual = np.exp(reference.soft) @ _GREY
    return Fitted(change, _pyramid(sheet), _pyramid(warp.image(usual[:, None])[..., 0]), reference.grain)


def _pyramid(image: NDArray[np.float32]) -> tuple[NDArray[np.float32], ...]:
    """Return an image and copies of half its size, a quarter, and so on."""
    levels = [image]
    while levels[-1].shape[1] > _SMALLEST:
        size = tuple(side // 2 for side in levels[-1].shape[1::-1])
        levels.append(np.asarray(cv2.resize(levels[-1], size, interpolation=cv2.INTER_AREA), dtype=np.float32))
    return tuple(levels)


def _fringe(places: Canvas, seen: Rows, lit: Rows) -> Rows:
    """Return how much each pixel is hair that hangs into the face, (n_pixels,)."""
    apart = seen - lit
    red, green, blue = apart.T
    tint = np.maximum(np.maximum(red, green), blue) - np.minimum(np.minimum(red, green), blue)
    strange = (np.abs(red + green + blue) > 3 * _HAIR) | (tint > _TINT)
    image: Any = np.zeros(places.model.size, dtype=np.uint8)
    mask = places.warp.mask
    image[mask] = strange & places.fringe
    image = cv2.morphologyEx(image, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    image = cv2.morphologyEx(image, cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8))
    count, parts = cv2.connectedComponents(image)
    rooted = np.zeros(count, dtype=np.float32)
    rooted[np.asarray(parts)[mask][places.crown]] = 1  # brows and moles grow on no rim
    rooted[0] = 0
    return np.asarray(cv2.GaussianBlur(rooted[parts], (0, 0), 1.2)[mask])


@lru_cache(maxsize=4)
def _tile(side: int) -> NDArray[np.float32]:
    """Return noise, (side, side), that repeats itself after ``_REPEAT`` pixels."""
    tile = np.random.default_rng(0).standard_normal((_REPEAT, _REPEAT)).astype(np.float32)
    return np.pad(tile, (0, side - _REPEAT), mode="wrap")


def _noise(window: tuple[slice, slice]) -> NDArray[np.float32]:
    """Return noise of unit standard deviation, the same in all channels, for a window."""
    top, left = (7 * one.start % _REPEAT for one in window)
    height, width = (one.stop - one.start for one in window)
    tile = _tile(_REPEAT * (1 + -(-max(height, width) // _REPEAT)))
    return in_colour(tile[top : top + height, left : left + width])


def paint(
    frame: ByteArray, points: FloatArray, fitted: Fitted, onto: ByteArray, cover: Cover = Cover.FACE
) -> FloatArray:
    """Put the surrogate in the place of a face, in place, and return its mesh, (478, 2).

    Parameters
    ----------
    frame : ndarray of shape (height, width, 3)
        As it was taken: the person's movement is read from it.
    points : ndarray of shape (478, 3)
    fitted : Fitted
    cover : Cover
        What becomes of the ring round the face.
    onto : ndarray of shape (height, width, 3)
        The frame to change; others may have been replaced in it already.
    """
    places = canvas()
    warp = places.warp
    _, turn, scale = _alignment(points, places)
    extended = with_forehead(points[:, :2])
    moved = extended.copy()
    moved[: len(points)] += fitted.change @ _steps_to_frame(turn, scale)
    low, high = extent(extended)
    if high.min() < 0 or (low > np.array(frame.shape[1::-1]) - 1).any():
        return np.asarray(moved[: len(points)])  # wholly outside the frame
    window, soft = softened(frame, extended, _SOFT)
    origin = np.array([window[1].start, window[0].start])
    picks = places.picks
    old, new_place = extended[picks] - origin, moved[picks] - origin
    covered, (here, base) = warp.locate(new_place, soft.shape[:2], old, warp.base)
    level = min(max(0, round(log2(0.9 * scale))), len(fitted.levels) - 1)
    base += np.float32(0.5)
    base *= np.float32(0.5**level)
    base -= np.float32(0.5)
    gains = cv2.remap(fitted.levels[level], base[0], base[1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    new: Any = cv2.remap(soft, here[0], here[1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    new += np.float32(255 * DARK)
    tamed = _tamed(new, covered, fitted.usual[level], base, 0.5 * float(np.ptp(new_place[:, 0])))
    new *= cv2.cvtColor(gains, cv2.COLOR_RGBA2RGB)
    new *= in_colour(tamed)
    new = cv2.scaleAdd(_noise(window), fitted.grain, new)
    new -= np.float32(255 * DARK)
    shown = np.asarray(cv2.extractChannel(gains, 3), dtype=np.float32) * covered
    _keep_own(new, frame[window], here, shown)
    alpha = np.minimum(shown, np.float32(1))
    onto[window] = mixed(new, onto[window].astype(np.float32), alpha)
    if cover is not Cover.FACE:
        _cover_ring(onto, extended, window, alpha, cover)
    return np.asarray(moved[: len(points)])


def _tamed(
    seen: NDArray[np.float32],
    covered: NDArray[np.bool_],
    usual: NDArray[np.float32],
    base: NDArray[np.float32],
    width: float,
) -> NDArray[np.float32]:
    """Return by what a face, (height, width, 3), is multiplied so that little in it is far from usual, (height, width).

    Light and shade that fall on much of it may change. Lines may not, as those of spectacles that have slipped: where
    the surrogate makes up for them, it would show them twice. It is worked out on every second pixel, in whose number
    ``width``, that of the face, is given.
    """
    few = np.s_[::2, ::2]
    now: Any = cv2.cvtColor(np.ascontiguousarray(seen[few]), cv2.COLOR_RGB2GRAY)
    x, y = np.ascontiguousarray(base[:, ::2, ::2])
    now /= cv2.remap(usual, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    inside = covered[few]
    now[~inside] = 1
    broad = blurred(cv2.merge([now * inside, inside.astype(np.float32)]), max(_SHADE * width, 1.0))
    light = broad[..., 0] / np.maximum(broad[..., 1], np.float32(1e-3))
    limited = np.clip(now, light * np.float32(1 / _LINE), light * np.float32(_LINE)) / now
    limited[~inside] = 1
    return np.asarray(cv2.resize(limited, seen.shape[1::-1], interpolation=cv2.INTER_LINEAR), dtype=np.float32)


def _keep_own(new: Any, frame: ByteArray, here: NDArray[np.float32], shown: NDArray[np.float32]) -> None:
    """Put the person's own pixels, moved, where ``shown`` is above 1: eyeballs and the inside of the mouth."""
    x, y, width, height = cv2.boundingRect((shown > 1).astype(np.uint8))
    box = slice(y, y + height), slice(x, x + width)
    if width and height:
        own = cv2.remap(frame, here[0][box], here[1][box], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        new[box] += (own - new[box]) * (shown[box] - 1).clip(0)[..., None]


def _cover_ring(
    onto: ByteArray, points: FloatArray, window: tuple[slice, slice], alpha: NDArray[np.float32], cover: Cover
) -> None:
    """Change the ring round a new face that shows with ``alpha`` in a window of the frame, in place."""
    ring = ring_window(points, onto.shape)
    inside = np.zeros(onto[ring].shape[:2], dtype=np.float32)
    top, left = (one.start - other.start for one, other in zip(window, ring, strict=True))
    inside[top : top + alpha.shape[0], left : left + alpha.shape[1]] = alpha
    onto[ring] = cover_rim(onto[ring], inside, points - [ring[1].start, ring[0].start], cover)
