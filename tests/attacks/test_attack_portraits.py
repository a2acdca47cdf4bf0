"""The shapes of the papers on real portraits: what fools whom, what is found out, what can be undone."""

import cv2
import numpy as np
import pytest

import ksame
from ksame.attacks import AttackData, Eigenfaces, Verdict, run_attack
from ksame.attacks.detection import BlurDetector, Pixelation, detect_pixelation
from ksame.attacks.restoration import Prior, enhance
from ksame.faces.faceset import FaceSet, quantise
from ksame.faces.filters import blur, pixelate
from ksame.faces.registration import Template

pytestmark = [pytest.mark.shared, pytest.mark.slow]


@pytest.fixture(scope="module")
def registered(portraits) -> FaceSet:
    """Three hundred portraits with the places of eyes and nose, for masks."""
    points = np.tile(np.array(Template.eyes_and_nose().points), (len(portraits), 1, 1))
    return FaceSet(portraits.images, portraits.subjects, points).take(np.arange(0, len(portraits), 2))


@pytest.fixture(scope="module")
def attacked(registered):
    def attack(name, scenario, **params):
        release, linkage = ksame.deidentify(registered, ksame.recipe(name, **params), seed=1)
        released = FaceSet(release.faces, [face.subject for face in linkage.faces])
        return run_attack(scenario, Eigenfaces(), AttackData(registered, released))

    return attack


@pytest.mark.parametrize("name", ["bar-mask", "t-mask"])
def test_masks_fool_naive_but_not_parrot_matching(attacked, name):
    assert attacked(name, "naive").rank1 < 0.6
    assert attacked(name, "parrot").rank1 >= 0.95


@pytest.mark.parametrize("scenario", ["naive", "reverse", "parrot", "automatic-parrot"])
def test_pixelation_fools_nobody(attacked, scenario):
    assert attacked("pixelate", scenario, p=8).rank1 >= 0.95


@pytest.mark.parametrize("scenario", ["naive", "reverse", "parrot", "automatic-parrot", "enhancement", "difference"])
def test_blackout_leaves_chance(attacked, scenario):
    assert attacked("blackout", scenario).rank1 == pytest.approx(1 / 300)


def test_noise_protects_far_less_under_reverse(attacked):
    assert attacked("noise", "naive", m=9000).rank1 < 0.1
    assert attacked("noise", "reverse", m=9000).rank1 > 0.7


@pytest.mark.parametrize(
    "scenario",
    ["naive", "reverse", "parrot", "pooled", "automatic-parrot", "enhancement", "learned-inverse", "difference"],
)
def test_k_same_stays_below_its_bound(attacked, scenario):
    for name, k in (("k-same-pixel", 2), ("k-same-eigen", 5)):
        result = attacked(name, scenario, k=k)
        assert result.rank1 <= 1 / k + 1e-9
        assert result.verdict(1 / k) is Verdict.HOLDS


def test_k_diff_falls_to_difference_vectors(attacked):
    assert attacked("k-diff-furthest", "naive", k=5).rank1 <= 1 / 300 + 1e-9
    result = attacked("k-diff-furthest", "difference", k=5)
    assert result.rank1 > 0.8
    assert result.verdict(0.0) is Verdict.BROKEN


@pytest.mark.parametrize("p", range(2, 17))
def test_pixelation_is_found_exactly(portraits, p):
    images = quantise(pixelate(portraits.images, p))
    found = [detect_pixelation(image / 255.0) == Pixelation(p) for image in images]
    assert np.mean(found) >= 0.95
    if p >= 4:
        found = [detect_pixelation(_jpeg(image, 80) / 255.0) == Pixelation(p) for image in images]
        assert np.mean(found) >= 0.95


def test_untouched_portraits_are_left_alone(portraits):
    assert np.mean([detect_pixelation(image) is None for image in portraits.images]) >= 0.99


@pytest.mark.parametrize("sigma", [1.0, 2.0, 4.0, 8.0, 16.0])
def test_blur_is_estimated_within_15_percent(portraits, sigma):
    detector = BlurDetector.learn(portraits.take(np.arange(0, 600, 2)))
    held_out = portraits.images[1::4]
    estimates = np.array([detector.sigma(image / 255.0) for image in quantise(blur(held_out, sigma))])
    assert np.mean(np.abs(estimates / sigma - 1) <= 0.15) >= 0.95
    assert np.median(estimates) == pytest.approx(sigma, rel=0.05)


@pytest.mark.parametrize("p", [2, 4])
def test_enhancement_beats_bicubic_on_people_it_never_saw(portraits, p):
    originals = portraits.images[1::4].astype(float)
    seen = quantise(pixelate(originals, p)) / 255.0
    restored = enhance(seen, Pixelation(p), Prior.learn(portraits.take(np.arange(0, 600, 2))))
    gain = _psnr(restored, originals) - _psnr(_bicubic(seen, p), originals)
    assert gain.mean() > 0.3
    assert np.mean(gain > 0) >= 0.95


def _jpeg(image, quality):
    packed = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return cv2.imdecode(packed, cv2.IMREAD_GRAYSCALE)[..., None]


def _psnr(a, b):
    return 10 * np.log10(1 / ((a - b) ** 2).mean(axis=(1, 2, 3)))


def _bicubic(images, p):
    """One pixel a block, enlarged p times, block centres on block centres."""
    height, width = images.shape[1:3]
    move = np.array([[p, 0, (p - 1) / 2], [0, p, (p - 1) / 2]], dtype=float)
    small = images[:, ::p, ::p, 0].astype(np.float32)
    large = [
        cv2.warpAffine(i, move, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE) for i in small
    ]
    return np.stack(large)[..., None]
