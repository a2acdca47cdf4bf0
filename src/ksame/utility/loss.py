"""How much of a picture is lost: measures on a picture before and after (Newton et al. 2005, section 2.3).

All take two pictures of one shape, 8-bit or floating point in [0, 1], and count in grey values of 0 to 255.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.errors import InputError

PEAK = 255.0
"""The largest value of a pixel."""

CHANGED = 0.5
"""Grey values by which a pixel must differ to count as changed: half a step of 8 bits."""

_WINDOW = 11  # pixels, of structural similarity
_SIGMA = 1.5


@dataclass(frozen=True)
class Loss:
    """What one picture lost, or many on average."""

    euclidean: float  # root of the summed squared differences (Newton et al. 2005, eq. 2)
    changed: float  # share of pixels of which any channel differs
    entropy: float  # bits per pixel of the picture after; a flat picture has none
    psnr: float  # peak signal-to-noise ratio in decibels; infinite where nothing differs
    # structural similarity (Wang et al. 2004) in [-1, 1]: Gaussian windows of sigma 1.5 that lie inside the picture,
    # mean over channels. Pictures smaller than a window of 11 pixels are compared by one window over the whole
    ssim: float


def measure_loss(before: NDArray[Any], after: NDArray[Any]) -> Loss:
    """Return every measure of one pair, of shape (height, width, channels)."""
    if before.shape != after.shape:
        raise InputError(f"A loss needs two pictures of one shape. Got {before.shape} and {after.shape}.")
    a, b = _grey_values(before), _grey_values(after)
    difference = a - b
    square = float((difference**2).sum())
    error = square / difference.size
    return Loss(
        euclidean=float(np.sqrt(square)),
        changed=float((np.abs(difference) > CHANGED).any(axis=2).mean()),
        entropy=_entropy(b),
        psnr=float(10.0 * np.log10(PEAK**2 / error)) if error else float("inf"),
        ssim=_ssim(a, b),
    )


def mean_loss(losses: Sequence[Loss]) -> Loss:
    """Average over pairs; the signal-to-noise ratio by its mean squared error, so that no equal pair makes it infinite.

    Examples
    --------
    >>> changed, same = Loss(2.0, 0.5, 3.0, 20.0, 0.8), Loss(0.0, 0.0, 3.0, float("inf"), 1.0)
    >>> mean_loss([changed, same]).psnr
    23.010299956639813
    """
    if not losses:
        raise InputError("There is no pair of pictures of one size to measure a loss on.")
    rows = [asdict(loss) for loss in losses]
    mean = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    noise = float(np.mean([10.0 ** (-loss.psnr / 10.0) for loss in losses]))
    return Loss(**{**mean, "psnr": float("inf") if noise == 0 else float(-10.0 * np.log10(noise))})


@dataclass(frozen=True)
class GroupLoss:
    """What the pictures of one group of people lost on average, and how many they are."""

    loss: Loss
    n_faces: int


def loss_by_group(
    before: NDArray[Any], after: NDArray[Any], groups: Sequence[str] | NDArray[Any]
) -> dict[str, GroupLoss]:
    """Measure the loss for each group of people apart: a mean over all can hide that few pay for many.

    Parameters
    ----------
    before, after : ndarray of shape (n_faces, height, width, channels)
        Pairs, in one order.
    groups : sequence of length n_faces
        A label of the people, such as gender, or which face they share.
    """
    if not len(before) == len(after) == len(groups):
        raise InputError(
            f"Expected as many groups as pictures before and after. Got {len(groups)}, {len(before)} and {len(after)}."
        )
    of: dict[str, list[Loss]] = {}
    for a, b, group in zip(before, after, groups, strict=True):
        of.setdefault(str(group), []).append(measure_loss(a, b))
    return {group: GroupLoss(mean_loss(losses), len(losses)) for group, losses in sorted(of.items())}


def entropy(picture: NDArray[Any]) -> float:
    """Return the Shannon entropy of the grey values, in bits per pixel.

    Examples
    --------
    >>> entropy(np.array([[[0], [255]], [[0], [255]]], dtype=np.uint8))
    1.0
    """
    return _entropy(_grey_values(picture))


def _entropy(values: FloatArray) -> float:
    _, counts = np.unique(np.rint(values.mean(axis=2)), return_counts=True)
    shares = counts / counts.sum()
    return max(0.0, float(-(shares * np.log2(shares)).sum()))


def _ssim(a: FloatArray, b: FloatArray) -> float:
    if min(a.shape[:2]) < _WINDOW:  # one window over the whole picture
        return float(np.mean([_whole_ssim(a[..., c], b[..., c]) for c in range(a.shape[2])]))
    x, y = _windows(a), _windows(b)
    variances = (_windows(a * a) - x * x, _windows(b * b) - y * y)
    return float(np.mean(_similarity(x, y, *variances, _windows(a * b) - x * y)))


def _whole_ssim(x: FloatArray, y: FloatArray) -> float:
    covariance = ((x - x.mean()) * (y - y.mean())).mean()
    return float(_similarity(x.mean(), y.mean(), x.var(), y.var(), covariance))


def _similarity(x: Any, y: Any, x_variance: Any, y_variance: Any, covariance: Any) -> Any:
    """Return structural similarity (Wang et al. 2004, eq. 13) from means, variances and covariances of windows."""
    c1, c2 = (0.01 * PEAK) ** 2, (0.03 * PEAK) ** 2
    return (2 * x * y + c1) * (2 * covariance + c2) / ((x**2 + y**2 + c1) * (x_variance + y_variance + c2))


def _windows(values: FloatArray) -> FloatArray:
    """Return the weighted mean of every window that lies inside a picture."""
    weights = cv2.getGaussianKernel(_WINDOW, _SIGMA, cv2.CV_64F)
    edge = _WINDOW // 2
    means = cv2.sepFilter2D(values, cv2.CV_64F, weights, weights).reshape(values.shape)
    return np.asarray(means[edge:-edge, edge:-edge])


def _grey_values(picture: NDArray[Any]) -> FloatArray:
    if picture.ndim != 3 or 0 in picture.shape:
        raise InputError(f"A picture must have the shape (height, width, channels). Got {picture.shape}.")
    values = np.asarray(picture, dtype=np.float64)
    return values if picture.dtype == np.uint8 else np.asarray(values * PEAK)
