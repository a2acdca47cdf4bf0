"""How the face model is learned: portraits to aligned shapes and evened textures, and those to statistics.

Run by tools/train_face_model.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray, IntArray
from ksame.faces.reading import read_image
from ksame.spaces.aam.warp import PiecewiseAffine, triangulate
from ksame.spaces.facemodel.geometry import IRISES, N_EXTENDED, align, half_rows, surface_depth, with_forehead
from ksame.spaces.facemodel.labels import BLENDS
from ksame.spaces.facemodel.light import LUMA, Evener, Texture, normals
from ksame.spaces.facemodel.model import FaceModel
from ksame.spaces.pca import fit_pca

WIDTH = 176  # of the base image
FACE_WIDTH = 164
MARGIN = 5
OPEN_MOUTH = 0.06  # gap between the lips, in eye distances, from which a mouth shows its inside
FRAME_EDGE = 0.27  # edge energy on the bridge of the nose above which there are spectacles
MIN_COLOUR = 0.03  # difference of red and blue on the cheeks below which a picture is black and white
MAX_HAIR = 0.6  # share of the forehead that may be hidden

ATTRIBUTES = ("woman", "born", "tone", *BLENDS, "gaze_side", "yaw", "pitch")
ODD = ("gaze_side", "yaw")  # change sign in the mirror
TINT_KEPT = 0.25  # share of a portrait's own colour cast that stays
_PAIRS = ((33, 263), (61, 291), (234, 454), (133, 362))  # points that mirror each other
SHAPE_MODES, TEXTURE_MODES = (24, 6), (60, 8)  # symmetric and antisymmetric
DIRECTION_RIDGE, PREDICTION_RIDGE = 4.0, 150.0
SHRINKAGE = 0.1  # of the covariance of codes towards its diagonal


@dataclass(frozen=True, eq=False)
class Measured:
    """What networks and labels say about the portraits; rows are portraits."""

    files: tuple[str, ...]
    women: FloatArray
    born: FloatArray
    points: FloatArray  # (n, 478, 3), z towards the viewer
    blendshapes: FloatArray  # (n, 52)
    embeddings: FloatArray  # (n, 128)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Aligned shapes and evened textures, ready for statistics; rows are portraits."""

    base: FloatArray  # (478, 3)
    warp: PiecewiseAffine
    shapes: FloatArray  # (n, 478, 3), pixels of the base about its middle
    textures: Texture  # (n, n_pixels, 3)
    attributes: FloatArray  # (n, n_attributes)
    plain: NDArray[np.bool_]  # (n,): neither spectacles nor covered forehead nor black and white
    open_mouth: NDArray[np.bool_]
    spectacles: NDArray[np.bool_]
    embeddings: FloatArray


def prepare(folder: Path, measured: Measured, blendshapes: tuple[str, ...]) -> Prepared:
    """Align all shapes, take all textures to the base and even their light."""
    aligned, mean = frontal_mean(measured.points)
    pairs = mirror_index(mean)
    middle = 0.5 * (mean[:, 0] + mean[pairs, 0]).mean()
    scale = FACE_WIDTH / np.ptp(mean[:, 0])
    shapes = (aligned - [middle, 0.0, 0.0]) * scale
    mean = (mean - [middle, 0.0, 0.0]) * scale
    base = 0.5 * (mean + mirrored(mean, pairs))
    reach = with_forehead(base)[:, 1]
    height = int(np.ceil((np.ptp(reach) + 2 * MARGIN) / 2) * 2)
    origin = np.array([(WIDTH - 1) / 2, MARGIN - reach.min(), 0.0])
    base = base + origin
    drawn = drawn_points()
    triangles = drawn[triangulate(with_forehead(base)[drawn, :2])]
    warp = PiecewiseAffine(with_forehead(base)[:, :2], triangles, (height, WIDTH))
    evener = Evener(base, warp.mask & warp.mask[:, ::-1], normals(warp, surface_depth(base)))
    raw = np.stack(
        [
            warp.to_base(_in_colour(read_image(folder / file)), with_forehead(points[:, :2]))
            for file, points in zip(measured.files, measured.points, strict=True)
        ]
    )
    spectacles = np.array([bridge_edge(texture, base) > FRAME_EDGE for texture in raw])
    colour = np.array([abs(np.subtract(*texture[evener.cheeks][:, [0, 2]].T)).mean() for texture in raw])
    textures, plain = even(raw, evener, ~spectacles & (colour > MIN_COLOUR))
    skin = np.array([evener.skin_colour(texture) for texture in textures])
    eyes = np.linalg.norm(shapes[:, 468] - shapes[:, 473], axis=1)
    gap = (shapes[:, 14, 1] - shapes[:, 13, 1]) / eyes
    blend = {name: measured.blendshapes[:, i] for i, name in enumerate(blendshapes)}
    columns = [measured.women, measured.born, np.log(skin @ LUMA)]
    columns += [np.mean([blend[part] for part in parts], axis=0) for parts in BLENDS.values()]
    columns.append(
        blend["eyeLookOutLeft"] + blend["eyeLookInRight"] - blend["eyeLookInLeft"] - blend["eyeLookOutRight"]
    )
    columns += turns(measured.points, aligned)
    return Prepared(
        base,
        warp,
        shapes - (base - origin),
        textures[:, warp.mask],
        np.stack(columns, axis=1),
        plain,
        gap > OPEN_MOUTH,
        spectacles,
        measured.embeddings,
    )


