import numpy as np
import pytest

from ksame import deidentify, recipe
from ksame.errors import GuaranteeError, InputError, UsageError
from ksame.methods import Furthest, Problem
from ksame.methods.furthest import (
    _ball_test,
    _grow,
    _isometric,
    _join,
    _join_two,
    _margin_test,
    _pair_up,
    pair_clusters,
)
from ksame.privacy.maps import ZeroRecognition
from ksame.privacy.models import Violation

SQUARE = np.array([[0.0, 0.0], [0.0, 1.0], [10.0, 0.0], [10.0, 1.0]])


def unprotected(codes, pairs):
    """Members of pairs that are nearest to themselves after the exchange, by plain loops."""
    found = 0
    for one, two in pairs:
        for own, other in ((one, two), (two, one)):
            for i in own:
                released = codes[i] - codes[own].mean(axis=0) + codes[other].mean(axis=0)
                distances = np.linalg.norm(codes - released, axis=1)
                mine = distances[i]
                distances[i] = np.inf
                found += distances.min() >= mine
    return found


def problem(codes):
    return Problem(codes, np.array([f"s{i}" for i in range(len(codes))]))


def test_two_clusters_change_places_and_keep_their_inner_positions():
    outcome = Furthest(2).run(problem(SQUARE), np.random.default_rng(0))
    became = {
        source[0]: outcome.surrogates[row].tolist() for source, row in zip(outcome.sources, outcome.rows, strict=True)
    }
    assert became == {0: [10.0, 0.0], 1: [10.0, 1.0], 2: [0.0, 0.0], 3: [0.0, 1.0]}


def test_k_same_furthest_gives_each_cluster_the_other_centre():
    outcome = Furthest(2, "centroid").run(problem(SQUARE), np.random.default_rng(0))
    became = {
        source[0]: outcome.surrogates[row].tolist() for source, row in zip(outcome.sources, outcome.rows, strict=True)
    }
    assert became == {0: [10.0, 0.5], 1: [10.0, 0.5], 2: [0.0, 0.5], 3: [0.0, 0.5]}
    assert outcome.promise.k == 2


def test_the_tight_condition_is_refused_where_it_proves_nothing():
    with pytest.raises(UsageError, match="tight condition protects k-Diff-furthest only"):
        Furthest(2, "centroid", "tight")


def test_the_tight_condition_fails_for_centroids():
    """C1 = (±1, 0) and C2 = (1.42, ±1): distance² of the centres above R1² + R2², yet (1, 0) is named."""
    codes = np.array([[-1.0, 0.0], [1.0, 0.0], [1.42, 1.0], [1.42, -1.0]])
    c1, c2 = codes[:2].mean(axis=0), codes[2:].mean(axis=0)
    assert ((c1 - c2) ** 2).sum() > 1.0 + 1.0
    assert np.linalg.norm(codes - c2, axis=1).argmin() == 1


@pytest.mark.parametrize("condition", ["paper", "tight", "exact"])
@pytest.mark.parametrize("k", [2, 3, 5, 10])
def test_nobody_is_exposed_swapped_or_lost(condition, k):
    codes = np.random.default_rng(7).normal(size=(40, 59)) * np.geomspace(5, 0.5, 59)
    for seed in range(10):
        pairs, left = pair_clusters(codes, k, "shifted", condition, np.random.default_rng(seed))
        assert unprotected(codes, pairs) == 0
        assert min(len(cluster) for pair in pairs for cluster in pair) >= 2
        assert sorted([i for pair in pairs for cluster in pair for i in cluster] + left) == list(range(40))
        assert left == [] or condition == "paper"


def test_without_repair_leftovers_are_withheld_never_swapped():
    codes = np.random.default_rng(7).normal(size=(40, 59))
    for seed in range(10):
        pairs, left = pair_clusters(codes, 2, "shifted", "paper", np.random.default_rng(seed), repair=False)
        placed = [i for pair in pairs for cluster in pair for i in cluster]
        assert sorted(placed + left) == list(range(40))
        assert all(len(cluster) >= 2 for pair in pairs for cluster in pair)


def test_high_codings_give_the_same_pairs_as_their_rotation():
    low = np.random.default_rng(3).normal(size=(12, 5))
    turn = np.linalg.qr(np.random.default_rng(4).normal(size=(60, 60)))[0][:5]
    for seed in range(5):
        a = pair_clusters(low, 2, "shifted", "exact", np.random.default_rng(seed))
        b = pair_clusters(low @ turn, 2, "shifted", "exact", np.random.default_rng(seed))
        assert a == b


def test_the_margin_is_checked_on_the_bytes(faces):
    release, linkage = deidentify(faces, recipe("k-diff-furthest", k=2), seed=4)
    assert release.certificate.figures["smallest_margin"] > 0
    margins = [face.figures["margin"] for face in linkage.faces]
    assert min(margins) >= release.certificate.figures["smallest_margin"]
    assert release.certificate.promise.bound == 0.0
    assert "not k-anonymity" in " ".join(release.certificate.promise.not_promised)


