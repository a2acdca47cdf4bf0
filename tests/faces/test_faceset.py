import dataclasses

import numpy as np
import pytest

from drawn import drawn_faces
from ksame import FaceSet
from ksame.errors import InputError
from ksame.faces.faceset import quantise, subject_means
from ksame.faces.landmarks import eyes_and_nose

TWO = np.linspace(0.0, 1.0, 2 * 4 * 3).reshape(2, 4, 3, 1)


def some(**changes):
    return FaceSet(**{"images": TWO, "subjects": ["ann", "bob"], **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"images": np.zeros((2, 4, 3))}, r"shape \(n_faces, height, width, 1 or 3\).*Got \(2, 4, 3\)"),
        ({"images": np.zeros((2, 4, 3, 2))}, r"Got \(2, 4, 3, 2\)"),
        ({"images": np.zeros((2, 4, 3, 4))}, r"Got \(2, 4, 3, 4\)"),
        ({"images": np.zeros((0, 4, 3, 1))}, "at least one face"),
        ({"images": np.zeros((2, 0, 3, 1))}, "one pixel"),
        ({"images": np.where(np.arange(2)[:, None, None, None] == 1, np.nan, TWO)}, "Images 1 hold NaN"),
        ({"images": np.where(np.arange(2)[:, None, None, None] == 0, np.inf, TWO)}, "Images 0 hold NaN or infinity"),
        ({"images": TWO * 255}, "from 0 to 255; divide by 255"),
        ({"images": TWO - 0.5}, "from -0.5 to 0.5"),
        ({"images": np.full((2, 4, 3, 1), -1, dtype=np.int16)}, "from -1 to -1"),
        ({"subjects": ["ann"]}, "Expected 2 subjects.*Got 1"),
        ({"names": ["a.png"]}, "Expected 2 names.*Got 1"),
        ({"attributes": {"gender": ["F"]}}, "Expected 2 labels 'gender', one for each image. Got 1"),
        ({"landmarks": np.zeros((2, 3))}, r"Landmarks must have shape \(2, n_points, 2 or 3\). Got \(2, 3\)"),
        ({"landmarks": np.zeros((1, 3, 2))}, r"Got \(1, 3, 2\)"),
        ({"landmarks": np.zeros((2, 2, 4))}, r"Got \(2, 2, 4\)"),
        ({"landmarks": np.full((2, 3, 2), np.nan)}, "Landmarks must be finite"),
    ],
)
def test_what_cannot_be_a_face_set_is_refused_with_what_was_found(changes, words):
    with pytest.raises(InputError, match=words):
        some(**changes)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", ">u2"])
def test_integers_are_scaled_by_their_type(dtype):
    top = np.iinfo(dtype).max
    faces = some(images=np.array([0, top], dtype=dtype).reshape(2, 1, 1, 1))
    assert faces.images.dtype == np.float32
    assert faces.images.ravel().tolist() == [0.0, 1.0]


