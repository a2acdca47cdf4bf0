"""Ranks, verification, intervals and verdicts by hand."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import binom

from ksame.attacks import Verdict, clopper_pearson, cmc, rank1_scores, roc, verdict
from ksame.errors import InputError, UsageError

# Four gallery faces of three people, three probes: a plain hit, a tie of two people, a person who is not there.
GALLERY = ["ann", "ann", "bob", "eve"]
PROBES = ["ann", "bob", "zoe"]
DISTANCES = np.array([[3.0, 1.0, 2.0, 4.0], [5.0, 2.0, 2.0, 3.0], [1.0, 1.0, 2.0, 3.0]])


def test_rank1_shares_ties_among_images():
    assert rank1_scores(DISTANCES, GALLERY, PROBES).tolist() == [1.0, 0.5, 0.0]


def test_rank1_takes_rounding_for_a_tie():
    noisy = np.array([[1.0, 1.0 + 1e-9, 2.0]])
    assert rank1_scores(noisy, ["ann", "bob", "eve"], ["bob"]).tolist() == [0.5]
    assert rank1_scores(np.array([[1.0, 1.001, 2.0]]), ["ann", "bob", "eve"], ["bob"]).tolist() == [0.0]


def test_ranks_count_people_not_images():
    third = np.array([[1.0, 1.0, 2.0, 3.0]])
    assert cmc(third, GALLERY, ["eve"], max_rank=4).tolist() == [0.0, 0.0, 1.0, 1.0]


def test_cmc_enters_ties_by_lot():
    curve = cmc(DISTANCES, GALLERY, PROBES, max_rank=4)
    assert curve == pytest.approx([1.5 / 3, 2 / 3, 2 / 3, 2 / 3])


def test_cmc_of_everybody_alike_is_the_diagonal():
    assert cmc(np.zeros((5, 5)), list("abcde"), list("abcde"), 5) == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    with pytest.raises(UsageError, match="'max_rank' parameter of cmc"):
        cmc(np.zeros((1, 1)), ["a"], ["a"], 0)


def test_roc_by_hand():
    """Genuine 1 and 4, impostors 2 and 3: half accepted before any impostor, the other half after both."""
    curve = roc(np.array([[1.0, 2.0], [3.0, 4.0]]), ["ann", "bob"], ["ann", "bob"])
    assert curve.far.tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert curve.tar.tolist() == [0.0, 0.5, 0.5, 0.5, 1.0]
    assert curve.eer() == 0.5
    assert [curve.tar_at(far) for far in (0.0, 0.5, 1.0)] == [0.5, 0.5, 1.0]


def test_roc_of_ties_is_the_diagonal():
    curve = roc(np.zeros((4, 4)), list("abcd"), list("abcd"))
    assert curve.eer() == pytest.approx(0.5)
    assert curve.tar_at(0.01) == pytest.approx(0.01)


def test_roc_of_perfect_recognition():
    curve = roc(1.0 - np.eye(4), list("abcd"), list("abcd"))
    assert curve.eer() == 0.0
    assert curve.tar_at(0.0) == 1.0
    with pytest.raises(UsageError, match="'far' parameter"):
        curve.tar_at(2.0)


def test_roc_needs_both_kinds_of_pairs():
    with pytest.raises(InputError, match="Got 1 and 0"):
        roc(np.zeros((1, 1)), ["ann"], ["ann"])


def test_roc_agrees_with_scikit_learn():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(3)
    distances, who = rng.integers(0, 9, (20, 30)).astype(float), rng.integers(0, 6, 30)
    probes = rng.integers(0, 6, 20)
    curve = roc(distances, who, probes)
    assert trapezoid(curve.tar, curve.far) == pytest.approx(
        roc_auc_score((who == probes[:, None]).ravel(), -distances.ravel())
    )


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (3, 10), (10, 10), (57, 600)])
def test_interval_is_where_the_binomial_tails_are(hits, n):
    low, high = clopper_pearson(hits, n)
    if hits:
        assert binom.sf(hits - 1, n, low) == pytest.approx(0.025)
    if hits < n:
        assert binom.cdf(hits, n, high) == pytest.approx(0.025)
    assert 0 <= low <= hits / n <= high <= 1


def test_interval_of_ties_lies_between():
    low, high = clopper_pearson(2.5, 10)
    assert clopper_pearson(2, 10)[0] < low < clopper_pearson(3, 10)[0]
    assert clopper_pearson(2, 10)[1] < high < clopper_pearson(3, 10)[1]


@pytest.mark.parametrize("bad", [{"successes": 3, "n": 2}, {"successes": 0, "n": 0}, {"successes": -1, "n": 3}])
def test_interval_refuses_nonsense(bad):
    with pytest.raises(UsageError, match="parameter of clopper_pearson"):
        clopper_pearson(**bad)
    with pytest.raises(UsageError, match="'level' parameter"):
        clopper_pearson(1, 2, level=1.0)


@pytest.mark.parametrize(
    ("rate", "n", "bound", "expected"),
    [
        (0.5, 600, 0.5, Verdict.HOLDS),
        (0.2, 600, 0.2, Verdict.HOLDS),
        (0.0, 600, 0.2, Verdict.HOLDS),
        (0.3, 600, 0.2, Verdict.BROKEN),
        (0.21, 600, 0.2, Verdict.TOO_FEW),
        (0.2, 10, 0.2, Verdict.TOO_FEW),
        (0.0, 1, 0.5, Verdict.TOO_FEW),
        (1.0, 1, 0.5, Verdict.TOO_FEW),
        (1.0, 20, 0.5, Verdict.BROKEN),
        (0.0, 600, 0.001, Verdict.HOLDS),
        (1.0, 600, 1.0, Verdict.HOLDS),
        (0.9, 600, None, None),
    ],
)
def test_verdicts(rate, n, bound, expected):
    assert verdict(rate, n, bound) is expected
