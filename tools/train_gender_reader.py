"""Train what reads the gender of people before surrogates are chosen for them.

``python -m tools.train_gender_reader FACES PEOPLE [-o src/ksame/data/gender_reader.npy]``. FACES holds ``portraits``,
``labels.csv`` (subject, gender) and ``heldout.txt``, of whom nothing is learned; PEOPLE holds photographs and
``labels.csv`` (file, gender). Every photograph is seen once as it is, and several times made small, soft, dark,
bright, hazy or noisy, as people are in films. Prints how many are read rightly in cross-validation over people, and
of those that are held out.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from ksame.faces.reading import read_image
from ksame.models import FaceDetector, FaceMesh, SFace, five_points
from ksame.models.pictures import as_rgb8
from ksame.scene.decide.reading import codes_of

SPOILED = 6  # pictures made of each
PLAIN_WEIGHT = 3.0  # how much more a picture counts that is as it was
PENALTY = 100.0  # of squared weights, chosen by the cross-validation
FOLDS = 6
STEPS = 25


def photographs(faces, people):
    """Return all photographs: a path, whether it shows a woman, and whether it is held out."""
    held = set((faces / "heldout.txt").read_text(encoding="utf-8").split())
    with (faces / "labels.csv").open(encoding="utf-8", newline="") as file:
        genders = {row["subject"]: row["gender"] for row in csv.DictReader(file)}
    found = [(faces / "portraits" / f"{name}.jpg", of == "F", name in held) for name, of in genders.items()]
    with (people / "labels.csv").open(encoding="utf-8", newline="") as file:
        found += [(people / row["file"], row["gender"] == "F", False) for row in csv.DictReader(file)]
    return found


def spoiled(pixels, mesh, rng):
    """Return a picture made worse, and by how much smaller it is."""
    width = np.exp(rng.uniform(np.log(28), np.log(140)))
    factor = min(1.0, width / np.ptp(mesh.points[:, 0]))
    worse = cv2.resize(pixels, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
    if rng.random() < 0.6:
        worse = cv2.GaussianBlur(worse, (0, 0), rng.uniform(0.3, 1.3))
    light = np.exp(rng.uniform(-0.7, 0.55)) * np.exp(rng.normal(0, 0.06, 3))
    worse = worse * light + rng.normal(0, rng.uniform(0, 6), worse.shape)
    if rng.random() < 0.4:
        haze = rng.uniform(0, 0.4)
        worse = worse * (1 - haze) + haze * rng.uniform(60, 230)
    worse = worse.clip(0, 255).astype(np.uint8)
    if rng.random() < 0.7:
        quality = [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(25, 90))]
        worse = cv2.imdecode(cv2.imencode(".jpg", worse, quality)[1], cv2.IMREAD_COLOR)
    return worse, factor


def seen(paths):
    """Return what is read from, (n, n_numbers + 1), whose it is, and whether it is the photograph as it was."""
    detector, mesher, recogniser = FaceDetector(), FaceMesh(), SFace()
    rng = np.random.default_rng(0)
    rows, people, plain = [], [], []
    for i, path in enumerate(paths):
        pixels = as_rgb8(read_image(path))
        mesh = mesher.fit(pixels, max(detector.detect(pixels), key=lambda face: face.side))
        for turn in range(1 + SPOILED):
            shown, factor = spoiled(pixels, mesh, rng) if turn else (pixels, 1.0)
            there = mesher.follow(shown, replace(mesh, points=mesh.points * factor)) if turn else mesh
            rows.append([*codes_of(shown, there)[1], *recogniser.embed(shown, five_points(there)), 1.0])
            people.append(i)
            plain.append(turn == 0)
    return np.array(rows), np.array(people), np.array(plain)


def learned(rows, women, weights):
    """Return the reader, (n_numbers + 1,): logistic regression, by Newton's method; both genders count alike."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    mean[-1], spread[-1] = 0, 1
    given = (rows - mean) / spread
    penalty = PENALTY * np.diag([*np.ones(rows.shape[1] - 1), 1e-9])
    weights = weights * np.where(women, 1 / women.mean(), 1 / (~women).mean()) / 2
    reader = np.zeros(given.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-(given @ reader).clip(-30, 30)))
        slope = given.T @ (weights * (chance - women)) + penalty @ reader
        bend = (given * (weights * chance * (1 - chance))[:, None]).T @ given + penalty
        reader -= np.linalg.solve(bend, slope)
    reader /= spread
    reader[-1] -= reader @ mean
    return reader


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faces", type=Path)
    parser.add_argument("people", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("src/ksame/data/gender_reader.npy"))
    options = parser.parse_args()
    everyone = photographs(options.faces, options.people)
    rows, people, plain = seen([path for path, *_ in everyone])
    women, held = (np.array([one[i] for one in everyone])[people] for i in (1, 2))
    weights = np.where(plain, PLAIN_WEIGHT, 1.0)
    reader = learned(rows[~held], women[~held], weights[~held])
    reading = rows @ reader
    fold = np.random.default_rng(1).permutation(len(everyone))[people] % FOLDS
    for number in range(FOLDS):
        rest, out = ~held & (fold != number), ~held & (fold == number)
        reading[out] = rows[out] @ learned(rows[rest], women[rest], weights[rest])
    for whose, who in (("cross-validation", ~held), ("held out", held)):
        for state, which in (("as they were", who & plain), ("spoiled", who & ~plain)):
            right = [np.mean((reading[which & of] > 0) == woman) for of, woman in ((women, True), (~women, False))]
            print(f"{whose}, {state}: women {right[0]:.3f}, men {right[1]:.3f} of {which.sum()} pictures")
    np.save(options.output, reader.astype(np.float32))
    print(f"{options.output}: learned from {(~held).sum()} pictures")


if __name__ == "__main__":
    main()
