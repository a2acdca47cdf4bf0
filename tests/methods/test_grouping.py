import json
import tracemalloc

import numpy as np
import pytest
from benchmarks.grouping_speed import measure
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ksame.arrays import members
from ksame.bench.grouping import draw_codes, exact_greedy
from ksame.errors import UsageError
from ksame.methods import grouping
from ksame.methods.cutting import cut
from ksame.methods.grouping import (
    LEAF,
    STRATEGIES,
    Neighbours,
    _Search,
    _settled,
    greedy,
    group_losses,
    group_means,
    mdav,
    partition,
    refine,
    squared_distances,
    sse,
)

LINE = np.array([[0.0], [1.0], [10.0], [11.0], [12.0]])


def test_greedy_takes_the_nearest_and_folds_the_rest_in():
    for seed in range(20):
        labels = greedy(squared_distances(LINE), 2, np.random.default_rng(seed))
        assert sorted(np.bincount(labels)) == [2, 3]


def test_mdav_starts_at_the_far_end():
    assert [sorted(group.tolist()) for group in members(mdav(squared_distances(LINE), 2))] == [[0, 1], [2, 3, 4]]


def test_refine_undoes_a_bad_start():
    start = np.array([0, 1, 0, 1, 1])
    better = refine(squared_distances(LINE), start, 2)
    assert sorted(sorted(group.tolist()) for group in members(better)) == [[0, 1], [2, 3, 4]]
    assert sse(LINE, better) == pytest.approx(0.5 + 2.0)


def test_refine_leaves_no_swap_that_helps():
    codes = np.random.default_rng(1).normal(size=(30, 4))
    distances = squared_distances(codes)
    labels = refine(distances, mdav(distances, 3), 3)
    loss = sse(codes, labels)
    for i in range(30):
        for j in range(i):
            swapped = labels.copy()
            swapped[i], swapped[j] = labels[j], labels[i]
            assert sse(codes, swapped) >= loss * (1 - 1e-6)


points = hnp.arrays(
    np.float64,
    st.tuples(st.integers(4, 24), st.integers(1, 3)),
    elements=st.integers(-5, 5).map(float),
)


@settings(deadline=None, max_examples=60)
@given(points, st.integers(2, 6), st.sampled_from(STRATEGIES), st.integers(0, 99))
def test_groups_partition_the_faces_with_sizes_from_k_to_2k_minus_1(codes, k, strategy, seed):
    k = min(k, len(codes))
    labels = partition(Neighbours(codes), k, strategy, np.random.default_rng(seed))
    sizes = np.bincount(labels)
    assert len(labels) == len(codes)
    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1


@settings(deadline=None, max_examples=40)
@given(points, st.integers(0, 99))
def test_loss_is_half_the_mean_squared_distance_inside_groups(codes, seed):
    distances = squared_distances(codes)
    labels = greedy(distances, 2, np.random.default_rng(seed))
    inside = sum(distances[np.ix_(group, group)].sum() / (2.0 * len(group)) for group in members(labels))
    assert sse(codes, labels) == pytest.approx(inside, abs=1e-6)


@settings(deadline=None, max_examples=40)
@given(points, st.integers(2, 4))
def test_refine_never_loses_more(codes, k):
    distances = squared_distances(codes)
    start = mdav(distances, min(k, len(codes)))
    assert sse(codes, refine(distances, start, min(k, len(codes)))) <= sse(codes, start) + 1e-9


@pytest.mark.parametrize("offset", [0.0, 3.0, 1e6])
def test_distances_do_not_depend_on_the_origin(offset):
    codes = np.random.default_rng(0).random((12, 100))
    expected = ((codes[:, None] - codes[None]) ** 2).sum(axis=2)
    assert np.allclose(squared_distances(codes + offset), expected, rtol=0, atol=1e-7)


def plain_distances(codes):
    """Squared distances, one formula for the whole matrix: what the tiles must give to the bit."""
    centre = codes.mean(axis=0)
    offset = float(centre @ centre)
    if offset > 100.0 * (float(np.vdot(codes, codes)) / len(codes) - offset):
        codes = codes - centre
    gram = codes @ codes.T
    squares = np.diag(gram)
    distances = squares[:, None] + squares[None, :] - 2.0 * gram
    distances = np.maximum((distances + distances.T) / 2.0, 0.0)
    np.fill_diagonal(distances, 0.0)
    largest = distances.max()
    return np.round(distances, decimals=10 - int(np.ceil(np.log10(largest)))) if largest > 0 else distances


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(("n", "d"), [(5, 1), (256, 3), (257, 300), (700, 59)])
def test_distances_by_tiles_are_those_of_one_formula_to_the_bit(n, d, offset):
    codes = np.random.default_rng(n).standard_normal((n, d)) + offset
    assert np.array_equal(squared_distances(codes), plain_distances(codes))
    assert np.array_equal(squared_distances(np.round(codes)), plain_distances(np.round(codes)))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_fits_into_one_leaf_is_grouped_all_against_all(strategy):
    for codes in (
        draw_codes(500).astype(np.float64),
        np.round(draw_codes(200, even=True)).astype(np.float64),
    ):
        distances = plain_distances(codes)
        rng = np.random.default_rng(3)
        expected = greedy(distances, 7, rng) if strategy.startswith("greedy") else mdav(distances, 7)
        expected = refine(distances, expected, 7) if "+" in strategy else expected
        assert np.array_equal(partition(Neighbours(codes), 7, strategy, np.random.default_rng(3)), expected)


