"""People who do not exist."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ksame.errors import KsameError, UsageError
from ksame.faces.faceset import quantise
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.geometry import OVAL
from ksame.spaces.facemodel.labels import genders
from ksame.synthetic import synthetic
from ksame.synthetic.expressions import EXPRESSIONS
from ksame.synthetic.lighting import ILLUMINATIONS, shading
from ksame.synthetic.people import FIRST_OTHER, chosen_people, draw_people, pick_people

SMALL = (134, 99)
SHARED = Path(os.environ.get("KSAME_SHARED", Path(__file__).resolve().parents[2] / "shared"))
THRESHOLD = 0.363  # SFace's own


@pytest.fixture(scope="module")
def moods():
    return synthetic(6, len(EXPRESSIONS), seed=4, size=SMALL, expressions=tuple(EXPRESSIONS))


def test_the_same_seed_gives_the_same_bytes():
    first, again = synthetic(5, 2, seed=7, size=SMALL), synthetic(5, 2, seed=7, size=SMALL)
    assert np.array_equal(first.images, again.images)
    assert np.array_equal(first.landmarks, again.landmarks)
    assert first.subjects.tolist() == again.subjects.tolist()
    assert not np.array_equal(first.images, synthetic(5, 2, seed=8, size=SMALL).images)


def test_more_people_leave_the_first_ones_as_they_are():
    few, many = synthetic(3, size=SMALL), synthetic(20, size=SMALL)
    assert np.array_equal(few.images, many.images[:3])


def test_labels_are_complete_and_balanced():
    faces = synthetic(12, 2, size=(67, 50), expressions=("neutral", "smile"))
    assert faces.shape == (24, 67, 50, 3)
    assert faces.n_subjects == 12
    assert set(faces.attributes) == {"gender", "age_band", "skin_tone", "expression", "illumination"}
    assert Counter(faces.attribute("gender").tolist()) == {"F": 12, "M": 12}
    assert faces.attribute("expression").tolist() == ["neutral", "smile"] * 12
    for name in ("gender", "age_band", "skin_tone"):  # a person's own labels do not change between pictures
        assert (faces.attribute(name)[::2] == faces.attribute(name)[1::2]).all()


def test_the_same_number_is_the_same_person():
    model = face_model()
    number = int(pick_people(1, 1)[0])
    first, second = draw_people(model, np.array([number, 1])), draw_people(model, np.array([0, number]))
    assert np.array_equal(first.codes[0], second.codes[1])
    assert np.array_equal(first.hair[0], second.hair[1])
    assert synthetic(1, seed=1, size=SMALL).subjects.tolist() == [f"nobody {number}"]


def test_nobody_is_cast_twice_even_when_the_chosen_run_out():
    n = len(chosen_people()) + 500
    numbers = pick_people(n, 3)
    assert len(np.unique(numbers)) == n
    assert (numbers % 2 == np.arange(n) % 2).all()
    assert (numbers[: len(chosen_people()) // 2] < FIRST_OTHER).all()


def test_genders_can_be_read_from_codes():
    model = face_model()
    people = draw_people(model, pick_people(200, 0))
    assert (genders(model, people.codes) == people.genders).mean() > 0.95


def test_landmarks_lie_in_the_picture_and_on_the_face(moods):
    height, width = SMALL
    x, y = moods.landmarks[..., 0], moods.landmarks[..., 1]
    assert x.min() > 0
    assert x.max() < width - 1
    assert y.min() > 0
    assert y.max() < height - 1
    eyes = moods.landmarks[:, [33, 133, 362, 263]].mean(axis=(0, 1))
    nose, mouth = moods.landmarks[:, 4].mean(axis=0), moods.landmarks[:, [61, 291]].mean(axis=(0, 1))
    assert eyes[1] < nose[1] < mouth[1]
    rim = moods.landmarks[:, list(OVAL)]
    inside = moods.landmarks[:, 1]
    assert (rim[..., 0].min(axis=1) < inside[:, 0]).all()
    assert (rim[..., 0].max(axis=1) > inside[:, 0]).all()


def test_the_mouth_opens_in_surprise_and_closes_at_rest(moods):
    names = moods.attribute("expression")
    gap = moods.landmarks[:, 14, 1] - moods.landmarks[:, 13, 1]
    eyes = np.linalg.norm(moods.landmarks[:, 468] - moods.landmarks[:, 473], axis=1)
    assert (gap[names == "surprise"] > 0.25 * eyes[names == "surprise"]).all()
    assert abs(gap[names == "neutral"]).max() < 0.02 * eyes.mean()
    assert (gap[names == "smile"] > 0).all()


def test_a_smile_shows_teeth(moods):
    """The middle of the mouth is bright and hardly coloured when people smile."""
    faces = moods.take(moods.attribute("expression") == "smile")
    for image, points in zip(faces.images, faces.landmarks, strict=True):
        x, y = points[[13, 14]].mean(axis=0).round().astype(int)
        assert np.ptp(image[y, x]) < 0.25


def test_light_comes_from_where_it_should():
    faces = synthetic(4, 5, size=SMALL, illuminations=tuple(ILLUMINATIONS))
    names = faces.attribute("illumination")
    cheeks = {}
    for side, point in (("left", 50), ("right", 280)):
        at = faces.landmarks[:, point].round().astype(int)
        cheeks[side] = np.array([image[y, x].mean() for image, (x, y) in zip(faces.images, at, strict=True)])
    difference = cheeks["left"] - cheeks["right"]
    assert (difference[names == "left"] > 0.03).all()
    assert (difference[names == "right"] < -0.03).all()


@pytest.mark.parametrize(("light", "expected"), [("flat", 1.0), ("front", 1.0), ("left", 0.8)])
def test_shading_of_a_surface_that_faces_the_viewer(light, expected):
    assert shading(np.array([[0.0, 0.0, 1.0]]), light)[0] == pytest.approx(expected, abs=0.2)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"n": 0}, "'n' parameter of synthetic must be an integer in .1, .*. Got 0"),
        ({"n": 2.5}, "'n' parameter"),
        ({"n": 1, "images_per_subject": 0}, "'images_per_subject' parameter"),
        ({"n": 1, "size": (20, 300)}, "32 to 4096 pixels"),
        ({"n": 1, "expressions": ("grin",)}, "out of neutral, smile, surprise, squint, disgust"),
        ({"n": 1, "expressions": "smile"}, "a sequence"),
        ({"n": 1, "illuminations": ()}, "'illuminations' parameter"),
    ],
)
def test_bad_values_are_refused(arguments, match):
    with pytest.raises(UsageError, match=match):
        synthetic(**arguments)


def test_progress_is_reported():
    seen = []

    def progress(items, what):
        for item in items:
            seen.append((item, what))
            yield item

    synthetic(3, size=(67, 50), progress=progress)
    assert seen == [(i, "painting people") for i in range(3)]


def _networks():
    models = pytest.importorskip("ksame.models")
    try:
        return models.FaceDetector(), models.SFace()
    except KsameError as error:
        pytest.skip(f"the pretrained networks are not here: {error}")


def _embed(faces, detector, recogniser):
    rows = []
    for image in faces.images:
        found = detector.detect(quantise(image))
        rows.append(recogniser.embed(quantise(image), found[0].landmarks) if found else np.full(128, np.nan))
    return np.array(rows)


def test_a_detector_finds_them_where_they_are():
    detector, _ = _networks()
    faces = synthetic(10, 2, expressions=("neutral", "surprise"))
    off = []
    for image, points in zip(faces.images, faces.landmarks, strict=True):
        found = detector.detect(quantise(image))
        assert len(found) == 1
        eyes = points[[468, 473]]
        distance = np.linalg.norm(found[0].landmarks[:2] - eyes, axis=1).max()
        off.append(distance / np.linalg.norm(eyes[0] - eyes[1]))
    assert np.median(off) < 0.15
    assert max(off) < 0.3


@pytest.mark.slow
def test_a_recogniser_knows_one_person_and_tells_two_apart():
    faces = synthetic(40, 4, expressions=("neutral", "smile"), illuminations=("flat", "top"))
    rows = _embed(faces, *_networks()).reshape(40, 4, -1)
    first, second = np.triu_indices(4, 1)
    own = np.einsum("nid,njd->nij", rows, rows)[:, first, second]
    others = (rows[:, 0] @ rows[:, 0].T)[np.triu_indices(40, 1)]
    assert (own > THRESHOLD).mean() >= 0.95
    assert (others < THRESHOLD).mean() >= 0.98


@pytest.mark.shared
@pytest.mark.slow
def test_nobody_behind_the_model_is_recognised():
    folder = SHARED / "faces" / "portraits"
    if not folder.is_dir():
        pytest.skip(f"needs the portraits in {folder}; set KSAME_SHARED")
    detector, recogniser = _networks()
    from ksame.faces.reading import read_image

    portraits = []
    for file in sorted(folder.glob("*.jpg")):
        image = read_image(file)
        portraits.append(recogniser.embed(image, detector.detect(image)[0].landmarks))
    rows = _embed(synthetic(100), detector, recogniser)
    assert (rows @ np.array(portraits).T).max() < THRESHOLD
