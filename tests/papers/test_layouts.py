"""Folders laid out as the data sets are."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ksame
from ksame.errors import InputError, UsageError
from ksame.faces.faceset import quantise
from ksame.papers.data import FolderData, NotAvailableError, Wanted
from ksame.papers.layouts import LAYOUTS, find_pictures

PEOPLE = 10
EXPRESSIONS = ("neutral", "smile")


@pytest.fixture(scope="session")
def stills():
    """Two pictures each of ten people who do not exist, as bytes; and their genders."""
    faces = ksame.synthetic(PEOPLE, 2, size=(224, 176), expressions=EXPRESSIONS, seed=5)
    return quantise(faces.images).reshape(PEOPLE, 2, 224, 176, 3), faces.attributes["gender"][::2]


def save(path: Path, image: np.ndarray, *, grey: bool = False, size: tuple[int, int] | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.fromarray(image).convert("L" if grey else "RGB")
    (picture.resize(size) if size else picture).save(path)


def feret(folder, stills):
    images, genders = stills
    for i in range(PEOPLE):
        who = f"{i + 1:05d}"
        for shot, pose in enumerate(("fa", "fb")):
            save(folder / "images" / who / f"{who}_930831_{pose}_a.ppm", images[i, shot])
        save(folder / "images" / who / f"{who}_930831_hl.ppm", images[i, 0])
        told = folder / "ground_truths" / "name_value" / who / f"{who}.txt"
        told.parent.mkdir(parents=True)
        told.write_text(f"id=cfrS{who}\ngender={'Male' if genders[i] == 'M' else 'Female'}\nyob=1943\n")


def feret_grey(folder, stills):
    for i in range(PEOPLE):
        for shot, pose in enumerate(("fa", "fb")):
            save(folder / f"{i + 1:05d}{pose}010_930831.tif", stills[0][i, shot], grey=True)


def multipie(folder, stills):
    for i in range(PEOPLE):
        who = f"{i + 1:03d}"
        base = folder / "session01" / "multiview" / who
        for recording, shot in (("01", 0), ("02", 1)):
            for flash in ("00", "07"):
                save(base / recording / "05_1" / f"{who}_01_{recording}_051_{flash}.png", stills[0][i, shot])
        save(base / "01" / "19_0" / f"{who}_01_01_190_07.png", stills[0][i, 0])


def imm(folder, stills):
    images, genders = stills
    for i in range(PEOPLE):
        for number, shot in (("1", 0), ("2", 1), ("3", 0)):
            save(folder / f"{i + 1:02d}-{number}{genders[i].lower()}.jpg", images[i, shot])


def orl(folder, stills):
    for i in range(PEOPLE):
        for shot in (0, 1):
            save(folder / f"s{i + 1}" / f"{shot + 1}.pgm", stills[0][i, shot], grey=True, size=(92, 112))


def lfw(folder, stills):
    for i in range(PEOPLE):
        name = f"Nobody_{'ABCDEFGHIJ'[i]}"
        for shot in (0, 1):
            save(folder / name / f"{name}_{shot + 1:04d}.jpg", stills[0][i, shot])


def labelled(folder, stills):
    lines = ["file,subject,gender"]
    for i in range(PEOPLE):
        for shot in (0, 1):
            save(folder / "portraits" / f"{i}-{shot}.jpg", stills[0][i, shot])
            lines.append(f"portraits/{i}-{shot}.jpg,person {i},{stills[1][i]}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")


BUILDERS = {
    "feret": feret,
    "feret grey": feret_grey,
    "multipie": multipie,
    "imm": imm,
    "orl": orl,
    "lfw": lfw,
    "folder": labelled,
}
SAYS_EXPRESSION = ("multipie", "imm")


@pytest.fixture(scope="session", params=list(BUILDERS))
def data_set(request, stills, tmp_path_factory):
    folder = tmp_path_factory.mktemp("set") / "data"
    folder.mkdir()
    BUILDERS[request.param](folder, stills)
    return request.param, folder


def test_every_layout_has_a_builder():
    assert {name.split()[0] for name in BUILDERS} == set(LAYOUTS)


def test_it_is_recognised(data_set):
    name, folder = data_set
    layout, pictures = find_pictures(folder)
    assert layout == name.split()[0]
    assert len({picture.subject for picture in pictures}) == PEOPLE
    assert len(pictures) == (4 if name == "multipie" else 2) * PEOPLE, "turned heads are left out"
    first = [next(p for p in pictures if p.subject == s) for s in dict.fromkeys(p.subject for p in pictures)]
    assert all(p.expression == ("neutral" if name in SAYS_EXPRESSION else "") for p in first)
    assert find_pictures(folder, name.split()[0])[1] == pictures


def test_genders_are_read(data_set, stills):
    name, folder = data_set
    if name in ("feret", "imm", "folder"):
        said = {picture.subject: picture.gender for picture in find_pictures(folder)[1]}
        assert list(said.values()) == list(stills[1])


def test_faces_are_found_and_served(data_set):
    _, folder = data_set
    data = FolderData.load(folder)
    assert data.real
    assert not data.withheld
    assert data.stock.n_subjects == PEOPLE
    one = data.faces(Wanted(500))
    assert one.shape == (PEOPLE, 134, 99, 1)
    assert one.person_specific
    two = data.faces(Wanted(500, expressions=EXPRESSIONS, size=(112, 88), whole=True, grey=False))
    assert two.shape == (2 * PEOPLE, 112, 88, 3)
    assert sorted(two.attributes["shot"]) == ["0"] * PEOPLE + ["1"] * PEOPLE
    assert set(two.attributes["gender"]) <= {"F", "M"}
    assert data.faces(Wanted(10, seed=1)).n_subjects == 10
    again = pickle.loads(pickle.dumps(data))  # noqa: S301 -- as other processes get it
    assert (again.name, again.digest) == (data.name, data.digest)
    assert np.array_equal(again.faces(Wanted(500)).images, one.images)


def test_lights_are_found_where_they_vary(stills, tmp_path):
    multipie(tmp_path, stills)
    lit = FolderData.load(tmp_path, "multipie").faces(Wanted(500, illuminations=("flat", "front", "left")))
    assert set(lit.attributes["illumination"]) == {"front", "flash 00"}
    assert set(lit.attributes["expression"]) == {"neutral"}


def test_one_picture_each_cannot_serve_two(stills, tmp_path):
    for i in range(PEOPLE):
        save(tmp_path / f"person {i}" / "only.jpg", stills[0][i, 0])
    data = FolderData.load(tmp_path)
    with pytest.raises(NotAvailableError, match="needs 2 pictures of everybody; 0 people"):
        data.faces(Wanted(500, expressions=EXPRESSIONS))


def test_what_cannot_be_used_is_named(stills, tmp_path):
    lfw(tmp_path, stills)
    (tmp_path / "Nobody_A" / "Nobody_A_0003.jpg").write_bytes(b"no picture")
    save(tmp_path / "Nobody_B" / "Nobody_B_0003.jpg", np.zeros((64, 64, 3), dtype=np.uint8))
    withheld = FolderData.load(tmp_path).withheld
    assert sorted(w.split(":")[0].rsplit("/", 1)[-1] for w in withheld) == ["Nobody_A_0003.jpg", "Nobody_B_0003.jpg"]


@pytest.mark.parametrize(
    ("layout", "error", "match"),
    [
        ("orl", InputError, "no pictures in the layout 'orl'"),
        ("auto", InputError, "no pictures"),
        ("bogus", UsageError, "There is no layout 'bogus'"),
    ],
)
def test_wrong_layouts(tmp_path, layout, error, match):
    with pytest.raises(error, match=match):
        find_pictures(tmp_path, layout)


def test_packed_pictures_are_explained(tmp_path):
    (tmp_path / "00001_930831_fa_a.ppm.bz2").write_bytes(b"BZh")
    with pytest.raises(InputError, match="bunzip2"):
        find_pictures(tmp_path)


def test_too_few_people(stills, tmp_path):
    save(tmp_path / "ann" / "1.jpg", stills[0][0, 0])
    with pytest.raises(InputError, match="needs 10 people or more; found 1"):
        FolderData.load(tmp_path)
