"""Tracks in files: kept casts, and the JSON that people edit."""

import base64
import json
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksame.errors import InputError
from ksame.models import Source
from ksame.scene.track import load_tracks, read_tracks, save_tracks, write_tracks
from ksame.scene.track.edits import left_out, misnamed
from ksame.scene.track.tracks import N_POINTS, OriginalTrack, Person, Track, Tracks


def track(number, person, first, n, seed):
    rng = np.random.default_rng(seed)
    points = rng.uniform(-20, 4000, (n, N_POINTS, 3)).astype(np.float32)
    points[2] = np.nan
    return Track(
        number,
        person,
        first,
        rng.uniform(10, 100, (n, 4)).round(2).astype(np.float32),
        points,
        rng.uniform(0, 1, (n, 52)).astype(np.float32),
        rng.uniform(-50, 50, (n, 3)).astype(np.float32),
        np.array([Source.INTERPOLATED, *[Source.DETECTED] * (n - 1)], dtype=np.uint8),
    )


@pytest.fixture
def tracks():
    vector = np.ones(128) / np.sqrt(128)
    people = (Person("P1", vector, ((1, 3), (3, 41))), Person("P2", None))
    tracks = (track(1, "P1", 0, 5, 1), track(2, "P2", 3, 90, 2), track(3, "P1", 40, 4, 3))
    return Tracks((640, 480), 100, people, tracks, np.array([40]))


@pytest.fixture
def file(tracks, tmp_path):
    path = tmp_path / "tracks.json"
    write_tracks(tracks, path)
    return path


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_json_keeps_everything(tracks, file):
    read = read_tracks(file)
    assert (read.size, read.n_frames, read.cuts.tolist()) == ((640, 480), 100, [40])
    assert [(p.name, p.best) for p in read.people] == [(p.name, p.best) for p in tracks.people]
    assert np.allclose(read.people[0].embedding, tracks.people[0].embedding, atol=1e-6)
    for a, b in zip(tracks.tracks, read.tracks, strict=True):
        assert (a.number, a.person, a.first, len(a)) == (b.number, b.person, b.first, len(b))
        assert np.array_equal(a.source, b.source)
        assert np.array_equal(a.meshed(), b.meshed())
        assert np.allclose(a.boxes, b.boxes, atol=0.006)
        assert np.allclose(a.points, b.points, atol=0.006, equal_nan=True)
        seen = a.meshed()
        assert np.allclose(a.blendshapes[seen], b.blendshapes[seen], atol=1e-4)
        assert np.allclose(a.poses[seen], b.poses[seen], atol=0.006)


