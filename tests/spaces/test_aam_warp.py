import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import procrustes

from ksame.errors import InputError
from ksame.spaces.aam import PiecewiseAffine, generalised_procrustes, triangulate
from ksame.spaces.aam.raster import Spans, signed_areas

SQUARE = np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 10.0], [0.0, 10.0]])
CROSSED = np.array([[0, 1, 2], [0, 2, 3]])


def turned(points, angle, scale, shift):
    matrix = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return points @ matrix.T + shift


# Procrustes


def test_two_shapes_agree_with_scipy():
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=(2, 9, 2))
    second = first + 0.3 * second
    aligned, mean = generalised_procrustes(np.stack([turned(mean_of([first, second]), 0, 1, 0), second]))
    reference, moved, disparity = procrustes(mean, second)
    ours = aligned[1] / np.linalg.norm(aligned[1])
    np.testing.assert_allclose(mean, reference, atol=1e-9)
    np.testing.assert_allclose(ours, moved / np.linalg.norm(moved), atol=1e-9)
    assert 1 - (ours * mean).sum() ** 2 == pytest.approx(disparity)


def mean_of(shapes):
    return np.mean(shapes, axis=0)


@settings(max_examples=25, deadline=None)
@given(st.floats(-1.2, 1.2), st.floats(0.2, 5), st.floats(-50, 50), st.integers(3, 12), st.integers(0, 2**16))
def test_alignment_forgets_pose(angle, scale, shift, n_points, seed):
    rng = np.random.default_rng(seed)
    shapes = rng.normal(size=(1, n_points, 2)) + 0.1 * rng.normal(size=(4, n_points, 2))
    posed = np.stack([turned(s, angle * i / 4, scale ** (i / 4), shift * i) for i, s in enumerate(shapes)])
    aligned, mean = generalised_procrustes(shapes)
    again, other = generalised_procrustes(posed)
    residue = np.linalg.norm(aligned - mean), np.linalg.norm(again - other)
    assert residue[0] == pytest.approx(residue[1], abs=1e-6)
    np.testing.assert_allclose(aligned.mean(axis=0), mean, atol=1e-9)


def test_what_is_left_holds_no_similarity():
    rng = np.random.default_rng(0)
    shapes = rng.normal(size=(1, 7, 2)) + 0.2 * rng.normal(size=(6, 7, 2))
    aligned, mean = generalised_procrustes(shapes)
    rest = (aligned - mean).reshape(6, -1)
    quarter = np.stack([-mean[:, 1], mean[:, 0]], axis=1)
    for direction in (mean, quarter, np.tile([1.0, 0.0], (7, 1)), np.tile([0.0, 1.0], (7, 1))):
        np.testing.assert_allclose(rest @ direction.ravel(), 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (np.zeros((2, 2, 2)), "at least 3 points"),
        (np.zeros((0, 4, 2)), "at least 3 points"),
        (np.zeros((2, 4, 3)), "at least 3 points"),
        (np.full((2, 4, 2), np.nan), "finite"),
        (np.ones((2, 4, 2)), "shape 0 are in one place"),
    ],
)
def test_bad_shapes_are_named(shapes, message):
    with pytest.raises(InputError, match=message):
        generalised_procrustes(shapes)


# Triangles


def test_triangles_turn_the_same_way_and_fill_the_hull():
    points = np.random.default_rng(1).uniform(0, 100, (40, 2))
    areas = signed_areas(points, triangulate(points))
    hull = cv2.convexHull(points.astype(np.float32))
    assert (areas > 0).all()
    assert areas.sum() / 2 == pytest.approx(cv2.contourArea(hull), rel=1e-5)


def test_points_on_a_line_cannot_be_triangulated():
    with pytest.raises(InputError, match="on one line"):
        triangulate(np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-5, 25), min_size=6, max_size=6))
