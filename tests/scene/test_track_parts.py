"""The parts of observing and tracking, each by itself."""

import numpy as np
import pytest

from ksame.geometry import around
from ksame.models import Face, FaceDetector, Mesh, Source, five_points
from ksame.models.pose import Pose
from ksame.scene.observe import DetectorConfig, Observations, observe
from ksame.scene.observe.confirm import Verdict
from ksame.scene.observe.cuts import CutFinder
from ksame.scene.observe.detect import Search, distinct, search, search_near
from ksame.scene.observe.mesh import Decoded, Expected, mesh_path, outliers
from ksame.scene.observe.portraits import N_LOOK
from ksame.scene.observe.rows import RowBuffer
from ksame.scene.track import TrackerConfig
from ksame.scene.track.associate import associate
from ksame.scene.track.growing import Growing, merged
from ksame.scene.track.interpolate import fill, write_points
from ksame.scene.track.join import Stretch, join, unit_mean
from ksame.scene.track.propagate import Propagator
from ksame.scene.track.smooth import CONTEXT, smooth
from ksame.scene.track.storage import BOX, POINTS, POSE, WIDTH
from ksame.scene.track.tracks import N_POINTS
from scene.walkers import background, clip, paste

rng = np.random.default_rng(3)
HEAD = rng.uniform(0, 100, (N_POINTS, 3))
HEAD[33], HEAD[263] = (20, 40, 0), (80, 40, 0)


def moving(n, noise=0.0, seed=0):
    t = np.arange(n)[:, None, None]
    path = HEAD + np.array([2.0, -1.0, 0.5]) * t + np.array([0.02, 0.01, 0.0]) * t**2
    return path + noise * np.random.default_rng(seed).standard_normal((n, N_POINTS, 3))


def test_steady_movement_passes_unchanged():
    assert np.allclose(smooth(moving(20)), moving(20), atol=1e-9)


def test_noise_is_reduced_without_lag():
    clean, noisy = moving(60), moving(60, noise=0.2)
    even = smooth(noisy)
    assert np.abs(np.diff(even, 2, axis=0)).mean() < 0.75 * np.abs(np.diff(noisy, 2, axis=0)).mean()
    late = [np.abs(even[5 + k : 50 + k] - clean[5:50]).mean() for k in (-1, 0, 1)]
    assert late[1] == min(late)


def test_a_blink_survives():
    points = moving(30)
    points[14:17, 159, 1] += 6.0
    assert smooth(points)[15, 159, 1] - moving(30)[15, 159, 1] > 5.5


@pytest.mark.parametrize("cut", [8, 17])
def test_smoothing_in_parts_is_smoothing_as_a_whole(cut):
    points = moving(30, noise=0.3)
    whole = smooth(points)
    first = smooth(points[: cut + CONTEXT], tail=False)[:cut]
    second = smooth(points[cut - CONTEXT :], head=False)[CONTEXT:]
    assert np.allclose(np.concatenate([first, second]), whole)


def rows_of(yaws):
    """Rows of a face that moves right by 2 pixels per frame; None where it was not seen, "box" where it has no mesh."""
    rows = np.full((len(yaws), WIDTH), np.nan, dtype=np.float32)
    for i, yaw in enumerate(yaws):
        if yaw is None:
            continue
        rows[i, BOX] = 100 + 2 * i, 50, 40, 50
        if yaw != "box":
            rows[i, POSE] = yaw, 0, 0
            rows[i, POINTS] = (HEAD + np.array([2 * i, 0, 0])).ravel()
    return rows


def test_margins_stop_at_cuts():
    p = fill(rows_of([0] * 10), 12, (10, 40), TrackerConfig(margin=6))
    assert (p.first, p.lead, len(p)) == (10, 2, 2 + 10 + 6)
    assert p.source.tolist() == [Source.INTERPOLATED] * 2 + [Source.DETECTED] * 10 + [Source.INTERPOLATED] * 6
    widths = p.boxes[:, 2]
    assert (np.diff(widths[12:]) > 0).all(), "the longer ago, the larger"
    assert (widths[2:12] == 40).all()


