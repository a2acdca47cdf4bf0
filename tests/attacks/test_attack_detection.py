"""Finding out what was done to a picture, and undoing it."""

import cv2
import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from drawn import drawn_faces
from ksame.attacks.detection import BlurDetector, Blurring, Pixelation, detect_levels, detect_pixelation
from ksame.attacks.restoration import Prior, RidgeInverse, conjugate_gradients, enhance
from ksame.attacks.spectrum import cosines, from_cosines, squared_frequencies
from ksame.errors import UsageError
from ksame.faces.faceset import FaceSet, quantise
from ksame.faces.filters import block_starts, blur, pixelate


@pytest.fixture(scope="module")
def sharp():
    return drawn_faces(40, seed=8, width=72, height=96)


def psnr(a, b):
    return 10 * np.log10(1 / ((a - b) ** 2).mean())


@pytest.mark.parametrize("p", range(2, 17))
def test_block_size_is_found(sharp, p):
    for image in quantise(pixelate(sharp.images[:6], p)):
        assert detect_pixelation(image / 255.0) == Pixelation(p)


def test_shifted_blocks_are_found(sharp):
    images = pixelate(sharp.images[:4], 6, (4, 1))
    assert all(detect_pixelation(image) == Pixelation(6, (4, 1)) for image in images)
    assert np.allclose(Pixelation(6, (4, 1)).apply(images), images)


def test_masks_blur_and_plain_pictures_are_not_blocks(sharp):
    barred = sharp.images[:6].copy()
    barred[:, 30:42, 8:64] = 0.0
    for images in (sharp.images[:6], barred, blur(sharp.images[:6], 3.0), np.full((1, 40, 40, 1), 0.5)):
        assert all(detect_pixelation(image) is None for image in images)
    assert detect_pixelation(np.zeros((5, 5, 1))) is None


def test_block_starts_reject_nothing_and_cover_everything():
    for size, p, offset in ((10, 3, 0), (10, 3, 2), (2, 5, 4), (2, 5, 0)):
        starts = block_starts(size, p, offset)
        assert starts[0] == 0
        assert (np.diff(starts) <= p).all()
        assert starts[-1] < size


@pytest.fixture(scope="module")
def fields():
    """Random fields whose spectrum falls as that of photographs does."""
    height, width = 96, 72
    falling = 1.0 / (squared_frequencies(height, width) + 0.01)[None, :, :, None] ** 0.9
    noise = np.random.default_rng(9).normal(size=(30, height, width, 1))
    rows = from_cosines(noise * falling)
    return FaceSet(np.clip(0.5 + 0.15 * rows / rows.std(), 0, 1), np.arange(30).astype(str))


@pytest.mark.parametrize("sigma", [1.0, 2.0, 5.0, 9.0])
def test_blur_is_estimated(fields, sigma):
    detector = BlurDetector.learn(fields.take(np.arange(20)))
    images = quantise(blur(fields.images[20:30], sigma)) / 255.0
    estimates = np.array([detector.sigma(image) for image in images])
    assert (np.abs(estimates / sigma - 1) < 0.15).mean() >= 0.9
    assert np.median(estimates) == pytest.approx(sigma, rel=0.1)


def test_sharp_and_empty_pictures_are_not_blurred(sharp):
    detector = BlurDetector.learn(sharp)
    assert all(detector.detect(image) is None for image in sharp.images[:5])
    assert detector.detect(np.full((96, 72, 1), 0.3)) is None


def test_levels_of_a_mixed_set(sharp):
    few = sharp.images[:3]
    mixed = np.concatenate([pixelate(few, 5), blur(few, 3.0), few])
    levels = detect_levels(mixed, sharp)
    assert levels[:3] == [Pixelation(5)] * 3
    assert len(set(levels[3:6])) == 1
    assert isinstance(levels[3], Blurring)
    assert levels[6:] == [None] * 3
    assert str(levels[0]) == "pixelation by 5 pixels"


def test_a_gaussian_blur_is_diagonal_in_cosines(sharp):
    image = sharp.images[:1].astype(float)
    passed = np.exp(-0.5 * 2.5**2 * squared_frequencies(96, 72))[None, :, :, None]
    expected = gaussian_filter(image[0], (2.5, 2.5, 0), mode="reflect", truncate=8)
    assert np.abs(from_cosines(cosines(image) * passed)[0] - expected).max() < 1e-3