def test_spans_hold_exactly_the_pixels_inside(numbers):
    points = np.array(numbers).reshape(3, 2)
    triangle = np.array([[0, 1, 2]])
    area = signed_areas(points, triangle)[0]
    if abs(area) < 1e-3:
        return
    spans = Spans.of(points, triangle, (20, 18), np.array([0]))
    yy, xx = np.mgrid[:20, :18]
    pixels = np.stack([xx.ravel(), yy.ravel()], axis=1).astype(float)
    sides = []
    for i in range(3):
        a, b = points[i], points[(i + 1) % 3]
        sides.append(((b - a)[0] * (pixels - a)[:, 1] - (b - a)[1] * (pixels - a)[:, 0]) / area)
    depth = np.min(sides, axis=0)
    drawn = np.zeros(len(pixels), dtype=bool)
    drawn[spans.pixels] = True
    assert drawn[depth > 1e-6].all()
    assert not drawn[depth < -1e-6].any()


# Warps


def test_needles_along_the_hull_are_covered_by_the_surface():
    base = np.array([[0.0, 0], [5, 0], [14, 0], [14, 10], [5, 10], [0, 10], [-0.3, 5]])
    needle = [0, 5, 6]
    warp = PiecewiseAffine(base, np.array([[0, 1, 4], [0, 4, 5], [1, 2, 3], [1, 3, 4], needle]), (11, 15))
    turned = base.copy()
    turned[[1, 4], 0] = 2.0
    turned[needle, 0] = 6.0, 6.0, 4.0  # behind the rest; the needle has become wide, as the others have not
    _, (places,) = warp.locate(turned, (11, 15), base)
    np.testing.assert_allclose(places[0, 5, 2:], 5 + np.arange(13.0) * 9 / 12, atol=1e-5)


def test_warp_by_hand():
    warp = PiecewiseAffine(SQUARE, CROSSED, (11, 11))
    assert warp.n_pixels == 121
    ramp = np.tile(np.arange(40, dtype=np.float32)[None, :, None], (40, 1, 1))
    sampled = warp.to_base(ramp, SQUARE * 2 + 3)[..., 0]
    # OpenCV rounds places to 1/32 pixel, and this photograph, twice as fine as the base, is averaged first.
    np.testing.assert_allclose(sampled, np.tile(3 + 2 * np.arange(11.0), (11, 1)), atol=1 / 32)


def test_only_the_moved_triangle_changes():
    warp = PiecewiseAffine(SQUARE, CROSSED, (11, 11))
    ramp = np.tile(np.arange(40, dtype=np.float32)[None, :, None], (40, 1, 1))
    moved = SQUARE + 5
    moved[1, 0] += 4  # the corner of the upper right triangle alone
    difference = warp.to_base(ramp, moved)[..., 0] - warp.to_base(ramp, SQUARE + 5)[..., 0]
    np.testing.assert_allclose(np.tril(difference), 0.0, atol=1e-4)
    assert difference[0, 10] == pytest.approx(4.0)
    assert difference[0, 5] == pytest.approx(2.0)


def smooth_picture(size, seed):
    noise = np.random.default_rng(seed).uniform(0, 1, (*size, 3)).astype(np.float32)
    picture = cv2.GaussianBlur(noise, (0, 0), 5)
    return (picture - picture.min()) / np.ptp(picture)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**16), st.integers(3, 60))
def test_there_and_back(seed, n_points):
    rng = np.random.default_rng(seed)
    base = rng.uniform(3, 90, (n_points, 2))
    base[:3] = [[3, 3], [90, 5], [45, 88]]
    warp = PiecewiseAffine(base, triangulate(base), (96, 96))
    target = turned(base, 0.1, 1.1, [8.0, 6.0])
    picture = smooth_picture((130, 130), seed)
    painted, covered = warp.from_base(warp.sample(picture, target), target, (130, 130))
    assert np.abs(painted - picture)[covered].mean() < 0.01
    assert (painted[~covered] == 0).all()
    again = warp.sample(painted + picture * ~covered[..., None], target)
    assert np.abs(again - warp.sample(picture, target)).mean() < 0.01


def test_painting_leaves_no_gap_between_triangles():
    rng = np.random.default_rng(5)
    base = rng.uniform(0, 100, (200, 2))
    base[:4] = np.array([[0, 0], [100, 0], [100, 100], [0, 100]])
    warp = PiecewiseAffine(base, triangulate(base), (101, 101))
    assert warp.mask.all()
    target = base * 1.37 + 0.13
    _, covered = warp.from_base(np.ones((warp.n_pixels, 1)), target, (140, 140))
    assert covered[1:137, 1:137].all()