def test_a_face_that_fails_after_rounding_is_withheld(faces, monkeypatch):
    verdicts = iter([[Violation(0, "fails")]])
    monkeypatch.setattr(ZeroRecognition, "check", lambda self, evidence: next(verdicts, []))
    release, linkage = deidentify(faces, recipe("k-diff-furthest", k=2), seed=4)
    assert len(release.faces) == len(faces) - 1
    assert release.certificate.counts.withheld == 1
    assert [face.reason for face in linkage.withheld] == ["fails"]


def test_repeated_subjects_are_refused_with_the_reason(family):
    with pytest.raises(InputError, match="needs one image per person"):
        deidentify(family, recipe("k-diff-furthest", k=2), seed=0)


def test_faces_that_cannot_be_told_apart_are_never_released():
    codes = np.zeros((8, 3))
    with pytest.raises(GuaranteeError, match="no two clusters"):
        Furthest(2).run(problem(codes), np.random.default_rng(0))


def test_smaller_clusters_than_k_are_said_aloud():
    codes = np.random.default_rng(7).normal(size=(40, 59))
    outcome = Furthest(10, "centroid").run(problem(codes), np.random.default_rng(1))
    assert outcome.promise.k < 10
    assert "not for k = 10" in outcome.warnings[0]


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("k", range(2, 11))
def test_portraits_thousand_seeds(portraits, k):
    """40 portraits, 59 eigen dimensions, 1,000 seeds: no face fails, none alone, none left; sizes are printed."""
    from ksame.spaces import EigenSpace

    chosen = np.random.default_rng(0).choice(len(portraits), 40, replace=False)
    codes = EigenSpace(59).fit(portraits).encode(portraits)[chosen]
    sizes = []
    for seed in range(1000):
        pairs, left = pair_clusters(codes, k, "shifted", "exact", np.random.default_rng(seed))
        assert left == []
        assert unprotected(codes, pairs) == 0
        sizes += [len(cluster) for pair in pairs for cluster in pair]
        assert min(sizes) >= 2
    for condition in ("paper", "tight"):
        plain = [
            len(cluster)
            for seed in range(100)
            for pair in pair_clusters(codes, k, "shifted", condition, np.random.default_rng(seed), repair=False)[0]
            for cluster in pair
        ]
        print(f"k = {k}, {condition}: mean cluster {np.mean(plain):.2f}")
    print(f"k = {k}, exact with repair: mean cluster {np.mean(sizes):.2f}")


def test_what_an_outcome_says():
    """Four people, two and two far apart: one pair of clusters of two."""
    outcome = Furthest(2, "centroid").run(problem(SQUARE), np.random.default_rng(0))
    assert outcome.groups.tolist() == outcome.rows.tolist() == [0, 0, 1, 1]
    assert outcome.figures == {"mean_cluster": 2.0, "smallest_cluster": 2, "pairs": 1}
    assert (outcome.warnings, dict(outcome.withheld)) == ((), {})
    shifted = Furthest(2).run(problem(SQUARE), np.random.default_rng(0))
    assert shifted.rows.tolist() == [0, 1, 2, 3]
    assert shifted.groups.tolist() == [0, 0, 1, 1]
    assert (shifted.promise, outcome.promise.name) == (ZeroRecognition(), "k-anonymity")
    assert (Furthest(2).name, Furthest(2, "centroid").name) == ("k-diff-furthest", "k-same-furthest")
    assert Furthest(2).promised is ZeroRecognition
    assert Furthest(3).min_subjects == 6
    with pytest.raises(
        UsageError, match=r"'k' parameter of k-diff-furthest must be an integer in \[2, number of subjects / 2"
    ):
        Furthest(3).run(problem(SQUARE), np.random.default_rng(0))


def test_people_with_several_images_share_one_face():
    codes = np.repeat(SQUARE, 2, axis=0) + np.tile([[0.0, 0.1], [0.0, -0.1]], (4, 1))
    several = Problem(codes, np.repeat(list("abcd"), 2))
    outcome = Furthest(2, "centroid").run(several, np.random.default_rng(0))
    assert sorted(map(tuple, outcome.sources)) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    faces = {tuple(s): outcome.surrogates[r].tolist() for s, r in zip(outcome.sources, outcome.rows, strict=True)}
    assert faces[0, 1] == pytest.approx([10.0, 0.5])


def test_who_finds_no_place_is_withheld_with_all_images():
    """Two far pairs, and two people in one place in the middle, who would be nearest to themselves anywhere."""
    codes = np.concatenate([SQUARE, [[5.0, 0.5]], [[5.0, 0.5]]])
    outcome = Furthest(2, repair=False).run(problem(codes), np.random.default_rng(0))
    left = set(range(6)) - {source[0] for source in outcome.sources}
    assert outcome.withheld == dict.fromkeys(left, "no pair of clusters could take it in without exposing somebody")


