"""The parts of pass 1, each by itself."""

from concurrent.futures import Future, ThreadPoolExecutor
from itertools import zip_longest

import numpy as np
import pytest

from ksame.models import FaceDetector, Mesh, Source
from ksame.models.pose import Pose
from ksame.scene.looking import Looking
from ksame.scene.looking.cuts import CutFinder
from ksame.scene.looking.detecting import Search, Share, distinct, search, search_near
from ksame.scene.looking.faces import Face, Found
from ksame.scene.looking.filling import plan, write_points
from ksame.scene.looking.following import Follower, Moment
from ksame.scene.looking.joining import Stretch, join, mean_embedding
from ksame.scene.looking.smoothing import CONTEXT, smooth
from ksame.scene.looking.storage import BOX, POINTS, POSE, WIDTH, Spool
from ksame.scene.sightings import N_POINTS
from scene.walkers import background, paste

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
    """Rows of a face that moves right by 2 pixels a frame; None where it was not seen, "box" where it has no mesh."""
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
    p = plan(rows_of([0] * 10), 12, (10, 40), Looking(margin=6))
    assert (p.first, p.lead, len(p)) == (10, 2, 2 + 10 + 6)
    assert p.source.tolist() == [Source.INTERPOLATED] * 2 + [Source.DETECTED] * 10 + [Source.INTERPOLATED] * 6
    widths = p.boxes[:, 2]
    assert (np.diff(widths[12:]) > 0).all(), "the longer ago, the larger"
    assert (widths[2:12] == 40).all()


def test_hidden_frames_are_interpolated():
    p = plan(rows_of([0, 0, 0, 0, *[None] * 8, 0, 0, 0, 0]), 0, (0, 16), Looking())
    middle = p.boxes[:, 0] + p.boxes[:, 2] / 2
    assert np.allclose(middle, 120 + 2 * np.arange(16))
    assert (p.source[4:12] == Source.INTERPOLATED).all()
    assert not p.meshed[4:12].any()


def test_short_gaps_between_similar_meshes_are_bridged():
    rows = rows_of([0] * 5 + ["box", None] + [0] * 5)
    p = plan(rows, 0, (0, 12), Looking())
    assert p.meshed.all()
    assert (p.source[5:7] == Source.INTERPOLATED).all()
    points = np.empty((12, N_POINTS, 3), dtype=np.float32)
    write_points(rows, p, points)
    assert np.allclose(points, HEAD + np.arange(12)[:, None, None] * [2, 0, 0], atol=1e-3)


def test_heads_turned_too_far_lose_their_mesh_and_do_not_flicker():
    yaws = [0, 20, 40, 54, 56, 54, 56, 54, 54, 56, 40, 20, 0]
    p = plan(rows_of(yaws), 0, (0, len(yaws)), Looking(yaw=55))
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


def test_mean_embedding():
    assert mean_embedding([stretch(0, 1, None)]) is None
    assert np.isclose(np.linalg.norm(mean_embedding([stretch(0, 1, 1), stretch(2, 3, 2)])), 1)


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
def test_spools(tmp_path, in_memory):
    spool = Spool(None if in_memory else tmp_path / "rows")
    rows = rng.standard_normal((150, WIDTH)).astype(np.float32)
    for row in rows:
        spool.append(row)
    assert len(spool) == 150
    assert np.array_equal(spool.rows(140), rows[:140])
    spool.drop()
    assert not list(tmp_path.iterdir())


def found_at(x, yaw=0.0):
    mesh = Mesh(HEAD + np.array([x, 0.0, 0.0]), 1.0, np.full(52, x / 100), Pose(yaw, 0.0, 0.0))
    return Found(np.array([x, 0.0, 100, 100]), mesh, None)


def resting(frames):
    """Follow a face that moves by two pixels a frame, and let it rest in the last frames."""
    face = Face(1, 0, Spool(None), found_at(0))
    for i in range(20):
        face.write(found_at(2.0 * i))
    guesses = [face.rest() for _ in range(frames)]
    return face, guesses


@pytest.mark.parametrize("frames", [1, 2])
def test_a_face_that_rests_is_expected_where_it_was_going(frames):
    face, guesses = resting(frames)
    assert [round(float(guess.box[0])) for guess in guesses] == [40, 42][:frames]
    assert round(float(face.expected()[0])) == 40 + 2 * frames
    assert np.allclose(guesses[-1].mesh.points - HEAD, [guesses[-1].box[0], 0, 0])