@settings(deadline=None, max_examples=60)
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(30, 90), st.integers(1, 3)), elements=st.integers(-3, 3).map(float)),
    st.integers(2, 12),
    st.sampled_from(STRATEGIES),
)
def test_several_leaves_give_groups_of_k_to_2k_minus_1_and_the_same_ones_again(codes, k, strategy):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "LEAF", 16)
        labels = partition(Neighbours(codes), k, strategy, np.random.default_rng(1))
        again = partition(Neighbours(codes.astype(np.float32)), k, strategy, np.random.default_rng(1))
    sizes = np.bincount(labels)
    assert sizes.sum() == len(codes)
    assert k <= sizes.min() <= sizes.max() <= 2 * k - 1
    assert np.array_equal(labels, again)


def test_thousands_of_equal_faces_are_grouped_too():
    sizes = np.bincount(partition(Neighbours(np.ones((2 * LEAF + 1, 3))), 10, "greedy", np.random.default_rng(0)))
    assert 10 <= sizes.min() <= sizes.max() <= 19


@pytest.mark.parametrize("kind", ["portraits", "even"])
@pytest.mark.parametrize(("n", "k"), [(5000, 10), (5000, 100), (4500, 1000)])
def test_leaves_cost_at_most_five_per_cent_of_loss(kind, n, k):
    codes = draw_codes(n, even=kind == "even")
    labels = partition(Neighbours(codes), k, "greedy", np.random.default_rng(0))
    assert np.bincount(labels).min() >= k
    assert sse(codes, labels) <= 1.05 * sse(codes, exact_greedy(codes, k))


