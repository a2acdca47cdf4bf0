"""The appearance model on real portraits, with the mesh of the package's own landmark network."""

import os
from pathlib import Path

import numpy as np
import pytest

from ksame.faces.landmarks import eyes_and_nose
from ksame.faces.reading import read_image
from ksame.spaces.aam import Fitter, build

pytestmark = pytest.mark.shared
SHARED = os.environ.get("KSAME_SHARED")


@pytest.fixture(scope="module")
def portraits():
    if SHARED is None:
        pytest.skip("KSAME_SHARED is not set")
    models = pytest.importorskip("ksame.models")
    mesh = models.FaceMesh()
    images, points = [], []
    for file in sorted((Path(SHARED) / "faces" / "portraits").glob("*.jpg"))[:140]:
        image = read_image(file)
        found = models.detect(image)
        if found:
            images.append(image)
            points.append(mesh.fit(image, max(found, key=lambda face: face.side)).points[:, :2])
    return images, np.stack(points).astype(float)


@pytest.fixture(scope="module")
def model(portraits):
    images, points = portraits
    return build(images[:110], points[:110], shape=30, texture=100)


def eye_distance(points):
    left, right, _ = eyes_and_nose(points[None])[0]
    return np.linalg.norm(right - left)


def test_every_portrait_comes_back_from_the_base(model, portraits):
    for image, points in zip(*portraits, strict=True):
        painted, covered = model.warp.from_base(model.warp.sample(image, points), points, image.shape[:2])
        error = ((painted - image)[covered] ** 2).mean()
        assert -10 * np.log10(error) > 24


def test_few_modes_rebuild_faces_not_seen(model, portraits):
    images, points = (part[110:] for part in portraits)
    errors = []
    for image, found in zip(images, points, strict=True):
        params = model.params_from_landmarks(image, found)
        errors.append(((model.texture(params.texture) - model.warp.sample(image, found)) ** 2).mean())
        assert np.linalg.norm(model.points(params) - found, axis=1).mean() < 0.01 * eye_distance(found)
    assert -10 * np.log10(np.mean(errors)) > 23


def test_fitting_finds_most_faces_not_seen(model, portraits):
    images, points = portraits
    fitter = Fitter.train(model, images[:110], points[:110])
    rng = np.random.default_rng(0)
    errors = []
    for image, truth in zip(images[110:], points[110:], strict=True):
        span = np.ptp(truth[:, 0])
        start = truth.mean(axis=0) + (truth - truth.mean(axis=0)) * rng.normal(1, 0.05)
        fit = fitter.fit(image, start + rng.normal(0, 0.04 * span, 2))
        errors.append(np.linalg.norm(fit.points - truth, axis=1).mean() / eye_distance(truth))
    assert np.mean(np.array(errors) < 0.04) >= 0.85
