"""How often gender, age band, skin tone and expression are read rightly from a face.

    python -m benchmarks.label_accuracy FACES

``FACES`` holds labels.csv (file, subject, gender, birth_year) and the pictures; without it only synthetic people
are read.
"""

import csv
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from ksame.faces.faceset import FaceSet
from ksame.models import BLENDSHAPES, FaceDetector, FaceMesh
from ksame.photographs import load_photographs, portrait_mesh
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.labels import AGE_BANDS, PORTRAIT_YEAR, age_bands, expression, genders, skin_tones
from ksame.synthetic import synthetic

EXPRESSIONS = ("neutral", "smile", "surprise", "squint", "disgust")


def _codes(images, meshes) -> np.ndarray:
    model = face_model()
    return np.stack([model.encode(m, model.texture_of(i, m)) for i, m in zip(images, meshes, strict=True)])


def _portraits(folder: Path) -> None:
    with (folder / "labels.csv").open(newline="") as table:
        known = {Path(row["file"]).name: row for row in csv.DictReader(table)}
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        faces: FaceSet = load_photographs(folder / "portraits").faces
    codes = _codes(faces.images, faces.landmarks)
    rows = [known[name] for name in faces.names]
    model = face_model()
    right = genders(model, codes) == np.array([row["gender"] for row in rows])
    age = PORTRAIT_YEAR - np.array([float(row["birth_year"]) for row in rows])
    band = np.array(list(AGE_BANDS))[(age[:, None] >= [40.0, 60.0]).sum(axis=1)]
    print(f"{len(rows)} portraits: gender {right.mean():.1%}, age band {(age_bands(model, codes) == band).mean():.1%}")


def main(folder: str | None = None) -> None:
    """Print shares of right readings."""
    if folder is not None:
        _portraits(Path(folder))
    people = synthetic(60, 5, expressions=EXPRESSIONS, seed=5)
    networks, right, meshes = (FaceDetector(), FaceMesh()), Counter(), []
    for image, true in zip(people.images, people.attribute("expression"), strict=True):
        mesh = portrait_mesh(image, *networks)
        assert not isinstance(mesh, str), mesh
        right[str(true)] += expression(dict(zip(BLENDSHAPES, mesh.blendshapes, strict=True))) == true
        meshes.append(np.concatenate([mesh.points[:, :2], -mesh.points[:, 2:]], axis=1))
    shares = ", ".join(f"{name} {right[name] / 60:.0%}" for name in EXPRESSIONS)
    print(f"{len(people)} synthetic pictures: expression {sum(right.values()) / len(people):.1%} ({shares})")
    codes, model = _codes(people.images, meshes), face_model()
    for name, read in (("gender", genders), ("age_band", age_bands), ("skin_tone", skin_tones)):
        print(f"{name} {(read(model, codes) == people.attribute(name)).mean():.1%}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
