"""The light of a frame on a surrogate: fitted by the slope of the surface, matched at the rim.

Only what light can do is taken over: nine numbers a channel, and the colours along the rim, carried a little
inwards. Features are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ksame.faces.faceset import FloatArray
from ksame.scene.replacing.blurring import blurred
from ksame.scene.replacing.canvas import Canvas, Rows

DARK = 0.04  # added before logarithms, so that black stays finite
_WIDE, _BROAD = 12.0, 36.0  # what counts as features, and as relief, is finer than this, in pixels of the base
_LIVELY = 1.1  # how much of the contrast of what is seen a surrogate may have
_GLOW = 0.5  # how much of what is brighter than its surroundings is kept: bright skin would be drawn as white lines
_BRIGHTER = 0.08  # the most by which detail may be brighter than its surroundings
_BLUSH = 0.03  # the most by which skin may be of another colour than most of the face: cheeks and shadows of the face
# model are more colourful than those of any face, which shows in hazy and grey pictures
_ROUGE = 0.09  # the same for lips
_TINGE = 4.0  # what counts as a difference in colour is wider than this
_FOLD = -0.12  # how much darker folds may be than the skin about them
_EVERY = 5  # pixels of a face of which one is asked how much they differ
_LEAST = 0.1  # the least share of its contrast that a surrogate keeps
_SMOOTH = 5  # stations of the rim that are averaged
_MOST = 0.45  # the most that the rim may brighten or darken, in logarithms
_STIFF = (0.0, *[0.003] * 3, *[0.03] * 5)  # how unlikely directed light is, and light that is more uneven still
_ONE_COLOUR = 30.0  # how much less likely it is that light from different sides differs in colour
_STRANGE = 0.3  # difference from the fitted light at which a pixel counts as no skin


def logarithm(rows: Rows) -> Rows:
    """Return log colours of rows in [0, 1]."""
    return np.asarray(np.log(rows.clip(0) + DARK), dtype=np.float32)


def exponential(rows: Rows) -> Rows:
    """Undo :func:`logarithm`."""
    return np.asarray(np.exp(rows) - DARK, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Contrast:
    """How lively a face is: what differs inside it, fine, middling and broad, and its colours.

    Attributes
    ----------
    fine, middling, broad : ndarray of shape (n_pixels, 1)
        The logarithm of the brightness is their sum.
    tint : ndarray of shape (n_pixels, 3)
        What is left of log colours without it.
    amounts : ndarray of shape (4,)
        How much each of them differs between features.
    """

    fine: Rows
    middling: Rows
    broad: Rows
    tint: Rows
    amounts: FloatArray

    @classmethod
    def of(cls, places: Canvas, rows: Rows) -> Contrast:
        """Take log colours, (n_pixels, 3), apart."""
        warp = places.warp
        light = rows.mean(axis=1, keepdims=True)
        tint = rows - light
        picture = warp.image(np.concatenate([light, tint], axis=1))
        wide, broad = (blurred(np.ascontiguousarray(picture[..., 0]), width)[warp.mask] for width in (_WIDE, _BROAD))
        even = blurred(picture[..., 1:], _TINGE)[warp.mask]  # without the noise of small and dithered pictures
        parts = light - wide[:, None], (wide - broad)[:, None], broad[:, None]
        sample = np.flatnonzero(places.inner)[::_EVERY]
        few = [part[sample] for part in (*parts, even)]
        few[2:] = [part - np.median(part, axis=0) for part in few[2:]]
        amounts = [max(float(np.quantile(np.abs(part), 0.8)), 1e-6) for part in few]
        return cls(*parts, tint, np.array(amounts))


def matched_contrast(places: Canvas, amounts: FloatArray, surrogate: Rows) -> Rows:
    """Give a surrogate the contrast and the colourfulness of what is seen: hazy and grey frames have little.

    Parameters
    ----------
    amounts : ndarray of shape (4,)
        See :class:`Contrast`; of what is seen.
    surrogate : ndarray of shape (n_pixels, 3)
        In logarithms.
    """
    own = Contrast.of(places, surrogate)
    wanted = amounts / own.amounts * [_LIVELY, 1.0, 1.0, 1.0]
    wanted[3] = min(wanted[3], max(wanted[:2]))  # haze takes as much from colours; what is left is noise
    fine, middling, broad, colour = wanted.clip([*[_LEAST] * 3, 0.0], [1.1, 1.0, 1.0, 1.1]).astype(np.float32)
    sample = np.flatnonzero(places.inner)[::_EVERY]
    level, middle = (np.median(rows[sample], axis=0) for rows in (own.broad, own.tint))
    rest = own.fine * fine
    rest = np.where(rest > 0, np.float32(_GLOW) * rest, rest).clip(max=_BRIGHTER)
    rest += places.plain[:, None] * (rest.clip(min=_FOLD) - rest)
    most = _BLUSH + (_ROUGE - _BLUSH) * places.lips[:, None]
    hue = ((own.tint - middle) * colour).clip(-most, most)
    return np.asarray(level + (own.broad - level) * broad + own.middling * middling + rest + middle + hue)


def fit_light(places: Canvas, seen: Rows, surrogate: Rows) -> Rows:
    """Return the light, (n_pixels, 3), in logarithms, that brings a surrogate to what is seen.

    Parameters
    ----------
    seen, surrogate : ndarray of shape (n_pixels, 3)
        In logarithms.
    """
    sample = np.flatnonzero(places.skin)[::7]
    design = places.slopes[sample].astype(np.float64)
    target = (seen[sample] - surrogate[sample]).astype(np.float64)
    bright = target.mean(axis=1, keepdims=True)
    weight = (~places.fringe[sample]).astype(np.float64)  # first without what hair may hang into
    ridge = len(sample) * np.diag(_STIFF)
    for _ in range(5):
        weighted = design * weight[:, None]
        product = weighted.T @ design
        light = np.linalg.solve(product + ridge, weighted.T @ bright)
        colour = np.linalg.solve(product + _ONE_COLOUR * ridge, weighted.T @ (target - bright))
        fit = light + colour
        apart = abs(target - design @ fit).mean(axis=1)
        weight = 1.0 / (1.0 + (apart / 0.12) ** 2)
    return np.asarray(places.slopes @ fit.astype(np.float32))


def match_rim(places: Canvas, seen: Rows, lit: Rows) -> Rows:
    """Return the correction, (n_pixels, 3), in logarithms, that makes a lit surrogate meet what is seen at the rim."""
    gap = np.median((seen - lit)[places.rim_rows], axis=1)
    brightness = gap.mean(axis=1)
    trust = 1.0 / (1.0 + (brightness / _STRANGE) ** 4)
    kernel = np.hanning(2 * _SMOOTH + 3)[1:-1]

    def around(values: Rows) -> Rows:
        rolled = [np.roll(values, shift, axis=0) for shift in range(-_SMOOTH, _SMOOTH + 1)]
        return np.asarray(np.tensordot(kernel, np.stack(rolled), axes=1))

    smooth = around(gap * trust[:, None]) / np.maximum(around(trust), 0.5)[:, None]
    smooth = smooth.clip(-_MOST, _MOST).astype(np.float32)
    return np.asarray(
        smooth[places.rim_index[:, 0]] * places.rim_weights[:, :1]
        + smooth[places.rim_index[:, 1]] * places.rim_weights[:, 1:]
    )
