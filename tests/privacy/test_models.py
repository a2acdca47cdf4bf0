"""Promises judged by hand-worked cases."""

from hashlib import sha256

import numpy as np
import pytest

from ksame.errors import InputError, UsageError
from ksame.privacy.certificate import LEARNED_ON, PROMISES, SEALED, Check, PromiseRecord
from ksame.privacy.guard import too_near
from ksame.privacy.invention import InventedRegion
from ksame.privacy.maps import EpsilonKMap, EpsilonMap, WrongMap, ZeroRecognition
from ksame.privacy.models import Bound, Evidence, KAnonymity, NoGuarantee, Violation, patterns
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


def test_a_violation_names_the_first_face_that_shows_it():
    found = KAnonymity(2).check(evidence([7, 1, 1, 8, 8, 7], list("abbcce")))
    assert found == [
        Violation(1, "stands for 1 people, fewer than k = 2"),
        Violation(3, "stands for 1 people, fewer than k = 2"),
    ]


def test_k_anonymity_shows_in_the_bytes_alone():
    released = evidence([1, 1, 7], list("abc")).released
    assert KAnonymity(2).check_public(released) == [Violation(None, "a released face has 1 copies, fewer than k = 2")]
    assert KAnonymity(2).check_public(released[:2]) == []
    assert NoGuarantee().check_public(released) == []


def test_k_anonymity_counts_groups():
    seen = evidence([1, 1, 1, 7, 7, 7, 7], list("aabcdef"))
    assert KAnonymity(2).measure(seen) == {"smallest_group": 2, "largest_group": 4, "distinct_faces": 2}
    assert patterns(seen.released).tolist() == [0, 0, 0, 1, 1, 1, 1]
    alone = Evidence.of_bytes(seen.released, list("aabcdef"))
    assert KAnonymity(2).measure(alone) == KAnonymity(2).measure(seen)


def test_people_who_do_not_exist_add_no_anonymity():
    promise = KAnonymity(10, k_real=2)
    assert promise.risk_bound().value == 0.5
    assert promise.check(evidence([1, 1], ["a", "b"])) == []
    assert promise.params() == {"k": 10, "k_real": 2}
    assert (KAnonymity(10).k_real, KAnonymity(10, 1).risk_bound().value) == (10, 1.0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((1,), "'k' parameter of KAnonymity must be an integer of at least 2. Got 1"),
        ((2.0,), "'k' parameter of KAnonymity must be an integer of at least 2. Got 2.0"),
        ((3, 0), r"'k_real' parameter of KAnonymity must be an integer in \[1, k = 3\]. Got 0"),
        ((3, 4), r"'k_real' parameter of KAnonymity must be an integer in \[1, k = 3\]. Got 4"),
        ((3, 2.0), "'k_real' parameter of KAnonymity"),
    ],
)
def test_numbers_that_are_no_anonymity(values, message):
    with pytest.raises(UsageError, match=message):
        KAnonymity(*values)


def test_zero_recognition_wants_somebody_else_nearer():
    promise = ZeroRecognition()
    good = evidence([1, 2], ["a", "b"], [[3.0, 0.0], [0.5, 0.0]])
    assert promise.check(good) == []
    assert promise.measure(good)["smallest_margin"] == pytest.approx(2.0)
    bad = promise.check(evidence([1, 2], ["a", "b"], [[1.0, 0.0], [0.0, 1.0]]))
    assert [v.face for v in bad] == [0]


def test_a_tie_is_recognition():
    half = evidence([1], ["a"], [[2.0, 0.0]])
    reason = "is nearest to the person it shows"
    assert ZeroRecognition().check(half) == WrongMap().check(half) == [Violation(0, reason)]
    assert ZeroRecognition().measure_faces(half) == {"margin": [0.0]}
    assert ZeroRecognition().measure(half) == {"smallest_margin": 0.0}


def test_every_image_that_a_face_stands_for_is_its_own():
    seen = evidence([1], ["a"], [[3.0, 0.0]])
    both = Evidence(seen.released, seen.subjects, [[0, 2]], np.array([[0.0, 6.0]]), PEOPLE, PEOPLE)
    assert ZeroRecognition().margins(seen) == pytest.approx([2.0])
    assert ZeroRecognition().margins(both) == pytest.approx([0.0])  # c stands for it, and is somebody else too


def test_nobody_else_is_no_margin():
    alone = FaceModels(PEOPLE.codes[:1], PEOPLE.subjects[:1])
    seen = evidence([1], ["a"], [[3.0, 0.0]])
    lonely = Evidence(seen.released, seen.subjects, [[0]], seen.codes, alone, alone)
    assert ZeroRecognition().measure(lonely) == WrongMap().measure(lonely) == {}
    assert ZeroRecognition().check(lonely) != []


