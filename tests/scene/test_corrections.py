"""What a person corrects in tracks: merge, split, draw, throw away; and tracks of several files in a folder."""

from importlib.resources import files

import numpy as np
import pytest
from PIL import Image

import ksame
from ksame.errors import ExitCode, InputError, PrivacyWarning, UsageError
from ksame.files import sha256_of
from ksame.models import Source
from ksame.scene.config import Job
from ksame.scene.job import preview
from ksame.scene.track import Person, Track, Tracks, by_name, read_tracks, write_tracks
from ksame.scene.track.corrections import discard, draw, renamed, split
from ksame.scene.track.edits import left_out
from ksame.scene.track.tracks import N_POINTS


def track(number, person, first, n, **kwargs):
    yaw = np.abs(np.arange(n) - n // 2)[:, None] * np.array([[1.0, 0, 0]])
    return Track(
        number,
        person,
        first,
        np.tile(np.array([10, 20, 30, 40], np.float32), (n, 1)),
        np.full((n, N_POINTS, 3), 25.0, np.float32),
        np.zeros((n, 52), np.float32),
        yaw.astype(np.float32),
        np.full(n, Source.DETECTED, np.uint8),
        **kwargs,
    )


@pytest.fixture
def tracks():
    ones = np.ones(128) / np.sqrt(128)
    people = (Person("P1", ones, ((1, 4),)), Person("P2", -ones, ((2, 12),)), Person("U1", None))
    return Tracks((100, 80), 50, people, (track(1, "P1", 0, 10), track(2, "P2", 8, 20), track(3, "U1", 30, 5)))


def names(tracks):
    return [(each.number, each.person, each.first, each.end) for each in tracks.tracks]


def written(tracks, tmp_path):
    write_tracks(tracks, tmp_path / "tracks.json")
    return read_tracks(tmp_path / "tracks.json")


def test_two_people_become_one(tracks, tmp_path):
    one = written(renamed(tracks, {"P2": "P1"}), tmp_path)
    assert {each.person for each in one.tracks} == {"P1", "U1"}
    assert [(person.name, person.best) for person in one.people] == [("P1", ((1, 4), (2, 12))), ("U1", ())]
    assert not left_out(one), "everyone still has a track"


def test_a_track_is_split_and_both_parts_can_be_replaced(tracks, tmp_path):
    two = written(split(tracks, 2, 18, "P3"), tmp_path)
    assert names(two) == [(1, "P1", 0, 10), (2, "P2", 8, 18), (3, "U1", 30, 35), (4, "P3", 18, 28)]
    best = {person.name: person.best for person in two.people}
    assert best["P2"] == ((2, 12),)
    assert best["P3"] == ((4, 18), (4, 19)), "the most frontal frames of the part: a surrogate needs them"
    assert {person.name: person.embedding is None for person in two.people}["P3"], "not recognised as anybody"
    assert not left_out(two)


def test_a_whole_track_is_given_to_somebody(tracks, tmp_path):
    given = written(split(tracks, 2, 8, "P1"), tmp_path)
    assert names(given) == [(1, "P1", 0, 10), (2, "P1", 8, 28), (3, "U1", 30, 35)]
    assert [person.name for person in given.people] == ["P1", "U1"]


def test_a_box_is_drawn_and_masked(tracks, tmp_path):
    drawn = written(draw(tracks, (5, 6, 20, 20), 3, 9, "P3"), tmp_path)
    assert names(drawn)[-1] == (4, "P3", 3, 10)
    assert (drawn.tracks[-1].source == Source.ADDED).all()
    assert not drawn.tracks[-1].meshed().any()
    assert "P3" in by_name([drawn]).unmatched


def test_what_is_thrown_away_is_noticed(tracks, tmp_path):
    less = written(discard(tracks, 3), tmp_path)
    assert [person.name for person in less.people] == ["P1", "P2"]
    assert [(one.person, one.first, one.last) for one in left_out(less)] == [("U1", 30, 34)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: split(t, 2, 28, "P3"), "frames 8 to 27"),
        (lambda t: split(t, 2, 9, "P2"), "is P2 already"),
        (lambda t: split(t, 9, 9, "P3"), "no track 9"),
        (lambda t: discard(t, 9), "no track 9"),
        (lambda t: draw(t, (0, 0, 5, 5), 5, 50, "P3"), "from 0 to 49"),
        (lambda t: draw(t, (0, 0, 0, 5), 5, 6, "P3"), "box must lie"),
        (lambda t: draw(t, (200, 0, 5, 5), 5, 6, "P3"), "box must lie"),
    ],
)
def test_what_cannot_be_is_refused(tracks, change, reason):
    with pytest.raises(UsageError, match=reason):
        change(tracks)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Three photographs of two people: one of them twice."""
    folder = tmp_path_factory.mktemp("photographs")
    for name in ("f99.jpg", "m12.jpg"):
        (folder / name).write_bytes((files("ksame.data") / "samples" / name).read_bytes())
    picture = Image.open(folder / "f99.jpg")
    picture.crop((4, 4, *picture.size)).save(folder / "f99-again.jpg")
    return folder


FILL = ksame.JobConfig(method="fill")


def run(photographs, output, tracks=None, config=FILL, **options):
    options = ksame.ReleaseOptions(tracks=tracks, keep_names=True, **options)
    return ksame.deidentify_media(photographs, output, config=config, options=options, seed=1)


def test_tracks_of_several_files_lie_in_a_folder(photographs, tmp_path):
    plain = run(photographs, tmp_path / "plain")
    tracked = run(photographs, tmp_path / "tracked", tmp_path / "tracks")
    assert sorted(path.name for path in (tmp_path / "tracks").iterdir()) == [
        "f99-again.jpg.json",
        "f99.jpg.json",
        "m12.jpg.json",
    ]
    assert tracked.result.people.ordered == plain.result.people.ordered == ("P1", "P2")
    again = run(photographs, tmp_path / "again", tmp_path / "tracks")
    for name in ("f99.jpg", "m12.jpg", "f99-again.jpg"):
        assert sha256_of(tmp_path / "again" / name) == sha256_of(tmp_path / "tracked" / name)
    assert again.exit_code is ExitCode.DONE


def test_the_names_in_the_folder_say_who_is_who(photographs, tmp_path):
    folder = tmp_path / "tracks"
    run(photographs, tmp_path / "first", folder)
    path = folder / "f99-again.jpg.json"
    write_tracks(renamed(read_tracks(path), dict.fromkeys(("P1", "P2"), "guest")), path)
    with pytest.warns(PrivacyWarning, match="guest"):
        release = run(photographs, tmp_path / "out", folder, ksame.JobConfig(method="fill", keep=("guest",)))
    assert release.result.people.ordered == ("P1", "P2", "guest")
    assert sha256_of(tmp_path / "out" / "f99.jpg") != sha256_of(photographs / "f99.jpg")
    same = np.asarray(Image.open(tmp_path / "out" / "f99-again.jpg"))
    assert np.abs(same.astype(int) - np.asarray(Image.open(photographs / "f99-again.jpg"))).mean() < 3


def test_a_file_without_tracks_in_the_folder_is_left_out_and_named(photographs, tmp_path):
    folder = tmp_path / "tracks"
    run(photographs, tmp_path / "first", folder)
    (folder / "m12.jpg.json").unlink()
    release = run(photographs, tmp_path / "out", folder)
    assert [path.name for path in release.failed] == ["m12.jpg"]
    assert "no tracks" in next(iter(release.failed.values()))
    assert release.exit_code is ExitCode.WITHHELD


def test_two_files_of_one_name_and_a_file_for_a_folder_are_refused(tmp_path):
    (tmp_path / "t.json").touch()
    sources = [(tmp_path / "a" / "x.jpg", tmp_path / "1.jpg"), (tmp_path / "b" / "x.jpg", tmp_path / "2.jpg")]
    with pytest.raises(UsageError, match="one name"):
        Job(sources, tmp_path / "work", tracks=tmp_path / "tracks")
    sources[1] = (tmp_path / "b" / "y.jpg", tmp_path / "2.jpg")
    with pytest.raises(UsageError, match="is a file"):
        Job(sources, tmp_path / "work", tracks=tmp_path / "t.json")


@pytest.mark.parametrize("index", [0, 13])
def test_a_preview_is_the_frame_that_is_written(tmp_path, index):
    """An encoder without loss shows the very pixels."""
    film = files("ksame.data") / "samples" / "two-people.mp4"
    with film.open("rb") as stream:
        (tmp_path / "film.mp4").write_bytes(stream.read())
    from ksame.scene.media import EncoderConfig, open_media

    config = ksame.JobConfig(method="blackout", encoding=EncoderConfig(codec="ffv1"))
    job = Job([(tmp_path / "film.mp4", tmp_path / "none.mkv")], tmp_path / "work", config, seed=1)
    before, after = preview(job, tmp_path / "film.mp4", index)
    assert before.index == index
    assert (before.pixels != after).any()
    assert not (tmp_path / "none.mkv").exists()
    if index:
        ksame.deidentify_media(tmp_path / "film.mp4", tmp_path / "safe.mkv", config=config, seed=1)
        frames = open_media(tmp_path / "safe.mkv").frames()
        published = next(frame.pixels for frame in frames if frame.index == index)
        assert np.abs(published.astype(int) - after).mean() < 1.0
    with pytest.raises(UsageError, match="no frame"):
        preview(job, tmp_path / "film.mp4", 5000)
    with pytest.raises(InputError, match="no file of this job"):
        preview(job, tmp_path / "other.mp4", 0)