def test_memory_does_not_grow_with_the_square_of_the_faces():
    codes = draw_codes(12_000)
    tracemalloc.start()
    partition(Neighbours(codes), 10, "greedy", np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * 8 * LEAF**2  # all distances at once would take twelve times as much


@pytest.mark.parametrize(
    ("k", "strategy", "message"),
    [
        (1, "greedy", "'k' parameter of k-Same must be an integer in \\[2, number of subjects = 5\\]. Got 1"),
        (6, "greedy", "Got 6"),
        (2, "random", "'grouping' parameter of k-Same must be one of greedy"),
    ],
)
def test_bad_parameters_are_named(k, strategy, message):
    with pytest.raises(UsageError, match=message):
        partition(Neighbours(LINE), k, strategy, np.random.default_rng(0))


@pytest.mark.shared
def test_refined_mdav_loses_at_most_085_of_greedy_on_portraits(portraits):
    from ksame.spaces import EigenSpace

    for components in (40, 59, 0.9, 0.95):
        codes = EigenSpace(components).fit(portraits).encode(portraits)
        distances = squared_distances(codes)
        usual = np.mean([sse(codes, greedy(distances, 10, np.random.default_rng(seed))) for seed in range(20)])
        ratio = sse(codes, refine(distances, mdav(distances, 10), 10)) / usual
        print(f"{components} components: {ratio:.3f}")
        assert ratio <= 0.85


def test_the_benchmark_measures_what_json_can_hold():
    found = json.loads(json.dumps(measure("portraits", 300, "greedy", 10)))
    assert found["smallest_group"] >= 10
    assert found["seconds"] > 0


def test_mdav_groups_round_the_far_ends():
    """Nine on a line: the first group round 20, the second round what is furthest from it, the last what is left."""
    codes = np.array([[0.0], [1.0], [2.0], [8.0], [9.0], [10.0], [18.0], [19.0], [20.0]])
    assert mdav(squared_distances(codes), 3).tolist() == [1, 1, 1, 2, 2, 2, 0, 0, 0]
    assert mdav(squared_distances(codes), 4).tolist() == [1, 1, 1, 1, 1, 0, 0, 0, 0]
    assert mdav(squared_distances(codes), 5).tolist() == [0] * 9
    assert mdav(squared_distances(codes[:8]), 2).tolist() == [1, 1, 2, 2, 3, 3, 0, 0]


def test_greedy_by_hand():
    """The generator's first draw of five is the centre; ties go to the lower index, and fewer than 2k stay together."""
    codes = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
    for seed in range(10):
        centre = int(np.random.default_rng(seed).integers(5))
        partner = centre - 1 if centre else 1
        expected = [0 if i in (centre, partner) else 1 for i in range(5)]
        assert greedy(squared_distances(codes), 2, np.random.default_rng(seed)).tolist() == expected
    assert greedy(squared_distances(codes), 3, np.random.default_rng(0)).tolist() == [0] * 5


def test_moves_and_swaps_have_the_gain_they_claim():
    codes = np.random.default_rng(5).normal(size=(11, 3))
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
    search = _Search(squared_distances(codes), labels, 3)

    def gained(changed) -> float:
        return sse(codes, labels) - sse(codes, changed)

    for face in range(11):
        move, target = search._best_move(face)
        others = [np.where(np.arange(11) == face, group, labels) for group in {0, 1, 2} - {int(labels[face])}]
        if labels[face] == 1:
            assert (move, target) == (-np.inf, -1), "a group of k loses nobody"
        else:
            assert move == pytest.approx(max(map(gained, others)))
            assert gained(np.where(np.arange(11) == face, target, labels)) == pytest.approx(move)
        swap, partner = search._best_swap(face)
        gains = []
        for other in np.flatnonzero(labels != labels[face]):
            swapped = labels.copy()
            swapped[[face, other]] = labels[[other, face]]
            gains.append(gained(swapped))
        assert swap == pytest.approx(max(gains))
        assert labels[partner] != labels[face]


def test_groups_never_grow_beyond_2k_minus_1():
    codes = np.array([[0.0], [0.1], [0.2], [0.3], [9.0], [9.1], [9.2]])
    search = _Search(squared_distances(codes), np.array([0, 0, 0, 1, 1, 1, 1]), 2)
    assert search._best_move(3)[0] == -np.inf, "three are as many as two may be in a group of k"
    wider = _Search(squared_distances(codes), np.array([0, 0, 0, 1, 1, 1, 1]), 3)
    assert wider._best_move(3)[1] == 0


def test_the_sums_of_the_search_stay_true():
    codes = np.random.default_rng(6).normal(size=(9, 2))
    distances = squared_distances(codes)
    search = _Search(distances, np.array([0, 0, 0, 0, 1, 1, 1, 1, 1]), 2)
    search._transfer(2, 1)
    fresh = _Search(distances, search.labels, 2)
    assert search.labels.tolist() == [0, 0, 1, 0, 1, 1, 1, 1, 1]
    assert np.allclose(search.sums, fresh.sums)
    assert np.allclose(search.inner, fresh.inner)
    assert search.sizes.tolist() == fresh.sizes.tolist() == [3, 6]


def test_means_and_losses_by_hand():
    labels = np.array([1, 0, 1, 0, 0])
    assert group_means(LINE, labels).tolist() == [[8.0], [5.0]]
    assert group_losses(LINE, labels).tolist() == [49 + 9 + 16, 50.0]
    assert sse(LINE, labels) == 124.0
    people = Neighbours(LINE)
    assert people.loss(labels) == 124.0
    assert people.distances[0, 4] == 144.0
    assert people.loss(labels) == 124.0
    assert people.take(np.arange(5)) is people
    assert people.take(np.array([3, 0])).codes.tolist() == [[11.0], [0.0]]
    assert len(people) == 5


@pytest.mark.parametrize(
    ("k", "strategy", "message"),
    [
        (
            2,
            "best",
            r"'grouping' parameter of k-Same must be one of greedy, mdav, greedy\+refine, mdav\+refine. Got 'best'",
        ),
        (1, "greedy", r"'k' parameter of k-Same must be an integer in \[2, number of subjects = 5\]. Got 1"),
        (6, "greedy", r"'k' parameter of k-Same must be an integer in \[2, number of subjects = 5\]. Got 6"),
    ],
)
def test_groups_that_cannot_be(k, strategy, message):
    with pytest.raises(UsageError, match=message):
        partition(Neighbours(LINE), k, strategy, np.random.default_rng(0))


def test_leaves_are_cut_across_the_longest_direction():
    codes = np.array([[0.0, 5.0], [100.0, 0.0], [1.0, 0.0], [101.0, 5.0], [50.0, 2.0], [51.0, 2.0]])
    leaves = cut(codes, np.arange(6), 3)
    assert [leaf.tolist() for leaf in leaves] in ([[0, 2], [4, 5], [1, 3]], [[1, 3], [4, 5], [0, 2]])
    assert [len(leaf) for leaf in cut(codes, np.arange(5), 2)] == [2, 3]
    assert [leaf.tolist() for leaf in cut(codes, np.array([1, 4]), 1)] == [[1, 4]]
    assert [len(leaf) for leaf in cut(np.zeros((7, 2)), np.arange(7), 2)] == [3, 4]
    assert [leaf.tolist() for leaf in cut(np.zeros((4, 2)), np.arange(4), 2)] == [[0, 1], [2, 3]], "ties by their order"


def test_the_worst_groups_of_a_leaf_are_formed_again():
    codes = np.array([[0.0], [1.0], [10.0], [30.0], [40.0], [40.5], [50.0], [50.0]])
    labels = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    assert _settled(codes, labels).tolist() == [0, 0, -1, -1, 1, 1, 2, 2], "a quarter of four groups"
    assert _settled(codes[:6], labels[:6]).tolist() == [0, 0, 1, 1, 2, 2], "a quarter of three is none"
