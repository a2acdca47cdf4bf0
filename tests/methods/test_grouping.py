import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ksame.errors import UsageError
from ksame.methods.grouping import (
    STRATEGIES,
    greedy,
    group_means,
    mdav,
    members,
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
    assert sse(squared_distances(LINE), better) == pytest.approx(0.5 + 2.0)


def test_refine_leaves_no_swap_that_helps():
    codes = np.random.default_rng(1).normal(size=(30, 4))
    distances = squared_distances(codes)
    labels = refine(distances, mdav(distances, 3), 3)
    loss = sse(distances, labels)
    for i in range(30):
        for j in range(i):
            swapped = labels.copy()
            swapped[i], swapped[j] = labels[j], labels[i]
            assert sse(distances, swapped) >= loss * (1 - 1e-6)


points = hnp.arrays(
    np.float64,
    st.tuples(st.integers(4, 24), st.integers(1, 3)),
    elements=st.integers(-5, 5).map(float),
)


@settings(deadline=None, max_examples=60)
@given(points, st.integers(2, 6), st.sampled_from(STRATEGIES), st.integers(0, 99))
def test_groups_partition_the_faces_with_sizes_from_k_to_2k_minus_1(codes, k, strategy, seed):
    k = min(k, len(codes))
    labels = partition(squared_distances(codes), k, strategy, np.random.default_rng(seed))
    sizes = np.bincount(labels)
    assert len(labels) == len(codes)
    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1


@settings(deadline=None, max_examples=40)
@given(points, st.integers(0, 99))
def test_loss_from_distances_is_the_loss_from_means(codes, seed):
    labels = greedy(squared_distances(codes), 2, np.random.default_rng(seed))
    direct = ((codes - group_means(codes, labels)[labels]) ** 2).sum()
    assert sse(squared_distances(codes), labels) == pytest.approx(direct, abs=1e-6)


@settings(deadline=None, max_examples=40)
@given(points, st.integers(2, 4))
def test_refine_never_loses_more(codes, k):
    distances = squared_distances(codes)
    start = mdav(distances, min(k, len(codes)))
    assert sse(distances, refine(distances, start, min(k, len(codes)))) <= sse(distances, start) + 1e-9


@pytest.mark.parametrize("offset", [0.0, 3.0, 1e6])
def test_distances_do_not_depend_on_the_origin(offset):
    codes = np.random.default_rng(0).random((12, 100))
    expected = ((codes[:, None] - codes[None]) ** 2).sum(axis=2)
    assert np.allclose(squared_distances(codes + offset), expected, rtol=0, atol=1e-7)


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
        partition(squared_distances(LINE), k, strategy, np.random.default_rng(0))


@pytest.mark.shared
def test_refined_mdav_loses_at_most_085_of_greedy_on_portraits(portraits):
    from ksame.spaces import EigenSpace

    for components in (40, 59, 0.9, 0.95):
        codes = EigenSpace(components).fit(portraits).encode(portraits)
        distances = squared_distances(codes)
        usual = np.mean([sse(distances, greedy(distances, 10, np.random.default_rng(seed))) for seed in range(20)])
        ratio = sse(distances, refine(distances, mdav(distances, 10), 10)) / usual
        print(f"{components} components: {ratio:.3f}")
        assert ratio <= 0.85
