import numpy as np
import pytest

from ksame import drawn_faces
from ksame.errors import UsageError
from ksame.faces.faceset import quantise
from ksame.faces.sheet import MOST, contact_sheet


def test_same_seed_same_people():
    first, again, other = (drawn_faces(5, 2, width=24, height=32, seed=s) for s in (3, 3, 4))
    assert np.array_equal(first.images, again.images)
    assert np.array_equal(first.landmarks, again.landmarks)
    assert not np.array_equal(first.images, other.images)


def test_labels_and_names():
    faces = drawn_faces(3, 4, width=24, height=32)
    assert faces.subjects.tolist() == np.repeat(["person-0001", "person-0002", "person-0003"], 4).tolist()
    assert faces.attribute("expression").tolist() == ["neutral", "smile", "surprise", "neutral"] * 3
    assert set(faces.attribute("gender")) <= {"F", "M"}
    assert len(set(faces.names)) == 12
    for subject in np.unique(faces.subjects):
        assert len(set(faces.attribute("gender")[faces.subjects == subject])) == 1


def test_landmarks_lie_inside_and_in_order():
    faces = drawn_faces(200, width=24, height=32)
    left, right, nose = (faces.landmarks[:, i] for i in range(3))
    assert (faces.landmarks >= 0).all()
    assert (faces.landmarks <= [23, 31]).all()
    assert (left[:, 0] < nose[:, 0]).all()
    assert (nose[:, 0] < right[:, 0]).all()
    assert (nose[:, 1] > left[:, 1]).all()


def test_people_differ_and_images_of_one_person_are_alike():
    faces = drawn_faces(20, 4, width=24, height=32)
    rows = faces.images[::1].reshape(20, 4, -1)
    within = np.linalg.norm(rows[:, 0] - rows[:, 3], axis=1)
    between = np.linalg.norm(rows[:, None, 0] - rows[None, :, 0], axis=2)[np.triu_indices(20, 1)]
    assert np.median(within) < 0.7 * np.median(between)
    assert between.min() > 0


def test_more_than_one_batch_is_drawn_like_one():
    faces = drawn_faces(70, width=24, height=32)
    assert faces.shape == (70, 32, 24, 3)
    faces.require_varied()


@pytest.mark.parametrize(("arguments", "name"), [((0,), "n_subjects"), ((2, 0), "images_per_subject")])
def test_nobody_cannot_be_drawn(arguments, name):
    with pytest.raises(UsageError, match=f"The '{name}' parameter of drawn_faces must be an integer of at least 1"):
        drawn_faces(*arguments)


def test_a_sheet_shows_every_face_in_rows():
    faces = np.arange(5, dtype=np.uint8)[:, None, None, None] * np.ones((1, 3, 2, 1), dtype=np.uint8)
    sheet = contact_sheet(faces, columns=2, gap=1)
    assert sheet.shape == (3 * 4 + 1, 2 * 3 + 1, 1)
    assert sheet[1:4, 1:3, 0].tolist() == [[0, 0]] * 3
    assert sheet[1:4, 4:6, 0].tolist() == [[1, 1]] * 3
    assert sheet[9:12, 1:3, 0].tolist() == [[4, 4]] * 3
    assert (sheet[9:12, 3:] == 255).all()
    assert (sheet[0] == 255).all()


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_sheets_are_about_as_wide_as_high(n):
    high, wide, _ = contact_sheet(quantise(drawn_faces(n, width=24, height=32).images)).shape
    assert 0.3 < wide / high < 3
    assert high * wide >= n * 24 * 32


def test_a_sheet_shows_at_most_so_many():
    many = np.zeros((MOST + 50, 2, 2, 3), dtype=np.uint8)
    assert contact_sheet(many, columns=10, gap=0).shape == (MOST // 10 * 2, 20, 3)
