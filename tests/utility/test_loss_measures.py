"""Loss measures against hand-worked numbers and an outside program."""

from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from skimage.measure import shannon_entropy
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

import ksame
from ksame.errors import InputError
from ksame.utility.loss import Loss, entropy, mean_loss, measure_loss


@pytest.fixture(scope="module")
def noisy() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    before = (rng.random((40, 31, 3)) * 255).astype(np.uint8)
    after = np.clip(before + rng.normal(0, 18, before.shape), 0, 255).astype(np.uint8)
    return before, after


def test_euclidean_loss_is_the_papers_equation():
    before = np.array([[[10], [20]], [[30], [40]]], dtype=np.uint8)
    after = np.array([[[13], [20]], [[26], [40]]], dtype=np.uint8)
    loss = measure_loss(before, after)
    assert (loss.euclidean, loss.changed) == (5.0, 0.5)


def test_bytes_and_floats_of_one_picture_measure_the_same(noisy):
    before, after = noisy
    assert measure_loss(before / 255, after / 255).euclidean == pytest.approx(measure_loss(before, after).euclidean)


def test_psnr_agrees_with_scikit_image(noisy):
    assert measure_loss(*noisy).psnr == pytest.approx(peak_signal_noise_ratio(*noisy, data_range=255))


@pytest.mark.parametrize("shape", [(40, 31, 3), (11, 11, 1), (64, 12, 1), (90, 70, 3)])
def test_ssim_and_entropy_agree_with_scikit_image(shape):
    rng = np.random.default_rng(sum(shape))
    before = (gaussian_filter(rng.random(shape), (2, 2, 0)) * 255).astype(np.uint8)
    after = np.clip(before + rng.normal(0, 9, shape), 0, 255).astype(np.uint8)
    loss = measure_loss(before, after)
    settings = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 255}
    expected = structural_similarity(before.astype(float), after.astype(float), channel_axis=2, **settings)
    assert loss.ssim == pytest.approx(expected, abs=1e-10)
    assert loss.entropy == pytest.approx(shannon_entropy(np.rint(after.mean(axis=2))), abs=1e-10)


def test_scikit_image_is_not_needed():
    """Only tests compare with it: it would bring fifty megabytes to everybody."""
    for path in Path(ksame.__file__).parent.rglob("*.py"):
        assert "skimage" not in path.read_text(encoding="utf-8"), path


def test_ssim_is_the_papers_equation(noisy):
    """Wang et al. (2004), eq. 13, with windows of sigma 1.5 and 11 pixels that lie inside the picture."""

    def smooth(values):
        return gaussian_filter(values, (1.5, 1.5, 0), truncate=3.4)[5:-5, 5:-5]

    x, y = (picture.astype(float) for picture in noisy)
    mx, my = smooth(x), smooth(y)
    vx, vy, vxy = smooth(x * x) - mx**2, smooth(y * y) - my**2, smooth(x * y) - mx * my
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    reference = (2 * mx * my + c1) * (2 * vxy + c2) / ((mx**2 + my**2 + c1) * (vx + vy + c2))
    assert measure_loss(*noisy).ssim == pytest.approx(reference.mean(), abs=1e-9)


def test_a_picture_loses_nothing_against_itself(noisy):
    same = measure_loss(noisy[0], noisy[0])
    assert (same.euclidean, same.changed, same.psnr) == (0.0, 0.0, np.inf)
    assert same.ssim == pytest.approx(1.0)


def test_small_pictures_are_one_window():
    tiny = np.arange(12, dtype=np.uint8).reshape(4, 3, 1) * 20
    assert measure_loss(tiny, tiny).ssim == pytest.approx(1.0)
    assert measure_loss(tiny, 255 - tiny).ssim < 0


def test_a_flat_picture_has_no_entropy():
    assert entropy(np.full((9, 9, 3), 77, dtype=np.uint8)) == 0.0


def test_the_mean_of_equal_pairs_is_finite_where_one_differs():
    assert mean_loss([Loss(0, 0, 1, np.inf, 1), Loss(2, 1, 3, 30, 0)]).psnr == pytest.approx(33.01, abs=0.01)
    assert mean_loss([Loss(0, 0, 1, np.inf, 1)]).psnr == np.inf


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (np.zeros((2, 2, 3)), np.zeros((2, 3, 3)), "one shape"),
        (np.zeros((2, 2)), np.zeros((2, 2)), "height, width, channels"),
    ],
)
def test_bad_pictures(before, after, message):
    with pytest.raises(InputError, match=message):
        measure_loss(before, after)


def test_no_pairs():
    with pytest.raises(InputError, match="no pair"):
        mean_loss([])
