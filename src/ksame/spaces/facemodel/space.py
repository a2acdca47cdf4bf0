"""The coding of the shipped face model: a face is its place among several hundred people."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import cv2
import numpy as np

from ksame.arrays import FloatArray
from ksame.errors import InputError
from ksame.faces.faceset import FaceSet
from ksame.geometry import Similarity
from ksame.spaces.base import Space
from ksame.spaces.facemodel.geometry import with_forehead
from ksame.spaces.facemodel.labels import genders
from ksame.spaces.facemodel.model import FaceModel, face_model

_CROSS = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))


@dataclass(frozen=True, eq=False)
class FaceModelSpace(Space):
    """Shape and texture in the shipped face model, with the light evened and the head turned to the front.

    Codes are weighted so that a distance between codes is about a distance between pictures, and so that shape and
    texture count alike. Faces are decoded inside the mesh, on a plain background, where those it was fitted on lie on
    average. Works for a single face, since nothing is learned from the faces themselves.
    """

    background: float = 0.5  # brightness in [0, 1] around the decoded face
    pose_: Similarity | None = field(default=None, repr=False)
    size_: tuple[int, int] | None = field(default=None, repr=False)

    name = "model"

    def fit(self, faces: FaceSet) -> FaceModelSpace:
        """Remember where the faces lie in their images."""
        points = _mesh(faces)[:, :, :2].mean(axis=0)
        return replace(self, pose_=Similarity.estimate(self._model.base[:, :2], points), size_=faces.shape[1:3])

    def encode(self, faces: FaceSet) -> FloatArray:
        """Return codes of shape (n_faces, n_codes) of faces with the 478 points of a mesh."""
        model = self._model
        codes = []
        for image, points in zip(faces.images, _mesh(faces), strict=True):
            mesh = points if points.shape[1] == 3 else self._with_depth(points)
            colour = np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image
            codes.append(model.encode(mesh, model.texture_of(colour, mesh)))
        return np.stack(codes) * self._weights

    def decode(self, codes: FloatArray) -> FloatArray:
        """Return images of shape (n, height, width, 3), not yet clipped."""
        pose, size = self._fitted()
        model = self._model
        plain = codes / self._weights
        images = np.empty((len(codes), *size, 3))
        for i, (shape, code) in enumerate(zip(model.shapes(plain), plain, strict=True)):
            texture = model.textures(code[None])[0]
            image, covered = model.warp.from_base(texture, pose.apply(with_forehead(shape)[:, :2]), size)
            alpha = cv2.GaussianBlur(cv2.erode(covered.astype(np.float32), _CROSS), (0, 0), 0.7)[..., None]
            images[i] = self.background + alpha * (image - self.background)
        return images

    def landmarks(self, codes: FloatArray) -> FloatArray:
        """Return where the points of decoded faces lie, (n, 478, 3)."""
        pose, _ = self._fitted()
        shapes = self._model.shapes(codes / self._weights)
        scale = float(np.hypot(pose.a, pose.b))
        return np.concatenate([pose.apply(shapes[..., :2]), shapes[..., 2:] * scale], axis=-1)

    def draw_person(self, codes: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw somebody who does not exist, (n_codes,), with the average labels of faces of shape (n, n_codes).

        Gender, age, skin tone and expression are read from the faces; all else comes from the model and the generator.
        """
        model = self._model
        middle = codes.mean(axis=0, keepdims=True) / self._weights
        labels = {name: float(model.predicted(middle, name)[0]) for name in model.attributes}
        labels["woman"] = float(genders(model, middle)[0] == "F")  # not half of each
        drawn = model.labelled(labels) + model.spread @ rng.standard_normal(model.n_codes)
        return drawn * self._weights

    @property
    def _model(self) -> FaceModel:
        return face_model()

    @cached_property
    def _weights(self) -> FloatArray:
        """Length of every mode in the picture, shape brought to the same total as texture, (n_codes,)."""
        model = self._model
        shape = np.linalg.norm(model.shape_modes[:, :, :2].reshape(model.n_shape, -1), axis=1)
        modes = model.texture_modes.reshape(len(model.texture_modes), -1).astype(np.float64)
        texture = np.linalg.norm(modes, axis=1) * model.texture_scales
        return np.concatenate([shape * np.linalg.norm(texture) / np.linalg.norm(shape), texture])

    def _with_depth(self, points: FloatArray) -> FloatArray:
        """Give a flat mesh, (478, 2), the depth of the mean face at its size."""
        move = Similarity.estimate(self._model.base[:, :2], points)
        return np.concatenate([points, self._model.base[:, 2:] * np.hypot(move.a, move.b)], axis=1)

    def _fitted(self) -> tuple[Similarity, tuple[int, int]]:
        if self.pose_ is None or self.size_ is None:
            raise RuntimeError("FaceModelSpace is not fitted; call fit(faces) first.")
        return self.pose_, self.size_


def _mesh(faces: FaceSet) -> FloatArray:
    if faces.landmarks is None or faces.landmarks.shape[1] != 478:
        got = "none" if faces.landmarks is None else f"{faces.landmarks.shape[1]} points"
        raise InputError(f"The face model needs faces with a mesh of 478 points. Got {got}. Load photographs.")
    return faces.landmarks
