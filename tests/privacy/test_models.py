"""Promises judged by hand-worked cases."""

import numpy as np
import pytest

from ksame.errors import InputError, UsageError
from ksame.privacy.certificate import PROMISES, PromiseRecord
from ksame.privacy.maps import EpsilonKMap, EpsilonMap, WrongMap, ZeroRecognition
from ksame.privacy.models import Evidence, KAnonymity, NoGuarantee
from ksame.spaces.reference import FaceModels

PEOPLE = FaceModels(np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 9.0]]), np.array(["a", "b", "c"]))


def evidence(patterns, subjects, codes=None, **more) -> Evidence:
    released = np.array(patterns, dtype=np.uint8).reshape(-1, 1, 1, 1)
    n = len(released)
    codes = np.zeros((n, 2)) if codes is None else np.array(codes, dtype=float)
    sources = [[list(PEOPLE.subjects).index(s)] if s in PEOPLE.subjects else [0] for s in subjects]
    return Evidence(released, np.array(subjects), sources, codes, PEOPLE, PEOPLE, **more)


@pytest.mark.parametrize(
    ("k", "patterns", "subjects", "broken"),
    [
        (2, [1, 1, 7, 7], "abcd", None),
        (2, [1, 1, 7, 8], "abcd", "stands for 1 people, fewer than k = 2"),
        (2, [1, 1, 7, 7], "abcc", "stands for 1 people"),
        (2, [1, 1, 1, 7, 7], "aabcd", "has 2 of the 3 copies, more than 1/2"),
        (3, [1, 1, 1, 1, 1, 1], "aabbcc", None),
        (3, [1, 1, 1, 1], "abcd", None),
        (4, [1, 1, 1], "abc", "fewer than k = 4"),
    ],
)
def test_k_anonymity_counts_people_not_copies(k, patterns, subjects, broken):
    found = KAnonymity(k).check(evidence(patterns, list(subjects)))
    assert bool(found) == (broken is not None)
    if broken:
        assert broken in found[0].reason


def test_people_who_do_not_exist_add_no_anonymity():
    promise = KAnonymity(10, k_real=2)
    assert promise.risk_bound().value == 0.5
    assert promise.check(evidence([1, 1], ["a", "b"])) == []


def test_zero_recognition_wants_somebody_else_nearer():
    promise = ZeroRecognition()
    good = evidence([1, 2], ["a", "b"], [[3.0, 0.0], [0.5, 0.0]])
    assert promise.check(good) == []
    assert promise.measure(good)["smallest_margin"] == pytest.approx(2.0)
    bad = promise.check(evidence([1, 2], ["a", "b"], [[1.0, 0.0], [0.0, 1.0]]))
    assert [v.face for v in bad] == [0]


def test_wrong_map_compares_with_means():
    assert WrongMap().check(evidence([1], ["a"], [[2.1, 0.0]])) == []
    assert WrongMap().check(evidence([1], ["a"], [[1.9, 0.0]]))


def test_epsilon_map_admits_only_the_exceptions_it_states():
    near, far = [0.1, 0.0], [100.0, 100.0]
    seen = evidence([1, 2], ["a", "b"], [near, far])
    assert EpsilonMap(0.01, 1.0).check(seen)
    assert EpsilonMap(0.01, 1.0, exceptions=1).check(seen) == []
    assert EpsilonMap(0.01, 1.0).measure(seen)["above_epsilon"] == 1


def test_epsilon_k_map_measures_the_posteriors():
    seen = evidence([1], ["a"], [[2.0, 0.0]], secrets={"neighbours": [["a", "b"]]})
    assert EpsilonKMap(2, 1.0, epsilon=1e-9).check(seen) == []
    assert EpsilonKMap(2, 1.0).measure(seen) == {"largest_epsilon": 0.0, "largest_relative_gap": 0.0}
    off = evidence([1], ["a"], [[1.0, 0.0]], secrets={"neighbours": [["a", "b"]]})
    assert EpsilonKMap(2, 1.0, epsilon=0.5).check(off)


@pytest.mark.parametrize(
    "promise",
    [
        KAnonymity(3),
        KAnonymity(5, 2),
        ZeroRecognition(),
        WrongMap(),
        EpsilonMap(1e-3, 2.0, 4),
        EpsilonKMap(3, 2.0, "images", 0.1),
        NoGuarantee(),
    ],
    ids=lambda p: p.name,
)
def test_a_promise_survives_its_record_and_a_tampered_one_does_not(promise):
    record = PromiseRecord.of(promise)
    assert record.rebuild() == promise
    for change in ({"statement": "All is well."}, {"bound": 1e-6}, {"not_promised": ()}, {"params": {"k": -3}}):
        with pytest.raises(InputError):
            record.model_copy(update=change).rebuild()


def test_every_promise_can_be_read_back():
    assert set(PROMISES) == {
        "k-anonymity", "wrong-map", "zero-recognition", "epsilon-map", "(epsilon,k)-map", "none",
    }  # fmt: skip


def test_k_below_two_is_no_anonymity():
    with pytest.raises(UsageError, match="'k' parameter of KAnonymity must be an integer of at least 2. Got 1"):
        KAnonymity(1)
