"""Finding tracks in clips of people who do not exist."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from ksame.errors import InputError, UsageError
from ksame.models import Source
from ksame.scene.observe import DetectorConfig
from ksame.scene.track import TrackerConfig, load_tracks
from ksame.scene.track import find_tracks as find_in
from scene.walkers import background, clip, paste

SIZE = (320, 240)
QUICK = DetectorConfig(tiny_every=0)
MARGIN = TrackerConfig().margin


def find_tracks(frames, size, work=None, detector=None, tracker=None, **kwargs):
    """Find tracks in frames that can be gone through again."""
    kept = list(frames)
    config = replace(tracker or TrackerConfig(), detector=detector or DetectorConfig())
    return find_in(lambda start: kept[start:], size, work, config, **kwargs)


def walk(n, paths, size=SIZE, seed=0):
    """Pictures in which people go along straight lines: (person, from, to, height, frames)."""
    pictures = []
    for t in range(n):
        picture = background(size, seed)
        for person, start, end, height, span in paths:
            if t in span:
                share = (t - span.start) / max(1, len(span) - 1)
                paste(picture, person, tuple((1 - share) * np.array(start) + share * np.array(end)), height)
        pictures.append(picture)
    return pictures


def middle(face):
    x, y, w, h = face.box
    return np.array([x + w / 2, y + h / 2])


@pytest.fixture(scope="module")
def two():
    paths = [
        (0, (80, 120), (110, 125), 130, range(20)),
        (1, (230, 120), (225, 110), 120, range(7, 20)),
    ]
    return walk(20, paths)


@pytest.fixture(scope="module")
def tracks(two):
    return find_tracks(clip(two), SIZE, None, QUICK)


def test_everyone_is_found_in_every_frame(tracks):
    assert [person.name for person in tracks.people] == ["P1", "P2"]
    assert len(tracks.tracks) == 2
    first, second = tracks.tracks
    assert (first.first, first.end) == (0, 20)
    assert first.meshed().all()
    assert (first.source == Source.DETECTED).all()
    share = np.arange(20) / 19
    expected = np.stack([80 + 30 * share, 120 + 5 * share], axis=1)
    found = np.array([middle(first.at(t)) for t in range(20)])
    assert np.abs(found - expected).max() < 12
    assert second.end == 20


def test_a_face_is_followed_back_to_where_it_appeared(tracks):
    second = tracks.tracks[1]
    seen = second.first + np.flatnonzero(second.source == Source.DETECTED)
    assert seen[0] == 7, "detection is due in frame 9, but the face is there from frame 7 on"
    assert second.first == 7 - MARGIN, "frames before are filled"
    assert not second.meshed()[:MARGIN].any()
    assert all(s.mesh is None for t in range(1, 7) if (s := second.at(t)) is not None)


def test_filled_boxes_are_larger_than_the_face(tracks):
    second = tracks.tracks[1]
    seen = second.at(7).box
    filled = second.at(6).box
    assert filled[2] > 1.3 * seen[2]
    assert filled[3] > 1.3 * seen[3]


def test_the_best_faces_have_a_mesh(tracks):
    for person in tracks.people:
        assert 1 <= len(person.best) <= 5
        assert np.isclose(np.linalg.norm(person.embedding), 1)
        for number, frame in person.best:
            track = next(track for track in tracks.tracks if track.number == number)
            assert track.person == person.name
            assert track.at(frame).mesh is not None


def test_threads_do_not_change_the_result(two, tracks, tmp_path):
    with ThreadPoolExecutor(3) as pool:
        other = find_tracks(clip(two), SIZE, tmp_path, QUICK, map=pool.map)
    for a, b in zip(tracks.tracks, other.tracks, strict=True):
        for name in ("boxes", "points", "blendshapes", "poses", "source"):
            assert np.array_equal(getattr(a, name), getattr(b, name), equal_nan=name == "points"), name
    assert [p.name for p in tracks.people] == [p.name for p in other.people]
    assert [p.best for p in tracks.people] == [p.best for p in other.people]


def test_the_same_clip_gives_the_same_bytes(two, tmp_path):
    for name in ("a", "b"):
        find_tracks(clip(two[:8]), SIZE, tmp_path / name, QUICK)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["blendshapes.npy", "boxes.npy", "points.npy", "poses.npy", "source.npy", "tracks.json"]
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_tracking_again_begins_anew(two, tmp_path):
    find_tracks(clip(two[:6]), SIZE, tmp_path, QUICK)
    assert load_tracks(tmp_path) is not None

    def broken():
        yield from clip(two[:4])
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="the disk is gone"):
        find_in(lambda start: broken(), SIZE, tmp_path, TrackerConfig(detector=QUICK))
    assert load_tracks(tmp_path) is None, "an interrupted run leaves nothing that seems finished"


def test_a_track_ends_at_a_cut():
    before = walk(9, [(0, (80, 120), (90, 120), 130, range(9))])
    after = walk(9, [(1, (90, 120), (100, 120), 130, range(9))], seed=3)
    tracks = find_tracks(clip(before + after), SIZE, None, QUICK)
    assert tracks.cuts.tolist() == [9]
    assert [(track.first, track.end) for track in tracks.tracks] == [(0, 9), (9, 18)]
    assert len(tracks.people) == 2


@pytest.mark.parametrize("length", [14, 15])
def test_who_jumps_in_the_last_frame_of_a_shot_is_seen_there(length):
    before = walk(length, [(0, (90, 120), (90, 120), 130, range(length))])
    before[-1] = walk(1, [(0, (110, 120), (110, 120), 130, range(1))])[0]
    after = walk(9, [(1, (90, 120), (100, 120), 130, range(9))], seed=3)
    tracks = find_tracks(clip(before + after), SIZE, None, QUICK)
    assert tracks.cuts.tolist() == [length]
    assert abs(middle(tracks.at(length - 1)[0])[0] - 110) < 10


@pytest.mark.parametrize("length", [18, 19, 20])
@pytest.mark.parametrize("cut", [False, True])
def test_a_small_face_in_the_last_frames_of_a_shot_is_found(length, cut):
    empty, size = background((640, 480)), (640, 480)
    pictures = [empty.copy() for _ in range(length)]
    for picture in pictures[-4:]:
        paste(picture, 1, (460, 120), 34)
    other = 255 - background(size, seed=9)
    tracks = find_tracks(clip(pictures + [other] * 8 if cut else pictures), size, detector=DetectorConfig(tiny_every=0))
    assert tracks.cuts.tolist() == [length] * cut
    seen = [face for face in tracks.at(length - 1) if np.abs(middle(face) - (460, 120)).max() < 15]
    assert len(seen) == 1


def test_someone_who_comes_back_is_the_same_person():
    nobody = walk(1, [])
    there = walk(9, [(2, (80, 120), (90, 120), 130, range(9))])
    back = walk(9, [(2, (230, 120), (240, 120), 130, range(9))])
    tracks = find_tracks(clip(there + nobody * 12 + back), SIZE, None, QUICK, TrackerConfig(patience=5))
    assert len(tracks.tracks) == 2
    assert [person.name for person in tracks.people] == ["P1"]


def test_people_who_cross_stay_two_people():
    paths = [(0, (70, 130), (250, 130), 110, range(31)), (1, (250, 120), (70, 120), 130, range(31))]
    tracks = find_tracks(clip(walk(31, paths)), SIZE, None, QUICK)
    for t in range(31):
        share = t / 30
        for x in (70 + 180 * share, 250 - 180 * share):
            assert any(abs(middle(s)[0] - x) < 30 for s in tracks.at(t)), f"nobody near {x:.0f} in frame {t}"
    meshed = [s for t in range(31) for s in tracks.at(t) if s.source == Source.DETECTED]
    assert len({s.person for s in meshed}) == 2


def test_a_hidden_face_is_filled():
    pictures = walk(24, [(0, (100, 120), (124, 120), 130, range(24))])
    for t in range(10, 14):
        pictures[t][40:200, 40:200] = 90
    tracks = find_tracks(clip(pictures), SIZE, None, QUICK)
    assert len(tracks.tracks) == 1
    track = tracks.tracks[0]
    assert (track.first, track.end) == (0, 24)
    assert (track.source[10:14] == Source.INTERPOLATED).all()
    x, y, w, h = track.at(12).box
    assert x < 112 - 30
    assert x + w > 112 + 30
    assert y < 110 < y + h


def test_a_small_face_gets_a_box_and_no_mesh():
    tracks = find_tracks(clip(walk(6, [(1, (150, 100), (155, 100), 44, range(6))])), SIZE, None)
    assert len(tracks.tracks) == 1
    assert not tracks.tracks[0].meshed().any()
    assert tracks.tracks[0].boxes[:, 2].max() < 40


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_turned_faces_in_a_photograph_are_found_beside_upright_ones(turn):
    picture = background((400, 300))
    paste(picture, 0, (100, 150), 160)
    paste(picture, 1, (300, 150), 160, turn)
    tracks = find_tracks(clip([picture]), (400, 300), None, still=True)
    assert [person.name for person in tracks.people] == ["P1", "P2"]
    assert len(tracks.tracks) == 2
    places = sorted(middle(track.at(0))[0] for track in tracks.tracks)
    assert abs(places[0] - 100) < 25
    assert abs(places[1] - 300) < 25
    assert all(track.at(0).mesh is not None for track in tracks.tracks)


def test_a_photograph_of_twins_shows_two_people():
    picture = background((400, 300))
    for x in (100, 300):
        paste(picture, 0, (x, 150), 160)
    assert len(find_tracks(clip([picture]), (400, 300), None, still=True).people) == 2


def test_nobody():
    tracks = find_tracks(clip(walk(5, [])), SIZE, None)
    assert (tracks.n_frames, tracks.people, tracks.tracks) == (5, (), ())


def test_nobody_is_kept_too(tmp_path):
    find_tracks(clip(walk(2, [])), SIZE, tmp_path)
    kept = load_tracks(tmp_path)
    assert (kept.n_frames, kept.people, kept.tracks) == (2, (), ())


def test_shots_without_faces_before_and_after_are_gone_through_once():
    there = walk(9, [(0, (80, 120), (90, 120), 130, range(9))])
    pictures = walk(9, [], seed=3) + there + walk(40, [], seed=3)
    decoded = []

    def frames(start):
        decoded.append([])
        for frame in list(clip(pictures))[start:]:
            decoded[-1].append(frame.index)
            yield frame

    tracks = find_in(frames, SIZE, None, TrackerConfig(detector=QUICK))
    assert tracks.cuts.tolist() == [9, 18]
    assert [(track.first, track.end) for track in tracks.tracks] == [(9, 18)]
    assert decoded == [list(range(58)), list(range(9, 18))]


@pytest.mark.parametrize(("change", "word"), [(-3, "fewer"), (3, "more")])
def test_a_file_that_changes_between_the_passes_is_refused(change, word):
    pictures = walk(12, [(0, (80, 120), (90, 120), 130, range(12))])
    given = iter([pictures[:9], pictures[: 9 + change]])
    with pytest.raises(InputError, match=f"There are {word} frames now"):
        find_in(lambda start: clip(next(given)), SIZE, None, TrackerConfig(detector=QUICK))


def test_frames_of_another_size_are_refused():
    with pytest.raises(InputError, match="Expected frame 0 as 8-bit RGB of 100x100 pixels"):
        find_tracks(clip(walk(1, [])), (100, 100), None)


@pytest.mark.parametrize(
    ("name", "value"),
    [("score", 0), ("low", 0.7), ("detect_every", 0), ("same_person", 1), ("mesh_side", 0), ("patience", -1)],
)
def test_bad_options(name, value):
    kind = DetectorConfig if hasattr(DetectorConfig, name) else TrackerConfig
    with pytest.raises(UsageError, match=f"of {kind.__name__} must be"):
        kind(**{name: value})
