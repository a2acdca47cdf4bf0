import numpy as np
import pytest
from aam_cases import made_up_faces

from ksame.errors import InputError, UsageError
from ksame.geometry import Similarity
from ksame.spaces.aam import Params, build


@pytest.fixture(scope="module")
def faces():
    return made_up_faces()


@pytest.fixture(scope="module")
def full(faces):
    return build(*faces, shape=None, texture=None, width=64)


def test_modes_are_orthonormal_and_ordered(full):
    for modes, variances in (
        (full.shape_modes, full.shape_variances),
        (full.texture_modes, full.texture_variances),
    ):
        flat = modes.reshape(len(modes), -1).astype(float)
        np.testing.assert_allclose(flat @ flat.T, np.eye(len(flat)), atol=1e-4)
        assert (np.diff(variances) <= 1e-9).all()
    assert full.texture_variances.sum() == pytest.approx(full.texture_total, rel=1e-4)


def test_complete_modes_reconstruct_exactly(faces, full):
    images, landmarks = faces
    for image, points in zip(images, landmarks, strict=True):
        params = full.params_from_landmarks(image, points)
        texture, shape = full.texture(params.texture), full.points(params)
        np.testing.assert_allclose(shape, points, atol=1e-6)
        np.testing.assert_allclose(texture, full.warp.sample(image, points), atol=1e-4)


def test_parameters_come_back_from_their_own_points(full):
    rng = np.random.default_rng(1)
    shape = rng.normal(size=len(full.shape_variances)) * np.sqrt(full.shape_variances)
    pose = Similarity(1.3, 0.4, 20.0, -7.0)
    points = full.points(Params(shape, np.zeros(len(full.texture_modes)), pose))
    found, where = full.shape_params(points)
    np.testing.assert_allclose(found, shape, atol=1e-9)
    np.testing.assert_allclose(where.matrix, pose.matrix, atol=1e-9)


def test_shape_parameters_do_not_see_the_pose(faces, full):
    points = faces[1][0]
    first, pose = full.shape_params(points)
    move = Similarity(0.3, -0.8, 5.0, 11.0)
    second, moved = full.shape_params(move.apply(points))
    np.testing.assert_allclose(first, second, atol=1e-9)
    np.testing.assert_allclose(moved.apply(full.mean_shape), move.apply(pose.apply(full.mean_shape)), atol=1e-9)


def test_share_and_number_of_modes(faces):
    model = build(*faces, shape=2, texture=0.8, width=48)
    assert len(model.shape_modes) == 2
    assert model.texture_variances.sum() >= 0.8 * model.texture_total
    assert model.texture_variances[:-1].sum() < 0.8 * model.texture_total
    assert model.size[1] == 48
    small = model.truncated(1, 0)
    assert small.shape_modes.shape[0] == 1
    np.testing.assert_array_equal(small.texture(np.zeros(0)), model.mean_texture)


def test_render_paints_the_face_on_a_plain_ground(faces, full):
    image, points = faces[0][0], faces[1][0]
    params = full.params_from_landmarks(image, points)
    size = image.shape[:2]
    picture = full.render(params, size, background=0.25)
    inside = full.warp.from_base(full.mean_texture, points, size)[1]
    assert np.abs(picture - image)[inside].mean() < 0.01
    assert (picture[~inside] == 0.25).all()


def test_eight_bits_and_floats_give_the_same_model_input(faces, full):
    image, points = faces[0][0], faces[1][0]
    bytes_ = np.rint(image * 255).astype(np.uint8)
    exact = full.params_from_landmarks((bytes_ / 255).astype(np.float32), points)
    np.testing.assert_allclose(full.params_from_landmarks(bytes_, points).texture, exact.texture, atol=1e-4)


def test_grey_faces(faces):
    grey = faces[0].mean(axis=3, keepdims=True)
    model = build(grey, faces[1], width=48)
    assert model.channels == 1
    params = model.params_from_landmarks(grey[0], faces[1][0])
    assert model.render(params, (130, 120)).shape == (130, 120, 1)


def test_three_points_are_enough(faces):
    images, landmarks = faces
    model = build(images, landmarks[:, [0, 4, 27]], shape=None, width=32)
    assert len(model.triangles) == 1
    points = landmarks[3][[0, 4, 27]]
    np.testing.assert_allclose(model.points(model.params_from_landmarks(images[3], points)), points, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"landmarks": np.zeros((3, 30, 2))}, InputError, "Expected landmarks of shape"),
        ({"width": 4}, UsageError, "'width' parameter of build"),
        ({"shape": 99}, UsageError, "n_components"),
        ({"texture": 1.5}, UsageError, "n_components"),
        ({"images": [np.zeros((5, 5))] * 12}, InputError, "channels"),
        (
            {"landmarks": np.stack([np.arange(30.0), np.zeros(30)], axis=1)[None].repeat(12, 0)},
            InputError,
            "line",
        ),
    ],
)
def test_bad_input(faces, change, error, message):
    arguments = {"images": faces[0], "landmarks": faces[1], "width": 32, **change}
    images, landmarks = arguments.pop("images"), arguments.pop("landmarks")
    with pytest.raises(error, match=message):
        build(images, landmarks, **arguments)


def test_wrong_landmarks_or_channels_for_the_model(faces, full):
    with pytest.raises(InputError, match="Expected landmarks of shape"):
        full.shape_params(faces[1][0][:5])
    with pytest.raises(InputError, match="Expected an image"):
        full.params_from_landmarks(faces[0][0][..., :1], faces[1][0])
    with pytest.raises(UsageError, match="texture"):
        full.truncated(texture=1000)
