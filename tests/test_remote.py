"""URLs: originals are fetched to a private folder; results appear whole, the certificate last."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from importlib.resources import files
from importlib.util import find_spec

import pytest

import ksame
from app.conftest import run, state  # noqa: F401 -- fixtures
from drawn import drawn_faces
from ksame.errors import InputError, OutputError, UsageError
from ksame.faces.faceset import quantise
from ksame.faces.reading import encode_png
from ksame.remote import staged
from ksame.scene.release import ReleaseOptions

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'ksame[cluster]'")
SAMPLES = files("ksame.data") / "samples"
FILL = ksame.JobConfig(method="fill")


@pytest.fixture
def memory(tmp_path, monkeypatch):
    """An empty file system in memory with two photographs in /in; the working directory is empty too."""
    monkeypatch.chdir(tmp_path)
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    for name in ("f99.jpg", "m12.jpg"):
        system.pipe(f"/in/album/{name}", (SAMPLES / name).read_bytes())
    yield system
    system.store.clear()


def contents(system, folder):
    return {name.rsplit("/", 1)[-1]: system.cat(name) for name in system.find(folder)}


def test_a_folder_at_a_url_becomes_a_release_at_a_url(memory, tmp_path):
    local = tmp_path / "album"
    memory.get("/in/album/", f"{local}/", recursive=True)
    options = ReleaseOptions(keep_names=True)
    ksame.deidentify_media(local, tmp_path / "safe", config=FILL, options=options, seed=1)
    release = ksame.deidentify_media("memory://in/album", "memory://out/safe", config=FILL, options=options, seed=1)
    assert contents(memory, "/out/safe") == {path.name: path.read_bytes() for path in (tmp_path / "safe").iterdir()}
    assert {path.name for path in tmp_path.iterdir()} - {"state"} == {"album", "safe"}, "no copies are left"
    assert sorted(release.name(file.source) for file in release.files) == [
        "memory:///in/album/f99.jpg",
        "memory:///in/album/m12.jpg",
    ]
    assert release.name(release.paths.certificate) == "memory://out/safe/certificate.json"


def test_copies_of_originals_are_private_and_the_certificate_comes_last(memory, tmp_path, monkeypatch):
    stored, modes = [], set()
    move = type(memory).mv

    def noting(self, source, target, **more):
        stored.append(target.rsplit("/", 1)[-1])
        for path in tmp_path.rglob("in/**/*"):
            modes.add(path.stat().st_mode & 0o777)
        return move(self, source, target, **more)

    monkeypatch.setattr(type(memory), "mv", noting)
    ksame.deidentify_media("memory://in/album/*.jpg", "memory://out/safe", config=FILL)
    assert stored == ["000001.jpg", "000002.jpg", "certificate.json"]
    assert modes == {0o600, 0o700}


def test_a_failed_upload_leaves_nothing_half_written_and_goes_on(memory, tmp_path, monkeypatch):
    put = type(memory).put_file

    def failing(self, local, remote, **more):
        if "000002" in remote:
            self.pipe(remote, b"half")
            raise OSError("the line is dead")
        return put(self, local, remote, **more)

    with monkeypatch.context() as patch:
        patch.setattr(type(memory), "put_file", failing)
        with pytest.raises(OutputError, match="000002.jpg cannot be stored .*the line is dead.*goes on with --resume"):
            ksame.deidentify_media("memory://in/album", "memory://out/safe", config=FILL, seed=1)
    assert set(contents(memory, "/out")) == {"000001.jpg"}, "no certificate, nothing half-written"
    again = ReleaseOptions(resume=True)
    ksame.deidentify_media("memory://in/album", "memory://out/safe", config=FILL, seed=1, options=again)
    assert set(contents(memory, "/out")) == {"000001.jpg", "000002.jpg", "certificate.json"}
    assert {path.name for path in tmp_path.iterdir()} - {"state"} == set()
    with pytest.raises(UsageError, match="exists. Choose another place"):
        ksame.deidentify_media("memory://in/album", "memory://out/safe", config=FILL, options=again)


def test_one_file_at_a_url_and_a_manifest(memory, run, tmp_path):  # noqa: F811
    words = ("deidentify", "memory://in/album/f99.jpg", "-o", "memory://out/safe.jpg", "-m", "fill")
    result = run(*words, "--manifest", tmp_path / "job.json", "--json", code=0)
    assert set(contents(memory, "/out")) == {"safe.jpg", "safe.certificate.json"}
    assert json.loads(result.stdout)["files"][0]["output"] == "memory://out/safe.jpg"
    job = json.loads((tmp_path / "job.json").read_text())
    assert job["files"] == [
        {"source": "memory:///in/album/f99.jpg", "output": "memory://out/safe.jpg", "state": "done", "reason": ""}
    ]
    assert "exists. Choose another place" in run(*words, code=2).output.replace("\n", " ")


def test_a_release_of_faces_goes_from_url_to_url(memory, run, tmp_path):  # noqa: F811
    run("release", "synthetic:6", "-o", "memory://out/faces", "--k", 3, "--size", "48x64", "--seed", 1, code=0)
    stored = contents(memory, "/out/faces")
    assert "certificate.json" in stored
    run("release", "synthetic:6", "-o", tmp_path / "faces", "--k", 3, "--size", "48x64", "--seed", 1, code=0)
    here = {path.name: path.read_bytes() for path in (tmp_path / "faces").rglob("*") if path.is_file()}
    assert stored == here
    for i, face in enumerate(drawn_faces(4, width=24, height=32).images):
        memory.pipe(f"/in/faces/person{i}/a.png", encode_png(quantise(face)))
    run("release", "memory://in/faces", "-o", tmp_path / "again", "--k", 2, code=0)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_urls_that_lead_nowhere_are_named(memory, tmp_path):
    with pytest.raises(InputError, match="memory://in/none: there is no such file"):
        ksame.deidentify_media("memory://in/none", tmp_path / "out", config=FILL)
    with pytest.raises(UsageError, match="nosuch://x/y: this is no URL that can be used"):
        ksame.deidentify_media("nosuch://x/y", tmp_path / "out", config=FILL)
    with (
        pytest.raises(UsageError, match="--force replaces nothing at a URL"),
        staged(["a"], "memory://b/c", force=True),
    ):
        pass
    memory.store["/in/odd/../../../escaped.jpg"] = memory.store["/in/album/f99.jpg"]
    with pytest.raises(InputError, match="would lie outside the folder"):
        ksame.deidentify_media("memory://in/odd", tmp_path / "out", config=FILL)
    assert not list(tmp_path.glob(".*"))


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    """A bucket of S3 on this machine."""
    if find_spec("moto") is None or find_spec("s3fs") is None:
        pytest.skip("no S3 on this machine: pip install s3fs 'moto[server]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(url, timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        monkeypatch.chdir(tmp_path)
        system = fsspec.filesystem("s3", skip_instance_cache=True)
        system.mkdir("private")
        yield system
    finally:
        server.terminate()
        server.wait()


@pytest.mark.filterwarnings("ignore")  # of the client of S3
def test_s3(bucket, tmp_path):
    bucket.pipe("private/in/f99.jpg", (SAMPLES / "f99.jpg").read_bytes())
    ksame.deidentify_media("s3://private/in", "s3://private/out/safe", config=FILL)
    bucket.invalidate_cache()
    assert sorted(bucket.find("private/out")) == ["private/out/safe/000001.jpg", "private/out/safe/certificate.json"]
    with pytest.raises(UsageError, match="exists"):
        ksame.deidentify_media("s3://private/in", "s3://private/out/safe", config=FILL)
    shutil.rmtree(tmp_path / "none", ignore_errors=True)
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]  # noqa: PTH208


def test_a_release_that_cannot_be_stored_leaves_no_link_table(memory, run, tmp_path, monkeypatch):  # noqa: F811
    def failing(*_, **__):
        raise OSError("the line is dead")

    monkeypatch.setattr(type(memory), "put_file", failing)
    words = ("release", "synthetic:6", "-o", "memory://out/faces", "--k", 3, "--size", "48x64")
    run(*words, "--link-table", tmp_path / "links.json", code=1)
    assert {path.name for path in tmp_path.iterdir()} - {"state"} == set()
    assert contents(memory, "/out") == {}