def test_writing_twice_gives_the_same_bytes(tracks, file, tmp_path):
    write_tracks(tracks, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == file.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["again.json", "tracks.json"]


def test_a_track_may_be_given_to_somebody_else(file):
    edit(file, lambda content: content["tracks"][0].update(person="P2"))
    read = read_tracks(file)
    assert read.tracks[0].person == "P2"
    assert read.people[0].best == ((3, 41),), "the best sightings of P1 are no longer those of track 1"


def test_a_track_of_boxes_may_be_added(file):
    row = {"number": 9, "person": "P2", "frames": [[10, "added", 0, 0, 10, 10], [20, "added", 100, 0, 20, 10]]}
    edit(file, lambda content: content["tracks"].append(row))
    added = read_tracks(file).tracks[-1]
    assert (added.first, added.end) == (10, 21)
    assert added.at(15).box == (50.0, 0.0, 15.0, 10.0)
    assert (added.source == Source.ADDED).all()
    assert not added.meshed().any()


def test_a_track_may_be_shortened_and_keeps_its_meshes(tracks, file):
    edit(file, lambda content: content["tracks"][1].update(frames=content["tracks"][1]["frames"][10:-5]))
    short = read_tracks(file).tracks[1]
    assert (short.first, len(short)) == (13, 75)
    assert np.allclose(short.points, tracks.tracks[1].points[10:-5], atol=0.006)


def test_a_box_changed_by_hand_has_no_mesh(file):
    edit(file, lambda content: content["tracks"][0]["frames"].__setitem__(3, [3, "added", 1, 2, 30, 40]))
    face = read_tracks(file).tracks[0].at(3)
    assert face.box == (1, 2, 30, 40)
    assert face.mesh is None


def test_who_was_found_outlives_any_edit(tracks, file, tmp_path):
    edit(file, lambda content: content["tracks"].pop(1))
    edited = read_tracks(file)
    assert [person.name for person in edited.people] == ["P1"], "nobody is there without a track"
    write_tracks(edited, tmp_path / "again.json")
    for read in (edited, read_tracks(tmp_path / "again.json")):
        assert [(one.person, one.first, one.last) for one in left_out(read)] == [("P2", 3, 92)]
        assert misnamed(read) == {}


@settings(max_examples=40, deadline=None)
@given(first=st.integers(0, 30), n=st.integers(1, 30), gone=st.sets(st.integers(0, 29)), seed=st.integers(0, 9))
def test_left_out_is_just_what_no_box_covers(first, n, gone, seed):
    whole = track(1, "P1", first, max(n, 3), seed)
    rows = [i for i in range(len(whole)) if i not in gone]
    runs = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) if rows else []
    parts = tuple(
        replace(
            whole,
            number=number,
            person="P2" if number % 2 else "P1",
            first=first + int(run[0]),
            **{name: getattr(whole, name)[run] for name in ("boxes", "points", "blendshapes", "poses", "source")},
        )
        for number, run in enumerate(runs)
    )
    people = tuple(Person(name, None) for name in sorted({part.person for part in parts}))
    tracks = Tracks((640, 480), 100, people, parts, originals=(OriginalTrack("P1", first, whole.boxes),))
    missing = sorted({first + i for i in range(len(whole))} - {first + i for i in rows})
    assert [(one.first, one.last) for one in left_out(tracks)] == ([(missing[0], missing[-1])] if missing else [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(version=1), "version: Input should be 2"),
        (lambda c: c.pop("found"), "found: Field required"),
        (lambda c: c["found"][0].update(boxes="AAAA"), "Where P1 was found is damaged"),
        (lambda c: c["found"][0].update(first=99), "P1 was found beyond the recording's 100 frames"),
        (lambda c: c["people"][1].update(name="[red]P2"), "people.1.name"),
        (lambda c: c.pop("people"), "people: Field required"),
        (lambda c: c["tracks"][0].update(colour="red"), "tracks.0.colour"),
        (lambda c: c["tracks"][0].update(person="P7"), "Track 1 belongs to 'P7', who is not among the people"),
        (lambda c: c["tracks"][0].update(number=2), "more than one track 2"),
        (lambda c: c["people"][0].update(name="P2"), "more than one person P2"),
        (lambda c: c.update(n_frames=50, cuts=[]), "Track 2 leaves the recording's 50 frames"),
        (lambda c: c.update(cuts=[100]), "Cuts must be rising frame numbers"),
        (lambda c: c["tracks"][0]["frames"].reverse(), "frames of track 1 must rise"),
        (
            lambda c: c["tracks"][0]["frames"][1].__setitem__(4, 0),
            "tracks.0.frames.1.4: Input should be greater than 0",
        ),
        (lambda c: c["tracks"][0]["frames"][1].__setitem__(1, "guessed"), "tracks.0.frames.1.1"),
        (lambda c: c["tracks"][0]["frames"].clear(), "tracks.0.frames"),
        (lambda c: c["tracks"][0]["meshes"][0].update(data="AAAA"), "meshes from frame 0 on of track 1 are damaged"),
        (lambda c: c["people"][0].update(embedding=[1.0]), "people.0.embedding.*at least 128 items"),
        (lambda c: c.update(size=[0, 4]), "size.0: Input should be greater than or equal to 1"),
    ],
)
def test_contradictions_are_named(file, change, message):
    edit(file, change)
    with pytest.raises(InputError, match=message) as caught:
        read_tracks(file)
    assert str(file) in str(caught.value)


def test_what_is_no_such_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_tracks(tmp_path / "none.json")
    (tmp_path / "text.json").write_text("{")
    with pytest.raises(InputError, match="not tracks as `--tracks` writes them"):
        read_tracks(tmp_path / "text.json")


def test_a_kept_cast_comes_back_bit_for_bit(tracks, tmp_path):
    for name in ("a", "b"):
        save_tracks(tracks, tmp_path / name)
    read = load_tracks(tmp_path / "a")
    for a, b in zip(tracks.tracks, read.tracks, strict=True):
        for name in ("boxes", "points", "blendshapes", "poses", "source"):
            assert np.array_equal(getattr(a, name), getattr(b, name), equal_nan=name == "points")
    assert np.array_equal(read.people[0].embedding, tracks.people[0].embedding)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def test_a_folder_without_a_finished_cast(tracks, tmp_path):
    assert load_tracks(tmp_path) is None
    save_tracks(tracks, tmp_path)
    (tmp_path / "boxes.npy").unlink()
    with pytest.raises(InputError, match="not the tracks of a recording"):
        load_tracks(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["tracks"][0]["meshes"][0].update(first=2**64),
        lambda c: c["tracks"][0].update(number=10**30),
        lambda c: c["tracks"][0]["frames"][0].__setitem__(2, 1e308),
        lambda c: c["people"][0].update(best=[[2**64, 0]]),
        lambda c: c.update(cuts=[2**64]),
    ],
)
def test_numbers_beyond_any_recording_are_refused(file, change):
    edit(file, change)
    with pytest.raises(InputError, match="not tracks as"):
        read_tracks(file)


def test_meshes_that_unpack_to_more_than_they_should_are_refused(file):
    bomb = base64.b64encode(zlib.compress(bytes(1 << 26))).decode()
    edit(file, lambda c: c["tracks"][0]["meshes"][0].update(data=bomb))
    with pytest.raises(InputError, match="damaged"):
        read_tracks(file)


def test_a_few_lines_for_more_frames_than_there_are_take_no_memory(file):
    last = [(1 << 30) - 1, "seen", 1, 1, 1, 1]
    edit(file, lambda content: (content.update(n_frames=1 << 30), content["tracks"][0]["frames"].append(last)))
    with pytest.raises(InputError, match="far more than there are"):
        read_tracks(file, 100)


def test_a_name_given_twice_is_refused(file):
    file.write_text(file.read_text().replace('"cuts"', '"size": [1, 1], "cuts"', 1))
    with pytest.raises(InputError, match="'size' is said twice"):
        read_tracks(file)