def distance_test(values):
    """A margin that is positive while all of one cluster lie left of zero and all of the other right of it."""
    return lambda one, two: min(*(-values[i] for i in one), *(values[i] for i in two))


def test_leftovers_join_where_everyone_stays_safe():
    values = [-5.0, -4.0, 5.0, 4.0, -3.0, 2.0, 0.0]
    pairs = [([0, 1], [2, 3])]
    waiting = [4, 5, 6]
    assert _join(pairs, waiting, distance_test(values))
    assert pairs == [([0, 1, 4], [2, 3, 5])]
    assert waiting == [6], "zero is not safe"
    assert not _join(pairs, waiting, distance_test(values))
    assert not _join([], [1], distance_test(values))


def test_a_leftover_joins_the_pair_that_is_safest():
    pairs = [([0], [1]), ([2], [3])]
    margins = {(0, 4): 1.0, (2, 4): 2.0}
    assert _join(pairs, [4], lambda one, two: margins.get(tuple(one), 0.0))
    assert pairs == [([0], [1]), ([2, 4], [3])]


def test_two_leftovers_join_together_or_not_at_all():
    pairs = [([0], [1]), ([2], [3])]
    waiting = [4, 5, 6]
    allowed = {((2, 6), (3, 5))}

    def margin(one, two) -> float:
        return 1.0 if (tuple(one), tuple(two)) in allowed else 0.0

    assert _join_two(pairs, waiting, margin)
    assert (pairs, waiting) == ([([0], [1]), ([2, 6], [3, 5])], [4])
    assert not _join_two(pairs, waiting, margin)


def test_leftovers_form_pairs_of_two_and_two():
    points = np.array([[0.0], [1.0], [9.0], [10.0], [30.0]])
    pairs, waiting = [], [0, 1, 2, 3]
    assert _pair_up(points, pairs, waiting, lambda one, two: 1.0)
    assert (pairs, waiting) == ([([0, 1], [3, 2])], [])
    assert not _pair_up(points, pairs, [0, 1, 2], lambda one, two: 1.0), "three are too few"
    assert not _pair_up(points, pairs, [0, 1, 2, 3], lambda one, two: 0.0)


def test_clusters_grow_from_both_ends():
    points = np.array([[0.0], [1.0], [2.0], [8.0], [9.0], [10.0], [5.0]])
    pool = list(range(7))
    assert _grow(points, pool, 0, 9, lambda one, two: 1.0) == ([0, 1, 2], [5, 4, 3])
    assert _grow(points, pool, 0, 2, lambda one, two: 1.0) == ([0, 1], [5, 4])
    assert _grow(points, pool, 0, 9, lambda one, two: 2.5 - len(one)) == ([0, 1], [5, 4])
    assert _grow(points, pool, 0, 9, lambda one, two: 2.0 - len(one)) is None


def test_margins_by_hand():
    """Shifted by 10, each face of the square lies on another; centres are half way between two, for a margin of 9.5."""
    assert _margin_test(SQUARE, "shifted")([0, 1], [2, 3]) == pytest.approx(10.0 - 1e-3 * 10.0)
    own = np.hypot(10.0, 0.5)
    assert _margin_test(SQUARE, "centroid")([0, 1], [2, 3]) == pytest.approx(own - 0.5 - 1e-3 * 10.0)
    assert _margin_test(SQUARE, "shifted")([0, 2], [1, 3]) == pytest.approx(1.0 - 1e-3 * 1.0)
    assert _margin_test(SQUARE, "centroid")([0, 3], [1, 2]) == pytest.approx(0.0, abs=1e-6), (
        "all are as far from the middle"
    )


def test_balls_by_hand():
    assert _ball_test(SQUARE, squared=False)([0, 1], [2, 3]) == pytest.approx(10.0 - 0.5 - 0.5)
    assert _ball_test(SQUARE, squared=True)([0, 1], [2, 3]) == pytest.approx(100.0 - 0.25 - 0.25)


def test_points_in_fewer_dimensions_are_as_far_apart():
    codes = np.random.default_rng(0).normal(size=(5, 40)) + 3
    points = _isometric(codes)
    assert points.shape == (5, 4)
    far = np.linalg.norm(codes[:, None] - codes, axis=2)
    assert np.allclose(np.linalg.norm(points[:, None] - points, axis=2), far)
    assert _isometric(codes[:, :5]).shape == (5, 5)
    assert np.allclose(_isometric(codes[:, :2]), codes[:, :2] - codes[:, :2].mean(axis=0))


def test_pairs_are_broken_up_for_a_leftover():
    """Breaking the one pair up lets five find places where four and one did not; a repair never withholds more."""
    codes = np.random.default_rng(7).normal(size=(9, 4))
    for seed in range(30):
        _, left = pair_clusters(codes, 2, "shifted", "exact", np.random.default_rng(seed), repair=False)
        pairs, fewer = pair_clusters(codes, 2, "shifted", "exact", np.random.default_rng(seed))
        assert len(fewer) <= len(left)
        assert unprotected(codes, pairs) == 0
