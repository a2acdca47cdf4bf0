"""People who come one by one: k share a face, and whoever the judge knows in it gets another, or a mask."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from ksame.heads.covers import HEAD
from ksame.heads.surrogate import ORDINARY
from ksame.live.background import Inline
from ksame.scene.decide import Arrivals, Piece, Subject, Treatment, View


@dataclass
class Recogniser:
    threshold: float = 0.4


@dataclass
class FakeJudge:
    """Knows some people in the faces drawn with some numbers, in order; all others in none."""

    knows: dict = field(default_factory=dict)
    recogniser: Recogniser = field(default_factory=Recogniser)
    cover: object = HEAD
    limit: float = 0.35

    def likeness(self, person, surrogate):
        return 0.9 if surrogate.number in self.knows.get(person.name, ()) else 0.1


def subject(name, woman=False, confirmed=True):
    embedding = np.random.default_rng(abs(hash(name)) % 2**32).standard_normal(32)
    piece = Piece(np.zeros((8, 8, 3), np.uint8), np.zeros((478, 3)), np.zeros((478, 3)))
    view = View(piece, embedding / 9, np.zeros(3), 0.0, ORDINARY)
    return Subject(name, woman, 1970.0, ORDINARY, np.zeros(3), (view,), confirmed)


@pytest.fixture
def arrivals(monkeypatch):
    @dataclass
    class Face:
        number: int

    drawn = []

    def choose(subjects, k, judge, rng, executor):
        from ksame.scene.decide import Group

        drawn.append(Face(len(drawn)))
        return [Group(drawn[-1], {0: judge.likeness(subjects[0], drawn[-1])})]

    monkeypatch.setattr("ksame.scene.decide.arrivals.choose_surrogates", choose)
    return Arrivals(3, FakeJudge(), np.random.default_rng(0), Inline())


def face_of(arrivals, name, **options):
    decision = arrivals.decide(subject(name, **options))
    return decision.surrogate.number if decision.treatment is Treatment.REPLACE else None


def test_k_people_share_a_face_and_the_next_gets_another(arrivals):
    assert [face_of(arrivals, f"P{i}") for i in range(7)] == [0, 0, 0, 1, 1, 1, 2]
    assert arrivals.k_real() == 1


def test_women_and_men_have_faces_of_their_own(arrivals):
    faces = [face_of(arrivals, f"P{i}", woman=i % 2 == 1) for i in range(4)]
    assert faces == [0, 1, 0, 1]
    assert arrivals.k_real() == 2


def test_whoever_comes_back_has_the_same_face(arrivals):
    first = [face_of(arrivals, f"P{i}") for i in range(5)]
    assert [face_of(arrivals, f"P{i}") for i in range(5)] == first


def test_whoever_is_known_in_a_face_gets_another(arrivals):
    arrivals.judge.knows = {"P1": {0}}
    assert [face_of(arrivals, name) for name in ("P0", "P1", "P2")] == [0, 1, 0]
    arrivals.judge.knows = {"P0": {0, 1}}
    assert face_of(arrivals, "P0") == 2, "and so does whoever is known in it later"


def test_whoever_is_known_in_every_face_is_masked(arrivals):
    arrivals.judge.knows = {"P0": set(range(100))}
    decision = arrivals.decide(subject("P0"))
    assert decision.treatment is Treatment.MASK
    assert decision.masked_instead
    assert arrivals.k_real() is None


def test_who_is_not_confirmed_hides_nobody(arrivals):
    for i in range(3):
        face_of(arrivals, f"P{i}", confirmed=i == 0)
    assert arrivals.k_real() == 1
