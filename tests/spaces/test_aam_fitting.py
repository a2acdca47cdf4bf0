import numpy as np
import pytest
from aam_cases import made_up_faces

from ksame.errors import InputError, UsageError
from ksame.geometry import Similarity
from ksame.spaces.aam import Fitter, Params, build
from ksame.spaces.aam.level import features

METHODS = ["simultaneous", "project-out"]
SIZE = (130, 120)


@pytest.fixture(scope="module")
def model():
    return build(*made_up_faces(40), shape=3, texture=8, width=64)


def rendered(model, n, seed):
    """Draw faces from the model and return their pictures and points."""
    rng = np.random.default_rng(seed)
    pictures, points = [], []
    for _ in range(n):
        shape = 0.7 * rng.normal(size=3) * np.sqrt(model.shape_variances)
        texture = 0.7 * rng.normal(size=8) * np.sqrt(model.texture_variances)
        angle, scale = rng.normal(0, 0.05), rng.uniform(0.95, 1.1)
        centre = model.mean_shape.mean(axis=0)
        a, b = scale * np.cos(angle), scale * np.sin(angle)
        shift = np.array([60.0, 64.0]) - np.array([[a, -b], [b, a]]) @ centre + rng.normal(0, 2, 2)
        params = Params(shape, texture, Similarity(a, b, *shift))
        pictures.append(model.render(params, SIZE, background=0.35))
        points.append(model.points(params))
    return np.stack(pictures), np.stack(points)


@pytest.fixture(scope="module")
def fitter(model):
    return Fitter.train(model, *rendered(model, 60, 1), widths=(32, 64), shape_modes=3, texture_modes=30)


def disturbed(model, points, rng, amount):
    move = Similarity(1 + rng.normal(0, amount), rng.normal(0, amount), 0.0, 0.0)
    centre = points.mean(axis=0)
    span = np.ptp(points[:, 0])
    shape, pose = model.shape_params(points)
    bent = pose.apply(model.shape(shape + 0.3 * rng.normal(size=3) * np.sqrt(model.shape_variances)))
    return move.apply(bent - centre) + centre + rng.normal(0, amount * span, 2)


@pytest.mark.parametrize("method", METHODS)
def test_recovers_the_parameters_of_a_rendered_face(model, fitter, method):
    rng = np.random.default_rng(7)
    pictures, points = rendered(model, 8, 2)
    for picture, truth in zip(pictures, points, strict=True):
        start = disturbed(model, truth, rng, 0.04)
        fit = fitter.fit(picture, start, method=method, max_rounds=60)
        before = np.linalg.norm(start - truth, axis=1).mean()
        after = np.linalg.norm(fit.points - truth, axis=1).mean()
        assert fit, fit.reason
        assert after < 0.35 < before
        wanted, _ = model.shape_params(truth)
        np.testing.assert_allclose(fit.params.shape, wanted, atol=0.75 * np.sqrt(model.shape_variances[0]))
        assert 0 <= fit.error < 0.5


def test_the_truth_is_a_fixed_point(model, fitter):
    pictures, points = rendered(model, 4, 1)  # faces that were trained on
    for picture, truth in zip(pictures, points, strict=True):
        fit = fitter.fit(picture, truth, max_rounds=60)
        assert np.linalg.norm(fit.points - truth, axis=1).mean() < 0.35


@pytest.mark.parametrize("method", METHODS)
def test_gain_and_bias_do_not_matter(model, fitter, method):
    picture, truth = (a[0] for a in rendered(model, 1, 5))
    start = truth + np.array([2.0, -1.5])
    plain = fitter.fit(picture, start, method=method)
    dimmed = fitter.fit(0.6 * picture + 0.3, start, method=method)
    np.testing.assert_allclose(plain.points, dimmed.points, atol=0.3)


def test_a_turned_and_enlarged_photograph_gives_turned_points(model, fitter):
    picture, truth = (a[0] for a in rendered(model, 1, 6))
    start = truth + np.array([1.5, 1.0])
    upright = fitter.fit(picture, start)
    quarter = np.rot90(picture, k=-1)  # clockwise: (x, y) goes to (height - 1 - y, x)
    turned = np.stack([SIZE[0] - 1 - start[:, 1], start[:, 0]], axis=1)
    fit = fitter.fit(np.ascontiguousarray(quarter), turned)
    expected = np.stack([SIZE[0] - 1 - upright.points[:, 1], upright.points[:, 0]], axis=1)
    np.testing.assert_allclose(fit.points, expected, atol=0.05)


def test_composition_with_nothing_and_with_a_shift(model, fitter):
    level = fitter.levels[0]
    move = Similarity(1.1, 0.2, 3.0, -2.0)
    points = move.apply(level.warp.base)
    np.testing.assert_allclose(level.compose(points, np.zeros_like(points)), points)
    shift = np.tile([0.5, 0.25], (len(points), 1))
    np.testing.assert_allclose(level.compose(points, shift), move.apply(level.warp.base + shift), atol=1e-9)


