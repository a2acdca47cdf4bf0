"""``ksame people``: who is there."""

import json

import numpy as np
import pytest
from PIL import Image

from ksame import synthetic
from ksame.app.people_listing import _listed
from ksame.scene.media import open_media
from ksame.scene.track import join_files
from ksame.scene.track.tracks import Person, Track, Tracks
from scene.clips import make_clip


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Two people in one picture, one of them again in another, and a file that is none."""
    folder = tmp_path_factory.mktemp("pictures")
    people = (synthetic(2, 2, seed=5, size=(200, 160)).images * 255).round().astype(np.uint8)
    Image.fromarray(np.concatenate([people[0], people[2]], axis=1)).save(folder / "both.png")
    Image.fromarray(np.ascontiguousarray(people[1])).save(folder / "one.png")
    return folder


def test_people_are_listed_with_thumbnails(pictures, run, tmp_path):
    sheet = tmp_path / "people.png"
    told = json.loads(run("people", pictures, "-o", sheet, "--json", code=0).stdout)
    assert (told["schema"], told["version"]) == ("ksame/people", 1)
    found = {}
    for one in told["people"]:
        found.setdefault(one["name"], []).append(one)
        assert one["frames"] == 1
        assert 60 < one["height"] < 160
    assert sorted(found) == ["P1", "P2"]
    assert sorted(len(places) for places in found.values()) == [1, 2]
    assert sheet.stat().st_mode & 0o777 == 0o600
    with Image.open(sheet) as picture:
        assert picture.width > 300
        assert 350 < picture.height < 500
    assert "exists" in run("people", pictures, "-o", sheet, code=2).output


def test_the_names_are_those_of_deidentify(pictures, run, tmp_path):
    told = json.loads(run("people", pictures, "--json", code=0).stdout)
    listed = {(one["file"], one["name"]) for one in told["people"]}
    words = ("deidentify", pictures, "-o", tmp_path / "out", "-m", "fill", "--json")
    done = json.loads(run(*words, code=0).stdout)
    assert {(file["source"], name) for file in done["files"] for name in file["people"]} == listed


def test_a_table_without_a_sheet(pictures, run, tmp_path):
    result = run("people", pictures / "one.png", code=0)
    assert "P1" in result.stdout
    assert "shows originals" not in result.output


def test_a_path_stands_on_one_line(pictures, run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    folder = tmp_path / ("a name as long as a line of a terminal that is rather wide, or two [red]" * 2)
    folder.mkdir()
    (folder / "one.png").write_bytes((pictures / "one.png").read_bytes())
    heading, person = run("people", folder / "one.png", code=0).stdout.splitlines()
    assert person.endswith(str(folder / "one.png"))
    assert heading.index("file") == person.index(str(folder))


def test_what_cannot_be_read(pictures, run, tmp_path):
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"nothing")
    assert run("people", bad, code=5)
    told = json.loads(run("people", bad, pictures / "one.png", "--json", code=3).stdout)
    assert list(told["unreadable"]) == [str(bad)]
    assert "the contact sheet is a picture" in run("people", pictures, "-o", tmp_path / "x.txt", code=2).output


def test_a_frame_with_two_tracks_of_a_person_counts_once(tmp_path):
    tracks = []
    for number, (first, n, meshed) in enumerate([(0, 8, True), (5, 5, False)], start=1):
        points = np.full((n, 478, 3), 1.0 if meshed else np.nan, dtype=np.float32)
        rest = [np.ones((n, width), dtype=np.float32) for width in (4, 52, 3)]
        tracks.append(Track(number, "P1", first, rest[0], points, rest[1], rest[2], np.zeros(n, dtype=np.uint8)))
    in_file = Tracks((64, 48), 10, (Person("P1", None),), tuple(tracks))
    media = open_media(make_clip(tmp_path / "clip.mp4", n=10))
    list(media.frames())
    people = join_files([in_file], 0.3)
    one = _listed([(media, in_file)], people, "P1", (0, "P1"))
    assert (one.frames, one.unmeshed) == (10, 2)
