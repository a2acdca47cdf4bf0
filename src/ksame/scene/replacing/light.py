"""The light of a frame on a surrogate: fitted by the slope of the surface, matched at the rim.

Only what light can do is taken over: nine numbers a channel, and the colours along the rim, carried a little
inwards. Features are not.
"""

from __future__ import annotations

import numpy as np

from ksame.scene.replacing.blurring import blurred
from ksame.scene.replacing.canvas import Canvas, Rows

DARK = 0.04  # added before logarithms, so that black stays finite
_WIDE, _BROAD = 12.0, 36.0  # what counts as features, and as relief, is finer than this, in pixels of the base
_LIVELY = 1.1  # how much of the contrast of what is seen a surrogate may have
_GLOW = 0.5  # how much of what is brighter than its surroundings is kept: bright skin would be drawn as white lines
_BRIGHTER, _HUE = 0.08, 0.09  # the most by which detail may be brighter, and of another colour, than its surroundings
_TINGE = 4.0  # what counts as a difference in colour is wider than this
_EVERY = 5  # pixels of a face of which one is asked how much they differ
_LEAST = 0.1  # the least share of its contrast that a surrogate keeps
_SMOOTH = 5  # stations of the rim that are averaged
_MOST = 0.45  # the most that the rim may brighten or darken, in logarithms
_STIFF = (0.0, *[0.003] * 3, *[0.03] * 5)  # how unlikely directed light is, and light that is more uneven still
_STRANGE = 0.3  # difference from the fitted light at which a pixel counts as no skin


def logarithm(rows: Rows) -> Rows:
    """Return log colours of rows in [0, 1]."""
    return np.asarray(np.log(rows.clip(0) + DARK), dtype=np.float32)


def exponential(rows: Rows) -> Rows:
    """Undo :func:`logarithm`."""
    return np.asarray(np.exp(rows) - DARK, dtype=np.float32)


def matched_contrast(places: Canvas, seen: Rows, surrogate: Rows) -> Rows:
    """Give a surrogate the contrast and the colourfulness of what is seen: hazy and grey frames have little.

    Parameters
    ----------
    seen, surrogate : ndarray of shape (n_pixels, 3)
        In logarithms.
    """
    warp = places.warp
    sample = np.flatnonzero(places.inner)[::_EVERY]

    def bands(light: Rows) -> tuple[Rows, Rows, Rows]:
        picture = warp.image(light)[..., 0]
        wide, broad = (blurred(picture, sigma)[warp.mask][:, None] for sigma in (_WIDE, _BROAD))
        return light - wide, wide - broad, broad

    def amount(rows: Rows) -> float:
        return max(float(np.quantile(np.abs(rows[sample]), 0.8)), 1e-6)

    def even(rows: Rows) -> Rows:
        return blurred(warp.image(rows), _TINGE)[warp.mask]  # without the noise of small and dithered pictures

    def spread(rows: Rows) -> float:
        return amount(rows - np.float32(np.median(rows[sample], axis=0)))

    light, tint = _parted(seen)
    own_light, own_tint = _parted(surrogate)
    fine, middling, broad = bands(light)
    own_fine, own_middling, own_broad = bands(own_light)
    contrast = np.clip(_LIVELY * amount(fine) / amount(own_fine), _LEAST, 1.1)
    relief = np.clip(amount(middling) / amount(own_middling), _LEAST, 1.0)
    vault = np.clip(spread(broad) / spread(own_broad), _LEAST, 1.0)
    colour = np.clip(spread(even(tint)) / spread(even(own_tint)), 0.0, 1.1)
    level, middle = (np.median(rows[sample], axis=0) for rows in (own_broad, own_tint))
    rest = own_fine * np.float32(contrast)
    rest = np.where(rest > 0, np.float32(_GLOW) * rest, rest).clip(max=_BRIGHTER)
    hue = ((own_tint - middle) * np.float32(colour)).clip(-_HUE, _HUE)
    smooth = level + (own_broad - level) * np.float32(vault) + own_middling * np.float32(relief)
    return np.asarray(smooth + rest + middle + hue)


def _parted(rows: Rows) -> tuple[Rows, Rows]:
    """Part log colours into brightness, (n_pixels, 1), and what is left of colour, (n_pixels, 3)."""
    light = rows.mean(axis=1, keepdims=True)
    return light, rows - light


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
    weight = np.ones(len(sample))
    ridge = len(sample) * np.diag(_STIFF)
    for _ in range(5):
        weighted = design * weight[:, None]
        fit = np.linalg.solve(weighted.T @ design + ridge, weighted.T @ target)
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
