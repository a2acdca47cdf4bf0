"""Learning the face model from prepared portraits: modes, directions, predictors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.spaces.facemodel.geometry import half_rows, mirror_index, mirrored
from ksame.spaces.facemodel.light import Evener
from ksame.spaces.facemodel.model import FaceModel
from ksame.spaces.facemodel.preparation import ATTRIBUTES, ODD, Prepared
from ksame.spaces.pca import fit_pca

SHAPE_MODES, TEXTURE_MODES = (24, 6), (60, 8)  # symmetric and antisymmetric
DIRECTION_RIDGE, PREDICTION_RIDGE = 4.0, 150.0
SHRINKAGE = 0.1  # of the covariance of codes towards its diagonal


def learn(data: Prepared, people: NDArray[np.bool_] | None = None) -> FaceModel:
    """Learn the statistics of ``people`` (all by default): modes, directions, predictors."""
    chosen = np.ones(len(data.shapes), dtype=bool) if people is None else people
    plain = chosen & data.plain
    pairs = mirror_index(data.base - data.base.mean(axis=0))
    flipped = mirrored(data.shapes, pairs)
    shape_modes, shape_parity = [], []
    for parity, count in zip((1, -1), SHAPE_MODES, strict=True):
        part = 0.5 * (data.shapes + parity * flipped)[chosen].reshape(int(chosen.sum()), -1)
        modes = _scaled_modes(part, count)
        shape_modes.append(modes.reshape(count, *data.base.shape))
        shape_parity += [parity] * count
    rows, side = half_rows(data.warp.mask)
    left = np.flatnonzero(side > 0)
    right = np.flatnonzero(side < 0)
    right = right[np.argsort(rows[right], kind="stable")]
    halves = {parity: 0.5 * (data.textures[:, left] + parity * data.textures[:, right]) for parity in (1, -1)}
    mean = halves[1][plain].mean(axis=0)
    inside = Evener(data.base, data.warp.mask, np.zeros((*data.warp.size, 3), np.float32)).mouth[data.warp.mask][left]
    mean[inside] = halves[1][plain & data.open_mouth][:, inside].mean(axis=0)
    texture_modes, scales, parities = [], [], []
    for parity, count in zip((1, -1), TEXTURE_MODES, strict=True):
        part = halves[parity][plain] - (mean if parity > 0 else 0.0)
        part[:, inside] = 0.0
        modes = _scaled_modes(part.reshape(len(part), -1), count).reshape(count, -1, 3)
        scale = abs(modes).max(axis=(1, 2)) / 127.0
        texture_modes.append(np.rint(modes / scale[:, None, None]).astype(np.int8))
        scales.append(scale)
        parities += [parity] * count
    empty = FaceModel(
        size=data.warp.size,
        base=data.base,
        triangles=data.warp.triangles,
        shape_modes=np.concatenate(shape_modes),
        texture_mean=mean.astype(np.float32),
        texture_modes=np.concatenate(texture_modes),
        texture_scales=np.concatenate(scales),
        parity=np.array(shape_parity + parities, dtype=np.float64),
        attributes=ATTRIBUTES,
        attribute_means=np.zeros(len(ATTRIBUTES)),
        attribute_stds=np.ones(len(ATTRIBUTES)),
        directions=np.zeros((0, 0)),
        spread=np.zeros((0, 0)),
        predictors=np.zeros((0, 0)),
    )
    codes = np.stack(
        [empty.encode(s + data.base, t) for s, t in zip(data.shapes[plain], data.textures[plain], strict=True)]
    )
    return _with_labels(empty, codes, data.attributes[plain])


def _scaled_modes(rows: FloatArray, count: int) -> FloatArray:
    pca = fit_pca(rows.astype(np.float64), count)
    return pca.components * np.sqrt(pca.variances)[:, None]


def _with_labels(model: FaceModel, codes: FloatArray, labels: FloatArray) -> FaceModel:
    """Add what labels and codes say about one another; faces and their mirror images count alike."""
    means, stds = labels.mean(axis=0), labels.std(axis=0)
    odd = np.array([name in ODD for name in ATTRIBUTES])
    means = np.where(odd, 0.0, means)
    z = (labels - means) / stds
    z = np.concatenate([z, z * np.where(odd, -1.0, 1.0)])
    c = np.concatenate([codes, codes * model.parity])
    directions = _ridge(z, c, DIRECTION_RIDGE)
    rest = c - z @ directions
    covariance = rest.T @ rest / len(rest)
    covariance = (1 - SHRINKAGE) * covariance + SHRINKAGE * np.diag(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance)
    spread = (vectors * np.sqrt(values.clip(0))) @ vectors.T
    predictors = np.concatenate([_ridge(c, z, PREDICTION_RIDGE).T, np.zeros((len(ATTRIBUTES), 1))], axis=1)
    return replace(
        model,
        attribute_means=means,
        attribute_stds=stds,
        directions=directions,
        spread=spread,
        predictors=predictors,
    )


def _ridge(x: FloatArray, y: FloatArray, penalty: float) -> FloatArray:
    """Return the weights, (n_inputs, n_outputs), of ridge regression without intercept."""
    return np.asarray(np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y))
