"""Photographs in, faces out: one face each, everything else withheld by name."""

import json

import numpy as np
import pytest
from PIL import Image
from skimage.data import astronaut
from typer.testing import CliRunner

import ksame
from ksame.app.cli import app
from ksame.errors import InputError
from ksame.faces.faceset import quantise
from ksame.photographs import load_photographs, portrait_mesh, portrait_of, predicted_labels


@pytest.fixture(scope="module")
def album(tmp_path_factory):
    """Six synthetic people in photographs of several sizes, one without a face, one with two, and the astronaut."""
    folder = tmp_path_factory.mktemp("album")
    people = quantise(ksame.synthetic(6, size=(240, 192), seed=8, expressions=("smile",)).images)
    for i, face in enumerate(people):
        (folder / f"p{i}").mkdir()
        canvas = np.full((300 + 10 * i, 260, 3), 150, dtype=np.uint8)
        canvas[20:260, 30:222] = face
        Image.fromarray(canvas).save(folder / f"p{i}" / "one.png")
    for name, picture in {
        "sky": np.full((200, 300, 3), 90, dtype=np.uint8) + np.arange(300, dtype=np.uint8)[None, :, None] // 4,
        "pair": np.concatenate([people[0], people[1]], axis=1),
        "astronaut": astronaut(),
    }.items():
        (folder / name).mkdir()
        Image.fromarray(picture).save(folder / name / "one.png")
    return folder


@pytest.fixture(scope="module")
def portraits(album):
    return load_photographs(album)


def test_one_face_each_and_the_rest_by_name(portraits):
    assert len(portraits.faces) == 7
    assert portraits.faces.shape[1:] == (224, 176, 3)
    assert portraits.faces.landmarks.shape == (7, 478, 3)
    reasons = {w.source: w.reason for w in portraits.withheld}
    assert reasons["sky/one.png"] == "no face found"
    assert "2 faces found" in reasons["pair/one.png"]
    assert {w.subject for w in portraits.withheld} == {"sky", "pair"}


def test_eyes_and_nose_come_to_lie_on_the_template(portraits):
    from ksame.faces.landmarks import eyes_and_nose
    from ksame.faces.registration import Template

    target = np.array(Template.portrait().points)
    assert np.abs(eyes_and_nose(portraits.faces.landmarks) - target).max() < 12


def test_a_face_upside_down_is_found():
    turned = np.rot90(astronaut()[:300, 80:380], 2) / np.float32(255)
    mesh = portrait_mesh(np.ascontiguousarray(turned))
    assert not isinstance(mesh, str)
    assert portrait_of(turned, mesh, "a").shape == (1, 224, 176, 3)


def test_labels_are_read_from_the_faces(portraits):
    gender, accuracy = predicted_labels(portraits, "gender")
    names = list(portraits.faces.subjects)
    assert gender[names.index("astronaut")] == "F"
    assert "right for" in accuracy
    expression, _ = predicted_labels(portraits, "expression")
    assert (expression == "smile").mean() > 0.7
    with pytest.raises(InputError, match="only gender, age_band, skin_tone, expression can"):
        predicted_labels(portraits, "mood")


def test_release_of_photographs_withholds_what_shows_no_single_face(album, tmp_path):
    words = ["release", str(album), "-o", str(tmp_path / "out"), "-m", "k-same-m", "-k", "3", "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 3
    answer = json.loads(result.stdout)
    assert {w["subject"] for w in answer["withheld"]} == {"sky", "pair"}
    counts = answer["certificate"]["counts"]
    assert (counts["originals"], counts["released"], counts["withheld"]) == (9, 7, 2)
    assert "sky" not in (tmp_path / "out" / "certificate.json").read_text()


def test_predicted_labels_are_said_in_the_certificate(album, tmp_path):
    words = ["release", str(album), "-o", str(tmp_path / "out"), "-m", "k-same-m", "-k", "2", "--select", "gender"]
    result = CliRunner().invoke(app, [*words, "--small-classes", "merge"])
    assert result.exit_code == 3
    assert "was predicted from the faces" in result.stderr
    record = json.loads((tmp_path / "out" / "certificate.json").read_bytes())
    assert "right for 99 %" in record["method"]["labels"]


def test_pictures_of_several_sizes_are_searched_for_faces_in_pixel_codings_too(album, tmp_path):
    words = ["release", str(album), "-o", str(tmp_path / "out"), "-m", "k-same-pixel", "-k", "3", "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 3
    release, _ = ksame.read_release(tmp_path / "out")
    assert release.faces.shape[1:] == (134, 99, 3)


def test_verify_repeats_a_release_of_photographs(album, tmp_path):
    link, out = str(tmp_path / "link.json"), str(tmp_path / "out")
    run = CliRunner()
    run.invoke(app, ["release", str(album), "-o", out, "-m", "k-same-m", "-k", "3", "--link-table", link])
    result = run.invoke(app, ["verify", out, "--linkage", link, "--originals", str(album), "--json"])
    assert result.exit_code == 0
    findings = {f["name"]: f for f in json.loads(result.stdout)["findings"]}
    assert findings["recomputed"]["detail"] == "every byte the same"


@pytest.mark.parametrize("coding", ["pixel", "model"])
def test_the_street_corner_can_be_people_who_do_not_exist(album, tmp_path, coding):
    link, out = str(tmp_path / "link.json"), str(tmp_path / "out")
    words = ["-m", "epsilon-k-map", "-k", "4", "--coding", coding, "--reference", "builtin", "--link-table", link]
    result = CliRunner().invoke(app, ["release", str(album), "-o", out, *words])
    assert result.exit_code == 3, result.stderr
    assert ksame.read_release(tmp_path / "out")[0].certificate.method.reference == "other people"
    neighbours = {n for face in ksame.Linkage.read(tmp_path / "link.json").faces for n in face.figures["neighbours"]}
    assert all(name.startswith("builtin nobody") for name in neighbours)


def test_a_folder_without_any_face_is_an_error(tmp_path):
    (tmp_path / "a").mkdir()
    Image.new("RGB", (80, 60), "grey").save(tmp_path / "a" / "1.png")
    with pytest.raises(InputError, match=r"no photograph shows exactly one face.*1.png: no face found"):
        load_photographs(tmp_path)
