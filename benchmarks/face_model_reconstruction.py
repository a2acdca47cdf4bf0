"""How well the face model rebuilds faces: variance kept and PSNR by number of texture modes.

    python benchmarks/face_model_reconstruction.py PORTRAITS

For the shipped model on the portraits behind it, and for a model trained on 400 of the 600 people and tested on the
other 200. Textures are compared on the base face, light evened, as the model sees them; modes count by falling
variance.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from tools.face_model_training import Prepared, learn, prepare
from tools.train_face_model import measure

from ksame.models import BLENDSHAPES
from ksame.spaces.facemodel import FaceModel, face_model

MODES = (10, 25, 50, 68)


def rebuilt(model: FaceModel, data: Prepared, rows: np.ndarray) -> list[tuple[float, float]]:
    """Return variance kept and PSNR for each number of modes, over the faces in ``rows``."""
    codes = np.stack([model.encode(data.shapes[i] + data.base, data.textures[i]) for i in rows])
    mean = model.textures(np.zeros((1, model.n_codes)))[0]
    total = np.mean([((data.textures[i] - mean) ** 2).mean() for i in rows])
    sizes = np.linalg.norm(model.texture_modes.reshape(len(model.texture_modes), -1).astype(float), axis=1)
    order = np.argsort(-sizes * model.texture_scales)
    figures = []
    for count in MODES:
        kept = codes.copy()
        kept[:, model.n_shape + order[count:]] = 0.0
        errors = [
            ((model.textures(code[None])[0] - data.textures[i]) ** 2).mean() for i, code in zip(rows, kept, strict=True)
        ]
        figures.append((1.0 - float(np.mean(errors)) / float(total), float(np.mean(-10 * np.log10(errors)))))
    return figures


def main(folder: str) -> None:
    """Print the table."""
    data = prepare(Path(folder), measure(Path(folder)), BLENDSHAPES)
    people = np.random.default_rng(0).permutation(len(data.shapes))
    some = np.zeros(len(people), dtype=bool)
    some[people[:400]] = True
    smaller = learn(data, some)
    columns = {
        "shipped, its own people": rebuilt(face_model(), data, np.flatnonzero(data.plain)),
        "shipped, all 600": rebuilt(face_model(), data, np.arange(len(people))),
        "trained on 400, seen": rebuilt(smaller, data, np.flatnonzero(data.plain & some)),
        "trained on 400, held out": rebuilt(smaller, data, np.flatnonzero(data.plain & ~some)),
    }
    print("| modes | " + " | ".join(columns) + " |\n| ---: |" + " ---: |" * len(columns))
    for row, count in enumerate(MODES):
        cells = " | ".join(f"{figures[row][0]:.1%}, {figures[row][1]:.1f} dB" for figures in columns.values())
        print(f"| {count} | {cells} |")


if __name__ == "__main__":
    main(sys.argv[1])
