"""Painting a surrogate into a frame: c_t = identity + what the person does at t (algorithms of the AAM, in texture).

A person's *reference* is what they look like on average over a track: shape, texture and expression. A surrogate is
fitted to it once: lit as it is lit, meeting it at the rim. In every frame the difference between the person now and
the reference is added to both shape and texture, so that speech, blinks, gaze and passing shadows stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.faces.faceset import ByteArray, FloatArray
from ksame.scene.replacing.canvas import Canvas, Rows, canvas, keep_openings
from ksame.scene.replacing.light import exponential, fit_light, logarithm, match_rim
from ksame.scene.replacing.rim import Cover, cover_rim, ring_window
from ksame.scene.replacing.surrogate import Surrogate, expression_of
from ksame.spaces.facemodel.geometry import with_forehead

_HAIR = 0.32  # difference in log brightness from the surrogate's skin at which a forehead pixel is hair
_TINT = 0.25  # the same for colour
_CHANGE = 0.6  # the most that a frame may differ from the reference, in logarithms


@dataclass(frozen=True, eq=False)
class Reference:
    """What a person looks like on average.

    Attributes
    ----------
    shape : ndarray of shape (478, 3)
        Aligned to the base, z towards the viewer.
    seen : ndarray of shape (n_pixels, 3)
        Log colours.
    expression : ndarray of shape (n_expression,)
    """

    shape: FloatArray
    seen: Rows
    expression: FloatArray


@dataclass(frozen=True, eq=False)
class Fitted:
    """A surrogate made ready for one reference.

    Attributes
    ----------
    change : ndarray of shape (478, 3)
        From the reference's shape to the surrogate's, on the base.
    lit : ndarray of shape (n_pixels, 3)
        Log colours.
    alpha : ndarray of shape (n_pixels,)
    """

    reference: Reference
    change: FloatArray
    lit: Rows
    alpha: Rows


def aligned(points: FloatArray, places: Canvas) -> tuple[FloatArray, FloatArray]:
    """Return a mesh, (478, 3), aligned to the base, and the matrix, (3, 2), that takes steps there to the frame."""
    seen = points * [1.0, 1.0, -1.0]
    base = places.model.base
    centred, goal = seen - seen.mean(axis=0), base - base.mean(axis=0)
    u, s, vt = np.linalg.svd(centred.T @ goal)
    if np.linalg.det(u @ vt) < 0:
        u[:, 2] *= -1
        s[2] *= -1
    turn = u @ vt
    scale = s.sum() / (centred**2).sum()
    return scale * (centred @ turn) + base.mean(axis=0), (turn.T / scale)[:, :2]


def sample(frame: NDArray[Any], points: FloatArray) -> Rows:
    """Return the log colours, (n_pixels, 3), of a face in a frame."""
    return logarithm(canvas().model.warp.sample(frame, with_forehead(points[:, :2])))


def make_reference(frames: Sequence[tuple[NDArray[Any], FloatArray, FloatArray]]) -> Reference:
    """Average a person over frames.

    Parameters
    ----------
    frames : sequence of (frame, points, blendshapes)
        At least one; points of shape (478, 3) as in :class:`ksame.models.Mesh`.
    """
    places = canvas()
    shapes = [aligned(points, places)[0] for _, points, _ in frames]
    textures = [sample(frame, points) for frame, points, _ in frames]
    expressions = [expression_of(blendshapes) for *_, blendshapes in frames]
    seen = textures[0] if len(textures) == 1 else np.median(np.stack(textures), axis=0).astype(np.float32)
    return Reference(np.mean(shapes, axis=0), seen, np.mean(expressions, axis=0))


def fit_surrogate(surrogate: Surrogate, reference: Reference) -> Fitted:
    """Light a surrogate as the reference is lit, and find what of the forehead is hair."""
    places = canvas()
    shape, texture = surrogate.look(reference.expression)
    plain = logarithm(texture)
    lit = plain + fit_light(places, reference.seen, plain)
    hair = _fringe(places, reference.seen, lit)
    lit = lit + match_rim(places, reference.seen, lit)
    change = keep_openings(shape - reference.shape) * places.inwards[:, None]
    return Fitted(reference, change, lit, places.alpha * (1.0 - hair))


def _fringe(places: Canvas, seen: Rows, lit: Rows) -> Rows:
    """Return how much each pixel is hair that hangs into the face, (n_pixels,)."""
    apart = seen - lit
    strange = (abs(apart.mean(axis=1)) > _HAIR) | (np.ptp(apart, axis=1) > _TINT)
    image = np.zeros(places.model.size, dtype=np.uint8)
    mask = places.model.warp.mask
    image[mask] = strange & places.fringe
    image = cv2.morphologyEx(image, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    image = cv2.morphologyEx(image, cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8))
    return np.asarray(cv2.GaussianBlur(image.astype(np.float32), (0, 0), 1.2)[mask])


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
    now = sample(frame, points)
    _, to_frame = aligned(points, places)
    extended = with_forehead(points[:, :2])
    moved = extended.copy()
    moved[: len(points)] += fitted.change @ to_frame
    rows = exponential(fitted.lit + (now - fitted.reference.seen).clip(-_CHANGE, _CHANGE))
    own = places.own[:, None]
    rows = rows * (1 - own) + exponential(now) * own
    sheet = np.concatenate([rows, fitted.alpha[:, None]], axis=1)
    window = ring_window(extended, frame.shape)
    origin = np.array([window[1].start, window[0].start])
    part = onto[window].astype(np.float32)
    picture, _ = places.model.warp.from_base(sheet, moved - origin, part.shape[:2])
    alpha = picture[..., 3]
    part += (picture[..., :3].clip(0, 1) * 255 - part) * alpha[..., None]
    onto[window] = np.rint(cover_rim(part, alpha, extended - origin, cover)).clip(0, 255).astype(np.uint8)
    return np.asarray(moved[: len(points)])
