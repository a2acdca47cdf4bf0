"""The model space: a face is its shape and texture parameters in an appearance model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ksame.arrays import FloatArray
from ksame.errors import InputError
from ksame.faces.faceset import FaceSet
from ksame.geometry import Similarity
from ksame.spaces.aam.build import build
from ksame.spaces.aam.model import AppearanceModel, Params
from ksame.spaces.base import Space


@dataclass(frozen=True, eq=False)
class AamSpace(Space):
    """Parameters of an Active Appearance Model (Gross et al. 2006, section 4.2).

    A code is the shape parameters times a weight, then the texture parameters. The weight is the square root of texture
    variance over shape variance, so that both count alike in a distance (Cootes, Edwards and Taylor 2001, section 2.1).
    Pose is not part of a code: faces are decoded where the training faces lie on average, on a plain background.
    """

    shape: int | float | None = 0.98  # a number of modes, a share of the variance to keep, or all
    texture: int | float | None = 0.95  # likewise
    width: int = 128  # of the base image, in pixels
    zero_first_texture: bool = False  # whether overall brightness takes no part in who is alike (Sun et al. 2015)
    background: float = 0.5  # brightness in [0, 1] around the decoded face
    model_: AppearanceModel | None = field(default=None, repr=False)
    pose_: Similarity | None = field(default=None, repr=False)
    size_: tuple[int, int] | None = field(default=None, repr=False)

    name = "aam"

    def fit(self, faces: FaceSet) -> AamSpace:
        """Build the appearance model from ``faces``, which need landmarks."""
        points = _landmarks(faces)
        model = build(faces.images, points, shape=self.shape, texture=self.texture, width=self.width)
        pose = Similarity.estimate(model.mean_shape, points.mean(axis=0))
        return replace(self, model_=model, pose_=pose, size_=faces.shape[1:3])

    @property
    def model(self) -> AppearanceModel:
        """The fitted appearance model."""
        return self._fitted()[0]

    @property
    def weight(self) -> float:
        """What shape parameters are multiplied with in a code."""
        model = self.model
        if model.shape_total <= 0 or model.texture_total <= 0:
            return 1.0
        return float(np.sqrt(model.texture_total / model.shape_total))

    def encode(self, faces: FaceSet) -> FloatArray:
        """Return codes of shape (n_faces, n_shape_modes + n_texture_modes) of faces with landmarks."""
        model = self.model
        codes = []
        for image, points in zip(faces.images, _landmarks(faces), strict=True):
            params = model.params_from_landmarks(image, points)
            codes.append(np.concatenate([params.shape * self.weight, self._without_light(params.texture)]))
        return np.stack(codes)

    def landmarks(self, codes: FloatArray) -> FloatArray:
        """Return where the points of decoded faces lie, (n, n_points, 2)."""
        model, pose, _ = self._fitted()
        n_shape = len(model.shape_modes)
        return np.stack([pose.apply(model.shape(code[:n_shape] / self.weight)) for code in codes])

    def decode(self, codes: FloatArray) -> FloatArray:
        """Return images of shape (n, height, width, channels), not yet clipped."""
        model, pose, size = self._fitted()
        n_shape, n_codes = len(model.shape_modes), len(model.shape_modes) + len(model.texture_modes)
        if codes.ndim != 2 or codes.shape[1] != n_codes:
            raise InputError(f"Expected codes of shape (n, {n_codes}). Got {codes.shape}.")
        images = np.empty((len(codes), *size, model.channels))
        for i, code in enumerate(codes):
            params = Params(code[:n_shape] / self.weight, self._without_light(code[n_shape:]), pose)
            images[i] = model.render(params, size, background=self.background)
        return images

    def _without_light(self, texture: FloatArray) -> FloatArray:
        return np.concatenate([[0.0], texture[1:]]) if self.zero_first_texture else texture

    def _fitted(self) -> tuple[AppearanceModel, Similarity, tuple[int, int]]:
        if self.model_ is None or self.pose_ is None or self.size_ is None:
            raise RuntimeError("AamSpace is not fitted; call fit(faces) first.")
        return self.model_, self.pose_, self.size_


def _landmarks(faces: FaceSet) -> FloatArray:
    if faces.landmarks is None:
        raise InputError("The model space needs faces with landmarks. Detect them, or give them in labels.csv.")
    return faces.landmarks[:, :, :2]
