"""How many real people share a face: only who surely is a person counts, and nobody twice."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn import drawn_faces
from ksame import synthetic
from ksame.heads.surrogate import ORDINARY
from ksame.models import SFace
from ksame.scene.decide import Decision, JudgeRecord, Piece, Plan, Subject, Treatment, View
from ksame.scene.decide.counting import distinct, smallest_sharing
from ksame.scene.decide.views import FileViews, collect_views, subjects_of
from ksame.scene.observe import DetectorConfig
from ksame.scene.track import People, find_tracks
from ksame.spaces.facemodel import face_model

NOTHING = np.empty(0)


@dataclass(frozen=True)
class Still:
    pixels: np.ndarray
    index: int = 0
    time: float = 0.0


def view(vector) -> View:
    code = np.zeros(face_model().n_codes)
    return View(
        Piece(np.empty((0, 0, 3), np.uint8), NOTHING, NOTHING), np.asarray(vector, dtype=float), code, 0.0, ORDINARY
    )


def somebody(name, *vectors, confirmed=True) -> Subject:
    return Subject(name, False, 1970.0, ORDINARY, NOTHING, tuple(view(v) for v in vectors), confirmed)


@pytest.mark.parametrize(("kind", "counts"), [("drawn", False), ("person", True)])
def test_a_drawing_is_replaced_but_does_not_count_as_a_person(kind, counts):
    if kind == "drawn":
        face = drawn_faces(4, seed=2, width=200, height=268).images[2]
        picture = np.pad((face * 255).astype(np.uint8), ((60, 60), (60, 60), (0, 0)), mode="edge")
    else:
        picture = (synthetic(1, seed=8, size=(280, 220)).images[0] * 255).astype(np.uint8)
    cast = find_tracks(lambda start: [Still(picture)], picture.shape[1::-1], still=True)
    assert [track.confirmed for track in cast.tracks] == [True], "one second opinion is enough to replace it"
    prepared = collect_views(lambda _: [Still(picture)], cast, SFace(), DetectorConfig())
    assert set(prepared.views) == {"P1"}
    assert (prepared.confirmed == {"P1"}) is counts


def test_who_looks_like_one_person_counts_once():
    a, b, c = np.eye(3)
    near = np.array([0.5, 0.0, np.sqrt(0.75)])  # as like a as another photograph of them
    people = [somebody("P1", a), somebody("P2", b), somebody("P3", c, near), somebody("P4", c), somebody("P5", b)]
    numbers = distinct(people, 0.45)
    assert numbers["P1"] == numbers["P3"] == numbers["P4"]
    assert numbers["P2"] == numbers["P5"] != numbers["P1"]


def test_who_is_not_surely_a_person_does_not_count():
    assert distinct([somebody("P1", [1, 0]), somebody("P2", [0, 1], confirmed=False)], 0.45) == {"P1": 0}


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.randoms())
def test_numbers_are_as_many_as_people(who, random):
    people = [somebody(f"P{i}", np.eye(6)[person]) for i, person in enumerate(who)]
    random.shuffle(people)
    assert len(set(distinct(people, 0.45).values())) == len(set(who))


def test_who_cannot_be_told_from_others_does_not_count():
    names = {(0, name): name for name in ("P1", "P2", "U1")}
    known = FileViews({n: (view([1, 0]),) for _, n in names}, {"P1", "P2", "U1"})
    people = People(names, frozenset({"P2"}), frozenset({"U1"}))
    assert [one.confirmed for one in subjects_of([known], people)] == [True, False, False]


def test_whoever_is_shown_hides_nobody():
    decisions = {f"P{i + 1}": Decision(Treatment.REPLACE, group=0, counts_as=i) for i in range(3)}
    plan = Plan(decisions, JudgeRecord("someone", 0.4))
    assert (plan.k_real(), plan.k_real({"P2"}), plan.k_real({"P1", "P2"})) == (3, 2, 1)
    assert plan.k_real(set(decisions)) is None
    assert smallest_sharing([]) is None


def test_whoever_has_no_group_is_alone():
    assert Plan({name: Decision(Treatment.REPLACE, counts_as=i) for i, name in enumerate("ab")}).k_real() == 1
