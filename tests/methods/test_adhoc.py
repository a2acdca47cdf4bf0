import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import ksame
from drawn import drawn_faces
from ksame.errors import InputError, UsageError
from ksame.faces.filters import blur, pixelate
from ksame.methods.adhoc import (
    BarMask,
    Blur,
    EigenReduce,
    FlipNoise,
    Noise,
    Pixelate,
    Threshold,
    TMask,
    at,
    cover,
    scaled,
    threshold,
)

RNG = np.random.default_rng(0)
IMAGES = RNG.random((3, 11, 7, 3))


@pytest.mark.parametrize("p", [1, 2, 3, 5, 11, 40])
def test_pixelate_is_the_mean_of_each_block_with_ragged_edges(p):
    expected = np.empty_like(IMAGES)
    for y in range(0, 11, p):
        for x in range(0, 7, p):
            block = IMAGES[:, y : y + p, x : x + p]
            expected[:, y : y + p, x : x + p] = block.mean(axis=(1, 2), keepdims=True)
    assert np.allclose(pixelate(IMAGES, p), expected)


def test_blur_agrees_with_scipy():
    image = RNG.random((1, 40, 40, 1))
    expected = gaussian_filter(image[0, :, :, 0], 2.0, mode="reflect", truncate=4.0)
    assert np.allclose(blur(image, 2.0)[0, :, :, 0], expected, atol=1e-4)


def test_blur_keeps_the_shape_of_grey_faces():
    assert blur(RNG.random((2, 9, 8, 1)), 1.5).shape == (2, 9, 8, 1)


def test_threshold_is_black_and_white():
    grey = np.array([0, 118, 119, 255]).reshape(1, 1, 4, 1) / 255
    assert threshold(grey, 118).ravel().tolist() == [0, 0, 1, 1]
    red = np.array([1.0, 0.0, 0.0]).reshape(1, 1, 1, 3)  # 0.299 of 255 is 76.2
    assert threshold(red, 76).ravel().tolist() == [1, 1, 1]
    assert threshold(red, 77).ravel().tolist() == [0, 0, 0]
    assert set(np.unique(threshold(IMAGES, 100))) <= {0.0, 1.0}


def test_noise_hits_the_same_positions_in_every_image():
    changed = (Noise(20).apply(IMAGES, np.random.default_rng(1)) != IMAGES).any(axis=3)
    assert changed.sum(axis=(1, 2)).max() <= 20
    assert changed.any(axis=0).sum() <= 20
    rng = np.random.default_rng(1)
    at = rng.choice(77, size=5, replace=False)
    expected = IMAGES.copy()
    expected.reshape(3, 77, 3)[:, at] = rng.integers(0, 256, size=(3, 5, 3)) / 255
    assert np.array_equal(Noise(5).apply(IMAGES, np.random.default_rng(1)), expected)


def test_flip_noise_flips_exactly_m():
    flat = threshold(IMAGES, 65)
    flipped = FlipNoise(12, 65).apply(IMAGES, np.random.default_rng(1))
    assert ((flat != flipped).any(axis=3).sum(axis=(1, 2)) == 12).all()
    assert set(np.unique(flipped)) == {0.0, 1.0}


def test_eigen_reduce_keeps_the_first_components():
    from sklearn.decomposition import PCA

    rows = IMAGES.reshape(3, -1)
    model = PCA(1, svd_solver="full").fit(rows)
    expected = model.inverse_transform(model.transform(rows)).reshape(IMAGES.shape)
    assert np.allclose(EigenReduce(1).apply(IMAGES, RNG), expected)


def test_masks_cover_the_landmarks_and_little_else():
    faces = drawn_faces(4, seed=1)
    points = faces.landmarks
    bar = cover(faces.images, points, nose=False, value=0.0)
    both = cover(faces.images, points, nose=True, value=0.0)
    for i in range(4):
        for x, y in points[i, :2]:
            assert (bar[i, round(y), round(x)] == 0).all()
        x, y = points[i, 2]
        assert (both[i, round(y), round(x)] == 0).all()
        assert (bar[i, round(y), round(x)] != 0).any()
    assert (bar != faces.images).any(axis=3).mean() < 0.35


