"""Who is who, live: masked until judged, the same face after coming back, masked when the judge knows somebody."""

import numpy as np
import pytest

from ksame.live.background import Background, Inline
from ksame.live.config import LiveConfig
from ksame.live.people import LivePeople
from ksame.live.statistics import Statistics
from ksame.live.tracker import LiveTracker
from ksame.models import SFace
from ksame.models.finisher import Finisher
from ksame.scene.decide import Arrivals, Judge, Treatment
from ksame.scene.media import Frame
from ksame.scene.observe import DetectorConfig
from ksame.scene.observe.mesh import FaceMesher
from scene.walkers import background, paste

EMPTY = background((320, 240))


def picture(person):
    frame = background((320, 240))
    paste(frame, person, (150, 120), 200)
    return frame


@pytest.fixture(scope="module")
def networks():
    return FaceMesher(DetectorConfig()), SFace(), Finisher("cpu")


class Stage:
    """People and a tracker that see frames one after the other; all work is done at once."""

    def __init__(self, networks, monkeypatch, **options):
        mesher, recogniser, finisher = networks
        self.config = LiveConfig(views=2, between_views=0.0, recheck=0.5, retry=0.2, **options)
        self.statistics = Statistics()
        judge = Judge(recogniser, finisher)
        arrivals = Arrivals(10, judge, np.random.default_rng(1), Inline())
        self.people = LivePeople(
            self.config, mesher, recogniser, arrivals, Background("people", self.statistics, Inline())
        )
        self.tracker = LiveTracker(self.config, mesher)
        self.index = 0
        self.may_fail = False

    def see(self, pixels, times=1):
        """Return the faces as they are named after so many frames."""
        for _ in range(times):
            frame = Frame(self.index, self.index / 10, pixels)
            self.people.settle()
            faces = [self.people.named(face) for face in self.tracker.step(frame)]
            self.people.watch(frame, faces)
            self.index += 1
        assert self.may_fail or self.statistics.failures == {}
        return faces

    def surrogate(self, face):
        return self.people.decisions[face.person].surrogate


@pytest.fixture
def stage(networks, monkeypatch):
    from ksame.scene.decide import dealing, surrogates

    few = dealing.SearchConfig(candidates=4, draws=4, tries=4)
    monkeypatch.setattr(dealing, "SEARCH", few)
    monkeypatch.setattr(surrogates, "SEARCH", few)  # fewer candidates than for real, for speed
    return Stage(networks, monkeypatch)


def test_a_person_is_nobody_until_judged_and_has_the_same_face_after_coming_back(stage):
    (face,) = stage.see(picture(1))
    assert face.person == "", "nobody knows yet who it is"
    (face,) = stage.see(picture(1), times=4)
    assert face.person == "P1"
    assert stage.people.decisions["P1"].treatment is Treatment.REPLACE
    assert stage.people.neutral(face.track).shape == (478, 3)
    first = stage.surrogate(face)
    assert stage.see(EMPTY, times=14) == []
    assert stage.see(picture(1))[0].person == "", "a new track is nobody"
    (again,) = stage.see(picture(1), times=5)
    assert again.track != face.track
    assert (again.person, stage.surrogate(again)) == ("P1", first)
    assert (stage.people.n_people, stage.people.n_never_replaced) == (1, 0)


def test_whoever_the_judge_comes_to_know_is_masked_again(stage, monkeypatch):
    (face,) = stage.see(picture(1), times=5)
    assert face.person == "P1"
    monkeypatch.setattr(Judge, "likeness", lambda *_: 0.99)
    (face,) = stage.see(picture(1), times=8)
    assert face.person == "", "masked: known in the face that was published"
    monkeypatch.undo()


def test_whoever_the_judge_cannot_look_at_is_masked_again(stage, monkeypatch):
    (face,) = stage.see(picture(1), times=5)
    assert face.person == "P1"

    def broken(*_):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(Judge, "likeness", broken)
    stage.may_fail = True
    (face,) = stage.see(picture(1), times=8)
    assert face.person == ""
    assert stage.statistics.failures["people: RuntimeError: out of memory"] >= 1


def test_whoever_is_known_in_every_face_stays_masked_and_is_counted(stage, monkeypatch):
    monkeypatch.setattr(Judge, "likeness", lambda *_: 0.99)
    (face,) = stage.see(picture(1), times=5)
    assert face.person == ""
    assert stage.people.n_people == stage.people.n_never_replaced == 1


def test_other_people_get_other_names_and_no_more_than_some_are_remembered(networks, monkeypatch):
    stage = Stage(networks, monkeypatch, remembered=1)
    monkeypatch.setattr(Arrivals, "decide", lambda self, subject: decision)
    from ksame.scene.decide import Decision

    decision = Decision(Treatment.REPLACE)
    (face,) = stage.see(picture(1), times=4)
    stage.see(EMPTY, times=14)
    (other,) = stage.see(picture(2), times=4)
    assert (face.person, other.person) == ("P1", "P2")
    assert list(stage.people.known) == ["P2"]
    assert stage.people.n_people == 2