def test_wrong_map_compares_with_means():
    assert WrongMap().check(evidence([1], ["a"], [[2.1, 0.0]])) == []
    assert WrongMap().check(evidence([1], ["a"], [[1.9, 0.0]]))
    twice = FaceModels(np.array([[-2.0, 0.0], [2.0, 0.0], [1.0, 0.0]]), np.array(["a", "a", "b"]))
    seen = evidence([1], ["a"], [[0.6, 0.0]])
    assert WrongMap().margins(Evidence(*[seen.released, seen.subjects, [[0]], seen.codes, twice, twice])) == (
        pytest.approx(0.2)
    )


def test_epsilon_map_admits_only_the_exceptions_it_states():
    near, far = [0.1, 0.0], [100.0, 100.0]
    seen = evidence([1, 2], ["a", "b"], [near, far])
    assert EpsilonMap(0.01, 1.0).check(seen)
    assert EpsilonMap(0.01, 1.0, exceptions=1).check(seen) == []
    assert EpsilonMap(0.01, 1.0).check(seen) == [Violation(0, "has a likelihood of 0.01 or more")]
    assert EpsilonMap(0.01, 1.0).measure(seen) == {"above_epsilon": 1}


def test_likelihoods_by_hand():
    promise = EpsilonMap(0.5, 2.0)
    seen = evidence([1, 2, 3], list("abc"), [[2.0, 0.0], [4.0, 4.0], [0.0, 9.0]])
    expected = np.exp([-(2.0**2) / 8, -(4.0**2) / 8, 0.0])  # d² / 2σ² to the nearest
    assert promise.likelihoods(seen.codes, PEOPLE) == pytest.approx(expected)
    assert [v.face for v in promise.check(seen)] == [0, 2]
    assert promise.measure(seen) == {"above_epsilon": 2, "largest_likelihood_met": 1.0}
    at_epsilon = EpsilonMap(float(promise.likelihoods(seen.codes, PEOPLE)[1]), 2.0)
    assert [v.face for v in at_epsilon.check(seen)] == [0, 1, 2], "epsilon itself is not below epsilon"
    assert at_epsilon.measure(seen) == {"above_epsilon": 3}
    assert EpsilonMap(0.5, 2.0, 2).check(seen) == []
    assert EpsilonMap(0.5, 0.5).measure(evidence([1], "a", [[2.0, 0.0]])) == {
        "above_epsilon": 0,
        "largest_likelihood_met": 1e-3,
    }


def test_epsilon_k_map_measures_the_posteriors():
    seen = evidence([1], ["a"], [[2.0, 0.0]], secrets={"neighbours": [["a", "b"]]})
    assert EpsilonKMap(2, 1.0, epsilon=1e-9).check(seen) == []
    assert EpsilonKMap(2, 1.0).measure(seen) == {"largest_epsilon": 0.0, "largest_relative_gap": 0.0}
    off = evidence([1], ["a"], [[1.0, 0.0]], secrets={"neighbours": [["a", "b"]]})
    assert EpsilonKMap(2, 1.0, epsilon=0.5).check(off)


def test_epsilon_k_map_by_hand():
    seen = evidence([1], ["a"], [[1.9, 0.0]], secrets={"neighbours": [["a", "b"]]})
    posterior = np.exp([-(1.9**2) / 2, -(2.1**2) / 2])  # distances 1.9 and 2.1, sigma 1
    posterior /= posterior.sum()
    epsilons, gaps = EpsilonKMap(2, 1.0).reached(seen)
    assert epsilons == pytest.approx((posterior[0] - posterior[1]) ** 2)
    assert gaps == pytest.approx(0.2 / 2.0)
    wide = Violation(0, "its 2 distances differ by more than 2 %")
    unlike = Violation(0, "its k posteriors differ by more than epsilon = 0.01")
    assert EpsilonKMap(2, 1.0).check(seen) == EpsilonKMap(2, 1.0, epsilon=0.01).check(seen) == [wide]
    assert EpsilonKMap(2, 1.0, epsilon=0.01, gap=0.2).check(seen) == [unlike]
    assert EpsilonKMap(2, 1.0, epsilon=0.5, gap=0.2).check(seen) == []
    assert EpsilonKMap(2, 1.0).measure(seen) == {"largest_epsilon": 0.039, "largest_relative_gap": 0.11}
    doubled = np.exp([-(1.9**2) / 8, -(2.1**2) / 8])  # sigma 2
    doubled /= doubled.sum()
    assert EpsilonKMap(2, 2.0).reached(seen)[0] == pytest.approx((doubled[0] - doubled[1]) ** 2)
    flat, _ = EpsilonKMap(2, 0.0).reached(seen)
    assert flat == [0.0], "without a scale all are equally likely"


def test_a_gap_as_wide_as_promised_is_kept():
    seen = evidence([1], ["a"], [[1.5, 0.0]], secrets={"neighbours": [["a", "b"]]})  # distances 1.5 and 2.5
    assert EpsilonKMap(2, 1.0, gap=0.5).check(seen) == []
    assert len(EpsilonKMap(2, 1.0, gap=0.499).check(seen)) == 1