def test_conjugate_gradients_solve():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(9, 9))
    matrix, target = root @ root.T + np.eye(9), rng.normal(size=(4, 9))
    found = conjugate_gradients(lambda v: v @ matrix, target, lambda v: v / np.diag(matrix), tolerance=1e-10)
    assert np.allclose(found @ matrix, target)
    assert not conjugate_gradients(lambda v: v, np.zeros((2, 3)), lambda v: v).any()


@pytest.mark.parametrize("level", [Pixelation(3), Pixelation(4, (1, 2))])
def test_map_estimate_minimises_its_objective(level):
    """On 7 x 6 pixels the estimate is the solution of the normal equations, written out."""
    rng = np.random.default_rng(1)
    height, width, noise = 7, 6, 0.05
    prior = Prior(np.full((height, width, 1), 0.5), rng.uniform(1e-3, 2e-3, (height, width)))
    seen = level.apply(0.5 + 0.02 * rng.normal(size=(1, height, width, 1)))
    n = height * width
    unit = np.eye(n).reshape(n, height, width, 1)
    average = level.apply(unit).reshape(n, n).T
    starts = [
        block_starts(size, level.p, first) for size, first in zip((height, width), level.offset[::-1], strict=True)
    ]
    chosen = [row * width + column for row in starts[0] for column in starts[1]]
    observe = average[chosen]  # one row a block
    cosine = cosines(unit).reshape(n, n)
    covariance = cosine @ np.diag(prior.power.ravel()) @ cosine.T
    system = observe @ covariance @ observe.T + noise**2 * np.eye(len(chosen))
    expected = 0.5 + covariance @ observe.T @ np.linalg.solve(system, seen.ravel()[chosen] - 0.5)
    assert np.allclose(enhance(seen, level, prior, noise).ravel(), expected, atol=1e-5)


@pytest.mark.parametrize("level", [Pixelation(2), Pixelation(4), Blurring(2.0)], ids=str)
@pytest.mark.parametrize("learned", [True, False])
def test_enhancement_beats_what_was_seen(sharp, level, learned):
    prior = Prior.learn(sharp.take(np.arange(25))) if learned else Prior.smooth(96, 72)
    originals = sharp.images[25:30]
    seen = quantise(level.apply(originals)) / 255.0
    restored = enhance(seen, level, prior)
    assert restored.min() >= 0
    assert restored.max() <= 1
    assert psnr(restored, originals) > psnr(seen, originals) + 1.0
    with pytest.raises(UsageError, match="'noise' parameter of enhance"):
        enhance(seen, level, prior, noise=0.0)


def test_too_few_faces_leave_the_smooth_prior(sharp):
    assert Prior.learn(sharp.take([0, 1])).mean is None


def test_ridge_inverse_recovers_a_linear_map():
    rng = np.random.default_rng(4)
    wanted = rng.normal(size=(60, 12)) + 3.0
    mixing = rng.normal(size=(12, 12))
    seen = wanted @ mixing + 1.0
    inverse = RidgeInverse.learn(seen[:40], wanted[:40])
    assert np.allclose(inverse.apply(seen[40:]), wanted[40:], atol=1e-2)


def test_ridge_inverse_shrinks_to_the_mean_where_nothing_is_to_be_learned():
    rng = np.random.default_rng(4)
    wanted, seen = rng.normal(size=(40, 6)), rng.normal(size=(40, 50))
    inverse = RidgeInverse.learn(seen, wanted)
    assert np.abs(inverse.apply(seen[:3]) - wanted.mean(axis=0)).max() < 0.5


def test_blocks_are_found_after_jpeg(sharp):
    found = 0
    for p in (4, 7, 10, 16):
        for image in quantise(pixelate(sharp.images[:10], p)):
            packed = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 80])[1]
            read = cv2.imdecode(packed, cv2.IMREAD_UNCHANGED).reshape(image.shape)
            found += detect_pixelation(read / 255.0) == Pixelation(p)
    assert found >= 38
