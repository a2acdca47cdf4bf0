"""Places on the base face: what of a surrogate shows, what stays the person's own, where the rim runs.

Everything here is fixed by the face model and computed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.faces.faceset import FloatArray, IntArray
from ksame.spaces.aam.warp import PiecewiseAffine, triangulate
from ksame.spaces.facemodel import FaceModel, face_model
from ksame.spaces.facemodel.geometry import BROWS, EYES, INNER_LIPS, IRISES, OUTLINE, OVAL, with_forehead

Rows = NDArray[np.float32]

_FEATHER = 5.0  # width of the rim over which the surrogate fades in, in pixels of the base
_REACH = 20.0  # how far inwards the rim's colours are carried, in pixels of the base
_EDGE = 7.0  # how wide the edge is on which hair grows
_BLEND = 5.0  # over which cheeks and chin begin, for no edge to show
_SOFT = 2.0  # over which lips begin
_RIM = 4.0  # how far inside the edge the rim's colours are read
N_RIM = 144
N_PICKS = 230
_NOSE = (168, 6, 197, 195, 5, 4, 1, 2, 98, 327, 48, 278, 64, 294, 129, 358, 49, 279)
_LIPS = (61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291, 375, 321, 405, 314, 17, 84, 181, 91, 146)
_MOUTH = 0.3  # how much of the surrogate's form of the mouth is taken over
_LIDS = tuple(tuple(ring) for ring in EYES)
_LIP_PAIRS = tuple(zip(INNER_LIPS[1:10], INNER_LIPS[:10:-1], strict=True))


@dataclass(frozen=True, eq=False)
class Canvas:
    """Fixed maps over the pixels inside the base, (n_pixels,) unless said otherwise.

    Attributes
    ----------
    model : FaceModel
    picks : ndarray of shape (n_picks,)
        Points, among the 504 of a mesh with its forehead, that span the triangles by which faces are taken and painted:
        the contours, and some between them. With all of them it would take thrice as long and look the same.
    warp : PiecewiseAffine
        Between the base and other shapes of those points; over the same pixels as that of the model.
    own : ndarray
        How much of the person's own pixels stays: the eyeballs and the inside of the mouth.
    alpha : ndarray
        How much of the surrogate shows, from 0 on the edge to 1 a little further in.
    slopes : ndarray of shape (n_pixels, 9)
        Spherical harmonics of the surface's direction: what light can do.
    skin : ndarray of bool
        Skin on every face: no hair, brows, eyes, lips or rim.
    plain : ndarray
        How much each pixel is of its part on cheeks and chin, where nothing is dark on any face but folds.
    lips : ndarray
        How much each pixel is of the lips.
    rim_rows : ndarray of shape (N_RIM, n)
        Rows of pixels that give each station of the rim its colour.
    rim_weights : ndarray of shape (n_pixels, 2), rim_index : ndarray of shape (n_pixels, 2)
        Between which two stations a pixel lies and how much each counts, fading inwards.
    inner : ndarray of bool
        Brows, eyes, nose and mouth, but not the openings between lids and lips: where contrast is measured.
    fringe : ndarray of bool
        Forehead and temples, where hair may hang into the face.
    crown : ndarray of bool
        The part of it along the edge, from which hair grows.
    inwards : ndarray of shape (478,)
        How much of a surrogate's shape each point takes: none on the rim.
    """

    model: FaceModel
    picks: IntArray
    warp: PiecewiseAffine
    own: Rows
    alpha: Rows
    slopes: Rows
    skin: NDArray[np.bool_]
    plain: Rows
    lips: Rows
    rim_rows: IntArray
    rim_weights: Rows
    rim_index: IntArray
    inner: NDArray[np.bool_]
    fringe: NDArray[np.bool_]
    crown: NDArray[np.bool_]
    inwards: FloatArray

    @cached_property
    def centred(self) -> tuple[FloatArray, FloatArray]:
        """The middle of the base's points, (3,), and the points about it, (478, 3)."""
        middle = self.model.base.mean(axis=0)
        return middle, self.model.base - middle


