"""A studio in this process for the API, and one of its own for the browser. All people in it do not exist."""

import re
import subprocess
import sys
import time
import warnings
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("fastapi", reason="the studio is not installed; pip install 'ksame[studio]'")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer versions would rather use another client
    from starlette.testclient import TestClient

import ksame
from ksame.studio.api import create_app
from ksame.studio.security import Access

HOST = "127.0.0.1:8000"
SAMPLES = files("ksame.data") / "samples"


class Api:
    """A client that has the token, and talks about one project."""

    def __init__(self, http, project=None):
        self.http, self.project = http, project

    def path(self, path):
        return f"/api/projects/{self.project}{path}"

    def __call__(self, method, path, expect=200, **kwargs):
        answer = self.http.request(method, self.path(path), **kwargs)
        assert answer.status_code == expect, answer.text
        return answer.json() if answer.content and "json" in answer.headers.get("content-type", "") else answer.content

    def begin(self, kind):
        made = self.http.post("/api/projects", json={"name": "trial", "kind": kind})
        assert made.status_code == 201, made.text
        return Api(self.http, made.json()["project"]["id"])

    def add(self, path, role="media", expect=201, name=None):
        where = {"name": name or path.name, "role": role}
        return self("POST", "/files", expect, params=where, content=path.read_bytes())

    def settings(self, **changes):
        settings = self("GET", "")["project"]["settings"]
        return self("PATCH", "", json={"settings": {**settings, **changes}})["project"]["settings"]

    def start(self, action, expect=201, **params):
        return self("POST", "/jobs", expect, params={"action": action, **params})

    def ended(self, job, seconds=300):
        """Wait for the end of a job."""
        end = time.monotonic() + seconds
        while job["state"] == "running" and time.monotonic() < end:
            time.sleep(0.1)
            job = self("GET", f"/jobs/{job['number']}")
        return job

    def download(self, job, name):
        number = next(each["number"] for each in job["downloads"] if each["name"] == name)
        answer = self.http.get(self.path(f"/jobs/{job['number']}/downloads/{number}"))
        assert answer.headers["content-disposition"].startswith("attachment")
        return answer.content


@pytest.fixture
def access():
    return Access((HOST, "testserver", "localhost"), 4_000_000_000)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "projects"


@pytest.fixture
def server(root, access):
    with TestClient(create_app(root, access), base_url=f"http://{HOST}", follow_redirects=False) as http:
        yield http


@pytest.fixture
def api(server, access):
    server.headers["authorization"] = f"Bearer {access.token}"
    return Api(server)


@pytest.fixture(scope="session")
def media(tmp_path_factory):
    """A short film of two people, and photographs, of people who do not exist."""
    folder = tmp_path_factory.mktemp("media")
    for name in ("two-people.mp4", "f99.jpg", "m12.jpg", "m25.jpg"):
        (folder / name).write_bytes((SAMPLES / name).read_bytes())
    return folder


@pytest.fixture(scope="session")
def portraits(tmp_path_factory):
    """Sixteen drawn people in a folder with a table of labels."""
    folder = tmp_path_factory.mktemp("sets") / "portraits"
    folder.mkdir()
    faces = ksame.synthetic(16, size=(67, 50), seed=9)
    rows = ["file,subject,gender"]
    for i, image in enumerate(faces.images):
        Image.fromarray((image * 255 + 0.5).astype(np.uint8)).save(folder / f"face{i:02d}.png")
        rows.append(f"face{i:02d}.png,person {i},{faces.attributes['gender'][i]}")
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture
def studio(tmp_path):
    """The address of a studio that runs as users run it, and the folder of its projects."""
    root = tmp_path / "studio"
    words = [sys.executable, "-m", "ksame", "studio", str(root), "--no-open"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            first = process.stderr.readline()
            yield re.search(r"http://\S+", first)[0], root
        finally:
            process.send_signal(2)
            process.communicate(timeout=60)


def tree(folder: Path) -> set[str]:
    """All files below a folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
