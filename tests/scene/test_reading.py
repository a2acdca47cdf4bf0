"""What is read of people before surrogates are chosen for them, in pictures of any size and light.

The people are those of whom no reader learned.
"""

import csv
from dataclasses import replace
from functools import lru_cache

import cv2
import numpy as np
import pytest

from ksame.faces.reading import read_image
from ksame.models import FaceDetector, FaceMesh, SFace, five_points
from ksame.models.pictures import as_rgb8
from ksame.scene.decide.reading import read

EVERY = 4  # of the portraits is read, to save time


@lru_cache
def recogniser():
    return SFace()


def seen(pixels, mesh):
    return read(pixels, mesh, recogniser().embed(pixels, five_points(mesh)))


@pytest.fixture(scope="module")
def portraits(shared):
    """Portraits, a mesh of each, and whether it shows a woman."""
    detector, mesher = FaceDetector(), FaceMesh()
    with (shared / "faces" / "labels.csv").open(encoding="utf-8", newline="") as file:
        women = {row["subject"]: row["gender"] == "F" for row in csv.DictReader(file)}
    people = []
    for subject in (shared / "faces" / "heldout.txt").read_text(encoding="utf-8").split()[::EVERY]:
        pixels = as_rgb8(read_image(shared / "faces" / "portraits" / f"{subject}.jpg"))
        face = max(detector.detect(pixels), key=lambda face: face.side)
        people.append((pixels, mesher.fit(pixels, face), women[subject]))
    return people


@pytest.mark.shared
@pytest.mark.parametrize(("width", "least"), [(120, 0.9), (36, 0.85), (24, 0.75)])
def test_small_faces_are_read_as_of_their_gender(portraits, width, least):
    mesher, right = FaceMesh(), {True: [], False: []}
    for pixels, mesh, woman in portraits:
        factor = width / np.ptp(mesh.points[:, 0])
        small = cv2.resize(pixels, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
        reading = seen(small, mesher.follow(small, replace(mesh, points=mesh.points * factor)))
        right[woman].append((reading.woman > 0) == woman)
    assert min(np.mean(each) for each in right.values()) >= least


@pytest.mark.shared
def test_dim_light_changes_neither_gender_nor_tone(portraits):
    bright, dim = (
        [seen((pixels * share).astype(np.uint8), mesh) for pixels, mesh, _ in portraits] for share in (1.0, 0.3)
    )
    assert np.mean([(a.woman > 0) == (b.woman > 0) for a, b in zip(bright, dim, strict=True)]) >= 0.95
    assert np.median([abs(a.skin.tone - b.skin.tone) for a, b in zip(bright, dim, strict=True)]) < 0.05
