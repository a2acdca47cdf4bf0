import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from typer.testing import CliRunner

from drawn import drawn_faces
from ksame import FaceSet
from ksame.app.cli import app
from ksame.faces.faceset import quantise
from ksame.faces.landmarks import EYES_AND_NOSE
from ksame.faces.reading import encode_png

Run = Callable[..., Any]
SOURCE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background inherit that it is ignored
from ksame.app.cli import main
print('ready', flush=True)
main()
"""


def write_people(folder: Path, faces: FaceSet, **labels: list[str]) -> Path:
    """Write faces with labels.csv; every name, subject and label is easy to find again in bytes."""
    folder.mkdir(parents=True)
    points = [f"{point}_{axis}" for point in EYES_AND_NOSE for axis in "xy"]
    lines = [",".join(["file", "subject", *labels, *points])]
    for i, image in enumerate(quantise(faces.images)):
        name, subject = f"photo-Zk9-{i:04d}.png", faces.subjects[i].replace("person", "citizen-Qx7")
        (folder / name).write_bytes(encode_png(image))
        marks = [f"{value:.3f}" for value in faces.landmarks[i].ravel()]
        lines.append(",".join([name, subject, *(values[i] for values in labels.values()), *marks]))
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the ledger of every test in its own folder."""
    monkeypatch.setenv("KSAME_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve people, one small picture each; the class 'rare' has two of them."""
    return write_people(
        tmp_path_factory.mktemp("people") / "faces",
        drawn_faces(12, width=24, height=32),
        gender=["femme-Wq1", "homme-Wq2"] * 6,
        kind=["rare-Wq3"] * 2 + ["common-Wq4"] * 10,
    )


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six people, two pictures each."""
    faces = drawn_faces(6, 2, width=24, height=32)
    return write_people(tmp_path_factory.mktemp("pairs") / "faces", faces, mood=["calm-Wq5", "glad-Wq6"] * 6)


@pytest.fixture(scope="session")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight other people."""
    faces = drawn_faces(8, width=24, height=32, seed=99)
    others = FaceSet(faces.images, np.char.add("other-", faces.subjects), faces.landmarks)
    return write_people(tmp_path_factory.mktemp("strangers") / "faces", others)


@pytest.fixture(scope="session")
def run() -> Run:
    """Run ``ksame`` in this process."""

    def invoke(*words: object, code: int | None = None, env: dict[str, str] | None = None) -> Any:
        result = CliRunner().invoke(app, [str(word) for word in words], env=env)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        if code is not None:
            assert result.exit_code == code, result.output
        return result

    return invoke


@pytest.fixture
def start(state: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start ``ksame`` as a process of its own, which prints 'ready' when it is about to begin."""

    def popen(*words: object, **options: Any) -> subprocess.Popen[str]:
        environment = {**os.environ, "KSAME_STATE": str(state), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
        return subprocess.Popen(
            [sys.executable, "-c", SOURCE, *(str(word) for word in words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            **options,
        )

    return popen


@dataclass(frozen=True)
class Published:
    """A signed release, its link table and the keys."""

    folder: Path
    linkage: Path
    public_key: Path
    other_key: Path

    @property
    def certificate(self) -> dict[str, Any]:
        return json.loads((self.folder / "certificate.json").read_bytes())


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with mine.pem, mine.pub, other.pem and other.pub."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("mine", "other"):
        key = Ed25519PrivateKey.generate()
        (folder / f"{name}.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        (folder / f"{name}.pub").write_bytes(
            key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )
    return folder


@pytest.fixture(scope="session")
def _published(tmp_path_factory: pytest.TempPathFactory, people: Path, keys: Path, run: Run) -> Published:
    base = tmp_path_factory.mktemp("published")
    words = ["release", people, "-o", base / "release", "-k", 3, "--seed", 5]
    run(
        *words,
        *("--link-table", base / "linkage.json", "--sign", keys / "mine.pem"),
        code=0,
        env={"KSAME_STATE": str(base / "state")},
    )
    return Published(base / "release", base / "linkage.json", keys / "mine.pub", keys / "other.pub")


@pytest.fixture
def published(_published: Published, tmp_path: Path) -> Published:
    """A copy of a release of ``people`` with k = 3, to be tampered with."""
    shutil.copytree(_published.folder, tmp_path / "published")
    shutil.copy(_published.linkage, tmp_path / "linkage.json")
    return Published(tmp_path / "published", tmp_path / "linkage.json", _published.public_key, _published.other_key)
