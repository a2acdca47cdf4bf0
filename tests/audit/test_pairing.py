"""Which picture belongs to which, and what is said when that is wrong."""

import shutil

import numpy as np
import pytest
from PIL import Image

import ksame
from ksame.audit.pairing import Pairing, pair_images
from ksame.errors import InputError, UsageError


def folder_of(path, *names):
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), 50, dtype=np.uint8)).save(path / name)
    return path


@pytest.fixture
def both(tmp_path):
    return folder_of(tmp_path / "before", "a.png", "b.png"), folder_of(tmp_path / "after", "a.jpg", "b.png")


def named(pictures):
    return [(p.original.name, p.released.name, p.original.subject) for p in pictures.pairs]


def test_equal_names_whatever_the_ending(both):
    pictures = pair_images(*both)
    assert named(pictures) == [("a.png", "a.jpg", "a.png"), ("b.png", "b.png", "b.png")]
    assert not pictures.not_paired
    assert all(p.released.subject == p.original.subject for p in pictures.pairs)


def test_sub_folders_are_people(tmp_path):
    before = folder_of(tmp_path / "before", "ann/1.png", "ann/2.png", "bob/1.png")
    pictures = pair_images(before, folder_of(tmp_path / "after", "ann/1.png", "bob/1.png"))
    assert named(pictures) == [("ann/1.png", "ann/1.png", "ann"), ("bob/1.png", "bob/1.png", "bob")]
    assert [p.name for p in pictures.further] == ["ann/2.png"]
    assert [(m.name, m.side) for m in pictures.not_paired] == [("ann/2.png", "original")]


def test_unequal_counts_are_named_on_both_sides(both):
    folder_of(both[0], "c.png")
    folder_of(both[1], "d.png")
    not_paired = {(m.name, m.side, m.reason) for m in pair_images(*both).not_paired}
    assert not_paired == {
        ("c.png", "original", "no released picture belongs to it"),
        ("d.png", "released", "no original belongs to it"),
    }


def test_two_endings_of_one_name_need_the_exact_name(both):
    folder_of(both[0], "a.tif", "c.png")
    folder_of(both[1], "c.png")
    pictures = pair_images(*both)
    assert [pair[1] for pair in named(pictures)] == ["b.png", "c.png"]
    assert ("a.jpg", "released") in {(m.name, m.side) for m in pictures.not_paired}


def test_nothing_in_common(tmp_path, both):
    with pytest.raises(UsageError, match=r"No released picture has the name.*a\.png.*x\.png.*--pairs") as error:
        pair_images(both[0], folder_of(tmp_path / "other", "x.png", "y.png"))
    assert error.value.exit_code == 2


def test_a_table_of_pairs(tmp_path, both):
    table = tmp_path / "pairs.csv"
    table.write_text("original,released\na.png,b.png\nb.png,a.jpg\n")
    assert named(pair_images(*both, Pairing(pairs=table))) == [("a.png", "b.png", "a.png"), ("b.png", "a.jpg", "b.png")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("original,released\na.png,nowhere.png\n", r"line 2: there is no released picture 'nowhere\.png'"),
        ("original,released\nz.png,b.png\n", r"line 2: there is no original picture 'z\.png'"),
        ("original,released\na.png,b.png\nb.png,b.png\n", r"line 3: b\.png is listed twice"),
        ("original\na.png\n", "missing column.* released"),
        ("original,released\n", "no rows"),
        ("original,released\na.png,\n", "line 2: the column released is empty"),
    ],
)
def test_wrong_tables(tmp_path, both, text, message):
    table = tmp_path / "pairs.csv"
    table.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        pair_images(*both, Pairing(pairs=table))
    assert error.value.exit_code == 5


def test_one_single_person(tmp_path):
    before, after = folder_of(tmp_path / "one", "a.png"), folder_of(tmp_path / "two", "a.png")
    with pytest.raises(UsageError, match=r"one person \(a\.png\).*at least two people"):
        pair_images(before, after)


@pytest.mark.parametrize(("side", "message"), [(0, "no such folder"), (1, "no such folder")])
def test_no_folder(tmp_path, both, side, message):
    given = list(both)
    given[side] = tmp_path / "nowhere"
    with pytest.raises(InputError, match=message):
        pair_images(*given)


def test_an_empty_folder(tmp_path, both):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no pictures inside"):
        pair_images(both[0], tmp_path / "empty")


def test_labels_by_whole_name_or_by_last_part(tmp_path, both):
    table = tmp_path / "labels.csv"
    table.write_text("file,subject,gender\nelsewhere/a.png,Ann,F\nb.png,,M\n")
    pairs = pair_images(*both, Pairing(labels=table)).pairs
    assert [(p.original.subject, dict(p.original.attributes)) for p in pairs] == [
        ("Ann", {"gender": "F"}),
        ("b.png", {"gender": "M"}),
    ]


def test_labels_of_other_pictures(tmp_path, both):
    table = tmp_path / "labels.csv"
    table.write_text("file,gender\nq.png,F\n")
    with pytest.raises(InputError, match=r"no row names a picture"):
        pair_images(*both, Pairing(labels=table))


def test_a_release_needs_its_link_table(released):
    faces, folder, _ = released
    with pytest.raises(UsageError, match=r"renumbered.*--linkage"):
        pair_images(faces, folder)


def test_a_link_table_pairs_a_release(released):
    faces, folder, linkage = released
    pictures = pair_images(faces, folder, Pairing(linkage=linkage))
    assert len(pictures.pairs) == 24
    assert not pictures.not_paired
    assert {p.released.name: p.original.subject for p in pictures.pairs} == {
        f.released: f.subject for f in linkage.faces
    }


def test_the_link_table_of_another_release(released):
    faces, folder, linkage = released
    with pytest.raises(UsageError, match="another release"):
        pair_images(faces, folder, Pairing(linkage=linkage.model_copy(update={"release_digest": "0" * 64})))


def test_a_link_table_and_the_wrong_originals(released):
    _, folder, linkage = released
    others = ksame.synthetic(3, size=(112, 88))
    strangers = ksame.FaceSet(others.images, others.subjects, names=("x", "y", "z"))
    with pytest.raises(UsageError, match="not among the originals"):
        pair_images(strangers, folder, Pairing(linkage=linkage))


def test_a_missing_file_of_a_release(released, tmp_path):
    faces, folder, linkage = released
    shutil.copytree(folder, tmp_path / "copy")
    (tmp_path / "copy" / "faces" / "000004.png").unlink()
    with pytest.raises(UsageError, match=r"faces/000004\.png, which is not in the released folder"):
        pair_images(faces, tmp_path / "copy", Pairing(linkage=linkage))


def test_pairs_and_linkage_together(released, tmp_path):
    faces, folder, linkage = released
    with pytest.raises(UsageError, match="not both"):
        pair_images(faces, folder, Pairing(linkage=linkage, pairs=tmp_path / "pairs.csv"))
