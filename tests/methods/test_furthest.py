import numpy as np
import pytest

from ksame import deidentify, recipe
from ksame.errors import GuaranteeError, InputError, UsageError
from ksame.methods import Furthest, Problem
from ksame.methods.furthest import pair_clusters
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
