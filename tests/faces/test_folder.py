import warnings
from pathlib import Path

import numpy as np
import pytest

from ksame.errors import InputError, KsameWarning
from ksame.faces import Template, load_folder
from ksame.faces.faceset import quantise
from ksame.faces.reading import read_image

POINTS = "left_eye_x,left_eye_y,right_eye_x,right_eye_y,nose_x,nose_y"
EYES = "7,12,16,12,11.5,18"


@pytest.fixture
def table(tmp_path):
    """Write labels.csv."""

    def write(*lines, encoding="utf-8"):
        (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n", encoding=encoding)
        return tmp_path

    return write


@pytest.fixture
def two(write_picture, tmp_path):
    """Two loose pictures."""
    write_picture("a.png", 0)
    write_picture("b.png", 1)
    return tmp_path


def test_sub_folders_say_who_is_who(write_picture, tmp_path):
    for n, name in enumerate(("ann/1.png", "ann/deep/er/2.png", "bob/1.JPG", "bob/notes.txt")):
        if name.endswith("txt"):
            (tmp_path / name).write_text("no picture")
        else:
            write_picture(name, n)
    loaded = load_folder(tmp_path)
    assert loaded.faces.names == ("ann/1.png", "ann/deep/er/2.png", "bob/1.JPG")
    assert loaded.faces.subjects.tolist() == ["ann", "ann", "bob"]
    assert loaded.faces.shape == (3, 32, 24, 3)
    assert np.array_equal(loaded.faces.images[0], read_image(tmp_path / "ann/1.png"))
    assert loaded.unreadable == ()
    assert dict(loaded.faces.attributes) == {}
    assert loaded.faces.landmarks is None


def test_the_table_gives_subjects_attributes_and_landmarks(two, table):
    table(f"file,subject,gender,{POINTS}", f"b.png,bob,M,{EYES}", f"a.png,ann,F,{EYES}")
    faces = load_folder(two).faces
    assert faces.names == ("b.png", "a.png")
    assert faces.subjects.tolist() == ["bob", "ann"]
    assert faces.attribute("gender").tolist() == ["M", "F"]
    assert set(faces.attributes) == {"gender"}
    assert faces.landmarks[0].tolist() == [[7, 12], [16, 12], [11.5, 18]]


def test_only_listed_files_are_loaded(two, table):
    (two / "broken.png").write_text("broken, but not listed")
    table("file,subject", "a.png,ann")
    assert load_folder(two).faces.names == ("a.png",)


def test_the_table_may_lie_elsewhere_and_wins(two, table, tmp_path_factory):
    table("file,subject", "a.png,ann")
    other = tmp_path_factory.mktemp("elsewhere") / "who.csv"
    other.write_text("file,subject\nb.png,bob\n")
    assert load_folder(two, labels=other).faces.names == ("b.png",)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_byte_order_mark_and_other_scripts_do_no_harm(two, table, encoding):
    table("file,subject,gruß", "a.png,Åsa Müller,ja", encoding=encoding)
    faces = load_folder(two).faces
    assert faces.subjects.tolist() == ["Åsa Müller"]
    assert faces.attribute("gruß").tolist() == ["ja"]


def test_neither_sub_folders_nor_table_is_a_warning(two):
    with pytest.warns(KsameWarning, match="Neither sub-folders nor labels.csv say who is who"):
        faces = load_folder(two).faces
    assert faces.person_specific
    assert faces.subjects.tolist() == ["a.png", "b.png"]


def test_sub_folders_and_tables_do_not_warn(two, table):
    table("file,subject", "a.png,ann", "b.png,bob")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(load_folder(two).faces) == 2


def test_grey_among_colour_becomes_colour(two, write_picture, table):
    grey = np.arange(32 * 24, dtype=np.uint32).reshape(32, 24) % 251
    write_picture("c.png", array=grey.astype(np.uint8))
    table("file,subject", "a.png,ann", "c.png,cat")
    images = quantise(load_folder(two).faces.images)
    assert np.array_equal(images[1], np.repeat(grey[..., None], 3, axis=2))


def test_grey_alone_stays_grey(write_picture, table):
    write_picture("c.png", array=np.eye(8, dtype=np.uint8))
    assert load_folder(table("file,subject", "c.png,cat")).faces.shape == (1, 8, 8, 1)


def test_loose_and_nested_pictures_together_are_refused(two, write_picture):
    write_picture("cat/c.png")
    with pytest.raises(InputError, match=r"some pictures lie in sub-folders and some do not \(for instance a\.png\)"):
        load_folder(two)


def test_several_sizes_without_landmarks_are_refused_and_listed(write_picture, tmp_path):
    write_picture("ann/a.png")
    write_picture("bob/b.png", size=(20, 30))
    with pytest.raises(InputError, match="found 2 \\(20x30, 24x32\\).*Give landmarks"):
        load_folder(tmp_path)


def test_several_sizes_with_landmarks_are_registered(write_picture, two, table):
    write_picture("c.png", 2, size=(48, 64))
    table(f"file,subject,{POINTS}", f"a.png,ann,{EYES}", "c.png,cat,14,24,32,24,23,36")
    faces = load_folder(two).faces
    assert faces.shape == (2, 134, 99, 3)
    template = np.array(Template.eyes_and_nose().points)
    assert np.abs(faces.landmarks - template).max() < 6
    assert np.abs((faces.landmarks - template).mean(axis=1)).max() < 1e-9


def test_a_template_is_applied_to_equal_sizes_too(two, table):
    table(f"file,subject,{POINTS}", f"a.png,ann,{EYES}", f"b.png,bob,{EYES}")
    assert load_folder(two, template=Template.eyes_and_nose(20, 28)).faces.shape == (2, 28, 20, 3)


def test_a_template_without_landmarks_is_refused(two, table):
    table("file,subject", "a.png,ann")
    with pytest.raises(InputError, match="registration needs the eyes and the nose of every face.*left_eye_x"):
        load_folder(two, template=Template.eyes_and_nose())


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["file,subject"], "labels.csv: no rows"),
        ([""], "labels.csv: no rows"),
        (["file,who", "a.png,ann"], r"labels.csv: missing column\(s\) subject; found file, who"),
        (["name,who", "a.png,ann"], r"missing column\(s\) file, subject"),
        (["file;subject", "a.png;ann"], r"missing column\(s\) file, subject"),
        (["file,subject", "a.png,ann", "b.png"], "labels.csv, line 3: expected 2 values"),
        (["file,subject", "a.png,"], "line 2: expected 2 values with a file and a subject"),
        (["file,subject", ",ann"], "line 2: expected 2 values with a file and a subject"),
        (["file,subject", "../a.png,ann"], r"line 2: \.\./a\.png lies outside"),
        (["file,subject", "a.png,ann", "/etc/passwd,bob"], "line 3: /etc/passwd lies outside"),
        (["file,subject", "a.png,ann", "a.png,bob"], "labels.csv: a file is listed twice"),
        (["file,subject", "a.png,ann", "./a.png,bob"], "labels.csv: a file is listed twice"),
        (["file,subject", "a.png,ann", "sub/../a.png,bob"], "labels.csv: a file is listed twice"),
        ([f"file,subject,{POINTS}", "a.png,ann,7,12,16,12,11.5,left"], "line 2: a landmark is not a number"),
        ([f"file,subject,{POINTS}", f"a.png,ann,{EYES}", "b.png,bob,7,12,nan,12,11.5,18"], "line 3: a landmark"),
        ([f"file,subject,{POINTS}", f"a.png,ann,{EYES}", "b.png,bob,7,12,16,12,inf,18"], "line 3: a landmark"),
    ],
)
def test_a_bad_table_is_refused_with_its_line(two, table, lines, words):
    (two / "sub").mkdir()
    table(*lines)
    with pytest.raises(InputError, match=words):
        load_folder(two)


