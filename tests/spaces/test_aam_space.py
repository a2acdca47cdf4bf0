import numpy as np
import pytest
from aam_cases import made_up_faces

from ksame.errors import InputError
from ksame.faces import FaceSet
from ksame.spaces import FaceSpace
from ksame.spaces.aam import AamSpace


@pytest.fixture(scope="module")
def faces():
    images, landmarks = made_up_faces(10)
    return FaceSet(images, [f"p{i}" for i in range(10)], landmarks)


@pytest.fixture(scope="module")
def space(faces):
    return AamSpace(shape=None, texture=None, width=64).fit(faces)


def test_contract(faces, space):
    assert isinstance(space, FaceSpace)
    before = faces.images.copy()
    unfitted = AamSpace(width=32)
    fitted = unfitted.fit(faces)
    assert unfitted.model_ is None
    codes = fitted.encode(faces)
    assert codes.dtype == np.float64
    assert codes.shape[0] == 10
    images = fitted.decode(codes)
    assert images.shape == faces.images.shape
    assert np.isfinite(images).all()
    np.testing.assert_array_equal(codes, fitted.encode(faces))
    np.testing.assert_array_equal(images, fitted.decode(codes))
    np.testing.assert_array_equal(codes[[3, 1]], fitted.encode(faces.take([3, 1])))
    np.testing.assert_array_equal(faces.images, before)
    assert fitted.params() == {
        "shape": 0.98,
        "texture": 0.95,
        "width": 32,
        "zero_first_texture": False,
        "background": 0.5,
    }


def test_equal_codes_give_equal_images(space, faces):
    code = space.encode(faces).mean(axis=0)
    images = space.decode(np.stack([code] * 3))
    assert (images == images[0]).all()


def test_shape_and_texture_count_alike(space, faces):
    codes = space.encode(faces)
    n_shape = len(space.model.shape_modes)
    spread = codes.var(axis=0, ddof=1)
    assert spread[:n_shape].sum() == pytest.approx(spread[n_shape:].sum(), rel=0.01)


def test_decoding_then_encoding_gives_the_code_back(space, faces):
    codes = space.encode(faces)[:4]
    n_shape = len(space.model.shape_modes)
    points = np.stack([space.pose_.apply(space.model.shape(c[:n_shape] / space.weight)) for c in codes])
    again = space.encode(FaceSet(space.decode(codes).clip(0, 1), list("abcd"), points))
    np.testing.assert_allclose(again[:, :n_shape], codes[:, :n_shape], atol=1e-6)
    error = np.linalg.norm(again - codes, axis=1) / np.linalg.norm(codes, axis=1)
    assert error.max() < 0.1


def test_faces_are_decoded_in_one_place_on_a_plain_ground(space, faces):
    images = space.decode(space.encode(faces))
    border = np.concatenate([images[:, :4].ravel(), images[:, -4:].ravel()])
    assert (border == 0.5).all()
    first = space.encode(faces.take([0]))
    moved = FaceSet(np.roll(faces.images[:1], 5, axis=2), ["a"], faces.landmarks[:1] + np.array([5.0, 0.0]))
    np.testing.assert_allclose(space.encode(moved), first, atol=2e-2 * np.abs(first).max())


def test_first_texture_parameter_can_be_left_out(faces):
    space = AamSpace(width=48, zero_first_texture=True).fit(faces)
    codes = space.encode(faces)
    first = len(space.model.shape_modes)
    assert (codes[:, first] == 0).all()
    assert (codes[:, first + 1] != 0).any()
    changed = codes.copy()
    changed[:, first] = 5.0
    np.testing.assert_array_equal(space.decode(changed), space.decode(codes))


def test_what_it_cannot_do_is_said(space, faces):
    with pytest.raises(InputError, match="needs faces with landmarks"):
        AamSpace().fit(FaceSet(faces.images, faces.subjects))
    with pytest.raises(RuntimeError, match="not fitted"):
        AamSpace().encode(faces)
    with pytest.raises(InputError, match="Expected codes of shape"):
        space.decode(np.zeros((2, 3)))
