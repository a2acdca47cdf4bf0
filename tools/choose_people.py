"""Choose the synthetic people that ksame shows first.

    python -m tools.choose_people PORTRAITS -o src/ksame/data/people.npy

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
from tools.train_face_model import measure

from ksame.arrays import FloatArray
from ksame.faces.faceset import quantise
from ksame.models import FaceDetector, SFace
from ksame.spaces.facemodel import face_model
from ksame.synthetic.expressions import EXPRESSIONS
from ksame.synthetic.people import draw_people
from ksame.synthetic.render import Painter, Shot

THRESHOLD = 0.363  # SFace's own: cosine from which two pictures show one person
UNLIKE_PORTRAITS = 0.354  # a little below, for other sizes of picture
ALIKE = 0.009  # share of pairs of people that may lie above the threshold
SAMPLE = 1500  # people looked at first, to learn who will be unlike most others
RIDGE = 100.0
SECOND_LOOKS = (1111, 2222)  # other noise, which alone moves a similarity by up to 0.03


def embed(numbers: NDArray[np.intp], shift: int = 0) -> FloatArray:
    """Paint the people numbered, with shifted noise, and embed them, (n, 128); NaN where no face is found."""
    model = face_model()
    detector, recogniser = FaceDetector(), SFace()
    rows = np.full((len(numbers), 128), np.nan)
    shots = [[Shot(EXPRESSIONS["neutral"], grain=int(number) + shift)] for number in numbers]
    painted = Painter(model, (224, 176)).paint(draw_people(model, numbers), shots)
    for row, (images, _) in zip(rows, painted, strict=True):
        image = quantise(images[0])
        found = detector.detect(image)
        if found:
            row[:] = recogniser.embed(image, found[0].landmarks)
    return rows


def described(numbers: NDArray[np.intp]) -> FloatArray:
    """Return what is known of people before they are painted, (n, n_features)."""
    people = draw_people(face_model(), numbers)
    columns = [people.hair_length, people.hair_line, people.hair_volume, people.curtain, people.baldness]
    columns += [people.beard, people.moustache, people.brow_weight, people.lipstick, people.spectacles[:, 3]]
    return np.concatenate([people.codes, people.hair, np.stack(columns, axis=1)], axis=1)


def promising(numbers: NDArray[np.intp], sample: FloatArray, count: int) -> NDArray[np.intp]:
    """Return about ``count`` people who by linear regression will be unlike most of a sample.

    They are taken in equal shares from each kind of people, by gender, age, skin tone and baldness, so that
    the chosen are as varied as people are drawn. The sample, (n, 128), is of people 0, 1, ...
    """
    known = described(np.arange(len(sample)))
    mean, spread = known.mean(axis=0), known.std(axis=0) + 1e-9
    z, centre = (known - mean) / spread, sample.mean(axis=0)
    weights = np.linalg.solve(z.T @ z + RIDGE * np.eye(z.shape[1]), z.T @ (sample - centre))
    guess = (described(numbers) - mean) / spread @ weights + centre
    typical = np.exp(8.0 * (guess @ sample.T)).mean(axis=1)
    people = draw_people(face_model(), numbers)
    labels = (people.genders, people.ages, people.tones, people.baldness.astype(str))
    kinds = np.array(["/".join(row) for row in zip(*labels, strict=True)])
    kept = []
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        kept.append(rows[np.argsort(typical[rows])[: round(count * len(rows) / len(numbers))]])
    return np.sort(numbers[np.concatenate(kept)])


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
    parser.add_argument("--candidates", type=int, default=120000)
    parser.add_argument("--painted", type=int, default=6500)
    options = parser.parse_args()
    portraits = measure(options.portraits).embeddings
    numbers = promising(np.arange(options.candidates), embed(np.arange(SAMPLE)), options.painted)
    people = embed(numbers)
    unlike = np.flatnonzero((people @ portraits.T).max(axis=1) < UNLIKE_PORTRAITS)  # NaN compares false
    chosen = numbers[unlike[distinct(people[unlike])]]
    for shift in SECOND_LOOKS:
        chosen = chosen[(embed(chosen, shift) @ portraits.T).max(axis=1) < UNLIKE_PORTRAITS]
    unfinished = options.output.with_suffix(".part")
    with unfinished.open("wb") as file:
        np.save(file, chosen.astype(np.int32))
    unfinished.replace(options.output)
    sys.stderr.write(f"{len(people)} painted, {len(unlike)} unlike all portraits, {len(chosen)} chosen\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
