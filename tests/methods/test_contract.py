"""What every recipe owes, whichever it is."""

from dataclasses import replace

import jsonschema
import numpy as np
import pytest

import ksame
from ksame.errors import InputError, KsameError, KsameWarning, UsageError
from ksame.faces.faceset import FaceSet
from ksame.recipes import METHODS

pytestmark = pytest.mark.filterwarnings("ignore::ksame.errors.KsameWarning")

NAMES = sorted(entry.name for entry in METHODS.values() if entry.for_sets)
SMALL = {"noise": {"m": 100}, "noise-bw": {"m": 100}}


MESHED = {"k-same-m"}


@pytest.fixture(name="set_of")
def _set_of(request):
    """Faces that a recipe can work on: model codings need a mesh."""

    def choose(name: str, several: bool = False) -> FaceSet:
        plain, mesh = ("family", "meshed_family") if several else ("faces", "meshed")
        return request.getfixturevalue(mesh if name in MESHED else plain)

    return choose


def build(name: str):
    params = dict(SMALL.get(name, {}))
    if "k" in METHODS[name].parameters:
        params["k"] = 3
    return ksame.recipe(name, **params)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_bytes_and_the_input_is_untouched(set_of, name):
    faces = set_of(name)
    before = faces.images.copy()
    one, secret = ksame.deidentify(faces, build(name), seed=77)
    two, _ = ksame.deidentify(faces, build(name), seed=77)
    assert np.array_equal(one.faces, two.faces)
    assert one.certificate.to_json() == two.certificate.to_json()
    assert secret.seed == 77
    assert np.array_equal(faces.images, before)


@pytest.mark.parametrize("name", NAMES)
def test_everyone_is_released_or_named_as_withheld(set_of, name):
    faces = set_of(name)
    release, linkage = ksame.deidentify(faces, build(name), seed=5)
    sources = [s for face in linkage.faces for s in face.sources] + [w.source for w in linkage.withheld]
    assert sorted(sources) == sorted(faces.names)
    assert release.faces.dtype == np.uint8
    assert release.certificate.counts.released == len(release.faces) == len(linkage.faces)
    assert release.certificate.promise.model == build(name).method.promised.name


@pytest.mark.parametrize("name", NAMES)
def test_several_images_a_subject_are_handled_or_refused(set_of, name):
    family = set_of(name, several=True)
    if name == "k-diff-furthest":
        with pytest.raises(InputError, match="one image per person"):
            ksame.deidentify(family, build(name), seed=5)
        return
    release, linkage = ksame.deidentify(family, build(name), seed=5)
    sources = [s for face in linkage.faces for s in face.sources] + [w.source for w in linkage.withheld]
    assert sorted(sources) == sorted(family.names)
    assert len(release.faces) in (len(family), family.n_subjects)


@pytest.mark.parametrize("name", NAMES)
def test_one_face_works_or_is_refused_with_a_reason(set_of, name):
    faces = set_of(name)
    if METHODS[name].needs in ("-", "landmarks"):
        assert len(ksame.deidentify(faces.take([0]), build(name), seed=5)[0].faces) == 1
    else:
        with pytest.raises(KsameError, match=r".{20}"):
            ksame.deidentify(faces.take([0]), build(name), seed=5)


@pytest.mark.parametrize("name", [n for n in NAMES if "k" in METHODS[n].parameters])
@pytest.mark.parametrize("k", [-1, 0, 1, 1000, 2.5, True])
def test_impossible_k_is_refused(set_of, name, k):
    faces = set_of(name)
    with pytest.raises(UsageError, match=r"'k' parameter of [\w-]+ must be .*Got"):
        ksame.deidentify(faces, ksame.recipe(name, k=k), seed=0)


@pytest.mark.parametrize("name", NAMES)
def test_constant_images_are_refused(name):
    images = np.random.default_rng(0).random((8, 12, 10, 1))
    images[3] = 0.4
    with pytest.raises(InputError, match="Constant images show no face: face 4"):
        ksame.deidentify(FaceSet(images, np.arange(8).astype(str)), build(name), seed=0)


@pytest.mark.parametrize("name", NAMES)
def test_one_photograph_under_four_names_is_one_person_or_refused(set_of, name):
    faces = set_of(name).take(np.arange(12))
    images = faces.images.copy()
    images[:4] = images[0]
    double = faces.with_images(images)
    if METHODS[name].promise != "nothing":
        with pytest.raises(InputError, match="stands under two names"):
            ksame.deidentify(double, build(name), seed=3)
    if name == "k-diff-furthest":
        with pytest.raises(InputError, match="one image per person"):
            ksame.deidentify(double, build(name), seed=3, provenance=ksame.Provenance(names="merge"))
        return
    _, linkage = ksame.deidentify(double, build(name), seed=3, provenance=ksame.Provenance(names="merge"))
    sources = [s for face in linkage.faces for s in face.sources] + [w.source for w in linkage.withheld]
    assert sorted(sources) == sorted(double.names)


@pytest.mark.parametrize("name", NAMES)
def test_the_certificate_rebuilds_the_recipe(set_of, name):
    faces = set_of(name)
    from ksame.verification import rebuild_recipe

    release, _ = ksame.deidentify(faces, build(name), seed=77)
    again = rebuild_recipe(release.certificate)
    assert again.params() == build(name).params()
    assert again.space.params() == build(name).space.params()
    jsonschema.validate(release.certificate.method.params, METHODS[name].schema())