def test_composition_does_not_follow_folded_triangles(fitter):
    level = fitter.levels[0]
    folded = level.warp.base.copy()
    folded[12] = folded[10] - 5  # an inner point pulled far over its neighbours
    step = np.tile([1.0, 0.0], (len(folded), 1))
    moved = level.compose(folded, step) - folded
    assert (moved[:, 0] > 0).all()


def test_directions_are_orthonormal(fitter):
    flat = fitter.levels[0].directions.reshape(7, -1)
    np.testing.assert_allclose(flat @ flat.T, np.eye(7), atol=1e-9)


def test_simultaneous_step_equals_the_full_normal_equations(model, fitter):
    """Eliminating the texture first must give the step of the joint system."""
    from ksame.spaces.aam.fitting import _LevelFit
    from ksame.spaces.aam.level import crop_features, normalised

    picture, truth = (a[0] for a in rendered(model, 1, 8))
    level = fitter.levels[0]
    described, transform = crop_features(level.warp, picture, truth + 1.0)
    level_fit = _LevelFit(level, described, "simultaneous")
    level_fit.stiffness[:] = 0
    points, shape = level.project(transform.apply(truth + 1.0), 3.0)
    move = level_fit._move(points, shape)
    sample = normalised(level.warp.sample(described, points, smooth=False)).astype(float)
    modes = level.modes.astype(float)
    texture = modes @ (sample - level.template)
    slope, slopes = level.gradients
    descent = level.descent(slope + (texture @ slopes).reshape(slope.shape)).astype(float)
    joint = np.vstack([descent, modes])
    rest = sample - level.template - texture @ modes
    full = np.linalg.lstsq(joint.T, rest, rcond=None)[0]
    np.testing.assert_allclose(move, full[:7], rtol=2e-2, atol=1e-3)
    np.testing.assert_allclose(level_fit.texture, texture + full[7:], atol=1e-3)


def test_flat_and_missing_photographs_fail_with_a_reason(model, fitter):
    start = model.mean_shape + 30
    flat = fitter.fit(np.full((*SIZE, 3), 0.5), start)
    assert not flat
    assert "flat" in flat.reason
    away = fitter.fit(np.full((*SIZE, 3), 0.5), start + 5000)
    assert not away
    assert "outside" in away.reason
    hurried = fitter.fit(rendered(model, 1, 9)[0][0], start, max_rounds=1)
    assert not hurried.converged
    assert "1 rounds" in hurried.reason


def test_features_ignore_brightness_and_keep_signs_apart():
    ramp = np.tile(np.linspace(0.2, 0.4, 40, dtype=np.float32), (40, 1))
    right, left, down, up = features(ramp)[20, 20]
    assert right > 0.4
    assert max(left, down, up) < 1e-4
    np.testing.assert_allclose(features(ramp + 0.3)[20, 20], features(ramp)[20, 20], atol=1e-4)


def test_same_input_same_bytes(model, fitter):
    picture, truth = (a[0] for a in rendered(model, 1, 3))
    first, second = (fitter.fit(picture, truth + 2) for _ in range(2))
    np.testing.assert_array_equal(first.points, second.points)


def test_same_features_wherever_memory_lies():
    grey = np.random.default_rng(0).random((51, 51)).astype(np.float32)
    described, kept = [], []
    for size in range(1, 400):
        kept.append(np.empty(size * 7, dtype=np.uint8))  # so that the next arrays lie elsewhere
        described.append(features(grey))
    assert len({d.tobytes() for d in described}) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"widths": ()}, "widths"),
        ({"widths": (64, 32)}, "widths"),
        ({"widths": (4,)}, "widths"),
        ({"shape_modes": 0}, "shape_modes"),
        ({"texture_modes": 0}, "texture_modes"),
    ],
)
def test_bad_parameters(model, change, message):
    with pytest.raises(UsageError, match=message):
        Fitter.train(model, *rendered(model, 2, 0), **change)


def test_bad_input(model, fitter):
    pictures, points = rendered(model, 2, 0)
    with pytest.raises(InputError, match="two faces or more"):
        Fitter.train(model, pictures, points[:, :5])
    with pytest.raises(InputError, match="image 1 lie outside"):
        Fitter.train(model, pictures, np.stack([points[0], points[1] + 5000]))
    with pytest.raises(InputError, match="start points"):
        fitter.fit(pictures[0], points[0][:4])
    with pytest.raises(InputError, match="Expected an image"):
        fitter.fit(pictures[0][..., 0], points[0])
    with pytest.raises(UsageError, match="method"):
        fitter.fit(pictures[0], points[0], method="additive")
