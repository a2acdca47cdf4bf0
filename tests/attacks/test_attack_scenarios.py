"""Every scenario on drawn people, against methods whose weakness is known."""

import numpy as np
import pytest

import ksame
from drawn import drawn_faces
from ksame.attacks import SCENARIOS, AttackData, Eigenfaces, Mahalanobis, Posterior, Verdict, rank1_scores, run_attack
from ksame.attacks.arithmetic import difference_votes, insider_codes
from ksame.attacks.base import compare, distinct
from ksame.errors import InputError, UsageError
from ksame.faces.faceset import FaceSet, quantise
from ksame.faces.filters import blur, pixelate

K_SAME = ("k-same-pixel", {"k": 3})


def released(faces, name, **params) -> FaceSet:
    release, linkage = ksame.deidentify(faces, ksame.recipe(name, **params), seed=4)
    return FaceSet(release.faces, np.array([face.subject for face in linkage.faces]))


def altered(faces, change) -> FaceSet:
    return faces.with_images(quantise(change(faces.images)))


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name != "insider"])
@pytest.mark.parametrize("recogniser", [Eigenfaces(), Mahalanobis(), Posterior()], ids=lambda r: r.name)
def test_k_same_holds_in_every_scenario(faces, scenario, recogniser):
    for k in (2, 3, 7):
        shown = released(faces, "k-same-pixel", k=k)
        result = run_attack(scenario, recogniser, AttackData(faces, shown, earlier=shown))
        assert result.rank1 <= 1 / k + 1e-9
        assert result.cmc[0] <= 1 / k + 1e-9
        assert result.verdict(1 / k) is not Verdict.BROKEN


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_results_are_whole_and_repeatable(family, scenario):
    coarse, coarser = (altered(family, lambda images, p=p: pixelate(images, p)) for p in (4, 5))
    data = AttackData(family, coarse, earlier=coarser)
    before = family.images.copy()
    result, again = (run_attack(scenario, Eigenfaces(), data, seed=3) for _ in range(2))
    assert np.array_equal(result.scores, again.scores)
    assert np.array_equal(family.images, before)
    assert result.scenario == scenario
    assert result.distances.shape == (result.n_probes, result.n_gallery)
    assert len(result.scores) == len(result.subjects) == len(result.probes) == result.n_probes
    assert np.isfinite(result.distances).all()
    assert ((result.scores >= 0) & (result.scores <= 1)).all()
    assert result.interval[0] <= result.rank1 <= result.interval[1]
    assert (np.diff(result.cmc) >= -1e-12).all()
    assert result.cmc[-1] == pytest.approx(1.0)
    assert set(result.tar_at_far) == {0.01, 0.001}
    assert result.notes


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_people_are_attacked_without_complaint(faces, scenario, n):
    few = faces.take(np.arange(n))
    shown = altered(few, lambda images: pixelate(images, 3))
    result = run_attack(scenario, Eigenfaces(), AttackData(few, shown, earlier=shown))
    assert 0 <= result.rank1 <= 1
    assert (result.eer is None) == (n == 1)
    assert result.verdict(0.5) is Verdict.TOO_FEW or not result.covered or n == 1


def test_unknown_scenario_and_wrong_pairs():
    faces = drawn_faces(3, seed=1, width=12, height=16)
    with pytest.raises(UsageError, match="'name' parameter of run_attack must be one of naive, reverse"):
        run_attack("guess", Eigenfaces(), AttackData(faces, faces))
    with pytest.raises(InputError, match="check how they were paired"):
        AttackData(faces, FaceSet(faces.images, ["x", "y", "z"]))
    with pytest.raises(InputError, match="3 of them are attacked too"):
        AttackData(faces, faces, training=faces)


def test_people_outside_the_gallery_are_counted(faces):
    result = run_attack("naive", Eigenfaces(), AttackData(faces.take(np.arange(20)), faces))
    assert result.rank1 == pytest.approx(20 / 31)
    assert any("11 of 31 probes show people who are not in the gallery" in note for note in result.notes)


def test_training_people_are_used_and_named(faces):
    data = AttackData(faces.take(np.arange(20)), faces.take(np.arange(20)), training=faces.take(np.arange(20, 31)))
    result = run_attack("naive", Eigenfaces(), data)
    assert result.notes == ("trained on a separate training set: 11 faces of 11 people",)
    assert result.params["components"] == 10


