"""Faces for all tests: drawn ones everywhere, real portraits where the data folder is there."""

import os
from pathlib import Path

import numpy as np
import pytest

import ksame
from drawn import drawn_faces
from ksame.faces.faceset import FaceSet

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    """Keep the ledger of every test to itself."""
    monkeypatch.setenv("KSAME_STATE", str(tmp_path / "state"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real portraits."""
    folder = Path(os.environ.get("KSAME_SHARED", ROOT.parent / "shared"))
    if not (folder / "faces").is_dir():
        pytest.skip(f"no real portraits in {folder}; set KSAME_SHARED to the folder that has them")
    return folder


@pytest.fixture(scope="session")
def faces() -> FaceSet:
    """Thirty-one people, one small image each: no multiple of any k."""
    return drawn_faces(31, seed=11, width=24, height=32)


@pytest.fixture(scope="session")
def family() -> FaceSet:
    """Fourteen people with three images each."""
    return drawn_faces(14, 3, seed=12, width=24, height=32)


@pytest.fixture(scope="session")
def meshed() -> FaceSet:
    """Thirteen people who do not exist, with the mesh that model codings need."""
    return ksame.synthetic(13, size=(96, 76), seed=3)


@pytest.fixture(scope="session")
def meshed_family() -> FaceSet:
    """Eight of them with three expressions each."""
    return ksame.synthetic(8, 3, size=(96, 76), seed=4, expressions=("neutral", "smile", "surprise"))


@pytest.fixture(scope="session")
def uneven() -> FaceSet:
    """Twenty people of whom every fifth has twelve images and the others one."""
    full = drawn_faces(20, 12, seed=13, width=24, height=32)
    image = np.arange(len(full)) % 12
    person = np.arange(len(full)) // 12
    return full.take((image == 0) | (person % 5 == 0))


@pytest.fixture(scope="session")
def portraits(shared) -> FaceSet:
    """The real portraits, registered to 99 x 134 by their eyes and noses, in grey."""
    from ksame.faces.reading import read_image
    from ksame.faces.registration import Template, register
    from ksame.models import detect

    template = Template.eyes_and_nose()
    images, subjects = [], []
    for path in sorted((shared / "faces" / "portraits").glob("*.jpg")):
        picture = read_image(path)
        found = detect(picture)
        if not found:
            continue
        face, _ = register(picture, max(found, key=lambda d: d.score).landmarks[:3], template)
        images.append(face.mean(axis=2, keepdims=True))
        subjects.append(path.stem)
    return FaceSet(np.stack(images), np.array(subjects))
