"""From portraits to what statistics are learned from: aligned shapes and evened textures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.faces.reading import read_image
from ksame.spaces.aam.warp import PiecewiseAffine, triangulate
from ksame.spaces.facemodel.geometry import (
    align,
    drawn_points,
    frontal_mean,
    mirror_index,
    mirrored,
    surface_depth,
    with_forehead,
)
from ksame.spaces.facemodel.light import LUMA, Evener, Texture, normals, white_balance

WIDTH = 176  # of the base image
FACE_WIDTH = 164
MARGIN = 5
OPEN_MOUTH = 0.06  # gap between the lips, in eye distances, from which a mouth shows its inside
FRAME_EDGE = 0.27  # edge energy on the bridge of the nose above which there are spectacles
LEAST_COLOUR = 0.03  # difference of red and blue on the cheeks below which a picture is black and white
MOST_HAIR = 0.6  # share of the forehead that may be hidden

BLENDS = {
    "smile": ("mouthSmileLeft", "mouthSmileRight"),
    "upper_lip": ("mouthUpperUpLeft", "mouthUpperUpRight"),
    "lower_lip": ("mouthLowerDownLeft", "mouthLowerDownRight"),
    "jaw": ("jawOpen",),
    "press": ("mouthPressLeft", "mouthPressRight"),
    "squint": ("eyeSquintLeft", "eyeSquintRight"),
    "blink": ("eyeBlinkLeft", "eyeBlinkRight"),
    "brow_down": ("browDownLeft", "browDownRight"),
    "brow_up": ("browInnerUp", "browOuterUpLeft", "browOuterUpRight"),
    "gaze_down": ("eyeLookDownLeft", "eyeLookDownRight"),
}
"""Attributes of the expression: each the mean of the blendshapes named."""
ATTRIBUTES = ("woman", "born", "tone", *BLENDS, "gaze_side", "yaw", "pitch")
ODD = ("gaze_side", "yaw")  # change sign in the mirror


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
    textures, plain = even(raw, evener, ~spectacles & (colour > LEAST_COLOUR))
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
        use = use & (np.array([share for _, share in filled]) < MOST_HAIR)
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
