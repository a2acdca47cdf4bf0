"""What a scikit-learn user expects: clone, pickle, a short repr, fit on one set and protect another."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

import ksame
from ksame import METHODS, FaceSet, recipe
from ksame.errors import InputError, UsageError
from ksame.methods import EpsilonMap, KSame, Pixelate
from ksame.spaces import AamSpace, EigenSpace, FaceModelSpace, PixelSpace
from ksame.utility import loss_by_group

RECIPES = [recipe(name) for name in METHODS if METHODS[name].for_sets] + [
    recipe("k-same-pixel", k=4, select="gender", distance="eigen", components=5),
]
SPACES = [PixelSpace(), EigenSpace(4), AamSpace(), FaceModelSpace()]
NAMES = [r.name for r in RECIPES[:-1]] + ["select"]


def pickled(thing):
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 -- its own


@pytest.mark.parametrize("made", RECIPES, ids=NAMES)
def test_recipes_and_methods_can_be_cloned_pickled_and_copied(made):
    for thing in (made, made.method):
        for same in (clone(thing), pickled(thing), copy.deepcopy(thing)):
            assert type(same) is type(thing)
            assert same.params() == thing.params()
            assert repr(same) == repr(thing)


@pytest.mark.parametrize("space", SPACES, ids=lambda s: s.name)
def test_spaces_can_be_cloned_pickled_and_copied(space, meshed):
    fitted = space.fit(meshed)
    assert repr(clone(fitted)) == repr(clone(space))
    with pytest.raises(RuntimeError, match="fit"):
        clone(fitted).decode(fitted.encode(meshed))
    for same in (pickled(fitted), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(same.encode(meshed), fitted.encode(meshed))


def test_face_sets_can_be_cloned_pickled_and_copied(meshed):
    for same in (clone(meshed), pickled(meshed), copy.deepcopy(meshed)):
        np.testing.assert_array_equal(same.images, meshed.images)
        np.testing.assert_array_equal(same.landmarks, meshed.landmarks)
        assert same.subjects.tolist() == meshed.subjects.tolist()
        assert same.names == meshed.names
        assert {k: v.tolist() for k, v in same.attributes.items()} == {
            k: v.tolist() for k, v in meshed.attributes.items()
        }
        with pytest.raises(ValueError, match="read-only"):
            same.images[0] = 0


def test_no_repr_prints_pixels_or_names(meshed):
    release, _ = ksame.deidentify(meshed, recipe("k-same-pixel", k=3))
    things = [
        meshed,
        release,
        *(space.fit(meshed) for space in SPACES),
        *RECIPES,
        recipe("k-same-eigen", k=3).fit(meshed),
        EigenSpace(4).fit(meshed).pca,
        AamSpace().fit(meshed).model_,
    ]
    for thing in things:
        text = repr(thing)
        assert len(text) < 400, text[:200]
        assert not [word for word in ("array(", "[[", "nobody") if word in text]
    assert repr(meshed).startswith("FaceSet(13 faces of 13 people, 96 x 76 pixels in colour, 478 landmarks; labels: ")


def test_parameters_are_read_and_changed_as_in_scikit_learn():
    method = KSame(k=4)
    assert method.get_params() == {"k": 4, "grouping": "greedy", "surrogate": "mean"}
    assert method.set_params(k=6).k == 6
    assert method.k == 4
    assert EpsilonMap(Pixelate(9)).get_params()["over__p"] == 9
    assert EpsilonMap(Pixelate(9)).set_params(over__p=5, epsilon=0.5).over.p == 5
    assert recipe("k-same-pixel", k=3).set_params(method__k=7).params()["k"] == 7
    with pytest.raises(UsageError, match="KSame has no parameter 'p'. It has: k, grouping, surrogate"):
        method.set_params(p=3)
    with pytest.raises(UsageError, match="The 'k' parameter of k-same"):
        method.set_params(k=1)


@pytest.mark.parametrize("name", ["k-same-eigen", "k-same-pixel", "k-same-m", "k-same-furthest"])
def test_newcomers_are_protected_in_a_space_learned_before(name, meshed):
    old, new = meshed.take(np.arange(6)), meshed.take(np.arange(6, 13))
    fitted = recipe(name, k=3).fit(old)
    release, linkage = ksame.deidentify(new, fitted, seed=2)
    assert release.certificate.counts.released == 7
    assert release.certificate.promise.bound <= 1 / 3
    assert {face.subject for face in linkage.faces} == set(new.subjects)
    if name == "k-same-eigen":
        np.testing.assert_array_equal(fitted.space.encode(new), EigenSpace(0.95).fit(old).encode(new))
        assert release.certificate.method.coding_params["learned_on"] == "other faces"
    with pytest.raises(UsageError, match="number of subjects"):
        ksame.deidentify(new.take([0, 1]), fitted)


def test_newcomers_of_another_size_are_refused(meshed):
    smaller = FaceSet(meshed.images[:, ::2, ::2], meshed.subjects)
    with pytest.raises(InputError, match="as the space was fitted on"):
        ksame.deidentify(smaller, recipe("k-same-eigen", k=3).fit(meshed))


def test_a_release_of_newcomers_is_not_repeated_without_the_faces_learned_on(meshed, tmp_path):
    old, new = meshed.take(np.arange(6)), meshed.take(np.arange(6, 13))
    release, linkage = ksame.deidentify(new, recipe("k-same-eigen", k=3).fit(old))
    ksame.write_release(release, tmp_path / "out")
    found = {f.name: f for f in ksame.verify(tmp_path / "out", linkage=linkage, originals=new)}
    assert found["recomputed"].passed is None
    assert "learned on other faces" in found["recomputed"].detail
    assert all(f.passed is not False for f in found.values())


def test_use_is_measured_for_each_group_of_people(meshed):
    release, linkage = ksame.deidentify(meshed, recipe("k-same-pixel", k=3), seed=1)
    place = {name: i for i, name in enumerate(meshed.names)}
    before = meshed.take([place[face.sources[0]] for face in linkage.faces])
    found = loss_by_group(before.images, release.faces, before.attribute("gender"))
    assert set(found) == {"F", "M"}
    assert sum(each.n_faces for each in found.values()) == 13
    assert all(0 < each.loss.ssim < 1 for each in found.values())
    with pytest.raises(InputError, match="as many groups as pictures"):
        loss_by_group(before.images, release.faces, ["F"])


def test_importing_ksame_stays_light():
    code = """
import sys, ksame
heavy = {"sklearn", "matplotlib", "typer", "rich", "jinja2", "onnxruntime", "ksame.audit", "ksame.attacks"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert callable(ksame.verify) and callable(ksame.audit)
assert {"verify", "audit"} <= set(dir(ksame)) and {"verify", "audit"} <= set(ksame.__all__)
import ksame.audit.report
assert callable(ksame.audit) and ksame.audit.write_report
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    other = (
        "import ksame.audit, ksame\nfrom ksame import audit, verify\nassert callable(ksame.audit) and callable(audit)"
    )
    subprocess.run([sys.executable, "-c", other], check=True)


def test_a_name_that_there_is_not_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        _ = ksame.magic