def test_hidden_frames_are_interpolated():
    p = fill(rows_of([0, 0, 0, 0, *[None] * 8, 0, 0, 0, 0]), 0, (0, 16), TrackerConfig())
    middle = p.boxes[:, 0] + p.boxes[:, 2] / 2
    assert np.allclose(middle, 120 + 2 * np.arange(16))
    assert (p.source[4:12] == Source.INTERPOLATED).all()
    assert not p.meshed[4:12].any()


def test_short_gaps_between_similar_meshes_are_bridged():
    rows = rows_of([0] * 5 + ["box", None] + [0] * 5)
    p = fill(rows, 0, (0, 12), TrackerConfig())
    assert p.meshed.all()
    assert (p.source[5:7] == Source.INTERPOLATED).all()
    points = np.empty((12, N_POINTS, 3), dtype=np.float32)
    write_points(rows, p, points)
    assert np.allclose(points, HEAD + np.arange(12)[:, None, None] * [2, 0, 0], atol=1e-3)


def test_heads_turned_too_far_lose_their_mesh_and_do_not_flicker():
    yaws = [0, 20, 40, 54, 56, 54, 56, 54, 54, 56, 40, 20, 0]
    p = fill(rows_of(yaws), 0, (0, len(yaws)), TrackerConfig(yaw=55))
    assert p.meshed.tolist() == [True] * 4 + [False] * 6 + [True] * 3
    assert (p.source == Source.DETECTED).all()
    assert (p.boxes[4:10, 2] > 40).all(), "masked faces get a larger box"


def stretch(first, end, vector, x=100.0, shot=0):
    box = np.array([x, 50, 40, 50])
    embeddings = np.empty((0, 128)) if vector is None else np.eye(128)[[vector]]
    return Stretch(first, end, box, box, embeddings, shot)


def test_tracks_of_one_face_are_one_person():
    assert join([stretch(0, 10, 1), stretch(20, 30, 2), stretch(40, 50, 1)], 0.4) == [0, 1, 0]


def test_nobody_is_in_two_places_at_once():
    assert join([stretch(0, 10, 1), stretch(5, 30, 1)], 0.4) == [0, 1]


def test_a_track_without_a_face_goes_on_as_its_neighbour():
    assert join([stretch(0, 10, 1), stretch(12, 30, None)], 0.4) == [0, 0]
    assert join([stretch(0, 10, 1), stretch(12, 30, None, x=400)], 0.4) == [0, 1]
    assert join([stretch(0, 10, 1), stretch(12, 30, None, shot=1)], 0.4) == [0, 1]
    assert join([], 0.4) == []


def test_the_mean_of_embeddings_has_unit_length():
    assert unit_mean(np.empty((0, 128))) is None
    assert np.isclose(np.linalg.norm(unit_mean(np.eye(3)[:2])), 1)


