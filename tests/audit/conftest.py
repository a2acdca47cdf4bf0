"""Photographs of people who do not exist, and the same pictures altered by another tool."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

import ksame
from ksame.audit import AuditResult, Pairing, audit
from ksame.faces.faceset import quantise
from ksame.privacy.linkage import Linkage

N = 14


@pytest.fixture(scope="session")
def album(tmp_path_factory) -> Path:
    """Fourteen people, each somewhere on a photograph of their own size, with labels."""
    folder = tmp_path_factory.mktemp("album")
    faces = ksame.synthetic(N, size=(240, 192), seed=8, expressions=("smile",))
    rows = ["file,subject,gender,born"]
    for i, face in enumerate(quantise(faces.images)):
        canvas = np.full((300 + 4 * i, 270, 3), 150, dtype=np.uint8)
        canvas[..., 2] = np.linspace(90, 200, 270)
        canvas[20 + i : 260 + i, 60 - 2 * i : 252 - 2 * i] = face
        Image.fromarray(canvas).save(folder / f"p{i:02}.png")
        rows.append(f"p{i:02}.png,person {i},{faces.attributes['gender'][i]},{1950 + i}")
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    return folder


def altered(album: Path, folder: Path, change) -> Path:
    folder.mkdir()
    for path in sorted(album.glob("*.png")):
        with Image.open(path) as picture:
            change(picture.copy()).save(folder / path.name)
    return folder


@pytest.fixture(scope="session")
def blurred(album, tmp_path_factory) -> Path:
    return altered(album, tmp_path_factory.mktemp("b") / "blur", lambda p: p.filter(ImageFilter.GaussianBlur(2)))


@pytest.fixture(scope="session")
def mosaic(album, tmp_path_factory) -> Path:
    def coarse(picture):
        small = picture.resize((picture.width // 24, picture.height // 24), Image.Resampling.BOX)
        return small.resize(picture.size, Image.Resampling.NEAREST)

    return altered(album, tmp_path_factory.mktemp("m") / "mosaic", coarse)


@pytest.fixture(scope="session")
def blacked(album, tmp_path_factory) -> Path:
    def cover(picture):
        ImageDraw.Draw(picture).rectangle([0, 0, *picture.size], fill="black")
        return picture

    return altered(album, tmp_path_factory.mktemp("k") / "black", cover)


@pytest.fixture(scope="session")
def blur_audit(album, blurred) -> AuditResult:
    return audit(album, blurred)


@pytest.fixture(scope="session")
def released(tmp_path_factory) -> tuple[ksame.FaceSet, Path, Linkage]:
    """Twenty-four registered people released at k = 3."""
    faces = ksame.synthetic(24, size=(112, 88), seed=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release, linkage = ksame.deidentify(faces, ksame.recipe("k-same-pixel", k=3), seed=2)
    folder = tmp_path_factory.mktemp("released") / "release"
    ksame.write_release(release, folder)
    return faces, folder, linkage


@pytest.fixture(scope="session")
def k_audit(released) -> AuditResult:
    faces, folder, linkage = released
    return audit(faces, folder, pairing=Pairing(linkage=linkage))
