"""Sets that do not fit into memory: images, codes and released faces lie on disk, and are worked on block by block."""

import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from drawn import drawn_faces
from ksame import FaceSet, deidentify, recipe, scratch, verify, write_release
from ksame.deidentify import Provenance
from ksame.errors import OutputError
from ksame.faces.duplicates import look_alikes
from ksame.faces.reading import encode_png
from ksame.privacy.release import read_release

MEASURED = """
import sys, tracemalloc
from pathlib import Path
from ksame.app.cli import app
from ksame.methods import grouping
try:
    from ksame import scratch
    scratch.HELD = scratch.BLOCK = 2**18  # the set is small, so what counts as large is too
    grouping.LEAF = 256
except ImportError:
    pass
few, many, output, *given = sys.argv[1:]
app(["release", few, "-o", output + "-few", *given], standalone_mode=False)  # imports
tracemalloc.start()
app(["release", many, "-o", output, "--link-table", output + ".json", *given], standalone_mode=False)
print("released", tracemalloc.get_traced_memory()[1])
tracemalloc.reset_peak()
app(["verify", output, "--linkage", output + ".json", "--originals", many], standalone_mode=False)
print("verified", tracemalloc.get_traced_memory()[1])
"""


def crowd(folder: Path, people: int, size: tuple[int, int]) -> None:
    """Write people who are smooth noise, each in a picture of its own; 40 of them in another folder too."""
    rng = np.random.default_rng(0)
    for i in range(people):
        coarse = rng.integers(0, 256, (8, 6), dtype=np.uint8)
        data = encode_png(cv2.resize(coarse, size, interpolation=cv2.INTER_LINEAR)[..., None])
        for place in ("many", "few") if i < 40 else ("many",):
            (folder / place / f"{i:05d}").mkdir(parents=True)
            (folder / place / f"{i:05d}" / "face.png").write_bytes(data)


def peaks(folder: Path, people: int, size: tuple[int, int], given: str) -> tuple[int, np.ndarray]:
    """Return the bytes of all images, and the peaks of memory of a release and of its verification."""
    crowd(folder, people, size)
    command = [sys.executable, "-c", MEASURED, folder / "few", folder / "many", folder / "release", *given.split()]
    environment = {**os.environ, "KSAME_STATE": str(folder / "state")}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found = [int(done.stdout.split(f"{word} ")[-1].split()[0]) for word in ("released", "verified")]
    return people * size[0] * size[1] * 4, np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "small", "large"),
    [
        ("-m k-same-pixel -k 10", (600, (72, 96)), (1200, (72, 96))),  # codes of one leaf are held
        ("-m k-same-eigen -k 10 --components 20", (300, (48, 64)), (300, (96, 128))),  # so is a matrix of all faces
        ("-m average", (300, (48, 64)), (300, (96, 128))),
    ],
)
def test_images_are_not_held(tmp_path, given, small, large):
    """More bytes of images take less than as many bytes of memory; a good part of that goes with the people."""
    images, before = peaks(tmp_path / "small", *small, given)
    more_images, after = peaks(tmp_path / "large", *large, given)
    grown = (after - before) / (more_images - images)
    print(f"released {grown[0]:.2f}, verified {grown[1]:.2f} of the images")
    assert grown.max() < 0.75


RECIPES = [
    ("k-same-pixel", {"k": 5}),
    ("k-same-pixel", {"k": 5, "distance": "eigen"}),
    ("k-same-eigen", {"k": 5, "components": 12}),
    ("k-diff-furthest", {"k": 3}),
    ("wrong-map", {}),
    ("average", {}),
    ("blur", {}),
]


@pytest.mark.parametrize(("name", "params"), RECIPES, ids=lambda value: str(value))
def test_faces_on_disk_give_the_same_bytes_as_faces_in_memory(monkeypatch, tmp_path, name, params):
    faces = drawn_faces(40, 2 if name.startswith("k-same") else 1, seed=8, width=24, height=32)
    chosen = recipe(name, **params)
    release, linkage = deidentify(faces, chosen, seed=1, provenance=Provenance(names="keep"))
    monkeypatch.setattr(scratch, "HELD", 50_000)
    monkeypatch.setattr(scratch, "BLOCK", 100_000)
    again = FaceSet(faces.images, faces.subjects, faces.landmarks, faces.attributes, faces.names)
    streamed, relinked = deidentify(again, chosen, seed=1, provenance=Provenance(names="keep"), remember=False)
    assert streamed.certificate.digest == release.certificate.digest
    assert streamed.certificate.figures == release.certificate.figures
    assert [face.face for face in relinked.faces] == [face.face for face in linkage.faces]
    write_release(streamed, tmp_path / "release")
    assert np.array_equal(read_release(tmp_path / "release")[0].faces, release.faces)
    assert all(
        finding.passed is not False for finding in verify(tmp_path / "release", linkage=linkage, originals=again)
    )


def test_large_arrays_lie_in_files_that_have_no_name(monkeypatch, tmp_path):
    monkeypatch.setattr(scratch, "HELD", 100)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    array = scratch.empty((50, 3), np.float64)
    array[:] = 1.0
    assert list(tmp_path.iterdir()) == []
    assert array.sum() == 150


def test_no_room_for_temporary_data_is_said_before_any_work(monkeypatch, tmp_path):
    monkeypatch.setattr(scratch, "HELD", 100)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(OutputError, match="no room for .* TMPDIR"):
        scratch.empty((50, 3), np.float64)


def test_a_face_set_shares_what_nobody_can_change_and_copies_the_rest():
    images = np.random.default_rng(0).random((3, 8, 8, 1)).astype(np.float32)
    faces = FaceSet(images, ["a", "b", "c"])
    assert not np.shares_memory(faces.images, images)
    view = images.view()
    view.flags.writeable = False  # its owner still can
    assert not np.shares_memory(FaceSet(view, ["a", "b", "c"]).images, images)
    assert np.shares_memory(FaceSet(faces.images, ["d", "e", "f"]).images, faces.images)


def test_copies_among_many_pictures_are_found_wherever_they_stand():
    images = np.random.default_rng(2).random((1200, 10, 8, 1)).astype(np.float32)
    images[900], images[1100] = images[17], images[40][:, ::-1]
    assert look_alikes(FaceSet(images, range(1200))) == [(17, 900), (40, 1100)]
