"""Following without a look ahead: the detector looks at every frame, and masks never shrink before it has looked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksame.models import Source
from live.stand_ins import face_at, frame_at, tracker


def contains(outer, inner):
    (x, y, w, h), (a, b, c, d) = outer.box, inner.box
    return x <= a + 1e-6 and y <= b + 1e-6 and x + w >= a + c - 1e-6 and y + h >= b + d - 1e-6


def test_whoever_comes_is_covered_in_the_very_frame_in_which_they_come():
    tracks, mesher = tracker()
    assert tracks.step(frame_at(0, 0.0)) == []
    mesher.faces = [face_at(40, 30), face_at(100, 60, score=0.5)]
    faces = tracks.step(frame_at(1, 0.1))
    assert {face.box for face in faces} == {face.box for face in mesher.faces}
    assert mesher.searched == 2, "the detector looked at both frames"


def test_a_face_keeps_its_track_while_it_moves():
    tracks, mesher = tracker()
    numbers = set()
    for i in range(8):
        mesher.faces = [face_at(20 + 5 * i, 30), face_at(110, 60)]
        numbers.add(tuple(face.track for face in sorted(tracks.step(frame_at(3 * i, 0.1 * i)), key=lambda f: f.box[1])))
    assert len(numbers) == 1


@settings(max_examples=60, deadline=None)
@given(
    moves=st.lists(st.integers(-6, 6), min_size=1, max_size=6),
    steps=st.lists(st.floats(0.01, 0.4), min_size=2, max_size=25),
)
def test_a_mask_never_shrinks_before_the_detector_has_looked_long_enough(moves, steps):
    tracks, mesher = tracker(hold=0.7, hold_looks=4)
    time, index, x = 0.0, 0, 60
    last = None
    for move in moves:
        x += move
        mesher.faces = [face_at(x, 40)]
        (last,) = tracks.step(frame_at(index, time))
        time, index = time + 0.07, index + 2
    mesher.faces = []
    seen = time - 0.07
    for looks, step in enumerate(steps, start=1):
        faces = tracks.step(frame_at(index, time))
        if looks <= 4 or time - seen <= 0.7:
            (face,) = faces
            assert contains(face, last)
            assert face.source is Source.INTERPOLATED
            last = face
        else:
            assert faces == []
            break
        time, index = time + step, index + 2


def test_whoever_is_found_again_has_no_second_mask():
    tracks, mesher = tracker()
    mesher.faces = [face_at(60, 40)]
    tracks.step(frame_at(0, 0.0))
    mesher.faces = []
    assert len(tracks.step(frame_at(3, 0.1))) == 1
    mesher.faces = [face_at(62, 41)]
    (face,) = tracks.step(frame_at(6, 0.2))
    assert face.source is Source.DETECTED


def test_where_time_runs_out_faces_are_boxes():
    tracks, mesher = tracker()
    mesher.faces = [face_at(60, 40)]
    tracks.step(frame_at(0, 0.0))
    meshed = mesher.meshed
    (face,) = tracks.step(frame_at(1, 0.1), out_of_time=lambda: True)
    assert mesher.meshed == meshed
    assert face.box == mesher.faces[0].box
    assert face.mesh is None


def test_what_another_search_found_is_covered_from_then_on():
    tracks, mesher = tracker()
    searched = frame_at(0, 0.0)
    tracks.step(searched)
    tracks.add([face_at(20, 20, side=8.0)], searched, [])
    tracks.add([face_at(20, 20, side=8.0)], searched, [])  # found twice
    (face,) = tracks.step(frame_at(3, 0.1))
    assert contains(face, face_at(20, 20, side=8.0))
    mesher.faces = [face_at(21, 20, side=8.0)]
    (face,) = tracks.step(frame_at(6, 0.2))
    assert face.source is Source.DETECTED


def test_whoever_was_known_in_the_frame_of_a_slow_search_is_not_found_again_where_they_were():
    tracks, mesher = tracker()
    mesher.faces = [face_at(20, 40)]
    searched = frame_at(0, 0.0)
    covered = tracks.step(searched)
    for i in range(1, 8):
        mesher.faces = [face_at(20 + 10 * i, 40)]
        tracks.step(frame_at(3 * i, 0.1 * i))
    tracks.add([face_at(21, 40)], searched, covered)
    (face,) = tracks.step(frame_at(24, 0.8))
    assert face.box == mesher.faces[0].box


def test_what_is_doubtful_is_covered_in_its_own_size():
    tracks, mesher = tracker()
    mesher.faces = [face_at(60, 40, score=0.5)]
    (face,) = tracks.step(frame_at(0, 0.0))
    assert not face.confirmed
    mesher.faces = [face_at(60, 40, score=0.9)]
    (face,) = tracks.step(frame_at(3, 0.1))
    assert face.confirmed


def test_a_track_of_hours_takes_no_more_memory():
    tracks, mesher = tracker()
    mesher.faces = [face_at(60, 40)]
    for i in range(50):
        tracks.step(frame_at(i, i / 15))
    assert len(tracks.tracks) == 1
    assert len(tracks.tracks[0].tracklet.frames) <= 3


@pytest.mark.parametrize("yaw", [-60, 60])
def test_the_mesh_of_a_head_turned_away_is_not_believed(yaw):
    from dataclasses import replace

    from ksame.models import Mesh, Pose

    tracks, mesher = tracker()
    points = np.column_stack([np.linspace(60, 84, 478), np.linspace(40, 64, 478), np.zeros(478)])
    mesher.faces = [replace(face_at(60, 40), mesh=Mesh(points, 1.0, np.zeros(52), Pose(yaw, 0, 0)))]
    (face,) = tracks.step(frame_at(0, 0.0))
    assert face.mesh is None
    assert contains(face, mesher.faces[0])
    mesher.faces = [face_at(54, 40)]
    mesher.see = lambda *_: replace(face_at(62, 40), mesh=Mesh(points, 1.0, np.zeros(52), Pose(yaw, 0, 0)))
    (face,) = tracks.step(frame_at(3, 0.1))
    assert contains(face, face_at(54, 40)), "the detection as well as the mesh"
    assert contains(face, face_at(62, 40))