def test_a_link_that_leads_out_of_the_folder_is_refused(two, table, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret.png"
    (two / "a.png").rename(outside)
    (two / "a.png").symlink_to(outside)
    table("file,subject", "a.png,ann")
    with pytest.raises(InputError, match="lies outside"):
        load_folder(two)


def test_landmarks_in_one_place_are_refused_with_the_file(two, table):
    table(f"file,subject,{POINTS}", f"a.png,ann,{EYES}", "b.png,bob,5,5,5,5,5,5")
    with pytest.raises(InputError, match=r"b\.png.*points that differ"):
        load_folder(two, template=Template.eyes_and_nose())


def test_an_absolute_path_into_the_folder_is_taken(two, table, monkeypatch):
    table("file,subject", f"{two.resolve() / 'a.png'},ann")
    monkeypatch.chdir(two.parent)
    assert load_folder(Path(two.name)).faces.names == ("a.png",)


def test_a_table_in_another_encoding_is_refused(two, table):
    table("file,subject", "a.png,Müller", encoding="latin-1")
    with pytest.raises(InputError, match="labels.csv: cannot be read"):
        load_folder(two)


def test_a_table_that_is_not_there_is_refused(two):
    with pytest.raises(InputError, match="who.csv: cannot be read"):
        load_folder(two, labels=two / "who.csv")


@pytest.mark.parametrize(
    ("folder", "words"), [("nowhere", "nowhere: no such folder"), ("a.png", "a.png: no such folder")]
)
def test_what_is_no_folder_is_refused(two, folder, words):
    with pytest.raises(InputError, match=words):
        load_folder(two / folder)


def test_a_folder_without_pictures_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(InputError, match=r"no pictures found \(\.jpeg, \.jpg, \.pgm, \.png"):
        load_folder(tmp_path)


@pytest.fixture
def with_bad(write_picture, tmp_path):
    """One good picture and two bad ones."""
    write_picture("ann/a.png")
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / "empty.png").touch()
    (tmp_path / "bob" / "words.jpg").write_text("words")
    return tmp_path


