"""Restorers: what they are given, where their answer goes, and files that are none."""

import pickle

import numpy as np
import pytest

import ksame
from ksame.attacks import AttackData, Eigenfaces, OnRestored, Restorer, run_attack
from ksame.attacks.restorer import CROP, box_of_points, find_altered, square_of
from ksame.errors import InputError, ModelError
from ksame.faces.faceset import quantise
from ksame.models import detect
from restorers import write_restorer


@pytest.fixture
def negative(tmp_path) -> Restorer:
    return Restorer(write_restorer(tmp_path / "negative.onnx"))


@pytest.fixture(scope="module")
def portrait() -> np.ndarray:
    """Somebody who does not exist, 8-bit."""
    (face,) = quantise(ksame.synthetic(1, size=(240, 192), seed=8).images)
    return face


def test_crops_are_scaled_to_one_and_back(negative):
    crops = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 3), dtype=np.uint8)
    assert (negative.side, negative.name) == (64, "negative")
    for crop in crops:
        np.testing.assert_array_equal(negative.restore(crop), 255 - crop)


def test_the_square_of_a_face_is_restored_and_nothing_else(negative):
    picture = np.full((100, 120, 3), 200, dtype=np.uint8)
    before = picture.copy()
    restored = negative.restored(picture, (40.0, 30.0, 20.0, 20.0))  # a square of 38 pixels, from 31 to 69 across
    np.testing.assert_array_equal(picture, before)
    assert (restored[25:55, 35:65] == 55).all()
    assert (restored[:, :30] == 200).all()
    assert (restored[:, 71:] == 200).all()
    assert (restored[:20] == 200).all()


def test_restoring_keeps_every_pixel_in_its_place(tmp_path, portrait):
    """A network that changes nothing gives back the picture, but for the resampling."""
    same = Restorer(write_restorer(tmp_path / "same.onnx", 1.0, ("n", 3, 128, 128)))
    (face,) = detect(portrait)
    restored = same.restored(portrait, face.box)
    assert np.abs(restored.astype(int) - portrait).mean() < 3
    (again,) = detect(restored)
    np.testing.assert_allclose(again.landmarks, face.landmarks, atol=2)


def test_faces_at_the_edge_and_grey_pictures(negative):
    picture = np.full((50, 40), 0.25)
    restored = negative.restored(picture, (-10.0, -10.0, 30.0, 30.0))
    assert restored.shape == (50, 40, 3)
    assert (restored[0, 0] == 191).all()


def test_the_square_lies_round_the_middle_of_the_box():
    matrix = square_of((10.0, 20.0, 30.0, 50.0), 128)
    np.testing.assert_allclose(matrix[:, :2] @ [25, 45] + matrix[:, 2], [63.5, 63.5])
    assert 128 / matrix[0, 0] == pytest.approx(CROP * 40)


def test_the_box_of_points_is_the_detectors(portrait):
    (face,) = detect(portrait)
    box = box_of_points(face.landmarks)
    assert (box[2] + box[3]) / 2 == pytest.approx(face.side, rel=0.2)
    np.testing.assert_allclose(box[:2], face.box[:2], atol=0.2 * face.side)


def test_a_coarse_mosaic_is_found_by_whoever_is_patient():
    people = quantise(ksame.synthetic(4, size=(240, 192), seed=8).images)
    for face in people:
        blocks = face.reshape(10, 24, 8, 24, 3).mean(axis=(1, 3)).round().astype(np.uint8)
        mosaic = np.repeat(np.repeat(blocks, 24, axis=0), 24, axis=1)
        (true,) = detect(face)
        assert not detect(mosaic)
        np.testing.assert_allclose(find_altered(mosaic)[0].landmarks, true.landmarks, atol=0.4 * true.side)
    assert find_altered(np.full((90, 90, 3), 127, dtype=np.uint8)) == []


def test_a_recogniser_says_that_it_sees_restored_faces(faces, negative):
    plain, restored = Eigenfaces(), OnRestored(Eigenfaces(), negative)
    data = AttackData(faces, faces)
    result = run_attack("naive", restored, data)
    assert result.recogniser == "eigenfaces on faces restored by negative"
    assert result.params["restorer_sha256"] == negative.sha256
    np.testing.assert_array_equal(result.distances, run_attack("naive", plain, data).distances)
    assert restored.remarks(faces) == ()


def test_files_that_are_no_restorers(tmp_path):
    with pytest.raises(ModelError, match=r"absent\.onnx: there is no such file"):
        Restorer(tmp_path / "absent.onnx")
    (tmp_path / "text.onnx").write_text("hello")
    with pytest.raises(ModelError, match=r"text\.onnx: onnxruntime cannot load this network"):
        Restorer(tmp_path / "text.onnx")


@pytest.mark.parametrize(
    "shape", [("n", 1, 64, 64), ("n", 3, 64, 48), ("n", 3, "h", "w"), (4, 3, 64, 64), (3, 64, 64), ("n", 3, 8, 8)]
)
def test_inputs_of_another_shape(tmp_path, shape):
    file = write_restorer(tmp_path / "odd.onnx", shape=shape)
    with pytest.raises(ModelError, match=r"odd\.onnx: expected .* \(n, 3, side, side\) and one output, got 1 of the"):
        Restorer(file)


def test_answers_of_another_shape(tmp_path):
    file = write_restorer(tmp_path / "vector.onnx", answer=("n", 3, 1, 1))
    with pytest.raises(ModelError, match=r"vector\.onnx: expected an answer of .*, got the shape \(1, 3, 1, 1\)"):
        Restorer(file)


def test_answers_that_are_no_numbers(tmp_path):
    file = write_restorer(tmp_path / "nan.onnx", divide=True)
    with pytest.raises(ModelError, match=r"nan\.onnx: .*, got values that are no numbers"):
        Restorer(file)


def test_a_restorer_that_is_sent_to_another_process_is_loaded_there_once(negative):
    there, again = (pickle.loads(pickle.dumps(negative)) for _ in range(2))  # noqa: S301 -- our own
    assert there is again
    crop = np.full((64, 64, 3), 30, dtype=np.uint8)
    np.testing.assert_array_equal(there.restore(crop), negative.restore(crop))


def test_crops_of_another_size(negative):
    with pytest.raises(InputError, match=r"8-bit crops of shape \(64, 64, 3\). Got float64, \(32, 32, 3\)"):
        negative.restore(np.zeros((32, 32, 3)))
