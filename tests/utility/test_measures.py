"""Meshes, diversity and the privacy operating characteristic by hand."""

from dataclasses import replace

import numpy as np
import pytest

from ksame.errors import InputError, UsageError
from ksame.models import Mesh, Pose
from ksame.utility import PocPoint, diversity, mean_mesh_error, mesh_error, poc


@pytest.fixture
def mesh() -> Mesh:
    points = np.zeros((478, 3))
    points[[33, 133], 0], points[[362, 263], 0] = (10, 20), (50, 60)
    return Mesh(points, 0.9, np.zeros(52), Pose(5.0, -2.0, 178.0))


def test_what_moves_is_measured_in_eye_distances(mesh):
    moved = Mesh(mesh.points + np.array([4.0, 0.0, 0.0]), 0.9, np.full(52, 0.25), Pose(9.0, -2.0, -178.0))
    error = mesh_error(mesh, moved)
    assert error.landmarks == pytest.approx(4 / 40)
    assert (error.yaw, error.pitch, error.roll, error.blendshapes) == (4.0, 0.0, 4.0, 0.25)


def test_places_in_pictures_of_two_sizes_are_not_compared(mesh):
    error = mesh_error(mesh, mesh, comparable=False)
    assert error.landmarks is None
    assert mean_mesh_error([error, replace(error, landmarks=0.5)]).landmarks == 0.5
    assert mean_mesh_error([error]).landmarks is None


def test_no_meshes():
    with pytest.raises(InputError, match="no pair of meshes"):
        mean_mesh_error([])


def test_repeated_faces_are_left_out_of_the_deviation_only():
    """Two pairs of equal faces at distance 5, as k-Same makes: four distances of 5, two of 0."""
    found = diversity(np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 4.0], [3.0, 4.0]]), bins=5)
    assert (found.zeros, found.smallest, found.largest, found.std) == (2, 0.0, 5.0, 0.0)
    assert found.mean == pytest.approx(20 / 6)
    assert found.counts == (2, 0, 0, 0, 4)


def test_histograms_share_an_edge_and_count_every_pair():
    codes = np.random.default_rng(0).normal(size=(20, 3))
    assert sum(diversity(codes, edge=1.0).counts) == 190


def test_one_face_all_over_is_no_diversity():
    found = diversity(np.ones((5, 2)))
    assert (found.zeros, found.largest, found.std) == (10, 0.0, 0.0)


@pytest.mark.parametrize(
    ("codes", "bins", "error"), [(np.ones((1, 2)), 4, InputError), (np.ones((3, 2)), 0, UsageError)]
)
def test_diversity_refuses(codes, bins, error):
    with pytest.raises(error):
        diversity(codes, bins=bins)


def test_area_is_the_best_use_at_a_privacy_or_more():
    blur = [PocPoint("blur", "1", 0.2, 0.9), PocPoint("blur", "5", 0.6, 0.4), PocPoint("blur", "3", 0.5, 0.3)]
    (curve,) = poc(blur)
    assert [point.parameter for point in curve.points] == ["1", "3", "5"]
    assert curve.area == pytest.approx(0.2 * 0.9 + 0.4 * 0.4)


def test_more_strengths_can_only_gain_and_the_best_method_comes_first():
    few = [PocPoint("blur", "1", 0.2, 0.9), PocPoint("k-same", "5", 0.8, 0.8)]
    more = [*few, PocPoint("blur", "4", 0.5, 0.2)]
    assert [curve.method for curve in poc(more)] == ["k-same", "blur"]
    area = {curve.method: curve.area for curve in poc(few)}
    assert all(curve.area >= area[curve.method] for curve in poc(more))
    assert poc([PocPoint("ideal", "", 1.0, 1.0)])[0].area == 1.0


def test_a_share_is_a_share():
    with pytest.raises(UsageError, match="'utility' parameter of PocPoint"):
        PocPoint("blur", "1", 0.5, 1.2)