def test_parrot_imitates_where_it_can(faces):
    """A mirror image fools naive matching; whoever mirrors the gallery too is not fooled."""
    mirrored = faces.with_images(faces.images[:, ::-1])
    naive = run_attack("naive", Eigenfaces(), AttackData(faces, mirrored))
    parrot = run_attack(
        "parrot", Eigenfaces(), AttackData(faces, mirrored, imitate=lambda f: f.with_images(f.images[:, ::-1]))
    )
    assert naive.rank1 < 0.5
    assert parrot.rank1 == 1.0
    assert parrot.notes[0] == "the attacker ran the method on the originals"


def test_equal_faces_are_compared_once(faces):
    class Counting:
        name = "counting"
        seen = 0

        def params(self):
            return {}

        def fit(self, training):
            return self

        def distances(self, probes, gallery):
            Counting.seen += len(probes)
            return Eigenfaces().fit(gallery).distances(probes, gallery)

    shared = released(faces, *K_SAME[:1], **K_SAME[1])
    distances = compare(Counting(), shared, faces)
    first, which = distinct(shared)
    assert Counting.seen == len(first) == 10
    assert np.array_equal(distances, distances[first][which])


def test_pooling_several_images_helps(faces):
    """Noise hides a person in a single image, and less so in the mean of six."""
    pale = faces.with_images(0.45 + 0.1 * faces.images)  # noise is not clipped
    six = pale.take(np.repeat(np.arange(31), 6))
    noisy = altered(six, lambda images: images + np.random.default_rng(1).normal(0, 0.1, images.shape))
    single, pooled = (run_attack(name, Eigenfaces(), AttackData(pale, noisy)) for name in ("naive", "pooled"))
    assert pooled.n_probes == 31
    assert pooled.rank1 > single.rank1 + 0.1
    assert pooled.notes[0] == "186 released faces pooled into 31 people"


def test_pooled_distances_are_those_of_the_mean_code(family):
    trained = Eigenfaces().fit(family)
    codes = trained.encode(family)
    result = run_attack("pooled", Eigenfaces(), AttackData(family, family))
    mine = codes[family.subjects == result.subjects[0]]
    squares = ((mine.mean(axis=0) - codes) ** 2).sum(axis=1)
    assert np.ptp(result.distances[0] ** 2 - squares) == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize(
    ("change", "said"), [(lambda i: pixelate(i, 6), "by 6 pixels"), (lambda i: blur(i, 3.0), "blur")]
)
def test_automatic_parrot_finds_out_and_imitates(change, said):
    faces = drawn_faces(31, seed=5, width=48, height=64)
    data = AttackData(faces, altered(faces, change))
    result = run_attack("automatic-parrot", Eigenfaces(), data)
    assert said in result.notes[0]
    assert result.rank1 >= 0.95
    assert result.rank1 >= run_attack("naive", Eigenfaces(), data).rank1


def test_automatic_parrot_leaves_what_it_does_not_know(faces):
    result = run_attack("automatic-parrot", Eigenfaces(), AttackData(faces, faces))
    assert result.notes[0] == "neither pixelation nor blur was detected"
    assert result.rank1 == 1.0


def test_sizes_must_agree_to_find_out(faces):
    other = drawn_faces(31, seed=11, width=20, height=32)
    with pytest.raises(InputError, match="register them to one template"):
        run_attack("enhancement", Eigenfaces().fit(faces), AttackData(faces, other))


def test_learned_inverse_undoes_a_secret_linear_scramble(faces):
    """A fixed permutation of all pixels looks like noise, and other people's pairs are enough to undo it."""
    order = np.random.default_rng(2).permutation(faces.images[0].size)
    scrambled = faces.with_images(faces.images.reshape(len(faces), -1)[:, order].reshape(faces.images.shape))
    data = AttackData(faces, scrambled)
    assert run_attack("naive", Eigenfaces(), data).rank1 < 0.3
    assert run_attack("learned-inverse", Eigenfaces(), data).rank1 > 0.9
    halves = AttackData(
        faces.take(np.arange(15)),
        scrambled.take(np.arange(15)),
        faces.take(np.arange(15, 31)),
        # what a method gives back need not be in the order of what it was given
        imitate=lambda f: scrambled.take(np.isin(scrambled.subjects, f.subjects)).take(np.arange(len(f))[::-1]),
    )
    result = run_attack("learned-inverse", Eigenfaces(), halves)
    assert result.notes[0] == "the inverse was learned on 16 faces of other people"
    assert result.rank1 > 0.9