def test_every_unreadable_file_is_named(with_bad):
    with pytest.raises(InputError, match=r"2 of 3 files cannot be read:(?s:.*)empty\.png(?s:.*)words\.jpg") as caught:
        load_folder(with_bad)
    assert "--skip-unreadable" in str(caught.value)


def test_skipped_files_are_listed_with_reasons(with_bad):
    loaded = load_folder(with_bad, skip_unreadable=True)
    assert loaded.faces.names == ("ann/a.png",)
    assert [Path(text.split(": ")[0]).name for text in loaded.unreadable] == ["empty.png", "words.jpg"]
    assert "the file is empty" in loaded.unreadable[0]


def test_a_listed_file_that_is_missing_counts_as_unreadable(two, table):
    table("file,subject", "a.png,ann", "gone.png,bob")
    with pytest.raises(InputError, match="gone.png"):
        load_folder(two)
    assert len(load_folder(two, skip_unreadable=True).unreadable) == 1


def test_nothing_readable_is_an_error_even_when_skipping(with_bad):
    (with_bad / "ann" / "a.png").unlink()
    with pytest.raises(InputError, match="None of the 2 files can be read"):
        load_folder(with_bad, skip_unreadable=True)


def test_progress_sees_every_file(with_bad):
    seen = []

    def progress(items, what):
        seen.append((what, len(items)))
        return items

    load_folder(with_bad, skip_unreadable=True, progress=progress)
    assert seen == [("reading pictures", 3)]


def test_landmarks_far_outside_the_picture_are_refused(two, table):
    """Registering to them would blur the picture with a kernel of millions of pixels, and never end."""
    folder = table(f"file,subject,{POINTS}", f"a.png,A,{EYES}", "b.png,B,7,12,1e9,12,11.5,18")
    with pytest.raises(InputError, match="b.png: the landmarks lie far outside the picture"):
        load_folder(folder, template=Template.eyes_and_nose(24, 32))


def test_a_name_with_a_nul_character_is_refused(two, table):
    table("file,subject", "a.png,Ann", "b\0.png,Bob")
    with pytest.raises(InputError, match="NUL"):
        load_folder(two)