def test_everything_is_read_only():
    faces = some(landmarks=np.zeros((2, 3, 2)), attributes={"gender": ["F", "M"]})
    for array in (faces.images, faces.subjects, faces.landmarks, faces.attributes["gender"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    with pytest.raises(TypeError):
        faces.attributes["age"] = ["1", "2"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        faces.images = TWO


def test_the_callers_arrays_stay_as_they_are_and_writeable():
    images, subjects, landmarks = TWO.astype(np.float32), np.array(["ann", "bob"]), np.ones((2, 3, 2))
    gender = np.array(["F", "M"])
    faces = FaceSet(images, subjects, landmarks, {"gender": gender})
    images[:] = 0
    subjects[:] = "x"
    landmarks[:] = 9
    gender[:] = "x"
    assert np.array_equal(faces.images, TWO.astype(np.float32))
    assert faces.subjects.tolist() == ["ann", "bob"]
    assert faces.landmarks.max() == 1
    assert faces.attribute("gender").tolist() == ["F", "M"]


def test_subjects_labels_and_names_are_strings():
    faces = some(subjects=[7, 7], attributes={"age": [30, 31]})
    assert faces.subjects.tolist() == ["7", "7"]
    assert faces.attribute("age").tolist() == ["30", "31"]
    assert faces.names == ("face 1", "face 2")
    assert (faces.n_subjects, faces.person_specific, len(faces)) == (1, False, 2)


@pytest.mark.parametrize(
    ("indices", "expected"), [([3, 0], [3, 0]), (np.arange(12) % 5 == 0, [0, 5, 10]), (np.array([-1]), [11])]
)
def test_take_keeps_everything_together(twelve, indices, expected):
    part = twelve.take(indices)
    assert part.names == tuple(twelve.names[i] for i in expected)
    for mine, whole in (
        (part.images, twelve.images),
        (part.subjects, twelve.subjects),
        (part.landmarks, twelve.landmarks),
        (part.attribute("gender"), twelve.attribute("gender")),
    ):
        assert np.array_equal(mine, whole[expected])


def test_taking_nobody_is_refused(twelve):
    with pytest.raises(InputError, match="at least one face"):
        twelve.take(np.zeros(12, dtype=bool))


def test_other_images_keep_subjects_and_labels(twelve):
    darker = twelve.with_images(twelve.images / 2)
    assert np.array_equal(darker.images, twelve.images / 2)
    assert darker.names == twelve.names
    assert np.array_equal(darker.subjects, twelve.subjects)


def test_a_missing_label_is_an_error_that_lists_the_labels_there_are(twelve):
    with pytest.raises(InputError, match=r"no label 'age' \(labels they carry: expression, gender\)"):
        twelve.attribute("age")
    with pytest.raises(InputError, match="labels they carry: none"):
        some().attribute("age")


def test_constant_images_are_named():
    plain = some(images=np.stack([TWO[0], np.full((4, 3, 1), 0.5)]), names=["a.png", "b.png"])
    with pytest.raises(InputError, match=r"Constant images show no face: b\.png\."):
        plain.require_varied()
    some().require_varied()


def test_of_many_constant_images_ten_are_named():
    with pytest.raises(InputError, match="face 10 and 3 more"):
        FaceSet(np.zeros((13, 2, 2, 1)), range(13)).require_varied()


def test_quantise_clips_and_rounds_to_the_nearest_byte():
    assert quantise([-1.0, 0.0, 0.4 / 255, 0.6 / 255, 1.0, 7.0]).tolist() == [0, 0, 0, 1, 255, 255]


def test_bytes_survive_being_a_face_set():
    every = np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1)
    assert np.array_equal(quantise(FaceSet(every, ["ann"]).images), every)


def test_subject_means_by_hand():
    means, who = subject_means(np.array([[0.0, 0.0], [4.0, 2.0], [1.0, 1.0]]), ["bob", "bob", "ann"])
    assert who.tolist() == ["ann", "bob"]
    assert means.tolist() == [[1.0, 1.0], [2.0, 1.0]]


@pytest.mark.parametrize(
    ("n_points", "expected"),
    [(3, (0, 1, 2)), (68, (38.5, 44.5, 30)), (468, (83, 312.5, 1)), (478, (83, 312.5, 1))],
)
def test_eyes_and_nose_of_every_scheme(n_points, expected):
    points = np.repeat(np.arange(n_points, dtype=float)[None, :, None], 2, axis=2)
    assert eyes_and_nose(points)[0, :, 0].tolist() == list(expected)


def test_an_unknown_scheme_is_refused():
    with pytest.raises(InputError, match=r"\[3, 68, 468, 478\] points.*Got 5"):
        eyes_and_nose(np.zeros((1, 5, 2)))


def test_grey_is_the_mean_of_the_colours():
    colour, grey = (drawn_faces(3, width=24, height=32, grey=g) for g in (False, True))
    assert grey.shape == (3, 32, 24, 1)
    assert np.allclose(grey.images[..., 0], colour.images.mean(axis=3), atol=1e-6)