@lru_cache(maxsize=1)
def canvas() -> Canvas:
    """Return the canvas of the shipped face model."""
    model = face_model()
    mask, base = model.warp.mask, model.base
    with (files("ksame.data") / "canvas.npz").open("rb") as file, np.load(file) as stored:
        picks, triangles = (stored[name].astype(np.intp) for name in ("picks", "triangles"))
    warp = PiecewiseAffine(with_forehead(base)[picks, :2], triangles, model.size)
    if not np.array_equal(warp.mask, mask):
        raise RuntimeError("The face model and the canvas must cover the same pixels.")
    padded = np.pad(mask, 1).astype(np.uint8)
    depth: Any = np.asarray(cv2.distanceTransform(padded, cv2.DIST_L2, 5))[1:-1, 1:-1]
    own: Any = np.zeros(model.size, dtype=np.float32)
    for ring in (*_LIDS, INNER_LIPS):
        own = np.maximum(own, _filled(model.size, base[list(ring), :2]))
    own = cv2.GaussianBlur(own, (0, 0), 1.0)
    fade = (depth / _FEATHER).clip(0, 1)
    evener = model.evener
    features = cv2.dilate((own > 0.1).astype(np.uint8), np.ones((25, 25), np.uint8)).astype(bool)
    skin = mask & (depth > 6) & ~features & ~(evener.margin & ~evener.forehead)
    lips: Any = cv2.GaussianBlur(_filled(model.size, base[list(_LIPS), :2]), (0, 0), _SOFT)
    hull: Any = cv2.convexHull(base[list(_NOSE), :2].astype(np.float32))
    nose = _filled(model.size, hull[:, 0]) > 0
    nose = cv2.dilate(nose.astype(np.uint8), np.ones((11, 11), np.uint8)).astype(bool)
    below_eyes = np.arange(model.size[0])[:, None] > max(base[list(ring), 1].max() for ring in _LIDS)
    x, y, z = (evener.normals[..., i] for i in range(3))
    slopes = np.stack([np.ones_like(x), x, y, z, x * y, x * z, y * z, x * x - y * y, 3 * z * z - 1], axis=-1)
    rim_rows, rim_index, rim_weights = _rim(model, depth)
    return Canvas(
        model,
        picks,
        warp,
        own[mask],
        (fade * fade * (3 - 2 * fade))[mask].astype(np.float32),
        slopes[mask].astype(np.float32),
        skin[mask],
        cv2.GaussianBlur((skin & below_eyes & ~nose).astype(np.float32), (0, 0), _BLEND)[mask],
        lips[mask],
        rim_rows,
        rim_weights,
        rim_index,
        (mask & (depth > 14) & ~evener.forehead & (own < 0.1))[mask],
        evener.forehead[mask],
        (evener.forehead & (depth < _EDGE))[mask],
        _inwards(base),
    )


def coarse_mesh(model: FaceModel) -> tuple[IntArray, IntArray]:
    """Return the points and triangles that are stored in ``ksame/data/canvas.npz``, from scratch.

    They are stored because the library that finds the triangles takes half a second to load.
    """
    points = with_forehead(model.base)[:, :2]
    picks = _picks(points)
    return picks, triangulate(points[picks])


def _picks(points: FloatArray) -> IntArray:
    """Choose points that span the mesh well: contours first, then whichever is furthest from those chosen."""
    chosen = sorted({*OUTLINE, *BROWS, *_NOSE, *_LIPS, *INNER_LIPS, *(point for ring in _LIDS for point in ring)})
    hidden = {point for iris in IRISES for point in iris}
    apart = np.linalg.norm(points[:, None] - points[None, chosen], axis=2).min(axis=1)
    apart[list(hidden)] = -1.0
    while len(chosen) < N_PICKS:
        chosen.append(int(apart.argmax()))
        apart = np.minimum(apart, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return np.array(sorted(chosen), dtype=np.intp)


def _rim(model: FaceModel, depth: NDArray[np.float32]) -> tuple[IntArray, IntArray, Rows]:
    mask = model.warp.mask
    rows, columns = np.nonzero(mask)
    centre = np.array([(model.size[1] - 1) / 2, model.base[:, 1].mean()])
    angle = np.arctan2(rows - centre[1], columns - centre[0])
    station = (angle / (2 * np.pi) + 0.5) * N_RIM
    inside = depth[mask]
    stations = []
    for i in range(N_RIM):
        apart = abs((station - i + N_RIM / 2) % N_RIM - N_RIM / 2)
        stations.append(np.argpartition(apart + 2.0 * abs(inside - _RIM), 24)[:24])
    low = np.floor(station).astype(np.intp)
    share = (station - low).astype(np.float32)
    fall = np.exp(-((inside / _REACH) ** 2)).astype(np.float32)
    weights = np.stack([(1 - share) * fall, share * fall], axis=1)
    return np.array(stations), np.stack([low % N_RIM, (low + 1) % N_RIM], axis=1), weights


def _inwards(base: FloatArray) -> FloatArray:
    """Return 0 for points on the rim, 1 for those a fifth of the face's width inside."""
    rim = base[list(OVAL), :2]
    apart = np.linalg.norm(base[:, None, :2] - rim[None], axis=2).min(axis=1) / np.ptp(base[:, 0])
    share = (apart / 0.2).clip(0, 1)
    share[list(OVAL)] = 0.0
    return np.asarray(share * share * (3 - 2 * share))


def _filled(size: tuple[int, int], points: FloatArray) -> NDArray[np.float32]:
    image = np.zeros(size, dtype=np.uint8)
    cv2.fillPoly(image, [np.rint(points * 16).astype(np.int32)], 255, cv2.LINE_AA, 4)
    return np.asarray(image, dtype=np.float32) / np.float32(255)


def keep_openings(change: FloatArray, *, whole_mouth: bool) -> FloatArray:
    """Make a change of shape, (478, 3), move eyelids and lips as a whole, so that they open as they did.

    Both lids of an eye, with its iris, are moved by the same step; each point of the upper lip and the one below it
    likewise, so that a closed mouth stays closed.

    Parameters
    ----------
    change : ndarray of shape (478, 3)
    whole_mouth : bool
        Move the mouth to its new place but keep most of its own form: smiles and speech are read from that.
    """
    change = change.copy()
    if whole_mouth:
        mouth = [*_LIPS, *INNER_LIPS]
        middle = change[mouth].mean(axis=0)
        change[mouth] = middle + _MOUTH * (change[mouth] - middle)
    for lids, iris in zip(_LIDS, IRISES, strict=True):
        change[list(lids + iris)] = change[list(lids)].mean(axis=0)
    for upper, lower in _LIP_PAIRS:
        change[[upper, lower]] = 0.5 * (change[upper] + change[lower])
    return change
