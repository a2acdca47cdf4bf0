"""``ksame people``: who is there."""

import json

import numpy as np
import pytest
from PIL import Image

from ksame import synthetic


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


def test_what_cannot_be_read(pictures, run, tmp_path):
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"nothing")
    assert run("people", bad, code=5)
    told = json.loads(run("people", bad, pictures / "one.png", "--json", code=3).stdout)
    assert list(told["unreadable"]) == [str(bad)]
    assert "the contact sheet is a picture" in run("people", pictures, "-o", tmp_path / "x.txt", code=2).output
