"""Evening out textures: side light, light from above, hair and background at the rim, colour casts.

All of it works on textures laid out as base images, (height, width, 3), in which every face has the same shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.spaces.aam.warp import PiecewiseAffine
from ksame.spaces.facemodel.geometry import BROWS, CHEEKS, INNER_LIPS, polygon, with_forehead

Texture = NDArray[np.float32]
Mask = NDArray[np.bool_]
LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)
_DARK = 0.05  # added before logarithms, so that black stays finite
_SPREAD = 13.0  # blur that separates light from features, in pixels of a base 176 wide
_NOT_SKIN = 0.22  # distance in log colour from the cheeks at which a rim pixel counts as hair or background


def log_luma(texture: Texture) -> Texture:
    """Return the logarithm of brightness, (..., height, width)."""
    return np.asarray(np.log((texture @ LUMA).clip(0) + _DARK))


def blur_inside(image: Texture, sigma: float, inside: Mask) -> Texture:
    """Blur what is inside a mask without mixing in what is outside."""
    weight = inside.astype(np.float32)
    share = cv2.GaussianBlur(weight, (0, 0), sigma).clip(1e-6)
    if image.ndim == 3:
        weight, share = weight[..., None], share[..., None]
    return np.asarray(cv2.GaussianBlur(image * weight, (0, 0), sigma) / share, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Evener:
    """Evens the light of textures on a base: knows which pixels are cheeks, forehead and rim."""

    base: FloatArray  # (478, 3): the base mesh in pixels of the base image
    mask: Mask  # (height, width): pixels inside the mesh
    normals: Texture  # (height, width, 3): surface normals: right, down, towards the viewer

    @cached_property
    def cheeks(self) -> Mask:
        """Pixels that are skin on every face: the reference for its colour."""
        sides = [polygon(self._size, self.base[list(side), :2]) for side in CHEEKS]
        return np.asarray((sides[0] | sides[1]) & self.mask)

    @cached_property
    def mouth(self) -> Mask:
        """Pixels between the lips."""
        canvas = np.zeros(self._size, dtype=np.uint8)
        cv2.fillPoly(canvas, [np.rint(self.base[list(INNER_LIPS), :2]).astype(np.int32)], 1)
        return np.asarray(cv2.dilate(canvas, np.ones((3, 3), np.uint8)).astype(bool))

    @cached_property
    def forehead(self) -> Mask:
        """Pixels above the brows and on the temples, where hair may fall."""
        brows = with_forehead(self.base)[list(BROWS), :2]
        line = np.interp(np.arange(self._size[1]), brows[:, 0], brows[:, 1] - 5)
        rows, columns = np.mgrid[: self._size[0], : self._size[1]]
        middle = (self._size[1] - 1) / 2
        temple = (abs(columns - middle) > middle - brows[0, 0] + 4) & (rows < self.base[33, 1] + 10)
        return np.asarray(self.mask & ((rows < line) | temple))

    @cached_property
    def crown(self) -> Mask:
        """Pixels along the upper edge of the forehead."""
        return np.asarray(self.mask & (np.arange(self._size[0])[:, None] < self.base[10, 1] - 8))

    @cached_property
    def margin(self) -> Mask:
        """Pixels where hair, background or a collar may show: forehead, temples and rim, but not a beard."""
        depth = self._depth
        above_jaw = np.arange(self._size[0])[:, None] < self.base[152, 1] - 35
        return np.asarray(self.forehead | (self.mask & (((depth < 14) & above_jaw) | (depth < 5))))

    @property
    def _size(self) -> tuple[int, int]:
        return self.mask.shape[0], self.mask.shape[1]

    @cached_property
    def _depth(self) -> NDArray[Any]:
        """Distance from the rim in pixels, inside the mesh."""
        padded = np.pad(self.mask, 1).astype(np.uint8)
        return np.asarray(cv2.distanceTransform(padded, cv2.DIST_L2, 5))[1:-1, 1:-1]

    def without_side_light(self, texture: Texture) -> Texture:
        """Divide by the smooth difference in colour between the two sides of the face."""
        brightness = log_luma(texture)
        plain = abs(brightness - np.median(brightness[self.cheeks])) < 0.7
        plain &= self.mask & ~self.mouth
        for _ in range(2):
            smooth = blur_inside(np.log(texture.clip(0) + _DARK), _SPREAD, plain)
            side = 0.5 * (smooth - smooth[:, ::-1])
            texture = texture * np.exp(-side.clip(-0.7, 0.7))
        return texture

    def without_top_light(self, texture: Texture, mean: Texture) -> Texture:
        """Divide by the brightness that slope explains, beyond that of the mean texture."""
        excess = log_luma(texture) - log_luma(mean)
        level = np.median(excess[self.cheeks])
        columns = np.arange(self._size[1])[None]
        central = abs(columns - (self._size[1] - 1) / 2) < 45
        skin = (self.cheeks | (self.forehead & (self._depth > 12) & central)) & (abs(excess - level) < 0.3)
        slope = self.normals[..., 1:] - self.normals[self.cheeks][:, 1:].mean(axis=0)
        design = np.concatenate([np.ones((int(skin.sum()), 1)), slope[skin]], axis=1)
        target, weight = excess[skin], np.ones(int(skin.sum()))
        for _ in range(4):  # robust: freckles, wrinkles and stray hair count little
            fit = np.linalg.lstsq(design * weight[:, None], target * weight, rcond=None)[0]
            weight = 1.0 / np.sqrt(1.0 + ((target - design @ fit) / 0.08) ** 2)
        light = slope @ fit[1:].clip(-0.35, 0.35).astype(np.float32)
        return np.asarray(texture * np.exp(-light)[..., None], dtype=np.float32)

    def without_hair(self, texture: Texture, mean: Texture) -> tuple[Texture, float]:
        """Replace what is not skin on forehead and rim by the mean texture in the face's own colour.

        Returns
        -------
        texture : ndarray of shape (height, width, 3)
        share : float
            How much of the forehead was replaced.
        """
        ratio = np.log(texture.clip(0) + _DARK) - np.log(mean + _DARK)
        skin = np.median(ratio[self.cheeks], axis=0)
        apart = abs(ratio - skin)
        other = (apart @ LUMA > _NOT_SKIN) | (np.ptp(apart, axis=-1) > _NOT_SKIN)
        grown = cv2.dilate((other & self.margin).astype(np.uint8), np.ones((5, 5), np.uint8)).astype(bool)
        other = grown & self.margin
        below_eyes = np.arange(self._size[0])[:, None] > self.base[33, 1] + 14
        visible = self.mask & ~other & ~self.mouth & (self.forehead | self.cheeks | below_eyes)
        near = cv2.GaussianBlur(visible.astype(np.float32), (0, 0), _SPREAD + 1)
        trust = (near / 0.15).clip(0, 1)[..., None]
        tint = blur_inside(ratio, _SPREAD + 1, visible) * trust + skin * (1 - trust)
        filled = np.exp(tint) * (mean + _DARK) - _DARK
        alpha = np.maximum(cv2.GaussianBlur(other.astype(np.float32), (0, 0), 2.0), other)[..., None]
        result = (texture * (1 - alpha) + filled * alpha) * self.mask[..., None]
        return result.astype(np.float32), float((other & self.forehead).sum() / self.forehead.sum())

    def skin_colour(self, texture: Texture) -> FloatArray:
        """Return the median colour of the cheeks, (3,)."""
        return np.asarray(np.median(texture[self.cheeks], axis=0), dtype=np.float64)


def normals(warp: PiecewiseAffine, depth: FloatArray) -> NDArray[np.float32]:
    """Return unit normals (right, down, towards the viewer) of the base's surface, (height, width, 3).

    ``depth`` is of shape (n_points,); depth of each point of the warp's base, in its pixels.
    """
    surface = np.zeros(warp.size, dtype=np.float32)
    surface[warp.mask] = warp.interpolate(depth)
    down, right = np.gradient(blur_inside(surface, 4.0, warp.mask))
    field = np.stack([-right, -down, np.ones_like(right)], axis=-1)
    return np.asarray(field / np.linalg.norm(field, axis=-1, keepdims=True), dtype=np.float32)
