"""Train the face model that comes with ksame.

    python -m tools.train_face_model PORTRAITS -o src/ksame/data/face_model.npz

PORTRAITS holds ``labels.csv`` (file, subject, gender, birth_year) and the pictures it lists; those whose file
begins with ``portraits/`` are used. Only statistics over all people together are written: means, principal
components, regressions. docs/model-card.md describes the data and measures what the file gives away.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
from tools.face_model_training import Measured, learn, prepare

from ksame.faces.reading import read_image
from ksame.models import BLENDSHAPES, FaceDetector, FaceMesh, SFace


def measure(folder: Path, part: str = "portraits/") -> Measured:
    """Run detector, mesh and recogniser over the labelled pictures whose file begins with ``part``."""
    detector, mesher, recogniser = FaceDetector(), FaceMesh(), SFace()
    with (folder / "labels.csv").open(newline="", encoding="utf-8") as table:
        rows = [row for row in csv.DictReader(table) if row["file"].startswith(part)]
    kept, meshes, embeddings = [], [], []
    for row in rows:
        image = read_image(folder / row["file"])
        found = detector.detect(image)
        if not found:
            sys.stderr.write(f"{row['file']}: no face found; left out\n")
            continue
        kept.append(row)
        meshes.append(mesher.fit(image, found[0]))
        embeddings.append(recogniser.embed(image, found[0].landmarks))
    return Measured(
        tuple(row["file"] for row in kept),
        np.array([row["gender"] == "F" for row in kept], dtype=np.float64),
        np.array([float(row["birth_year"]) for row in kept]),
        np.stack([mesh.points for mesh in meshes]) * [1.0, 1.0, -1.0],
        np.stack([mesh.blendshapes for mesh in meshes]),
        np.stack(embeddings),
    )


def main() -> int:
    """Train and write the model; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("portraits", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    data = prepare(options.portraits, measure(options.portraits), BLENDSHAPES)
    model = learn(data)
    unfinished = options.output.with_suffix(".part")
    with unfinished.open("wb") as file:
        model.save(file)
    unfinished.replace(options.output)
    sys.stderr.write(
        f"{len(data.shapes)} portraits; {int(data.spectacles.sum())} with spectacles; "
        f"{int(data.plain.sum())} in the texture statistics; {options.output.stat().st_size / 1e6:.1f} MB\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
