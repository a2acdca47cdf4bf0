"""A frame is shown only when everyone in it is covered, and not too late; nobody is passed through."""

from concurrent.futures import Executor, Future
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest

from ksame.live.background import Background, Inline
from ksame.live.config import LiveConfig
from ksame.live.heads import HeadStore
from ksame.live.people import LivePeople
from ksame.live.publisher import NOT_READY, WAITING, Publisher
from ksame.live.statistics import Statistics
from ksame.live.tracker import LiveTracker
from ksame.models import FaceDetector
from ksame.scene.config import JobConfig
from ksame.scene.media import Frame
from ksame.scene.observe import DetectorConfig
from ksame.scene.observe.mesh import FaceMesher
from live.stand_ins import SIZE, Clock, Mesher, face_at, frame_at
from scene.walkers import background, paste


def publisher(clock, mesher=None, config=None, people=None, heads="masks"):
    config = config or LiveConfig(latency=0.35, thorough=0, job=JobConfig(method="fill"))
    mesher, statistics = mesher or Mesher(), Statistics()
    idle = Background("people", statistics, Inline())
    people = people or LivePeople(config, mesher, None, None, idle)
    heads = None if heads == "masks" else heads
    return Publisher(config, LiveTracker(config, mesher), people, heads, idle, statistics, clock)


def captured(index, time, size=SIZE):
    return Frame(index, time, frame_at(index, time, size).pixels)


def changed(before, after, face):
    x, y, w, h = (round(value) for value in face.box)
    return (before[y : y + h, x : x + w] != after[y : y + h, x : x + w]).any(axis=2).mean()


def test_a_frame_without_anybody_is_shown_as_it_is():
    clock = Clock()
    frame = captured(0, clock.now)
    assert np.array_equal(publisher(clock).publish(frame), frame.pixels)


def test_a_frame_that_took_too_long_is_never_shown():
    clock = Clock()
    live = publisher(clock)
    live.tracker.mesher.on_search = lambda: clock.sleep(0.36)
    assert live.publish(captured(0, clock.now)) is None
    assert live.statistics.late == 1
    live.tracker.mesher.on_search = lambda: clock.sleep(0.3)
    live.tracker.mesher.faces = [face_at(60, 40)]
    frame = captured(1, clock.now)
    shown = live.publish(frame)
    assert changed(frame.pixels, shown, face_at(60, 40)) > 0.99, "masked, since there was no time to mesh it"
    assert live.tracker.mesher.meshed == 0
    assert live.statistics.late == 1


def test_everyone_is_covered_in_every_frame_that_is_shown():
    clock = Clock()
    live = publisher(clock)
    rng = np.random.default_rng(0)
    for i in range(30):
        slow = rng.uniform(0, 0.4)
        live.tracker.mesher.on_search = lambda slow=slow: clock.sleep(slow)
        live.tracker.mesher.faces = [face_at(20 + 3 * i, 15), face_at(100, 90 - i)]
        frame = captured(4 * i, clock.now)
        shown = live.publish(frame)
        assert (shown is None) == (clock.now - frame.time > 0.35)
        for face in [] if shown is None else live.tracker.mesher.faces:
            assert changed(frame.pixels, shown, face) > 0.99


def test_a_frame_of_another_size_gets_that_of_the_first():
    clock = Clock()
    live = publisher(clock)
    assert live.publish(captured(0, clock.now, (161, 121))).shape == (120, 160, 3)
    assert live.publish(captured(1, clock.now, (320, 240))).shape == (120, 160, 3)
    small = publisher(clock, config=LiveConfig(max_side=100, thorough=0, job=JobConfig(method="fill")))
    assert small.publish(captured(0, clock.now)).shape == (74, 100, 3)


class Judged:
    """People of whom everyone is somebody from the start, or nobody ever."""

    arrivals = None

    def __init__(self, decision=None, neutral=None):
        self.decisions = {} if decision is None else {"P1": decision}
        self._neutral = neutral

    def named(self, face):
        return replace(face, person="P1" if self.decisions else "")

    def neutral(self, track):
        return self._neutral

    def settle(self):
        pass

    watch = lambda *_: None  # noqa: E731


@pytest.fixture(scope="module")
def meshed():
    """A picture with a face, and the face."""
    picture = background((320, 240))
    paste(picture, 1, (150, 120), 200)
    mesher = FaceMesher(DetectorConfig())
    (face,) = FaceDetector().detect(picture)
    return picture, mesher.fit(picture, face)


