"""Choose the synthetic people that ksame shows first.

    python tools/choose_people.py PORTRAITS -o src/ksame/data/people.npy

Paints candidates and keeps the numbers of those whom the recogniser finds unlike every portrait behind the
face model and who are rarely like one another. The file written holds numbers from which people who do not
exist are drawn. Run it after tools/train_face_model.py and after every change of how people are drawn or
painted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from train_face_model import measure

from ksame.faces.faceset import FloatArray, quantise
from ksame.models import Detector, SFace
from ksame.spaces.facemodel import face_model
from ksame.synthetic.people import draw_people
from ksame.synthetic.render import Painter, Shot

THRESHOLD = 0.363  # SFace's own: cosine from which two pictures show one person
UNLIKE_PORTRAITS = 0.35  # a little below, for other sizes of picture
ALIKE = 0.008  # share of pairs of people that may lie above the threshold


def embed(first: int, last: int) -> FloatArray:
    """Paint the people with numbers in [first, last) and embed them, (n, 128); NaN where no face is found."""
    model = face_model()
    numbers = np.arange(first, last)
    detector, recogniser = Detector(), SFace()
    rows = np.full((len(numbers), 128), np.nan)
    shots = [[Shot("neutral", "flat")]] * len(numbers)
    painted = Painter(model, (224, 176)).paint(draw_people(model, numbers), shots)
    for row, (images, _) in zip(rows, painted, strict=True):
        image = quantise(images[0])
        found = detector.detect(image)
        if found:
            row[:] = recogniser.embed(image, found[0].points)
    return rows


def distinct(embeddings: FloatArray) -> NDArray[np.intp]:
    """Drop whoever is like most others until few pairs are alike; return the rows that stay."""
    alike = embeddings @ embeddings.T > THRESHOLD
    np.fill_diagonal(alike, False)
    stays = np.ones(len(alike), dtype=bool)
    count = alike.sum(axis=1)
    while count[stays].sum() > ALIKE * stays.sum() * (stays.sum() - 1):
        worst = int(np.argmax(np.where(stays, count, -1)))
        stays[worst] = False
        count = count - alike[:, worst]
    return np.flatnonzero(stays)


def main() -> int:
    """Choose and write; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("portraits", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--candidates", type=int, default=12000)
    options = parser.parse_args()
    portraits = measure(options.portraits).embeddings
    people = embed(0, options.candidates)
    unlike = np.flatnonzero((people @ portraits.T).max(axis=1) < UNLIKE_PORTRAITS)  # NaN compares false
    chosen = unlike[distinct(people[unlike])]
    unfinished = options.output.with_suffix(".part")
    with unfinished.open("wb") as file:
        np.save(file, chosen.astype(np.int32))
    unfinished.replace(options.output)
    sys.stderr.write(f"{len(people)} candidates, {len(unlike)} unlike all portraits, {len(chosen)} chosen\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