@pytest.mark.parametrize("name", NAMES)
def test_every_promise_renders_its_limits(set_of, name):
    faces = set_of(name)
    release, _ = ksame.deidentify(faces, build(name), seed=77)
    promise = release.certificate.promise.rebuild()
    text = promise.render()
    assert "Not promised:" in text
    assert "face region" in text


@pytest.mark.parametrize("name", ["blur", "pixelate", "epsilon-map", "wrong-map"])
def test_select_is_refused_where_nobody_shares_a_face(name):
    with pytest.raises(UsageError, match="alters every face by itself"):
        ksame.recipe(name, select="gender")


@pytest.mark.parametrize(
    "name", ["k-same-pixel", "k-same-eigen", "k-same-furthest", "k-diff-furthest", "epsilon-k-map"]
)
def test_select_mixes_only_people_of_one_label(faces, name):
    release, linkage = ksame.deidentify(faces, ksame.recipe(name, k=3, select="gender"), seed=1)
    gender = dict(zip(faces.subjects, faces.attributes["gender"], strict=True))
    by_group: dict[int, set[str]] = {}
    for face in linkage.faces:
        mixed = face.figures.get("neighbours", [])
        assert {gender[s] for s in mixed} <= {gender[face.subject]}
        if face.group is not None:
            by_group.setdefault(face.group, set()).add(gender[face.subject])
    assert all(len(labels) == 1 for labels in by_group.values())
    assert release.certificate.method.params["select"] == "gender"


def test_small_classes_are_named_merged_or_dropped(faces):
    labels = np.array(["common"] * 25 + ["rare"] * 2 + ["seldom"] * 4)
    marked = FaceSet(faces.images, faces.subjects, faces.landmarks, {"kind": labels}, faces.names)
    with pytest.raises(UsageError, match=r"'rare' \(2 people\), 'seldom' \(4 people\)"):
        ksame.deidentify(marked, ksame.recipe("k-same-pixel", k=5, select="kind"), seed=0)
    dropped, linkage = ksame.deidentify(
        marked, ksame.recipe("k-same-pixel", k=5, select="kind", small_classes="drop"), seed=0
    )
    assert dropped.certificate.counts.withheld == len(linkage.withheld) == 6
    merged, _ = ksame.deidentify(
        marked, ksame.recipe("k-same-pixel", k=5, select="kind", small_classes="merge"), seed=0
    )
    assert merged.certificate.counts.withheld == 0
    assert "merged 2 classes" in merged.certificate.warnings[0]
    assert merged.certificate.promise.params["k"] >= 5
    absorbed, _ = ksame.deidentify(
        marked, ksame.recipe("k-same-pixel", k=8, select="kind", small_classes="merge"), seed=0
    )
    assert absorbed.certificate.counts.released == 31


def test_a_label_nobody_has_is_named(faces):
    with pytest.raises(InputError, match=r"no label 'mood' \(labels they carry: expression, gender\)"):
        ksame.deidentify(faces, ksame.recipe("k-same-pixel", select="mood"), seed=0)


def test_unknown_recipes_and_parameters_are_named():
    with pytest.raises(UsageError, match="Unknown method 'magic'"):
        ksame.recipe("magic")
    with pytest.raises(UsageError, match="blur takes no 'k'"):
        ksame.recipe("blur", k=3)
    with pytest.raises(UsageError, match="'coding' parameter of k-same-eigen"):
        ksame.recipe("k-same-eigen", coding="pixel")


def test_the_registry_refuses_silent_overwriting():
    with pytest.raises(UsageError, match="exists already"):
        METHODS.add(replace(METHODS["blur"], summary="another"))


def test_k_same_keeps_the_mean_of_the_set(faces):
    from ksame.methods import KSame, Problem

    codes = faces.images.reshape(len(faces), -1).astype(float)
    outcome = KSame(4).run(Problem(codes, faces.subjects), np.random.default_rng(0))
    assert np.allclose(outcome.surrogates[outcome.rows].mean(axis=0), codes.mean(axis=0))


def test_full_rank_eigen_equals_pixel_and_says_so(faces):
    pixel, _ = ksame.deidentify(faces, ksame.recipe("k-same-pixel", k=3), seed=9)
    with pytest.warns(KsameWarning, match="equals k-same-pixel"):
        eigen, _ = ksame.deidentify(faces, ksame.recipe("k-same-eigen", k=3, components=1.0), seed=9)
    assert np.abs(pixel.faces.astype(int) - eigen.faces.astype(int)).max() <= 1


def test_one_and_two_threads_give_the_same_bytes(faces):
    from threadpoolctl import threadpool_limits

    for name in ("k-same-pixel", "k-same-eigen", "k-diff-furthest", "epsilon-k-map"):
        with threadpool_limits(1):
            one, _ = ksame.deidentify(faces, build(name), seed=7)
        with threadpool_limits(2):
            two, _ = ksame.deidentify(faces, build(name), seed=7)
        assert one.certificate.to_json() == two.certificate.to_json(), name
