"""The shipped face model: statistics of shape and texture over several hundred people together.

A person is a code: how many standard deviations along each mode of shape and each mode of texture. Shapes are
meshes in space, aligned and frontal; textures are colours on a base face, with the light evened and without
hair. The modes are those of the faces and their mirror images together, so each is either symmetric or
antisymmetric and half of it says all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import READING, FloatArray, IntArray
from ksame.errors import InputError
from ksame.spaces.aam.warp import PiecewiseAffine
from ksame.spaces.facemodel.geometry import align, half_rows, surface_depth, with_forehead
from ksame.spaces.facemodel.light import Evener, normals

FORMAT = "ksame-face-model"
VERSION = 1


@dataclass(frozen=True, eq=False, repr=False)
class FaceModel:
    """Mean and modes of shape and texture, and the directions in which labels change them."""

    size: tuple[int, int]  # height and width of the base image
    base: FloatArray  # (478, 3): the mean shape, in pixels of the base image; z towards the viewer
    triangles: IntArray  # (n_triangles, 3): over the 504 points of the base with its forehead
    shape_modes: FloatArray  # (n_shape, 478, 3): in pixels of the base, one standard deviation each
    texture_mean: NDArray[np.float32]  # (n_half, 3): RGB in [0, 1] on the left half of the base's pixels
    texture_modes: NDArray[np.int8]  # (n_texture, n_half, 3): times ``texture_scales``: one standard deviation each
    texture_scales: FloatArray  # (n_texture,)
    parity: FloatArray  # (n_codes,): 1 for symmetric modes, -1 for antisymmetric ones
    attributes: tuple[str, ...]  # what the directions change
    attribute_means: FloatArray  # (n_attributes,): of the training faces
    attribute_stds: FloatArray  # (n_attributes,)
    directions: (
        FloatArray  # (n_attributes, n_codes): change of the code per deviation of one attribute, the others held
    )
    spread: FloatArray  # (n_codes, n_codes): root of the covariance that attributes do not explain: what makes a person
    predictors: FloatArray  # (n_attributes, n_codes + 1): weights and intercept that read attributes, in deviations

    @property
    def n_shape(self) -> int:
        """How many modes of shape there are; they come first in a code."""
        return len(self.shape_modes)

    @property
    def n_codes(self) -> int:
        """The length of a code."""
        return self.n_shape + len(self.texture_modes)

    @cached_property
    def warp(self) -> PiecewiseAffine:
        """The warps between the base, forehead included, and other shapes of the same 504 points."""
        return PiecewiseAffine(with_forehead(self.base)[:, :2], self.triangles, self.size)

    @cached_property
    def evener(self) -> Evener:
        """What evens the light of a texture on this base."""
        return Evener(self.base, self.warp.mask, normals(self.warp, surface_depth(self.base)))

    @cached_property
    def _halves(self) -> tuple[IntArray, IntArray]:
        """For each pixel inside the base, its row in the left half, and 1 if it lies there or -1."""
        return half_rows(self.warp.mask)

    @cached_property
    def _modes(self) -> Mapping[int, NDArray[np.float32]]:
        """Texture modes of each parity, (n_modes, n_half * 3), one standard deviation each."""
        scaled = self.texture_modes * self.texture_scales[:, None, None].astype(np.float32)
        which = self.parity[self.n_shape :]
        return {sign: scaled[which == sign].reshape(int((which == sign).sum()), -1) for sign in (1, -1)}

    def shapes(self, codes: FloatArray) -> FloatArray:
        """Return the frontal meshes, (n, 478, 3), of codes of shape (n, n_codes), in pixels of the base."""
        return self.base + np.tensordot(codes[:, : self.n_shape], self.shape_modes, axes=1)

    def textures(self, codes: FloatArray) -> NDArray[np.float32]:
        """Return the textures, (n, n_pixels, 3), of codes of shape (n, n_codes), not clipped."""
        weights = codes[:, self.n_shape :].astype(np.float32)
        parity = self.parity[self.n_shape :]
        even, odd = ((weights[:, parity == sign] @ self._modes[sign]).reshape(len(codes), -1, 3) for sign in (1, -1))
        rows, side = self._halves
        return np.asarray((even + self.texture_mean)[:, rows] + odd[:, rows] * side[:, None].astype(np.float32))

    def encode(self, points: FloatArray, texture: NDArray[np.float32]) -> FloatArray:
        """Return the code, (n_codes,), of one face.

        The mesh, (478, 3), may have any position, size and turn; z grows towards the viewer. For the texture,
        (n_pixels, 3), see :meth:`texture_of`.
        """
        aligned, _ = align(points[None], self.base)
        modes = self.shape_modes.reshape(self.n_shape, -1)
        shape = _project(aligned.reshape(1, -1) - self.base.ravel(), modes)
        rows, side = self._halves
        mirrored = texture[self._mirror]
        left = np.flatnonzero(side > 0)[np.argsort(rows[side > 0])]
        even = 0.5 * (texture + mirrored)[left] - self.texture_mean
        odd = 0.5 * (texture - mirrored)[left]
        code = np.zeros(len(self.texture_modes))
        for sign, part in ((1, even), (-1, odd)):
            code[self.parity[self.n_shape :] == sign] = _project(part.reshape(1, -1), self._modes[sign])[0]
        return np.concatenate([shape[0], code])

    def texture_of(self, image: NDArray[Any], points: FloatArray) -> NDArray[np.float32]:
        """Return the texture, (n_pixels, 3), with evened light, of a face at points (478, 2 or 3) in an RGB image."""
        return self.evened(self.warp.sample(image, with_forehead(points[:, :2])))

    def evened(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Even the light of a shape-free texture, (n_pixels, 3), and take hair out of it."""
        texture = np.zeros((*self.size, 3), dtype=np.float32)
        texture[self.warp.mask] = rows
        mean = self.warp.image(self.textures(np.zeros((1, self.n_codes)))[0]) * self.warp.mask[..., None]
        evened = self.evener.without_top_light(self.evener.without_side_light(texture), mean)
        return self.evener.without_hair(evened, mean)[0][self.warp.mask]

    @cached_property
    def _mirror(self) -> IntArray:
        index = np.full(self.size, -1, dtype=np.intp)
        index[self.warp.mask] = np.arange(self.warp.n_pixels)
        return np.asarray(index[:, ::-1][self.warp.mask])

    def direction(self, attribute: str) -> FloatArray:
        """Return the change of code, (n_codes,), for one unit of an attribute, as it was measured."""
        i = self._index(attribute)
        return np.asarray(self.directions[i] / self.attribute_stds[i])

    def moved(self, codes: FloatArray, changes: Mapping[str, float]) -> FloatArray:
        """Return codes, (n, n_codes), moved by the given number of units of each attribute."""
        return codes + sum((change * self.direction(name) for name, change in changes.items()), np.zeros(self.n_codes))

    def labelled(self, labels: Mapping[str, float]) -> FloatArray:
        """Return the code, (n_codes,), of the mean person with these values of attributes."""
        means = dict(zip(self.attributes, self.attribute_means, strict=True))
        zero = np.zeros(self.n_codes)
        return self.moved(zero, {name: value - float(means.get(name, 0.0)) for name, value in labels.items()})

    def predicted(self, codes: FloatArray, attribute: str) -> FloatArray:
        """Read an attribute, (n,), in its own unit, from codes of shape (n, n_codes)."""
        i = self._index(attribute)
        read = codes @ self.predictors[i, :-1] + self.predictors[i, -1]
        return np.asarray(read * self.attribute_stds[i] + self.attribute_means[i])

    def mean_colours(self, codes: FloatArray, where: NDArray[np.bool_]) -> FloatArray:
        """Return the mean colour, (n, 3), of faces of codes (n, n_codes) on a symmetric part of the base."""
        rows = np.unique(self._halves[0][where[self.warp.mask]])
        modes = self._modes[1].reshape(-1, *self.texture_mean.shape)[:, rows].mean(axis=1)
        weights = codes[:, self.n_shape :][:, self.parity[self.n_shape :] > 0]
        return np.asarray(self.texture_mean[rows].mean(axis=0) + weights @ modes)

    def _index(self, attribute: str) -> int:
        if attribute not in self.attributes:
            names = ", ".join(self.attributes)
            raise InputError(f"Unknown attribute {attribute!r} of the face model. Choose one of: {names}.")
        return self.attributes.index(attribute)

    def save(self, file: IO[bytes]) -> None:
        """Write the model as an .npz file without pickled objects."""
        stored: dict[str, Any] = {
            name: np.asarray(getattr(self, name)).astype(kind) if kind else np.asarray(getattr(self, name))
            for name, kind in _STORED.items()
        }
        np.savez_compressed(file, format=np.array(FORMAT), version=np.array(VERSION), **stored)

    @classmethod
    def load(cls, file: IO[bytes]) -> FaceModel:
        """Read a model written by :meth:`save`."""
        try:
            with READING, np.load(file, allow_pickle=False) as stored:
                if str(stored["format"]) != FORMAT or int(stored["version"]) != VERSION:
                    raise InputError(f"This file is not {FORMAT} version {VERSION}. Install ksame again.")
                arrays = {name: stored[name] for name in _STORED}
        except InputError:
            raise
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise InputError(f"This file is not a face model ({error}). Install ksame again.") from error
        height, width = (int(side) for side in arrays.pop("size"))
        names = tuple(str(name) for name in arrays.pop("attributes"))
        for name, array in arrays.items():
            if array.dtype != np.int8 or name == "parity":
                kind = np.float32 if name == "texture_mean" else np.intp if name == "triangles" else np.float64
                arrays[name] = array.astype(kind)
            arrays[name].flags.writeable = False
        return cls(size=(height, width), attributes=names, **arrays)


_STORED: Mapping[str, type | None] = MappingProxyType(
    {
        "size": np.int16,
        "base": np.float32,
        "triangles": np.int16,
        "shape_modes": np.float16,
        "texture_mean": np.float16,
        "texture_modes": np.int8,
        "texture_scales": np.float32,
        "parity": np.int8,
        "attributes": None,
        "attribute_means": np.float32,
        "attribute_stds": np.float32,
        "directions": np.float32,
        "spread": np.float32,
        "predictors": np.float32,
    }
)


@lru_cache(maxsize=1)
def face_model() -> FaceModel:
    """Return the model that comes with ksame, read at the first call."""
    with (files("ksame.data") / "face_model.npz").open("rb") as file:
        return FaceModel.load(file)


def _project(rows: NDArray[Any], modes: NDArray[Any]) -> FloatArray:
    """Return coefficients, (n, n_modes), on orthogonal modes of any length."""
    return np.asarray((rows @ modes.T) / (modes**2).sum(axis=1))