def test_cuts():
    finder = CutFinder()
    still, moved, other = background((320, 240)), background((320, 240)), background((320, 240), seed=3)
    paste(still, 0, (100, 120), 130)
    paste(moved, 0, (130, 120), 130)
    assert [finder.is_cut(picture) for picture in (still, moved, still, other, other)] == [
        False,
        False,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("in_memory", [True, False])
def test_rows_grow_and_are_cut(tmp_path, in_memory):
    buffer = RowBuffer(WIDTH, None if in_memory else tmp_path / "rows")
    rows = rng.standard_normal((150, WIDTH)).astype(np.float32)
    for row in rows:
        buffer.append(row)
    assert len(buffer) == 150
    assert np.array_equal(buffer.rows(140), rows[:140])
    buffer.truncate(100)
    buffer.append(rows[149])
    assert np.array_equal(buffer.rows(), rows[[*range(100), 149]])
    buffer.drop()
    assert not list(tmp_path.iterdir())


def face_at(x, size=100.0, score=0.0, shake=0.0):
    points = HEAD * [size / 100, size / 100, 1] + np.array([x, shake, 0.0])
    mesh = Mesh(points, 1.0, np.full(52, 0.5), Pose(0.0, 0.0, 0.0))
    return Face((x, 0.0, size, size), five_points(mesh), score, mesh)


class FakeMesher:
    """Sees a face where it is, and counts in which frames it is asked for it."""

    def __init__(self, where, size):
        self.config, self.where, self.size, self.asked = DetectorConfig(), where, size, []

    def see(self, rgb, last, box, detection, score):
        number = int(rgb[0, 0, 0])
        self.asked.append(number)
        x = self.where(number)
        return None if x is None else face_at(x, self.size, 0.0 if detection is None else detection.score)

    def near(self, rgb, box, roll, score):
        return self.see(rgb, None, box, None, score)

    def confirm(self, rgb, face):
        return Verdict.FACE


def detected(where, size, n, every=6):
    """Observations of a face that is found in every sixth frame of ``n``, and in the last."""
    keys = sorted({*range(0, n, every), n - 1})
    rows, starts = [], [0]
    for key in keys:
        if where(key) is not None:
            face = face_at(where(key), size, 0.9)
            look = np.eye(N_LOOK)[0]
            rows.append(np.concatenate([face.box, [face.score], face.landmarks.ravel(), look]))
        starts.append(len(rows))
    return Observations(
        (640, 480),
        n,
        np.empty(0, dtype=np.intp),
        np.array(keys),
        np.full(len(keys), 24.0),
        np.array(starts),
        np.array(rows, dtype=np.float32),
    )


def propagated(where, size, n=31, *, ahead=False):
    """Mesh a face through chunks of frames; return the track and the frames in which it was meshed."""
    seen, mesher = detected(where, size, n), FakeMesher(where, size)
    ((_, _, keys),) = seen.shots()
    (tracklet,) = associate(seen, keys, DetectorConfig(), TrackerConfig())
    track = Growing.of(1, 0, tracklet, seen, RowBuffer(WIDTH, None))
    propagator = Propagator(mesher, seen, map)
    frames = [Decoded(i, np.full((200, 200, 3), i, dtype=np.uint8), i > 0) for i in range(n)]
    for begin, stop, after in ((0, 13, 25), (13, 25, n), (25, n, n)):
        following = frames[stop:after] if ahead else []
        assert propagator.chunk([track], frames[begin:stop], frames[max(0, begin - 12) : begin], following) == following
    return track, sorted(mesher.asked)


@pytest.mark.parametrize(("size", "gone"), [(100, ()), (50, ()), (100, (12,)), (50, (11, 12, 13)), (100, (24,))])
def test_to_begin_the_next_chunk_early_changes_nothing(size, gone):
    def where(i):
        return None if i in gone else 100.0 + i

    (early, asked_early), (late, asked) = (propagated(where, size, ahead=ahead) for ahead in (True, False))
    assert np.array_equal(early.buffer.rows(), late.buffer.rows(), equal_nan=True)
    assert asked_early == asked


def test_what_was_begun_early_is_begun_again_where_the_face_was_left_to_another_track():
    def where(i):
        return 100.0 + i

    class Remembering(FakeMesher):
        """Notes from where faces are followed."""

        def see(self, rgb, last, box, detection, score):
            self.asked.append(None if last is None else last.box)
            return super().see(rgb, last, box, detection, score)

    def both(ahead):
        seen, mesher = detected(where, 100, 31), Remembering(where, 100)
        ((_, _, keys),) = seen.shots()
        (tracklet,) = associate(seen, keys, DetectorConfig(), TrackerConfig())
        tracks = [Growing.of(number, 0, tracklet, seen, RowBuffer(WIDTH, None)) for number in (1, 2)]
        for track in tracks:
            track.first = 0  # seen before: none is dropped as a part of the other
        frames = [Decoded(i, np.full((200, 200, 3), i, dtype=np.uint8), i > 0) for i in range(31)]
        propagator = Propagator(mesher, seen, map)
        for begin, stop, after in ((0, 12, 24), (12, 24, 31), (24, 31, 31)):  # no detection in the last frame
            propagator.chunk(tracks, frames[begin:stop], frames[:begin], frames[stop:after] if ahead else ())
        return [track.buffer.rows() for track in tracks], mesher.asked

    (early, asked_early), (late, asked) = both(ahead=True), both(ahead=False)
    assert np.isnan(early[1]).any(), "the second track has the face in few frames"
    assert asked_early == asked
    for a, b in zip(early, late, strict=True):
        assert np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize(("size", "every"), [(100, 2), (50, 3)])
def test_calm_faces_are_meshed_in_every_second_or_third_frame(size, every):
    track, asked = propagated(lambda i: 100.0 + i, size)
    assert asked == [i for i in range(31) if i % every == 0]
    rows = track.buffer.rows()
    assert np.allclose(rows[:, 0], 100 + np.arange(31), atol=0.1)
    assert np.allclose(np.diff(rows[:, POINTS].reshape(-1, N_POINTS, 3), axis=0), [1, 0, 0], atol=1e-3)


@pytest.mark.parametrize("size", [100, 50])
@pytest.mark.parametrize("start", range(13, 24))
def test_who_jumps_in_a_skipped_frame_is_meshed_after_all(size, start):
    def where(i):
        return 100.0 + 0.3 * size * (i >= start)

    track, asked = propagated(where, size)
    assert np.allclose(track.buffer.rows()[:, 0], [where(i) for i in range(31)], atol=0.06 * size)
    assert start in asked


@pytest.mark.parametrize("size", [100, 50])
@pytest.mark.parametrize("last", range(13, 24))
def test_who_is_gone_is_seen_as_long_as_they_were_there(size, last):
    track, _ = propagated(lambda i: 100.0 if i <= last else None, size)
    rows = track.buffer.rows()
    assert np.flatnonzero(~np.isnan(rows[:, 0])).tolist() == list(range(last + 1))
    assert track.last == last


@pytest.mark.parametrize("size", [100, 50])
@pytest.mark.parametrize("first", range(7, 13))
def test_who_appears_between_keyframes_is_seen_from_there_on(size, first):
    track, _ = propagated(lambda i: 100.0 if i >= first else None, size)
    assert track.first == first
    assert not np.isnan(track.buffer.rows()[:, 0]).any()


def test_who_is_too_fast_for_the_keyframes_is_one_track_all_the_same():
    def where(i):
        return 100.0 + 30 * i

    seen, mesher = detected(where, 50, 31), FakeMesher(where, 50)
    tracklets = associate(seen, slice(0, 6), DetectorConfig(), TrackerConfig())
    assert len(tracklets) > 1, "3.6 sides between two keyframes"
    tracks = [Growing.of(i, 0, one, seen, RowBuffer(WIDTH, None)) for i, one in enumerate(tracklets, 1)]
    frames = [Decoded(i, np.full((200, 2000, 3), i, dtype=np.uint8), i > 0) for i in range(31)]
    propagator = Propagator(mesher, seen, map)
    for begin, stop in ((0, 13), (13, 25), (25, 31)):
        propagator.chunk(tracks, frames[begin:stop], frames[max(0, begin - 12) : begin])
    (track,) = merged(tracks)
    assert (track.first, track.last) == (0, 30)
    assert np.allclose(track.buffer.rows()[:31, 0], [where(i) for i in range(31)])


def test_who_is_lost_between_two_detections_is_propagated_from_both():
    def where(i):
        return 100.0 if i < 9 else 400.0 if i >= 12 else None

    class Near(FakeMesher):
        """Sees a face only near the place where it is expected."""

        def see(self, rgb, last, box, detection, score):
            x = self.where(int(rgb[0, 0, 0]))
            return None if x is None or abs(box[0] - x) > 30 else face_at(x, self.size)

    seen = detected(where, 100, 25)
    tracklet = associate(seen, slice(0, 2), DetectorConfig(), TrackerConfig())[0]
    for key in (3, 4):  # they came back elsewhere, and are known to be the same
        row = int(seen.starts[key])
        tracklet.add(int(seen.keyframes[key]), row, 0.9, seen.boxes(np.array([row]))[0], tracklet.look)
    track = Growing.of(1, 0, tracklet, seen, RowBuffer(WIDTH, None))
    frames = [Decoded(i, np.full((200, 2000, 3), i, dtype=np.uint8), i > 0) for i in range(25)]
    Propagator(Near(where, 100), seen, map).chunk([track], frames, [])
    boxes = track.buffer.rows()[:, 0]
    assert np.flatnonzero(np.isnan(boxes)).tolist() == [9, 10, 11]
    assert boxes[[8, 12]].tolist() == [100, 400]


@pytest.mark.parametrize("length", [1, 2, 3])
def test_meshes_that_slip_for_a_few_frames_are_outliers(length):
    faces = {i: face_at(100.0 + i, shake=30.0 if 5 <= i < 5 + length else 0.0) for i in range(12)}
    found = outliers(faces)
    assert sorted(found) == list(range(5, 5 + length))
    assert np.allclose(found[5], around(faces[5].mesh.points - [0, 30, 0]), atol=1e-6)


def test_who_moves_is_no_outlier():
    assert outliers({i: face_at(100.0 + 15 * i) for i in range(12)}) == {}
    assert outliers({i: face_at(100.0 + 40 * (i >= 6)) for i in range(12)}) == {}
    assert outliers({i: None if i % 3 else face_at(100.0 + i) for i in range(12)}) == {}


@pytest.mark.parametrize(("confirmed", "kept"), [(False, None), (True, 45.0)])
def test_a_mesh_that_slips_is_dropped_unless_the_detector_sees_a_face_there(confirmed, kept):
    class Slipping(FakeMesher):
        def see(self, rgb, last, box, detection, score):
            i = int(rgb[0, 0, 0])
            return face_at(15.0 if i != 4 else 45.0, 100.0)

        def near(self, rgb, box, roll, score):
            return face_at(45.0, 100.0, 0.9) if confirmed and box[0] > 40 else None

    frames = [Decoded(i, np.full((2, 2, 3), i, dtype=np.uint8), True) for i in range(9)]
    expected = {i: Expected(np.array([15.0, 0, 100, 100])) for i in range(9)}
    face = mesh_path(Slipping(None, 100), frames, expected, None, 0.3)[4]
    assert (None if face is None else face.box[0]) == kept


def test_two_who_cross_keep_their_tracks_by_their_looks():
    rows, starts, n = [], [0], 10
    for t in range(n):
        for x, look in ((100 + 20 * t, 0), (280 - 20 * t, 1)):
            face = face_at(x, 50.0, 0.9)
            rows.append(np.concatenate([face.box, [face.score], face.landmarks.ravel(), np.eye(N_LOOK)[look]]))
        starts.append(len(rows))
    arrays = (np.empty(0, dtype=np.intp), 6 * np.arange(n), np.full(n, 24.0), np.array(starts))
    seen = Observations((640, 480), 6 * n - 5, *arrays, np.array(rows, dtype=np.float32))
    tracks = associate(seen, slice(0, n), DetectorConfig(), TrackerConfig())
    assert [track.rows for track in tracks] == [list(range(0, 2 * n, 2)), list(range(1, 2 * n, 2))]


def test_the_last_frame_of_a_shot_is_a_keyframe_that_is_not_searched_coarsely():
    pictures = [background((640, 480))] * 8 + [255 - background((640, 480), seed=9)] * 3
    seen = observe(clip(pictures), (640, 480), DetectorConfig(tiny_every=0))
    assert seen.cuts.tolist() == [8]
    assert seen.keyframes.tolist() == [0, 6, 7, 8, 10]
    assert seen.min_sides.tolist() == [24, 48, 24, 24, 24]


def test_a_face_is_found_where_it_is_expected_even_tilted():
    picture = background((320, 240))
    paste(picture, 1, (160, 120), 150, turn=80)
    found = search_near(FaceDetector(), picture, np.array([130.0, 90, 70, 70]), np.radians(80), 0.5)
    assert found is not None
    middle = np.array(found.box[:2]) + np.array(found.box[2:]) / 2
    assert np.abs(middle - (160, 120)).max() < 20
    assert search_near(FaceDetector(), background((320, 240)), np.array([130.0, 90, 70, 70]), 0.0, 0.5) is None


def sure_places(found):
    return sorted(d.box[0] + d.box[2] / 2 for d in distinct(found) if d.score >= 0.6)


@pytest.mark.parametrize("shares", [1, 4, 24])
def test_small_and_turned_faces_are_found_part_by_part_too(shares):
    picture = background((640, 480))
    for x in (176, 288, 460):
        paste(picture, 1, (x, 120), 36)
    paste(picture, 2, (560, 350), 130, turn=180)
    detector = FaceDetector()
    config = DetectorConfig()
    searches = [search(detector, picture, Search(True, (i, shares)), config) for i in range(shares)]
    assert np.allclose(sure_places([face for faces, _ in searches for face in faces]), (176, 288, 460, 560), atol=8)
    easy, _ = search(detector, picture, Search(True, None), config)
    assert len(sure_places(easy)) < 4