def even(raw: Texture, evener: Evener, use: NDArray[np.bool_]) -> tuple[Texture, NDArray[np.bool_]]:
    """Even textures, (n, height, width, 3), and say which of those in ``use`` show enough forehead."""
    lit = np.stack([evener.without_side_light(texture) for texture in raw])
    mean = np.median(lit[use], axis=0)
    for _ in range(2):
        mean = (0.5 * (mean + mean[:, ::-1])).astype(np.float32)
        filled = [evener.without_hair(evener.without_top_light(texture, mean), mean) for texture in lit]
        textures = np.stack([texture for texture, _ in filled])
        use = use & (np.array([share for _, share in filled]) < MAX_HAIR)
        mean = textures[use].mean(axis=0)
    gains = white_balance(np.array([evener.skin_colour(texture) for texture in textures]), use)
    return (textures * gains[:, None, None, :]).clip(0.0, 1.2).astype(np.float32), use


def bridge_edge(texture: Texture, base: FloatArray) -> float:
    """Return the strongest horizontal edge across the bridge of the nose, where only spectacles have one."""
    left, right = base[468, :2], base[473, :2]
    middle, unit = 0.5 * (left + right), float(right[0] - left[0])
    dark = np.log(cv2.GaussianBlur(texture.mean(axis=-1) * 255, (0, 0), 1.0) + 20.0)
    edges = abs(cv2.Sobel(dark, cv2.CV_32F, 0, 1))
    x, y = middle
    rows = slice(round(y - 0.2 * unit), round(y + 0.25 * unit))
    return float(edges[rows, round(x - 0.1 * unit) : round(x + 0.1 * unit)].mean(axis=1).max())


def turns(points: FloatArray, aligned: FloatArray) -> list[FloatArray]:
    """Return yaw and pitch, each (n,), of heads relative to their frontal shapes."""
    rotations = np.concatenate([align(p[None], a)[1] for p, a in zip(points, aligned, strict=True)])
    return [np.arcsin(rotations[:, 2, 0]), np.arcsin(rotations[:, 2, 1])]


def _in_colour(image: Texture) -> Texture:
    return np.repeat(image, 3, axis=-1) if image.shape[-1] == 1 else image


def frontal_mean(points: FloatArray, rounds: int = 8) -> tuple[FloatArray, FloatArray]:
    """Align meshes to their common mean, which looks straight ahead.

    Parameters
    ----------
    points : ndarray of shape (n_faces, 478, 3)
        z towards the viewer.

    Returns
    -------
    aligned : ndarray of shape (n_faces, 478, 3)
    mean : ndarray of shape (478, 3)
        Centred, of unit norm, x across the face.
    """
    mean = (points - points.mean(axis=1, keepdims=True)).mean(axis=0)
    for _ in range(rounds):
        mean = mean / np.linalg.norm(mean)
        left, right = np.array(_PAIRS).T
        across = (mean[right] - mean[left]).mean(axis=0)
        x = across / np.linalg.norm(across)
        z = np.cross(x, [0.0, 1.0, 0.0])
        z /= np.linalg.norm(z)
        mean = mean @ np.stack([x, np.cross(z, x), z], axis=1)
        aligned, _ = align(points, mean)
        mean = aligned.mean(axis=0)
    return aligned - mean.mean(axis=0), mean - mean.mean(axis=0)


def mirror_index(mean: FloatArray) -> IntArray:
    """Return, for each point of a frontal mean mesh, the point on the other side of the face."""
    from scipy.spatial import cKDTree

    left, right = np.array(_PAIRS).T
    mirrored = mean * [-1.0, 1.0, 1.0] + [mean[np.r_[left, right], 0].mean() * 2, 0.0, 0.0]
    return np.asarray(cKDTree(mean).query(mirrored)[1], dtype=np.intp)


def mirrored(shapes: FloatArray, pairs: IntArray) -> FloatArray:
    """Return the mirror images of shapes of shape (..., 478, 3) whose x is 0 in the middle of the face."""
    return shapes[..., pairs, :] * [-1.0, 1.0, 1.0]


def drawn_points() -> IntArray:
    """Return the points that span triangles: all but the edges of the irises, which the lids may hide."""
    hidden = {point for iris in IRISES for point in iris[1:]}
    return np.array([i for i in range(N_EXTENDED) if i not in hidden], dtype=np.intp)


def white_balance(colours: FloatArray, use: NDArray[np.bool_]) -> FloatArray:
    """Return gains, (n_faces, 3), that bring skin colours near the colours that skin of their brightness has.

    Parameters
    ----------
    colours : ndarray of shape (n_faces, 3)
        Skin colour of each face.
    use : ndarray of bool of shape (n_faces,)
        The faces from which the usual colours are learned.
    """
    brightness = np.log(colours @ LUMA)
    design = np.stack([np.ones_like(brightness), brightness, brightness**2], axis=1)
    excess = np.zeros_like(colours)
    for channel in (0, 2):
        tint = np.log(colours[:, channel] / colours[:, 1])
        weight = use.astype(np.float64)
        for _ in range(5):
            fit = np.linalg.lstsq(design * weight[:, None], tint * weight, rcond=None)[0]
            excess[:, channel] = tint - design @ fit
            weight = use / np.sqrt(1.0 + (excess[:, channel] / 0.1) ** 2)
    gains = np.exp(-(1 - TINT_KEPT) * excess)
    return np.asarray(gains * ((colours @ LUMA) / ((colours * gains) @ LUMA))[:, None])


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
