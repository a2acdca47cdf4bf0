"""Files appear whole or not at all, whatever happens while they are written."""

import hashlib
import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksame import files
from ksame.errors import OutputError
from ksame.files import (
    EPOCH,
    build_folder,
    hash_tree,
    open_atomic,
    read_json,
    remove_parts,
    sha256_of,
    take_place,
    write_atomic,
    write_json,
)

posix = pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_hash_is_that_of_the_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    (tmp_path / "b").write_bytes(b"y")
    assert sha256_of(tmp_path / "a") == hashlib.sha256(b"x" * 3_000_000).hexdigest()
    assert sha256_of(tmp_path / "a", tmp_path / "b") == hashlib.sha256(b"x" * 3_000_000 + b"y").hexdigest()


def test_a_tree_is_hashed_by_name_below_its_parent(tmp_path):
    inner = tmp_path / "film" / "deep"
    inner.mkdir(parents=True)
    (inner / "1.png").write_bytes(b"1")
    one = hashlib.sha256(b"1").hexdigest()
    assert hash_tree(tmp_path / "film") == {"film/deep/1.png": one}
    assert hash_tree(inner / "1.png") == {"1.png": one}
    assert hash_tree(tmp_path / "missing") == {}


@given(first=st.binary(max_size=99), second=st.binary(max_size=99))
def test_what_is_written_is_there_to_the_byte(tmp_path_factory, first, second):
    path = tmp_path_factory.mktemp("w") / "file"
    write_atomic(path, first)
    write_atomic(path, second)
    assert path.read_bytes() == second
    assert names(path.parent) == ["file"]


@pytest.mark.parametrize("broken", ["fsync", "link", "replace"])
def test_a_full_disk_leaves_nothing_and_the_old_file_stands(tmp_path, monkeypatch, broken):
    path = tmp_path / "file"

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.Path if broken == "replace" else os, broken, full)
    monkeypatch.setattr(files.Path, "rename", full)
    fresh = broken == "link"
    if not fresh:
        path.write_bytes(b"old")
    with pytest.raises(OutputError, match=r"file: cannot be written \(No space left on device\). Check the space"):
        write_atomic(path, b"new", replace=not fresh)
    assert names(tmp_path) == ([] if fresh else ["file"])
    assert fresh or path.read_bytes() == b"old"


def test_a_writer_that_stops_half_way_leaves_nothing(tmp_path):
    def stop():
        with open_atomic(tmp_path / "file") as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert names(tmp_path) == []


def test_a_file_that_must_stay_is_not_replaced(tmp_path):
    path = tmp_path / "secret"
    write_atomic(path, b"one", replace=False)
    with pytest.raises(OutputError, match=r"exists, and is never overwritten. Choose another"):
        write_atomic(path, b"two", replace=False)
    assert path.read_bytes() == b"one"
    assert names(tmp_path) == ["secret"]


def test_a_disk_without_links_replaces_nothing_either(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "secret"
    write_atomic(path, b"one", replace=False)
    with pytest.raises(OutputError, match="exists"):
        write_atomic(path, b"two", replace=False)
    assert path.read_bytes() == b"one"


@posix
def test_a_private_file_is_private_from_its_first_byte(tmp_path):
    with open_atomic(tmp_path / "secret", private=True) as stream:
        (part,) = tmp_path.iterdir()
        assert stat.S_IMODE(part.stat().st_mode) == 0o600
        stream.write(b"x")
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


@posix
def test_other_files_have_the_mode_that_the_user_wants(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "public", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "public").stat().st_mode) == 0o640


def test_times_tell_nothing_where_they_should_not(tmp_path):
    write_atomic(tmp_path / "file", b"x", constant_time=True)
    assert (tmp_path / "file").stat().st_mtime == EPOCH


def test_the_longest_name_can_be_written(tmp_path):
    for letter in ("a", "é", "面"):
        name = letter * (250 // len(letter.encode()))
        write_atomic(tmp_path / name, b"x")
        assert (tmp_path / name).is_file()


def test_what_a_killed_run_left_is_removed_and_nothing_else(tmp_path):
    for name in (".a.json.0123abcd.part", ".b.json.0123abcd.part", "a.json", "a.json.part"):
        (tmp_path / name).touch()
    remove_parts(tmp_path / "a.json")
    assert names(tmp_path) == [".b.json.0123abcd.part", "a.json", "a.json.part"]


def test_json_comes_back_and_damage_is_nothing(tmp_path):
    path = tmp_path / "state.json"
    write_json(path, {"seed": 1, "name": "é"})
    assert read_json(path) == {"seed": 1, "name": "é"}
    for damage in (b"", b"[1]", b"{", b"\xff", b"[" * 100_000):
        path.write_bytes(damage)
        assert read_json(path) == {}
    assert read_json(tmp_path / "missing.json") == {}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"x": float("nan")})


def test_a_folder_appears_whole_with_one_time(tmp_path):
    with build_folder(tmp_path / "out") as building:
        (building / "faces").mkdir()
        (building / "faces" / "1").write_bytes(b"1")
        assert names(tmp_path) != ["out"]
    assert names(tmp_path) == ["out"]
    inside = [tmp_path / "out", *(tmp_path / "out").rglob("*")]
    assert {path.stat().st_mtime for path in inside} == {EPOCH}


def test_a_folder_that_fails_leaves_what_stood_there(tmp_path, monkeypatch):
    out, rename = tmp_path / "out", files.Path.rename
    out.mkdir()
    (out / "old").touch()
    with pytest.raises(KeyboardInterrupt), build_folder(out):
        raise KeyboardInterrupt
    assert names(out) == ["old"]

    def refuse(path, target):
        if target == out and not path.name.endswith(".old"):
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(files.Path, "rename", refuse)
    with pytest.raises(OutputError, match="cannot be written"), build_folder(out):
        pass
    assert names(tmp_path) == ["out"]
    assert names(out) == ["old"]


def test_a_finished_file_or_folder_takes_the_place_of_another(tmp_path):
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    take_place(tmp_path / "new", tmp_path / "old")
    assert names(tmp_path) == ["old"]
    assert names(tmp_path / "old") == ["new"]
