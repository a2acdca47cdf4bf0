"""k-Same, the average and blackout on six people in a plane, by hand."""

import numpy as np
import pytest

from ksame.errors import GuaranteeError, UsageError
from ksame.methods import Average, Blackout, KSame, Problem
from ksame.methods.base import equal_copies, one_copy_each
from ksame.privacy.models import KAnonymity
from ksame.spaces.reference import FaceModels

CODES = np.array([[0.0, 0.0], [2.0, 0.0], [10.0, 0.0], [12.0, 0.0], [20.0, 6.0], [22.0, 6.0]])
PEOPLE = np.array(list("abcdef"))


def run(method, problem: Problem, seed=0):
    return method.run(problem, np.random.default_rng(seed))


def became(outcome) -> dict[tuple[int, ...], tuple[float, ...]]:
    """Which face stands for which images."""
    faces = map(tuple, outcome.surrogates[outcome.rows].tolist())
    return {tuple(source): face for source, face in zip(outcome.sources, faces, strict=True)}


def test_neighbours_share_their_mean():
    outcome = run(KSame(2, "mdav"), Problem(CODES, PEOPLE))
    assert became(outcome) == {
        **dict.fromkeys([(0,), (1,)], (1.0, 0.0)),
        **dict.fromkeys([(2,), (3,)], (11.0, 0.0)),
        **dict.fromkeys([(4,), (5,)], (21.0, 6.0)),
    }
    assert len(outcome.surrogates) == 3
    assert outcome.groups.tolist() == outcome.rows.tolist()
    assert outcome.promise == KAnonymity(2)
    assert outcome.figures == {"loss_sse": 6.0, "mean_group": 2.0}
    assert dict(outcome.withheld) == {}


def test_people_are_grouped_not_images():
    codes = np.array([[0.0], [2.0], [3.0], [9.0], [9.0]])
    outcome = run(KSame(2), Problem(codes, np.array(["a", "a", "b", "c", "c"])))
    assert became(outcome) == dict.fromkeys([(0, 1), (2,), (3, 4)], (13 / 3,))
    assert outcome.promise == KAnonymity(3)


def test_neighbours_may_be_sought_in_another_coding():
    far = np.array([[0.0], [5.0], [0.1], [5.1], [9.0], [9.1]])
    outcome = run(KSame(2, "mdav"), Problem(CODES, PEOPLE, distance_codes=far))
    assert became(outcome)[0,] == became(outcome)[2,] == (5.0, 0.0)
    twice = Problem(CODES, np.array(list("abcabc")), distance_codes=far)
    assert twice.by_subject.distance_codes.tolist() == [[(0.0 + 5.1) / 2], [7.0], [(0.1 + 9.1) / 2]]
    assert (twice.by_subject.strata, twice.by_subject.landmarks) == (None, None)
    assert Problem(CODES, PEOPLE).by_subject.codes is CODES


def aligned(strata: str) -> Problem:
    """Three people with two images each, all in one group."""
    return Problem(CODES, np.array(list("aabbcc")), np.array(list(strata)))


def test_one_face_for_each_group_and_label():
    outcome = run(KSame(3), aligned("xyxyxy"))
    assert became(outcome) == {
        **dict.fromkeys([(0,), (2,), (4,)], (10.0, 2.0)),
        **dict.fromkeys([(1,), (3,), (5,)], (12.0, 2.0)),
    }
    assert outcome.groups.tolist() == [0] * 6
    assert outcome.promise == KAnonymity(3)
    assert outcome.figures == {"mean_group": 3.0}
    assert dict(outcome.withheld) == {}


def test_labels_that_not_everybody_has_are_withheld():
    outcome = run(KSame(3), aligned("xxxyxx"))
    assert became(outcome) == dict.fromkeys([(0, 1), (2,), (4, 5)], ((1.0 + 10.0 + 21.0) / 3, 2.0))
    assert outcome.withheld == {3: "not every member of its group has this label"}
    with pytest.raises(GuaranteeError, match="^No group has a label that all of its members share; nothing can be rel"):
        run(KSame(3), aligned("xxyyzz"))


