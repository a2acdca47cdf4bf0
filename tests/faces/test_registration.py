import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from skimage.transform import SimilarityTransform

from drawn import drawn_faces
from ksame.errors import InputError, UsageError
from ksame.faces import Template, register
from ksame.geometry import Similarity

points = st.integers(2, 8).flatmap(lambda n: arrays(np.float64, (n, 2), elements=st.integers(-500, 500).map(float)))
similarities = st.builds(
    lambda scale, turn, tx, ty: Similarity(scale * np.cos(turn), scale * np.sin(turn), tx, ty),
    st.floats(0.05, 20),
    st.floats(-np.pi, np.pi),
    st.floats(-1000, 1000),
    st.floats(-1000, 1000),
)


def spread(p):
    return ((p - p.mean(axis=0)) ** 2).sum()


@given(similarities, points)
def test_the_inverse_leads_back(move, p):
    assert np.allclose(move.inverse().apply(move.apply(p)), p, atol=1e-6)
    assert np.allclose(move.apply(move.inverse().apply(p)), p, atol=1e-6)


@given(similarities, points)
def test_a_similarity_is_recovered_from_two_or_more_points(move, p):
    assume(spread(p) >= 1)
    found = Similarity.estimate(p, move.apply(p))
    assert np.allclose(found.matrix[:, :2], move.matrix[:, :2], atol=1e-6)
    assert np.allclose(found.apply(p), move.apply(p), atol=1e-6)


@given(similarities, points)
def test_shapes_are_kept_up_to_scale(move, p):
    distances = [np.linalg.norm(q[:, None] - q[None], axis=2) for q in (p, move.apply(p))]
    assert np.allclose(distances[1], distances[0] * np.hypot(move.a, move.b), atol=1e-6)


@settings(max_examples=50)
@given(similarities, st.integers(3, 8), st.integers(0, 2**32 - 1))
def test_with_noise_no_similarity_fits_better(move, n, seed):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0, 100, (n, 2))
    q = move.apply(p) + rng.normal(0, 3, p.shape)
    found = Similarity.estimate(p, q)
    best = ((found.apply(p) - q) ** 2).sum()
    for nudge in np.eye(4) * 1e-3:
        for sign in (-1, 1):
            other = Similarity(*(np.array([found.a, found.b, found.tx, found.ty]) + sign * nudge))
            assert ((other.apply(p) - q) ** 2).sum() >= best


def umeyama(p, q):
    """Return scikit-image's fit; before 0.26, which needs Python 3.11, it is asked for in another way."""
    if hasattr(SimilarityTransform, "from_estimate"):
        return SimilarityTransform.from_estimate(p, q).params
    made = SimilarityTransform()
    assert made.estimate(p, q)
    return made.params


@settings(max_examples=50)
@given(similarities, st.integers(3, 8), st.integers(0, 2**32 - 1))
def test_agrees_with_scikit_image_but_for_its_scale(move, n, seed):
    """Umeyama's fit, which scikit-image gives, has the same rotation and the same scale in the plane."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0, 100, (n, 2))
    q = move.apply(p) + rng.normal(0, 0.5, p.shape) * np.hypot(move.a, move.b)
    assert np.allclose(Similarity.estimate(p, q).matrix, umeyama(p, q)[:2], rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ([[0, 0]], [[1, 1]], r"at least two pairs of points. Got shapes \(1, 2\)"),
        ([[0, 0], [1, 1]], [[0, 0], [1, 1], [2, 2]], r"Got shapes \(2, 2\) and \(3, 2\)"),
        ([[0, 0, 0], [1, 1, 1]], [[0, 0, 0], [1, 1, 1]], r"\(2, 3\)"),
        ([0, 1], [0, 1], r"\(2,\)"),
        ([[3, 3], [3, 3]], [[0, 0], [1, 1]], "all of them are in one place"),
    ],
)
def test_too_little_to_go_by_is_refused(source, target, words):
    with pytest.raises(InputError, match=words):
        Similarity.estimate(source, target)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_points_that_are_no_numbers_are_refused(bad):
    with pytest.raises(InputError):
        Similarity.estimate([[0, 0], [bad, 1]], [[0, 0], [1, 1]])


def test_scale_zero_has_no_inverse():
    with pytest.raises(InputError, match="scale zero"):
        Similarity.estimate([[0, 0], [1, 1]], [[2, 2], [2, 2]]).inverse()


def test_the_template_of_newton():
    template = Template.eyes_and_nose()
    assert (template.width, template.height) == (99, 134)
    left, right, nose = template.points
    assert left[1] == right[1]
    assert left[0] + right[0] == pytest.approx(98)
    assert nose[0] == pytest.approx(49)
    assert left[1] < nose[1] < 133


@pytest.mark.parametrize(("size", "name"), [((7, 134), "width"), ((99, 0), "height")])
def test_tiny_templates_are_refused(size, name):
    with pytest.raises(UsageError, match=f"The '{name}' parameter of Template"):
        Template.eyes_and_nose(*size)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("degrees", [0, 30, -145])
@pytest.mark.parametrize("scale", [0.4, 1.0, 2.5])
def test_points_of_a_turned_picture_come_to_lie_on_the_template(channels, degrees, scale):
    template = Template.eyes_and_nose(24, 32)
    turn = np.deg2rad(degrees)
    away = Similarity(scale * np.cos(turn), scale * np.sin(turn), 110, 110)
    still = np.zeros((220, 220, channels), dtype=np.float32)
    marked = away.apply(np.array(template.points))
    y, x = np.mgrid[:220, :220]
    for px, py in marked:
        still += np.exp(-((x - px) ** 2 + (y - py) ** 2) / (2 * scale**2))[..., None].astype(np.float32)
    face, transform = register(still.clip(0, 1), marked, template)
    assert face.shape == (32, 24, channels)
    assert face.dtype == np.float32
    assert np.allclose(transform.apply(marked), template.points, atol=1e-6)
    v, u = np.mgrid[:32, :24]
    for px, py in template.points:
        weight = face[..., 0] * (np.hypot(u - px, v - py) < 4)
        centre = np.array([(weight * u).sum(), (weight * v).sum()]) / weight.sum()
        assert np.abs(centre - [px, py]).max() < 0.35


def test_a_face_that_lies_on_the_template_already_is_left_alone():
    template = Template.eyes_and_nose(24, 32)
    image = drawn_faces(1, width=24, height=32).images[0]
    before = image.copy()
    face, transform = register(image, template.points, template)
    assert np.allclose(face, image, atol=1e-6)
    assert np.allclose(transform.matrix, [[1, 0, 0], [0, 1, 0]], atol=1e-9)
    assert np.array_equal(image, before)


def test_shrinking_smooths_first():
    """Stripes one pixel wide become grey, not an alias of themselves."""
    stripes = np.zeros((300, 300, 1), dtype=np.float32)
    stripes[:, ::2] = 1
    template = Template.eyes_and_nose(20, 28)
    face, _ = register(stripes, np.array(template.points) * 10 + 20, template)
    assert np.abs(face - 0.5).max() < 0.05


def test_outside_the_picture_its_border_goes_on():
    template = Template.eyes_and_nose(20, 28)
    face, _ = register(np.full((5, 5, 3), 0.7, dtype=np.float32), template.points, template)
    assert np.allclose(face, 0.7, atol=1e-6)


def test_points_that_shrink_a_picture_to_nothing_are_refused():
    with pytest.raises(InputError, match="too far apart"):
        register(np.zeros((20, 20, 1)), [(-1e9, 0.0), (1e9, 0.0), (0.0, 1e9)], Template.eyes_and_nose(32, 32))
