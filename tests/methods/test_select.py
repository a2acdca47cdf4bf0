"""k-Same-Select: labels that look mistyped are named, and what a kept label gives away is counted."""

import warnings

import numpy as np
import pytest

import ksame
from drawn import drawn_faces
from ksame import FaceSet, recipe
from ksame.errors import InputError, KsameWarning, UsageError
from ksame.privacy.homogeneity import homogeneity

SELECT = recipe("k-same-pixel", k=4, select="gender")


def forty(**changes):
    """Forty people with two images each, and their gender; some images have another label."""
    faces = drawn_faces(40, 2, seed=3, width=24, height=32)
    labels = np.where(np.arange(80) // 2 % 2 == 0, "female", "male").astype(object)
    for at, label in changes.items():
        labels[int(at[1:])] = label
    return FaceSet(faces.images, faces.subjects, faces.landmarks, {"gender": labels})


def test_one_mistyped_label_is_named_with_the_nearest_one_and_what_it_costs():
    with pytest.warns(KsameWarning) as told:
        _, linkage = ksame.deidentify(forty(i4="femal"), SELECT, seed=1)
    (message,) = [str(w.message) for w in told]
    assert "The label 'gender' varies within 1 of 40 people (for instance " in message
    assert "'femal' occurs once: perhaps 'female' was meant." in message
    assert f"{len(linkage.withheld)} of 80 images are withheld" in message
    assert len(linkage.withheld) > 10


@pytest.mark.parametrize(("typed", "meant"), [("Female", "female"), ("female ", "female"), ("mael", "male")])
def test_a_mistyped_label_of_a_whole_person_is_named_where_its_class_is_too_small(typed, meant):
    faces = forty(i4=typed, i5=typed)
    with pytest.raises(UsageError, match=f"'{typed}' occurs 2 times: perhaps '{meant}' was meant"):
        ksame.deidentify(faces, SELECT, seed=1)
    dropping = recipe("k-same-pixel", k=4, select="gender", small_classes="drop")
    with pytest.warns(KsameWarning, match=f"perhaps '{meant}' was meant"):
        ksame.deidentify(faces, dropping, seed=1)


def test_labels_that_are_right_are_not_suspected(family):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ksame.deidentify(forty(), SELECT, seed=1)
        ksame.deidentify(family, recipe("k-same-pixel", k=3, select="expression"), seed=1)


def test_images_without_the_label_are_no_class_of_their_own():
    with pytest.raises(InputError, match="2 of 80 images carry no label 'gender'"):
        ksame.deidentify(forty(i4=None, i5=float("nan")), SELECT, seed=1)


def test_homogeneity_by_hand():
    faces = np.array([0, 0, 0, 1, 1, 1, 1])
    assert homogeneity(faces, list("aabbbcd")) == {
        "smallest_label_diversity": 2,
        "label_homogeneity": 0.57,
        "label_by_chance": 0.43,
    }


def test_the_certificate_says_what_a_kept_label_gives_away():
    figures = ksame.deidentify(forty(), SELECT, seed=1)[0].certificate.figures
    assert {name: figures[name] for name in figures if "label" in name} == {
        "smallest_label_diversity": 1,
        "label_homogeneity": 1.0,
        "label_by_chance": 0.5,
    }
    plain = ksame.deidentify(forty(), recipe("k-same-pixel", k=4), seed=1)[0].certificate.figures
    assert not [name for name in plain if "label" in name]


@pytest.mark.filterwarnings("ignore:Select merged")
def test_merged_classes_are_less_homogeneous():
    rare = {f"i{i}": "other" for i in range(4)}
    merging = recipe("k-same-pixel", k=4, select="gender", small_classes="merge")
    figures = ksame.deidentify(forty(**rare), merging, seed=1)[0].certificate.figures
    assert figures["label_homogeneity"] < 1