def test_masks_by_hand():
    white = np.ones((1, 20, 20, 1))
    bar, column = np.ones((20, 20)), np.ones((20, 20))
    bar[6:11, 2:19] = column[6:11, 2:19] = 0.25  # 0.95 and 0.28 eye distances about the middle
    column[8:15, 8:13] = 0.25  # to 1.25 of the way to the nose, 0.26 eye distances about the middle
    points = np.array([[[6.0, 8.0], [14.0, 8.0], [10.0, 13.0]]])
    assert np.array_equal(cover(white, points, nose=False, value=0.25)[0, ..., 0], bar)
    assert np.array_equal(TMask(0.25).apply(white, RNG, points)[0, ..., 0], column)
    tilted = cover(white, np.array([[[7.0, 7.0], [13.0, 13.0], [8.0, 12.0]]]), nose=False, value=0.0)[0, ..., 0]
    assert tilted[11, 9] == tilted[9, 11] == tilted[15, 15] == 0  # along the line of the eyes, and a little across
    assert tilted[12, 8] == tilted[8, 12] == tilted[16, 16] == 1
    assert (white == 1).all()


def test_masks_without_a_nose_to_cover():
    """Eyes in one place have no direction, and the mask no length: nothing raises, nothing is divided by zero."""
    spot = cover(np.ones((1, 9, 9, 1)), np.full((1, 3, 2), 4.0), nose=True, value=0.0)[0, ..., 0]
    assert spot[4, 4] == 0
    assert spot.sum() == 80


@pytest.mark.parametrize(
    ("method", "height", "n_pixels", "expected"),
    [
        (Pixelate(15), 268.0, 1, Pixelate(30)),
        (Pixelate(15), 1.0, 1, Pixelate(2)),
        (Pixelate(60_000), 268.0, 1, Pixelate(65_535)),
        (Blur(8.0), 67.0, 1, Blur(4.0)),
        (Blur(8.0), 1.0, 1, Blur(1.0)),
        (Noise(6000), 1.0, 2 * 134 * 99, Noise(12_000)),
        (Noise(20_000), 1.0, 100, Noise(100)),
        (FlipNoise(3000, 70.0), 268.0, 4 * 134 * 99, FlipNoise(12_000, 70.0)),
        (Threshold(100.0), 268.0, 1, Threshold(100.0)),
    ],
)
def test_masks_grow_with_the_face(method, height, n_pixels, expected):
    assert scaled(method, height, n_pixels) == expected


def test_levels_by_hand():
    assert Pixelate().levels((40, 30, 3)) == [*range(2, 33), 35, 39, 40]
    assert Pixelate().levels((30, 10, 3)) == list(range(2, 31))
    assert Noise().levels((10, 20, 3)) == list(range(10, 201, 10))
    assert np.allclose(Blur().levels((30, 64, 1)), 64.0 ** (np.arange(20) / 19))


def test_people_that_masks_need():
    assert [Blur().min_subjects, EigenReduce(3).min_subjects] == [1, 4]


@pytest.mark.parametrize("level", [Pixelate(), Blur(), Noise()])
def test_levels_rise_to_the_strongest(level):
    levels = list(level.levels((134, 99, 3)))
    assert levels == sorted(set(levels))
    strongest = at(level, levels[-1])
    image = RNG.random((1, 134, 99, 3))
    assert strongest.apply(image, np.random.default_rng(0)).shape == image.shape


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Pixelate(0), "'p' parameter of pixelate must be an integer in .1, 65535.. Got 0"),
        (lambda: Blur(0.0), "'sigma' parameter of blur"),
        (lambda: Threshold(300), "'t' parameter of threshold must be a number in \\[0, 255\\]. Got 300"),
        (lambda: Noise(-1), "'m' parameter of noise"),
        (lambda: Noise(78).apply(IMAGES, RNG), "'m' parameter of noise must be an integer in \\[0, 77\\]. Got 78"),
        (lambda: FlipNoise(78).apply(IMAGES, RNG), "'m' parameter of noise-bw must be an integer in \\[0, 77\\]"),
        (lambda: FlipNoise(1, 256), "'t' parameter of noise-bw"),
        (lambda: EigenReduce(0), "'e' parameter of eigen-reduce"),
        (lambda: BarMask(2.0), "'value' parameter of bar-mask"),
    ],
)
def test_bad_parameters_are_named(build, message):
    with pytest.raises(UsageError, match=message):
        build()


@pytest.mark.parametrize("mask", [BarMask(), TMask()])
def test_masks_without_landmarks_are_refused(mask):
    with pytest.raises(InputError, match=r"needs to know where eyes and nose are.*left_eye_x"):
        mask.apply(IMAGES, RNG)


def test_nothing_is_promised(faces):
    release, _ = ksame.deidentify(faces, ksame.recipe("blur"), seed=0)
    assert release.certificate.promise.model == "none"
    assert release.certificate.promise.bound is None
    assert "Nothing is promised" in release.certificate.promise.statement
