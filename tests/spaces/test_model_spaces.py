"""The codings of the appearance models, and what k-Same-M makes with them."""

import numpy as np
import pytest

import ksame
from ksame.errors import InputError, UsageError
from ksame.faces.faceset import FaceSet, quantise
from ksame.privacy.models import patterns
from ksame.spaces import AamSpace, FaceModelSpace, FaceSpace

SPACES = [FaceModelSpace(), AamSpace()]


@pytest.mark.parametrize("space", SPACES, ids=lambda s: s.name)
def test_contract(meshed, space):
    before = meshed.images.copy()
    fitted = space.fit(meshed)
    assert isinstance(fitted, FaceSpace)
    codes = fitted.encode(meshed)
    assert np.array_equal(codes, space.fit(meshed).encode(meshed))
    images, points = fitted.decode(codes), fitted.landmarks(codes)
    assert images.shape == meshed.images.shape
    assert points.shape[:2] == (len(meshed), 478)
    assert np.array_equal(meshed.images, before)


@pytest.mark.parametrize("space", SPACES, ids=lambda s: s.name)
def test_what_was_decoded_encodes_to_nearly_the_same(meshed, space):
    fitted = space.fit(meshed)
    codes = fitted.encode(meshed)
    again = fitted.encode(FaceSet(quantise(fitted.decode(codes)), meshed.subjects, fitted.landmarks(codes)))
    spread = np.linalg.norm(codes - codes.mean(axis=0), axis=1).mean()
    assert np.linalg.norm(again - codes, axis=1).mean() < 0.35 * spread


@pytest.mark.parametrize("space", SPACES, ids=lambda s: s.name)
def test_faces_without_a_mesh_are_refused(faces, space):
    with pytest.raises(InputError, match="mesh|landmarks"):
        space.fit(faces.take([0, 1]).with_images(faces.images[:2])) if space.name == "model" else space.fit(
            FaceSet(faces.images, faces.subjects)
        )


def test_somebody_else_has_the_labels_of_the_group_and_nobodys_face():
    from ksame.spaces.facemodel import face_model
    from ksame.spaces.facemodel.labels import genders

    meshed = ksame.synthetic(12, size=(224, 176), seed=3)
    space = FaceModelSpace().fit(meshed)
    codes = space.encode(meshed)
    model = face_model()
    for label in ("F", "M"):
        members = codes[meshed.attribute("gender") == label]
        drawn = np.stack([space.draw_person(members, np.random.default_rng(s)) for s in range(20)])
        assert (genders(model, drawn / space._weights) == label).mean() >= 0.7
        nearest = np.linalg.norm(drawn[:, None] - codes[None], axis=2).min(axis=1)
        assert nearest.min() > 0.3 * np.linalg.norm(codes - codes.mean(axis=0), axis=1).mean()


@pytest.mark.parametrize("coding", ["model", "aam"])
@pytest.mark.parametrize("name", ["k-same-m", "k-same-furthest", "k-diff-furthest", "epsilon-k-map"])
def test_every_recipe_with_a_model_coding_keeps_its_promise(meshed, name, coding):
    release, linkage = ksame.deidentify(meshed, ksame.recipe(name, k=3, coding=coding), seed=2)
    assert len(release.faces) + len(linkage.withheld) == len(meshed)
    assert release.certificate.method.coding == coding
    if name.startswith("k-same"):
        assert np.bincount(patterns(release.faces)).min() >= release.certificate.promise.params["k"]
    if name == "k-diff-furthest":
        assert release.certificate.figures["smallest_margin"] > 0


def test_furthest_recipes_set_the_first_texture_parameter_to_zero():
    assert ksame.recipe("k-diff-furthest", coding="aam").space.zero_first_texture
    assert not ksame.recipe("k-same-m", coding="aam").space.zero_first_texture


def test_somebody_else_is_shared_by_k_and_keeps_expression(meshed_family):
    recipe = ksame.recipe("k-same-m", k=4, surrogate="someone-else", select="expression")
    release, _ = ksame.deidentify(meshed_family, recipe, seed=5)
    assert len(release.faces) == 24
    assert np.bincount(patterns(release.faces)).min() >= 4
    plain, _ = ksame.deidentify(meshed_family, ksame.recipe("k-same-m", k=4, select="expression"), seed=5)
    assert not {face.tobytes() for face in plain.faces} & {face.tobytes() for face in release.faces}


def test_only_the_face_model_draws_somebody_else(meshed):
    with pytest.raises(UsageError, match="add --coding model"):
        ksame.deidentify(meshed, ksame.recipe("k-same-m", k=3, coding="aam", surrogate="someone-else"), seed=0)


def test_k_same_m_keeps_the_contours_that_k_same_pixel_blurs():
    """Ghosts are contours averaged away: eyes and lips stay sharper where shapes are aligned first."""
    from benchmarks.model_release import sharpness

    people = ksame.synthetic(20, size=(224, 176), seed=6, expressions=("smile",))
    found = {
        name: sharpness(ksame.deidentify(people, ksame.recipe(name, k=10), seed=1)[0].faces)
        for name in ("k-same-m", "k-same-pixel")
    }
    assert found["k-same-m"] > found["k-same-pixel"]