def test_painting_outside_the_picture_is_cut_off():
    warp = PiecewiseAffine(SQUARE, CROSSED, (11, 11))
    texture = np.ones((121, 3))
    _, covered = warp.from_base(texture, SQUARE - 5, (20, 20))
    assert covered.sum() == 36
    _, covered = warp.from_base(texture, SQUARE + 500, (20, 20))
    assert not covered.any()
    _, covered = warp.from_base(texture, SQUARE - 500, (20, 20))
    assert not covered.any()


def test_a_folded_triangle_lies_behind():
    base = np.array([[0.0, 0.0], [20.0, 0.0], [20.0, 20.0], [0.0, 20.0]])
    warp = PiecewiseAffine(base, CROSSED, (21, 21))
    upper = np.triu(np.ones((21, 21), dtype=np.float32), 1)[warp.mask][:, None]
    folded = base.copy()
    folded[1] = [
        2.0,
        18.0,
    ]  # the upper right triangle (painted 1) now lies flipped on the lower left one (painted 0)
    painted, covered = warp.from_base(upper, folded, (21, 21))
    assert covered[15, 5]
    assert painted[15, 5, 0] < 0.01
    assert np.isfinite(painted).all()


def test_collapsed_triangles_paint_nothing():
    warp = PiecewiseAffine(SQUARE, CROSSED, (11, 11))
    line = np.array([[0.0, 0.0], [5.0, 0.0], [10.0, 0.0], [10.0, 10.0]])
    painted, covered = warp.from_base(np.ones((121, 1)), line, (20, 20))
    assert np.isfinite(painted).all()
    assert covered.sum() == pytest.approx(66, abs=2)


def test_a_fine_photograph_is_averaged_before_it_is_sampled():
    warp = PiecewiseAffine(SQUARE, CROSSED, (11, 11))
    checks = (np.indices((400, 400)).sum(axis=0) % 2).astype(np.float32)[..., None]
    assert np.ptp(warp.sample(checks, SQUARE * 30 + 20)) < 0.05
    picture, _ = PiecewiseAffine(SQUARE * 30, CROSSED, (301, 301)).from_base(
        checks[:301, :301].reshape(-1, 1), SQUARE * 2 + 3, (40, 40)
    )
    assert np.ptp(picture[6:20, 6:20]) < 0.1


@pytest.mark.parametrize("triangles", [np.zeros((0, 3), int), np.array([[0, 1]]), np.array([[0, 1, 4]])])
def test_bad_triangles(triangles):
    with pytest.raises(InputError, match="Triangles must"):
        PiecewiseAffine(SQUARE, triangles, (11, 11))


@pytest.mark.parametrize("opening", [0.0, 3.0, 22.0])
def test_an_open_mouth_survives_and_a_closed_one_leaves_no_seam(opening):
    """The base has a mouth three pixels high; faces have it closed, alike, or wide open and dark inside."""
    corners = np.array([[0.0, 0.0], [60.0, 0.0], [60.0, 60.0], [0.0, 60.0]])

    def face(gap):
        across = np.linspace(15, 45, 7)
        arch = gap / 2 * np.sqrt(1 - ((across - 30) / 15.0) ** 2)
        lips = [np.stack([across, 36 + side * arch], axis=1) for side in (-1, 1)]
        return np.concatenate([corners, lips[0], lips[1][1:-1]])

    base, target = face(3.0), face(opening)
    warp = PiecewiseAffine(base, triangulate(base), (61, 61))
    picture = np.full((61, 61, 1), 0.8, dtype=np.float32)
    mouth = np.concatenate([target[4:11], target[11:][::-1]])
    if opening:
        cv2.fillPoly(picture, [np.rint(mouth).astype(np.int32)], 0.1)
    painted, covered = warp.from_base(warp.sample(picture, target), target, (61, 61))
    assert covered.all()
    assert np.abs(painted - picture).mean() < 0.02
    if opening == 22.0:
        assert painted[36, 30, 0] < 0.2
    if opening == 0.0:
        assert painted.min() > 0.79
