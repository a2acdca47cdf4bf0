"""The face model that comes with ksame."""

import io
from importlib.resources import files

import numpy as np
import pytest
from tools.face_model_training import mirror_index, mirrored

from ksame.errors import InputError
from ksame.spaces.facemodel import FaceModel, face_model
from ksame.spaces.facemodel.geometry import align, half_rows, with_forehead
from ksame.spaces.facemodel.labels import age_bands, expression, genders, skin_tones


@pytest.fixture(scope="module")
def model():
    return face_model()


def test_the_shipped_file_is_small_and_holds_no_pickles():
    file = files("ksame.data") / "face_model.npz"
    content = file.read_bytes()
    assert len(content) <= 12e6
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)


def test_the_file_holds_no_row_for_each_person(model):
    """Every array is a mean, a mode, a regression or geometry; none is as long as the training set."""
    with np.load(io.BytesIO((files("ksame.data") / "face_model.npz").read_bytes())) as arrays:
        assert not any(400 <= side <= 477 or 479 <= side <= 646 for a in arrays.values() for side in a.shape)
    assert model.n_codes < 400 / 4


def test_it_is_read_once_and_cannot_be_changed(model):
    assert face_model() is model
    with pytest.raises(ValueError, match="read-only"):
        model.base[0] = 0


def test_the_mean_code_is_the_mean_face(model):
    zero = np.zeros((1, model.n_codes))
    assert np.array_equal(model.shapes(zero)[0], model.base)
    image = model.warp.to_base(np.zeros((*model.size, 3)), with_forehead(model.base)[:, :2])
    image[model.warp.mask] = model.textures(zero)[0]
    assert np.allclose(image, image[:, ::-1])
    assert 0.2 < image[model.evener.cheeks].mean() < 0.9


def test_codes_survive_painting_and_encoding(model):
    code = np.random.default_rng(0).normal(size=(1, model.n_codes))
    turn = np.array([[0.96, 0.28, 0.0], [-0.28, 0.96, 0.0], [0.0, 0.0, 1.0]])
    mesh = 3.0 * model.shapes(code)[0] @ turn + [40.0, -7.0, 2.0]
    again = model.encode(mesh, model.textures(code)[0])
    texture = slice(model.n_shape, None)
    assert np.allclose(again[texture], code[0, texture], atol=0.05)
    assert np.corrcoef(again[: model.n_shape], code[0, : model.n_shape])[0, 1] > 0.9


def test_modes_are_symmetric_or_antisymmetric(model):
    pairs = mirror_index(model.base - [model.base[:, 0].mean(), 0, 0])
    assert np.array_equal(pairs[pairs], np.arange(478))
    parity = model.parity[: model.n_shape, None, None]
    assert np.allclose(mirrored(model.shape_modes, pairs), parity * model.shape_modes, atol=0.02)


def test_alignment_undoes_a_similarity(model):
    angle = 0.4
    turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    aligned, rotations = align((2.5 * model.base @ turn + 9.0)[None], model.base)
    assert np.allclose(aligned[0], model.base)
    assert np.allclose(rotations[0], turn.T)


def test_the_forehead_follows_the_mesh_linearly(model):
    a, b = model.base, model.base[::-1]
    assert np.allclose(with_forehead(a + b), with_forehead(a) + with_forehead(b))
    assert with_forehead(a)[478:, 1].min() < a[:, 1].min() - 10


def test_half_rows_number_a_mask_by_hand():
    mask = np.array([[0, 1, 1, 0], [1, 1, 1, 1]], dtype=bool)
    rows, side = half_rows(mask)
    assert rows.tolist() == [0, 0, 1, 2, 2, 1]
    assert side.tolist() == [1, -1, 1, 1, -1, -1]


@pytest.mark.parametrize(
    ("labels", "read", "expected"),
    [
        ({"woman": 1.0}, genders, "F"),
        ({"woman": 0.0}, genders, "M"),
        ({"born": 1992.0}, age_bands, "under 40"),
        ({"born": 1935.0}, age_bands, "60 and over"),
        ({"tone": -0.9}, skin_tones, "dark"),
        ({"tone": -0.4}, skin_tones, "light"),
    ],
)
def test_labels_put_on_can_be_read_back(model, labels, read, expected):
    assert read(model, model.labelled(labels)[None]).tolist() == [expected]


def test_a_smile_widens_the_mouth_and_lifts_its_corners(model):
    rest, smiling = model.shapes(np.stack([model.labelled({"smile": 0.2}), model.labelled({"smile": 0.95})]))
    assert np.ptp(smiling[[61, 291], 0]) > 1.05 * np.ptp(rest[[61, 291], 0])
    assert (smiling[[61, 291], 1] - smiling[13, 1]).mean() < (rest[[61, 291], 1] - rest[13, 1]).mean()


def test_an_unknown_attribute_is_named(model):
    with pytest.raises(InputError, match="Unknown attribute 'beauty'"):
        model.direction("beauty")


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({}, "neutral"),
        (
            {"mouthSmileLeft": 0.9, "mouthSmileRight": 0.9, "eyeSquintLeft": 0.9, "eyeSquintRight": 0.9},
            "smile",
        ),
        ({"jawOpen": 0.6, "browInnerUp": 0.5}, "surprise"),
        ({"eyeSquintLeft": 0.8, "eyeSquintRight": 0.7, "eyeBlinkLeft": 0.3, "eyeBlinkRight": 0.3}, "squint"),
        (
            {"browDownLeft": 0.6, "browDownRight": 0.6, "eyeSquintLeft": 0.6, "eyeSquintRight": 0.6},
            "disgust",
        ),
    ],
)
def test_expressions_by_table(weights, expected):
    assert expression(weights) == expected


def test_side_light_is_taken_away(model):
    face = model.warp.to_base(np.zeros((*model.size, 3)), with_forehead(model.base)[:, :2])
    face[model.warp.mask] = model.textures(np.zeros((1, model.n_codes)))[0]
    ramp = np.linspace(0.75, 1.3, model.size[1], dtype=np.float32)[None, :, None]
    evened = model.evener.without_side_light(face * ramp)
    left, right = (part.mean() for part in (evened[:, :80][face[:, :80] > 0], evened[:, 96:][face[:, 96:] > 0]))
    assert abs(left / right - 1) < 0.03


def test_hair_on_the_forehead_is_replaced_by_skin(model):
    face = model.warp.to_base(np.zeros((*model.size, 3)), with_forehead(model.base)[:, :2])
    face[model.warp.mask] = model.textures(np.zeros((1, model.n_codes)))[0]
    fringe = face.copy()
    fringe[:30] *= 0.2
    bare, share = model.evener.without_hair(fringe, face)
    assert 0.1 < share < 0.7
    assert abs(bare - face)[model.warp.mask].mean() < 0.01


def test_a_model_is_what_it_was_after_saving(model):
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    again = FaceModel.load(file)
    code = np.random.default_rng(1).normal(size=(2, model.n_codes))
    assert np.array_equal(again.shapes(code), model.shapes(code))
    assert np.array_equal(again.textures(code), model.textures(code))
    assert again.attributes == model.attributes


@pytest.mark.parametrize("content", [b"", b"not a model", b"PK\x03\x04 cut off"])
def test_a_broken_file_is_refused(content):
    with pytest.raises(InputError, match="not a face model"):
        FaceModel.load(io.BytesIO(content))


def test_another_kind_of_file_is_refused():
    file = io.BytesIO()
    np.savez(file, format=np.array("something else"), version=np.array(1))
    file.seek(0)
    with pytest.raises(InputError, match="not ksame-face-model version 1"):
        FaceModel.load(file)
