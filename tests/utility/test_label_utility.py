"""Whether labels can be read, and why folds by group are needed."""

import sys

import numpy as np
import pytest

from ksame.errors import InputError, UsageError
from ksame.utility import label_utility


def rates(codes, labels, subjects, groups, **options):
    found = label_utility(codes, labels, subjects=subjects, groups=groups, name="mood", **options)
    return {u.kernel: u for u in found}


def test_a_label_that_shows_is_read_by_both_kernels():
    rng = np.random.default_rng(0)
    labels = np.repeat(["calm", "glad"], 40)
    codes = rng.normal(0, 1, (80, 30)) + np.where(labels == "glad", 1.5, -1.5)[:, None]
    found = rates(codes, labels, np.arange(80), np.arange(80))
    for utility in found.values():
        assert utility.by_subject.rate > 0.95
        assert utility.by_group.rate > 0.95
        assert utility.by_subject.interval[0] < utility.by_subject.rate <= utility.by_subject.interval[1]
        assert utility.majority == 0.5


def test_faces_of_a_group_never_straddle_folds():
    """Random labels on k-Same-Select faces: by subject a machine knows the bytes, by group it knows nothing."""
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(30), 4)
    codes = rng.normal(0, 1, (30, 50))[group]
    labels = np.where(rng.random(30) < 0.5, "calm", "glad")[group]
    for utility in rates(codes, labels, np.arange(120), group).values():
        assert utility.by_subject.rate > 0.98
        assert utility.by_group.rate < 0.75


def test_groups_and_subjects_are_joined_over_each_other():
    """One person in two groups ties both groups together: three faces of one chain share a fold."""
    rng = np.random.default_rng(2)
    subjects = np.array(["a", "a", "b"] + [f"s{i}" for i in range(30)])
    groups = np.array(["g", "h", "h"] + [f"t{i}" for i in range(30)])
    labels = np.array(["calm", "glad"] * 16 + ["calm"])
    found = rates(rng.normal(0, 1, (33, 5)), labels, subjects, groups)
    assert found["rbf"].by_group is not None


def test_without_scikit_learn_nothing_is_read_and_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(UsageError, match=r"pip install 'ksame\[labels\]'"):
        rates(np.zeros((4, 9)), ["calm", "glad"] * 2, np.arange(4), np.arange(4))


def test_flat_faces_give_the_commonest_class():
    labels = np.array(["calm"] * 30 + ["glad"] * 10)
    found = rates(np.zeros((40, 9)), labels, np.arange(40), np.arange(40))
    assert found["linear"].by_subject.rate <= 0.75 + 1e-9


def test_too_few_groups_give_nothing():
    labels = np.array(["calm", "glad"] * 10)
    found = rates(np.random.default_rng(0).normal(size=(20, 4)), labels, np.arange(20), np.zeros(20))
    assert found["linear"].by_group is None
    assert found["linear"].by_subject is not None


def test_the_same_seed_gives_the_same_folds():
    rng = np.random.default_rng(5)
    codes, labels = rng.normal(size=(60, 8)), rng.choice(["calm", "glad"], 60)
    again = [rates(codes, labels, np.arange(60), np.arange(60), seed=s)["rbf"].by_subject for s in (4, 4)]
    assert again[0] == again[1]


@pytest.mark.parametrize(
    ("labels", "options", "error", "message"),
    [
        (["calm"] * 6, {}, InputError, "one value only"),
        (["calm"] * 5, {}, InputError, "as many labels"),
        (["calm", "glad"] * 3, {"folds": 1}, UsageError, "'folds' parameter of label_utility"),
    ],
)
def test_bad_values(labels, options, error, message):
    with pytest.raises(error, match=message):
        rates(np.zeros((6, 2)), labels, np.arange(6), np.arange(6), **options)
