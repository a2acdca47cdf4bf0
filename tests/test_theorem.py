"""k-anonymity on the bytes written, against attackers; and controls that must fail."""

import json

import numpy as np
import pytest

import ksame
from drawn import drawn_faces
from ksame.attacks import AttackData, Eigenfaces, run_attack
from ksame.attacks.scoring import rank1_scores
from ksame.faces.faceset import FaceSet
from ksame.privacy.models import Evidence, KAnonymity, patterns
from ksame.spaces.reference import FaceModels

SCENARIOS = ("naive", "reverse", "parrot")

K_ANONYMOUS = (
    ("k-same-pixel", {"k": 3}),
    ("k-same-pixel", {"k": 4, "grouping": "mdav+refine"}),
    ("k-same-pixel", {"k": 4, "distance": "eigen"}),
    ("k-same-eigen", {"k": 3, "grouping": "greedy+refine"}),
    ("k-same-furthest", {"k": 3}),
    ("average", {}),
    ("blackout", {}),
    ("k-same-pixel", {"k": 3, "select": "gender"}),
    ("k-same-pixel", {"k": 3, "select": "expression"}),
)


def with_duplicates() -> FaceSet:
    """Every third photograph appears again under another name: told so, they are one person."""
    faces = drawn_faces(21, seed=21, width=24, height=32)
    images = faces.images.copy()
    images[1::3] = images[0::3]
    return faces.with_images(images)


def noise() -> FaceSet:
    rng = np.random.default_rng(5)
    labels = {"gender": ["F"] * 8 + ["M"] * 9, "expression": ["neutral"] * 17}
    return FaceSet(rng.random((17, 9, 7, 1)), np.arange(17).astype(str), attributes=labels)


@pytest.fixture(params=["faces", "family", "uneven", "duplicates", "noise"])
def face_set(request) -> FaceSet:
    own = {"duplicates": with_duplicates, "noise": noise}
    return own[request.param]() if request.param in own else request.getfixturevalue(request.param)


def released_faces(release, linkage) -> FaceSet:
    return FaceSet(release.faces, np.array([face.subject for face in linkage.faces]))


@pytest.mark.filterwarnings("ignore::ksame.errors.KsameWarning")
@pytest.mark.parametrize(("name", "params"), K_ANONYMOUS)
def test_at_most_one_in_k_is_named(face_set, name, params, tmp_path):
    made, linkage = ksame.deidentify(
        face_set, ksame.recipe(name, **params), seed=8, provenance=ksame.Provenance(names="merge")
    )
    ksame.write_release(made, tmp_path / "release")
    release, _ = ksame.read_release(tmp_path / "release")
    k = release.certificate.promise.params["k"]
    everybody = len(linkage.people | {withheld.subject for withheld in linkage.withheld})
    assert k >= 2 if name == "k-same-furthest" else k >= params.get("k", everybody)

    pattern = patterns(release.faces)
    subjects = np.array([face.subject for face in linkage.faces])
    for p in np.unique(pattern):
        assert len(set(subjects[pattern == p])) >= k

    originals = face_set.take(np.isin(face_set.subjects, subjects))
    for scenario in SCENARIOS:
        rate = run_attack(scenario, Eigenfaces(), AttackData(originals, released_faces(release, linkage))).rank1
        assert rate <= 1 / k + 1e-9, scenario