def test_heads_are_masked_until_they_are_there_and_when_they_have_moved_too_far(meshed):
    from ksame.heads.head import Head, expression_of, neutral_shape
    from ksame.heads.surrogate import ORDINARY, draw_surrogate
    from ksame.models.finisher import Finisher
    from ksame.scene.decide import Decision, Treatment

    picture, face = meshed
    clock, statistics = Clock(), Statistics()
    config = LiveConfig(thorough=0, head_size=128, latency=0.1)
    surrogate = draw_surrogate(True, 1970.0, ORDINARY, np.random.default_rng(0))
    neutral = neutral_shape(Head.of(face.mesh.points).aligned, expression_of(face.mesh.blendshapes))
    people = Judged(Decision(Treatment.REPLACE, surrogate), neutral)
    pool = Slow()
    heads = HeadStore(config, Finisher("cpu"), pool, statistics)
    live = publisher(clock, Mesher(faces=[face]), config, people, heads)
    first = live.publish(Frame(0, clock.now, picture))
    assert live.statistics.masked == {NOT_READY: 1}
    assert changed(picture, first, face) > 0.99
    pool.finish()
    clock.sleep(0.05)
    second = live.publish(Frame(1, clock.now, picture))
    assert live.statistics.replaced == 1, "the head of the frame before is carried here"
    assert changed(picture, second, face) > 0.95
    x, y, w, h = (round(v) for v in face.box)
    centre = np.s_[y : y + h, x : x + w]
    assert second[centre].std() > 1.5 * first[centre].std(), "a face, and no plain fill"
    clock.sleep(2.0)
    live.publish(Frame(60, clock.now, picture))
    assert live.statistics.masked == {NOT_READY: 2}, "the head is too old to be carried"
    pool.finish()
    clock.sleep(0.05)
    low = face.mesh.points[:, 1:2] > face.mesh.points[:, 1].mean()
    points = face.mesh.points + low * [0, 40, 0]  # the chin has dropped
    live.tracker.mesher.faces = [replace(face, mesh=replace(face.mesh, points=points))]
    live.publish(Frame(61, clock.now, picture))
    assert live.statistics.masked == {NOT_READY: 3}, "it is too far to be carried"
    pool.finish()
    clock.sleep(0.05)
    other = draw_surrogate(True, 1970.0, ORDINARY, np.random.default_rng(1))
    live.people = Judged(Decision(Treatment.REPLACE, other), neutral)
    live.publish(Frame(62, clock.now, picture))
    assert live.statistics.masked == {NOT_READY: 4}, "that head is another surrogate's"
    pool.finish()
    live.publish(Frame(63, clock.now, picture))
    assert (live.statistics.replaced, statistics.failures) == (2, {})


class Slow(Executor):
    """Does what it was asked to when it is told to."""

    def __init__(self):
        self.tasks = []

    def submit(self, work, *args):
        future = Future()
        self.tasks.append(lambda: future.set_result(work(*args)))
        return future

    def finish(self):
        for task in self.tasks:
            task()
        self.tasks = []


def test_a_head_is_made_for_the_very_frame_where_there_is_time(meshed):
    from ksame.heads.head import Head, expression_of, neutral_shape
    from ksame.heads.surrogate import ORDINARY, draw_surrogate
    from ksame.models.finisher import Finisher
    from ksame.scene.decide import Decision, Treatment

    picture, face = meshed
    clock, statistics = Clock(), Statistics()
    surrogate = draw_surrogate(True, 1970.0, ORDINARY, np.random.default_rng(0))
    neutral = neutral_shape(Head.of(face.mesh.points).aligned, expression_of(face.mesh.blendshapes))
    people = Judged(Decision(Treatment.REPLACE, surrogate), neutral)
    heads = HeadStore(LiveConfig(), Finisher("cpu"), Inline(), statistics)
    live = publisher(clock, Mesher(faces=[face]), LiveConfig(thorough=0), people, heads)
    live.publish(Frame(0, clock.now, picture))
    assert live.statistics.replaced == 1


def test_a_head_that_cannot_be_made_stays_masked_and_is_told(meshed):
    class Broken:
        def finish(self, *_):
            raise RuntimeError("out of memory")

    from ksame.heads.surrogate import ORDINARY, draw_surrogate
    from ksame.scene.decide import Decision, Treatment

    picture, face = meshed
    clock, statistics = Clock(), Statistics()
    surrogate = draw_surrogate(True, 1970.0, ORDINARY, np.random.default_rng(0))
    people = Judged(Decision(Treatment.REPLACE, surrogate), np.zeros((478, 3)) + face.mesh.points)
    heads = HeadStore(LiveConfig(), Broken(), Inline(), statistics)
    live = publisher(clock, Mesher(faces=[face]), LiveConfig(thorough=0), people, heads)
    for i in range(3):
        shown = live.publish(Frame(i, clock.now, picture))
        clock.sleep(0.05)
        assert changed(picture, shown, face) > 0.99
    assert live.statistics.replaced == 0
    assert statistics.failures["heads: RuntimeError: out of memory"] >= 2


def test_whoever_is_not_judged_yet_is_masked(meshed):
    picture, face = meshed
    clock = Clock()
    live = publisher(clock, Mesher(faces=[face]), LiveConfig(thorough=0), Judged(), heads=_no_heads())
    shown = live.publish(Frame(0, clock.now, picture))
    assert live.statistics.masked == {WAITING: 1}
    assert changed(picture, shown, face) > 0.99


def _no_heads():
    return HeadStore(LiveConfig(), None, Inline(), Statistics())


def test_small_faces_are_searched_for_beside_the_picture(meshed):
    picture, _ = meshed
    small = background((320, 240))
    part = np.ascontiguousarray(picture[::9, ::9])
    small[100 : 100 + len(part), 200 : 200 + part.shape[1]] = part
    clock = Clock()
    config = LiveConfig(thorough=0.1, job=JobConfig(method="fill"))
    live = publisher(clock, FaceMesher(DetectorConfig()), config)
    covered = []
    for i in range(8):
        shown = live.publish(Frame(i, clock.now, small))
        covered.append((shown != small).any())
        clock.sleep(0.11)
    assert covered[-1], "found by the thorough search, and followed"


def test_threads_beside_the_picture_end_with_it():
    import threading

    from ksame.live.session import build

    with ExitStack() as stack:
        build(LiveConfig(job=JobConfig(method="fill")), Statistics(), 1, stack)
    assert not [t for t in threading.enumerate() if t.name.startswith("ksame-live")]