@pytest.mark.parametrize("frames", [1, 2])
def test_where_a_face_was_while_it_rested_lies_between_two_sightings(frames):
    face, _ = resting(frames)
    assert len(face.spool) == 20  # nothing is taken down before it is known
    face.write(found_at(38.0 + 10 * (frames + 1), yaw=6.0 * (frames + 1)))
    assert (len(face.spool), face.length, face.n_seen, face.guessed) == (21 + frames, 21 + frames, 21 + frames, 0)
    rows = face.spool.rows(face.length)
    assert np.allclose(np.diff(rows[19:, BOX][:, 0]), 10)
    assert np.allclose(np.diff(rows[19:, POSE][:, 0]), 6)
    assert np.allclose(np.diff(rows[19:, POINTS].reshape(-1, N_POINTS, 3), axis=0), [10, 0, 0], atol=1e-4)


@pytest.mark.parametrize("frames", [1, 2])
def test_a_face_that_is_not_there_after_resting_was_not_seen_meanwhile(frames):
    face, _ = resting(frames)
    face.write(None)
    assert (face.missing, face.length, face.guessed) == (frames + 1, 20, 0)
    assert np.isnan(face.spool.rows(len(face.spool))[20:]).all()


class Sight:
    """Eyes that see a face where it is, and count how often they are asked."""

    def __init__(self, where, size):
        self.options, self.where, self.size, self.asked = Looking(), where, size, []

    def follow(self, frame, last, expected, score):
        number = int(frame[0, 0, 0])
        self.asked.append(number)
        x = self.where(number)
        return None if x is None else Found(np.array([x, 0.0, self.size, self.size]), found_at(x).mesh, None)


def followed(where, size, blocks):
    """Follow a face through blocks of six frames; return its rows and the frames that were looked at."""
    sight = Sight(where, size)
    with ThreadPoolExecutor(2) as pool:
        follower = Follower(sight, pool, lambda number: Spool(None))
        first = Found(np.array([where(0), 0.0, size, size]), found_at(where(0)).mesh, None)
        face = Face(1, 0, Spool(None), first)
        face.write(first)
        follower.faces.append(face)
        moments = [Moment(i, np.full((1, 1, 3), i, dtype=np.uint8), i % 6 != 0) for i in range(1, 6 * blocks + 1)]
        parts = [moments[6 * i : 6 * i + 6] for i in range(blocks)]
        for part, following in zip_longest(parts, parts[1:], fillvalue=()):
            searched = Future()
            searched.set_result(Search([], 1e9))
            follower.advance(part, searched, following)
    return face.spool.rows(len(face.spool)), sorted(sight.asked)


@pytest.mark.parametrize(("size", "every"), [(100, 2), (50, 3)])
def test_calm_faces_are_looked_at_in_every_second_or_third_frame(size, every):
    rows, asked = followed(lambda i: 100.0 + i, size, 5)
    assert [i for i in asked if i > 6] == [i for i in range(7, 31) if i % every == 0]
    assert np.allclose(rows[:, 0], 100 + np.arange(31), atol=0.1)


@pytest.mark.parametrize("size", [100, 50])
@pytest.mark.parametrize("start", range(13, 24))
def test_who_jumps_while_resting_is_looked_at_after_all(size, start):
    def where(i):
        return 100.0 + 0.3 * size * (i >= start)

    rows, asked = followed(where, size, 5)
    assert np.allclose(rows[:, 0], [where(i) for i in range(31)], atol=0.06 * size)
    assert start in asked


@pytest.mark.parametrize("size", [100, 50])
@pytest.mark.parametrize("last", range(13, 24))
def test_who_is_gone_after_resting_is_seen_as_long_as_they_were_there(size, last):
    rows, _ = followed(lambda i: 100.0 if i <= last else None, size, 5)
    assert np.flatnonzero(~np.isnan(rows[:, 0])).tolist() == list(range(last + 1))


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
    searches = [search(detector, picture, Looking(), coarse=True, hard=Share(i, shares)) for i in range(shares)]
    assert np.allclose(sure_places([d for one in searches for d in one.found]), (176, 288, 460, 560), atol=8)
    easy = search(detector, picture, Looking(), coarse=True, hard=None)
    assert len(sure_places(easy.found)) < 4
