"""Loss measures against hand-worked numbers and an outside program."""

import numpy as np
import pytest
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from ksame.errors import InputError
from ksame.utility.loss import (
    Loss,
    changed_pixels,
    entropy,
    euclidean_loss,
    mean_loss,
    measure_loss,
    psnr,
    ssim,
)


@pytest.fixture(scope="module")
def noisy() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    before = (rng.random((40, 31, 3)) * 255).astype(np.uint8)
    after = np.clip(before + rng.normal(0, 18, before.shape), 0, 255).astype(np.uint8)
    return before, after


def test_euclidean_loss_is_the_papers_equation():
    before = np.array([[[10], [20]], [[30], [40]]], dtype=np.uint8)
    after = np.array([[[13], [20]], [[26], [40]]], dtype=np.uint8)
    assert euclidean_loss(before, after) == 5.0
    assert changed_pixels(before, after) == 0.5


def test_bytes_and_floats_of_one_picture_measure_the_same(noisy):
    before, after = noisy
    assert measure_loss(before / 255, after / 255).euclidean == pytest.approx(measure_loss(before, after).euclidean)


def test_ssim_and_psnr_agree_with_scikit_image(noisy):
    before, after = noisy
    reference = structural_similarity(
        before, after, channel_axis=2, gaussian_weights=True, use_sample_covariance=False, sigma=1.5, data_range=255
    )
    assert ssim(before, after) == pytest.approx(reference, abs=1e-9)
    assert psnr(before, after) == pytest.approx(peak_signal_noise_ratio(before, after, data_range=255))


def test_a_picture_loses_nothing_against_itself(noisy):
    same = measure_loss(noisy[0], noisy[0])
    assert (same.euclidean, same.changed, same.psnr) == (0.0, 0.0, np.inf)
    assert same.ssim == pytest.approx(1.0)


def test_small_pictures_are_one_window():
    tiny = np.arange(12, dtype=np.uint8).reshape(4, 3, 1) * 20
    assert ssim(tiny, tiny) == pytest.approx(1.0)
    assert ssim(tiny, 255 - tiny) < 0


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