def test_groups_of_aligned_faces_are_told_apart():
    codes = np.array([[0.0], [1.0], [10.0], [11.0]] * 2)
    outcome = run(KSame(2), Problem(codes, np.array(list("abcdabcd")), np.array(list("xxxxyyyz"))))
    faces = became(outcome)
    assert faces[0,] == faces[1,] == (0.5,)
    assert faces[2,] == faces[3,] == (10.5,)
    assert set(outcome.withheld) == {6, 7}
    groups = dict(zip(map(tuple, outcome.sources), outcome.groups.tolist(), strict=True))
    assert groups[0,] == groups[1,] == groups[4,] == groups[5,] != groups[2,] == groups[3,]


def test_too_few_people():
    message = r"'k' parameter of k-same must be an integer in \[2, number of subjects = 3\]. Got 4"
    with pytest.raises(UsageError, match=message):
        run(KSame(4), aligned("xyxyxy"))
    assert KSame(4).min_subjects == 4


def test_somebody_else_is_drawn_once_for_a_group():
    """One seed for each group: all labels of a group get the same person, in other clothes."""
    drawn = []

    def stranger(codes, rng):
        drawn.append((codes.tolist(), rng.random()))
        return np.full(2, float(len(drawn)))

    method = KSame(3, surrogate="someone-else")
    with pytest.raises(UsageError, match="^Only the face model can draw somebody else; add --coding model.$"):
        run(method, aligned("xyxyxy"))
    problem = aligned("xyxyxy")
    outcome = run(method, Problem(problem.codes, problem.subjects, problem.strata, draw_person=stranger))
    assert became(outcome) == {
        **dict.fromkeys([(0,), (2,), (4,)], (1.0, 1.0)),
        **dict.fromkeys([(1,), (3,), (5,)], (2.0, 2.0)),
    }
    (first, a), (second, b) = drawn
    assert (first, second) == (CODES[::2].tolist(), CODES[1::2].tolist())
    assert a == b
    drawn.clear()
    run(KSame(2, surrogate="someone-else"), Problem(CODES, PEOPLE, draw_person=stranger))
    assert len({value for _, value in drawn}) == len(drawn) == 3


def test_everybody_gets_the_mean_or_nothing():
    outcome = run(Average(), aligned("xyxyxy"))
    assert became(outcome) == dict.fromkeys([(0, 1), (2, 3), (4, 5)], (11.0, 2.0))
    assert (outcome.promise, Average().min_subjects) == (KAnonymity(3), 2)
    plain = run(Blackout(0.25), Problem(CODES, PEOPLE))
    assert set(became(plain).values()) == {(0.25, 0.25)}
    assert (plain.promise, dict(plain.figures)) == (KAnonymity(6), {})


def test_everybody_has_as_many_copies():
    assert one_copy_each(3) == [(0,), (1,), (2,)]
    codes, subjects, sources = equal_copies(Problem(CODES, np.array(list("aaaabb"))))
    assert sources == [(0, 1), (2, 3), (4,), (5,)]
    assert subjects.tolist() == ["a", "a", "b", "b"]
    assert codes.tolist() == [[1.0, 0.0], [11.0, 0.0], [20.0, 6.0], [22.0, 6.0]]
    same = Problem(CODES, PEOPLE)
    assert equal_copies(same)[0] is CODES
    assert equal_copies(same)[2] == one_copy_each(6)


def test_some_faces_of_a_problem():
    reference = FaceModels(CODES[:2], PEOPLE[:2])
    points = np.arange(12.0).reshape(6, 1, 2)
    whole = Problem(CODES, PEOPLE, PEOPLE, (1, 2, 1), points, reference, CODES * 2, written=lambda codes: codes)
    part = whole.take(np.array([4, 1]))
    assert (len(part), part.subjects.tolist(), part.strata) == (2, ["e", "b"], None)
    assert part.codes.tolist() == CODES[[4, 1]].tolist()
    assert part.landmarks.tolist() == points[[4, 1]].tolist()
    assert part.distance_codes.tolist() == (CODES[[4, 1]] * 2).tolist()
    assert (part.reference, part.shape, part.written) == (reference, (1, 2, 1), whole.written)
    assert whole.models is reference
    bare = Problem(CODES, PEOPLE).take(np.array([0]))
    assert (bare.landmarks, bare.distance_codes, bare.person_specific) == (None, None, True)
    assert bare.models.codes is bare.codes