@pytest.mark.parametrize(("apart", "withheld"), [(0.0, True), (0.39, True), (0.41, False), (-0.41, False)])
def test_a_face_within_a_tenth_of_the_distance_between_people_is_an_original(apart, withheld):
    """Half of the people have somebody at a distance of 4; pictures of another size are compared by their codes."""
    seen = evidence([7, 9], ["a", "b"], [[apart, 0.0], [2.0, 2.0]])
    assert list(too_near(seen, np.zeros((3, 2, 2, 1)))) == ([0] if withheld else [])


@pytest.mark.parametrize(("level", "withheld"), [(100, True), (101, True), (102, False), (98, False)])
def test_a_face_that_differs_by_less_than_two_grey_levels_is_an_original(level, withheld):
    originals = np.full((3, 1, 1, 1), level / 255)
    assert list(too_near(evidence([100, 7], ["a", "b"], [[2.0, 2.0]] * 2), originals)) == ([0] if withheld else [])


def test_models_are_means_or_images():
    images = FaceModels(np.array([[0.0, 0.0], [2.0, 0.0], [9.0, 0.0]]), np.array(["a", "a", "b"]))
    seen = evidence([1], ["a"], [[5.0, 0.0]])

    def distances(models, neighbours) -> list[list[float]]:
        secrets = {"neighbours": [neighbours]}
        judged = Evidence(seen.released, seen.subjects, [[0]], seen.codes, images, images, secrets)
        return EpsilonKMap(2, 1.0, models).distances(judged).tolist()

    assert distances("mean", ["a", "b"]) == [[4.0, 4.0]]
    assert distances("images", ["a#2", "b"]) == [[3.0, 4.0]]


@pytest.mark.parametrize(("named", "even"), [(4, True), (10, True), (11, False)])
def test_the_claim_of_one_in_k_falls_where_luck_cannot_explain_who_is_named(named, even):
    """Of twenty faces, luck of one in five names ten or more with a chance of 0.0026, eleven with one of 0.0006."""
    codes = [[0.0, 0.0]] * named + [[4.0, 0.0]] * (20 - named) + [[0.0, 0.0]] * 9
    seen = evidence(range(29), ["a"] * 20 + ["z"] * 9, codes)  # z is no model, and cannot be named
    promise = EpsilonKMap(5, 1.0, epsilon=0.1)
    assert promise.settled(seen) == EpsilonKMap(5, 1.0, epsilon=0.1, even=even)
    assert promise.settled(evidence([1], ["z"], [[0.0, 0.0]])) is promise


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


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        (KAnonymity(3), "b72c1b53"),
        (KAnonymity(5, 2), "9e44f3de"),
        (ZeroRecognition(), "8af5b7f8"),
        (WrongMap(), "4fedcd40"),
        (EpsilonMap(1e-3, 2.0), "0aa65a89"),
        (EpsilonMap(1e-3, 2.0, 4), "24a6030d"),
        (EpsilonKMap(3, 2.0), "0dea5251"),
        (EpsilonKMap(3, 2.0, "images", 0.1), "175728e7"),
        (EpsilonKMap(3, 2.0, even=False), "6215294b"),
        (NoGuarantee(), "d10a7841"),
    ],
)
def test_the_words_of_a_promise_stay(promise, words):
    """They are in certificates that were published: with other words these could not be verified any more."""
    assert sha256(PromiseRecord.of(promise).model_dump_json().encode()).hexdigest()[:8] == words


def test_other_words_of_certificates_stay():
    k, region = KAnonymity(2), InventedRegion()
    how = [Check.of(k).how, Check.of(k, series=True).how]
    words = [*how, SEALED, LEARNED_ON, region.statement(), *region.not_promised()]
    assert sha256("\n".join(words).encode()).hexdigest()[:8] == "089d8b62"
    assert Check.of(k) == Check(name="k-anonymity", how=how[0], passed=True)


def test_a_promise_is_rendered_with_its_bound_and_limits():
    lines = KAnonymity(4).render().splitlines()
    assert lines[0] == KAnonymity(4).statement()
    assert lines[1].startswith("Risk of recognition: at most 0.25; for any attacker who does not know")
    assert lines[2] == "Not promised:"
    assert lines[3:] == [f"  - {limit}" for limit in KAnonymity(4).not_promised()]
    assert "Risk of recognition: no bound; a recogniser may name every face." in NoGuarantee().render()
    assert NoGuarantee().risk_bound() == Bound(None, "a recogniser may name every face")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "other"}, r"^the certificate's promise 'other' cannot be rebuilt \('other'\)$"),
        ({"params": {"k": 1}}, "^the certificate's promise 'k-anonymity' cannot be rebuilt .The 'k' parameter"),
        ({"params": {"l": 1}}, "cannot be rebuilt .*unexpected keyword"),
        ({"scope": "for everybody"}, "^the certificate's words do not match its own promise$"),
    ],
)
def test_a_record_that_is_no_promise_says_why(change, message):
    with pytest.raises(InputError, match=message):
        PromiseRecord.of(KAnonymity(2)).model_copy(update=change).rebuild()


def test_every_promise_can_be_read_back():
    assert set(PROMISES) == {
        "k-anonymity", "wrong-map", "zero-recognition", "epsilon-map", "(epsilon,k)-map", "none",
    }  # fmt: skip