@pytest.mark.filterwarnings("ignore::ksame.errors.KsameWarning")
@pytest.mark.parametrize(("name", "params"), K_ANONYMOUS[:6])
def test_order_size_and_time_tell_nothing(face_set, name, params, tmp_path):
    """An attacker who guesses by file order, size or time stamp is right at most once in k, averaged over copies."""
    made, linkage = ksame.deidentify(
        face_set, ksame.recipe(name, **params), seed=8, provenance=ksame.Provenance(names="merge")
    )
    folder = tmp_path / "release"
    ksame.write_release(made, folder)
    files = sorted((folder / "faces").iterdir())
    stats = [file.stat() for file in files]
    k = made.certificate.promise.params["k"]
    assert len({s.st_mtime_ns for s in stats}) == 1
    subjects = np.array([face.subject for face in linkage.faces])
    size = {}
    for face, stat in zip(made.faces, stats, strict=True):
        size.setdefault(face.tobytes(), set()).add(stat.st_size)
    assert all(len(sizes) == 1 for sizes in size.values()), "equal faces have equal files"
    order = np.array([str(s) for s in dict.fromkeys(face_set.subjects)])
    by_order = order[np.arange(len(subjects)) * len(order) // len(subjects)]
    guesses = {"order": by_order, "reversed order": by_order[::-1]}
    for how, guess in guesses.items():
        expected = np.mean([_chance(made.faces, subjects, i, guess[i]) for i in range(len(subjects))])
        assert expected <= 1 / k + 1e-9, how


def _chance(faces, subjects, i, guess) -> float:
    """The chance that ``guess`` is right for face i; its equal copies could have been numbered in any order."""
    same = (faces == faces[i]).reshape(len(faces), -1).all(axis=1)
    return float((subjects[same] == guess).mean())


def test_the_order_of_release_does_not_follow_the_order_of_the_originals(faces):
    recipe = ksame.recipe("k-same-pixel", k=3, grouping="mdav")
    one, _ = ksame.deidentify(faces, recipe, seed=1)
    two, _ = ksame.deidentify(faces.take(np.random.default_rng(0).permutation(len(faces))), recipe, seed=2)
    assert np.array_equal(one.faces, two.faces)


def test_the_commonest_subject_gains_nothing(uneven):
    """People with twelve images and people with one: guessing the most photographed is right once in k at most."""
    release, linkage = ksame.deidentify(uneven, ksame.recipe("k-same-pixel", k=2), seed=3)
    who, counts = np.unique(uneven.subjects, return_counts=True)
    images = dict(zip(who, counts, strict=True))
    pattern = patterns(release.faces)
    subjects = np.array([face.subject for face in linkage.faces])
    hits = [
        np.mean(subjects[pattern == p] == max(set(subjects[pattern == p]), key=lambda s: images[s])) for p in pattern
    ]
    assert np.mean(hits) <= 0.5
    assert release.certificate.counts.merged == len(uneven) - uneven.n_subjects


def test_image_level_k_same_would_have_leaked(uneven):
    """The control: averaging images as if each were a person names people far more often than 1/k."""
    alone = FaceSet(uneven.images, np.arange(len(uneven)).astype(str))
    with pytest.warns(ksame.errors.PrivacyWarning, match="count as different people"):
        release, linkage = ksame.deidentify(
            alone, ksame.recipe("k-same-pixel", k=2), seed=3, provenance=ksame.Provenance(names="keep")
        )
    assert "count as different people" in release.certificate.warnings[0]
    true = uneven.subjects[[int(face.subject) for face in linkage.faces]]
    nothing = FaceModels(np.zeros((1, 1)), np.array([""]))
    evidence = Evidence(release.faces, true, [()] * len(true), np.zeros((len(true), 1)), nothing, nothing)
    assert KAnonymity(2).check(evidence)


def test_aligned_keeps_expression_and_groups_people_once(family):
    release, linkage = ksame.deidentify(family, ksame.recipe("k-same-pixel", k=3, select="expression"), seed=5)
    groups: dict[str, set[int]] = {}
    for face in linkage.faces:
        groups.setdefault(face.subject, set()).add(face.group)
    assert all(len(of) == 1 for of in groups.values()), "nobody is in two groups"
    assert len(release.faces) == len(family)
    for face in linkage.faces:
        labels = {family.attributes["expression"][family.names.index(source)] for source in face.sources}
        assert len(labels) == 1


def test_the_certificate_tells_no_more_than_the_faces(faces, tmp_path):
    """No subject, name, seed, group or per-face number stands in the public folder."""
    release, _ = ksame.deidentify(faces, ksame.recipe("k-same-pixel", k=3), seed=987654321987)
    ksame.write_release(release, tmp_path / "release")
    text = (tmp_path / "release" / "certificate.json").read_text()
    record = json.loads(text)
    for secret in (*faces.subjects, *faces.names, "987654321987", '"group":', '"groups":', "seed"):
        assert str(secret) not in text
    assert set(record) == {
        "schema",
        "version",
        "method",
        "counts",
        "promise",
        "figures",
        "checks",
        "warnings",
        "files",
        "digest",
        "software",
        "series",
        "vault",
    }
    assert record["vault"] is None
    assert all(np.isscalar(v) for v in record["figures"].values())


@pytest.mark.parametrize(("name", "params"), [("blur", {"sigma": 2.0}), ("t-mask", {}), ("pixelate", {"p": 6})])
def test_masks_fail_the_k_anonymity_check(faces, name, params):
    release, linkage = ksame.deidentify(faces, ksame.recipe(name, **params), seed=0)
    subjects = np.array([face.subject for face in linkage.faces])
    nothing = FaceModels(np.zeros((1, 1)), np.array([""]))
    evidence = Evidence(release.faces, subjects, [()] * len(subjects), np.zeros((len(subjects), 1)), nothing, nothing)
    assert KAnonymity(2).check(evidence)
    assert KAnonymity(2).check_public(release.faces)


def test_a_mean_with_others_that_is_not_shared_fails(faces):
    """Averaging everyone with their own three nearest looks like k-Same and protects nobody."""
    rows = faces.images.reshape(len(faces), -1)
    distances = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    means = np.stack([rows[np.argsort(d)[:4]].mean(axis=0) for d in distances]).reshape(faces.images.shape)
    released = np.rint(means * 255).astype(np.uint8)
    nothing = FaceModels(np.zeros((1, 1)), np.array([""]))
    evidence = Evidence(released, faces.subjects, [()] * len(faces), np.zeros((len(faces), 1)), nothing, nothing)
    assert KAnonymity(4).check(evidence)
    naive = run_attack("naive", Eigenfaces(), AttackData(faces, FaceSet(released, faces.subjects))).rank1
    assert naive > 1 / 4


def test_two_releases_with_other_groups_can_be_intersected_and_a_series_prevents_it(faces):
    recipe = ksame.recipe("k-same-pixel", k=3)
    _, first = ksame.deidentify(faces, recipe, seed=1)
    _, other = ksame.deidentify(faces, recipe, seed=2)
    _, again = ksame.deidentify(faces, recipe, seed=2, after=first)

    def smallest_intersection(a, b):
        return min(len({t for t in a if a[t] == a[s]} & {t for t in b if b[t] == b[s]}) for s in a)

    assert smallest_intersection(first.groups, other.groups) < 3
    assert smallest_intersection(first.groups, again.groups) >= 3


def test_ties_are_ties():
    faces = drawn_faces(6, seed=3, width=20, height=24)
    twice = FaceSet(np.concatenate([faces.images, faces.images]), np.array([*"abcdef", *"ghijkl"]))
    distances = Eigenfaces().fit(twice).distances(twice, twice)
    assert np.allclose(rank1_scores(distances, twice.subjects, twice.subjects), 0.5)


@pytest.mark.shared
@pytest.mark.parametrize(("name", "params"), [p for p in K_ANONYMOUS if "select" not in p[1]])
def test_on_portraits(portraits, name, params):
    some = portraits.take(np.arange(205))
    release, linkage = ksame.deidentify(some, ksame.recipe(name, **params), seed=8)
    k = release.certificate.promise.params["k"]
    data = AttackData(some, released_faces(release, linkage))
    for scenario in SCENARIOS:
        assert run_attack(scenario, Eigenfaces(), data).rank1 <= 1 / k + 1e-9, scenario
