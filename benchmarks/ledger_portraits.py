"""How surely the ledger knows a portrait again, and how rarely it takes one person for another.

KSAME_SHARED=FOLDER python -m benchmarks.ledger_portraits [PORTRAITS]
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from ksame import FaceSet, Template, register
from ksame.faces.reading import read_image
from ksame.models import detect
from ksame.privacy.ledger import Ledger

CUTS = {
    "99x134": Template.eyes_and_nose(99, 134),
    "50x67": Template.eyes_and_nose(50, 67),
    "64x64": Template.eyes_and_nose(64, 64),
    "portrait 176x224": Template.portrait(),
}


def main() -> None:
    """Print in how many of its bands a portrait agrees with itself in another cut, and with other people."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    cut: dict[str, list] = {name: [] for name in CUTS}
    for path in sorted((Path(os.environ["KSAME_SHARED"]) / "faces" / "portraits").glob("*.jpg"))[:most]:
        picture = read_image(path)
        found = detect(picture)
        if not found or picture.shape[2] != 3:
            continue
        points = max(found, key=lambda d: d.score).landmarks[:3]
        for name, template in CUTS.items():
            image, move = register(picture, points, template)
            cut[name].append((image, move.apply(points)))
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(folder)
        tokens = {name: _tokens(ledger, faces) for name, faces in cut.items()}
    first = tokens["99x134"]
    print(f"{len(first)} portraits; bands that agree with those at 99x134, of {first.shape[1]}")
    for name, other in tokens.items():
        agreeing = (first[:, None] == other[None]).sum(axis=2)
        own, others = agreeing.diagonal(), agreeing[~np.eye(len(agreeing), dtype=bool)]
        print(
            f"{name}: the same portrait at least {own.min()}, median {np.median(own):g}; others at most {others.max()}"
        )


def _tokens(ledger: Ledger, faces: list) -> np.ndarray:
    made = FaceSet(np.stack([f for f, _ in faces]), np.arange(len(faces)), np.stack([p for _, p in faces]))
    return np.array([[text[i : i + 4] for i in range(0, 128, 4)] for text in ledger.prints(made)])


if __name__ == "__main__":
    main()
