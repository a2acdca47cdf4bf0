"""A file in which no face is found is said, listed and changes the exit code; k_real says what it means."""

import csv
import json

import numpy as np
import pytest
from PIL import Image

from ksame import synthetic
from ksame.scene.decide import Judge


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    path = tmp_path_factory.mktemp("empty") / "empty.png"
    Image.fromarray(np.linspace(60, 180, 96 * 128 * 3).reshape(96, 128, 3).astype(np.uint8)).save(path)
    return path


@pytest.fixture(scope="module")
def twice(empty):
    """One person twice in a picture, as in a mirror."""
    (face,) = (synthetic(1, seed=8, size=(200, 160)).images * 255).round().astype(np.uint8)
    path = empty.with_name("twice.png")
    Image.fromarray(np.concatenate([face, face[:, ::-1]], axis=1)).save(path)
    return path


def test_a_file_without_faces_is_said_listed_and_counted(empty, run, tmp_path):
    result = run("deidentify", empty, "-o", tmp_path / "safe.png", "-m", "fill", code=3)
    assert "no face was found in this file" in result.output.replace("\n", " ")
    rows = list(csv.DictReader((tmp_path / "safe.at-risk.csv").read_text().splitlines()))
    assert [(row["file"], row["person"], row["reason"]) for row in rows] == [
        ("safe.png", "", "no face was found in this file")
    ]
    certificate = json.loads((tmp_path / "safe.certificate.json").read_text())
    counts = certificate["counts"]
    assert (counts["without_faces"], counts["faces_masked_instead"], counts["frames_at_risk"]) == (1, 0, 0)
    assert any("no face was found" in warning for warning in certificate["warnings"])
    run("verify", tmp_path / "safe.png", code=0)
    assert "No face was found" in run("people", empty, code=0).output


def test_in_a_batch_only_the_file_without_faces_is_listed(empty, twice, run, tmp_path):
    words = ("deidentify", empty, twice, "-o", tmp_path / "out", "-m", "fill", "--keep-names", "--json")
    told = json.loads(run(*words, code=3).stdout)
    assert {file["output"].split("/")[-1]: bool(file["at_risk"]) for file in told["files"]} == {
        "empty.png": True,
        "twice.png": False,
    }
    assert told["certificate"]["counts"]["without_faces"] == 1


def test_one_person_twice_in_a_picture_is_one_real_person(twice, run, tmp_path, monkeypatch):
    monkeypatch.setattr(Judge, "likeness", lambda *_: 0.0)  # nobody is masked
    words = ("deidentify", twice, "-o", tmp_path / "safe.png", "-m", "k-same-m", "-k", 2, "--seed", 1)
    result = run(*words, "--link-table", tmp_path / "link.json", code=0)
    certificate = json.loads((tmp_path / "safe.certificate.json").read_text())
    assert (certificate["counts"]["replaced"], certificate["k_real"]) == (2, 1)
    assert "only 1 real person, so that sharing faces hides nobody" in result.output.replace("\n", " ")
    run("verify", tmp_path / "safe.png", "--linkage", tmp_path / "link.json", code=0)