def test_difference_votes_by_hand():
    """Three faces moved by one vector vouch for each other; a fourth, moved by another, has nobody."""
    originals = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 7.0], [31.0, 17.0]])
    moved = originals + np.array([[100.0, 50.0]] * 3 + [[-20.0, 3.0]])
    votes = difference_votes(moved[[2, 0, 1, 3]], originals)
    assert votes.argmax(axis=1)[:3].tolist() == [2, 0, 1]
    assert votes[:3].max(axis=1).tolist() == [2.0, 2.0, 2.0]
    assert votes[3].tolist() == [0.0] * 4
    assert not difference_votes(moved[:1], originals).any()
    assert not difference_votes(np.zeros((4, 2)), np.zeros((4, 2))).any()


def test_k_diff_falls_to_difference_vectors_and_k_same_does_not():
    rng = np.random.default_rng(6)
    few = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 120))  # people differ in four ways, so that clusters grow
    faces = FaceSet(np.clip(0.5 + 0.04 * few, 0, 1).reshape(60, 12, 10, 1), np.arange(60).astype(str))
    diff = AttackData(faces, released(faces, "k-diff-furthest", k=5))
    result = run_attack("difference", Eigenfaces(), diff)
    assert run_attack("naive", Eigenfaces(), diff).rank1 < 0.1
    assert result.rank1 > 0.8
    assert result.verdict(0.0) is Verdict.BROKEN
    same = run_attack("difference", Eigenfaces(), AttackData(faces, released(faces, "k-same-pixel", k=5)))
    assert same.rank1 <= 1 / 5
    assert same.verdict(1 / 5) is Verdict.HOLDS


def test_insider_by_hand():
    originals = np.array([[0.0, 1.0], [4.0, 3.0], [2.0, 8.0]])
    shared = originals[:2].mean(axis=0)
    codes = np.stack([shared, shared, originals[2]])
    reckoned, members = insider_codes(
        codes, np.array([0, 0, 1]), ["ann", "bob", "eve"], originals, ["ann", "bob", "eve"]
    )
    assert np.allclose(reckoned, originals)
    assert members.tolist() == [2, 2, 1]


def test_insider_breaks_k_same_and_no_promise_speaks_of_it(faces):
    result = run_attack("insider", Eigenfaces(), AttackData(faces, released(faces, "k-same-pixel", k=3)))
    assert result.rank1 == 1.0
    assert result.verdict(1 / 3) is None
    assert "31 of 31 released faces are shared by several people" in result.notes


def test_insider_cannot_subtract_a_synthetic_person(meshed):
    """A group that shares somebody who does not exist gives insiders nothing."""
    release = released(meshed, "k-same-m", k=3, surrogate="someone-else")
    assert run_attack("insider", Eigenfaces(), AttackData(meshed, release)).rank1 <= 1 / 3


def test_1500_correct_releases_never_exceed_one_half():
    """31 faces, k = 2: pairs and one group of three share a mean; no draw of faces scores above 1/k.

    Scored twice: equal faces compared once, as scenarios do, and each by itself, where only the tolerance keeps ties.
    """
    rng = np.random.default_rng(7)
    groups = np.minimum(np.arange(31) // 2, 14)
    who = np.arange(31).astype(str)
    for _ in range(1500):
        originals = FaceSet(rng.random((31, 4, 3, 1)), who)
        means = np.stack([originals.images[groups == g].mean(axis=0) for g in range(15)])
        shared = FaceSet(quantise(means)[groups], who)
        for probes, gallery in ((shared, originals), (originals, shared), (shared, shared)):
            trained = Eigenfaces().fit(gallery)
            for distances in (compare(trained, probes, gallery), trained.distances(probes, gallery)):
                assert rank1_scores(distances, who, who).mean() <= 0.5 + 1e-12
