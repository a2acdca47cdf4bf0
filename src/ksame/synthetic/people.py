"""Drawing people who do not exist: who they are, before they are painted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ksame.faces.faceset import FloatArray, IntArray
from ksame.spaces.facemodel import FaceModel

GENDERS = ("F", "M")
AGES = {"under 40": (26.0, 39.0), "40-59": (40.0, 59.0), "60 and over": (60.0, 80.0)}
TONES = {"dark": (-0.92, -0.76), "medium": (-0.70, -0.57), "light": (-0.50, -0.34)}
"""Logarithm of the brightness of the cheeks, as the face model measures it."""
PORTRAIT_YEAR = 2015.0  # about when the portraits behind the model were taken; they say only when a person was born
DISTINCT = 1.15  # standard deviations from the mean person of the same labels
ASYMMETRY = 0.6  # share of the portraits' asymmetry that people get; much of it was light and pose

HAIR_COLOURS = np.array(
    [[0.09, 0.08, 0.08], [0.20, 0.14, 0.10], [0.34, 0.23, 0.15], [0.56, 0.42, 0.26], [0.45, 0.22, 0.12]]
)
GREY, WHITE = np.array([0.52, 0.51, 0.50]), np.array([0.80, 0.79, 0.77])
_COLOUR_ODDS = {"dark": (0.85, 0.15, 0, 0, 0), "medium": (0.5, 0.35, 0.15, 0, 0), "light": (0.12, 0.28, 0.3, 0.22, 0.08)}
CLOTHES = np.array(
    [[0.13, 0.15, 0.20], [0.30, 0.31, 0.34], [0.36, 0.16, 0.18], [0.18, 0.28, 0.25], [0.72, 0.72, 0.70], [0.20, 0.24, 0.42]]
)


@dataclass(frozen=True, eq=False)
class People:
    """People who do not exist; rows are people.

    Parameters
    ----------
    codes : ndarray of shape (n, n_codes)
        In the face model, with its mean expression.
    genders, ages, tones : ndarray of str of shape (n,)
        Labels; ages are bands.
    hair, clothes : ndarray of shape (n, 3)
        Colours.
    hair_length : ndarray of shape (n,)
        From the eyes down, in eye distances.
    hair_line : ndarray of shape (n,)
        From the eyes up.
    hair_volume : ndarray of shape (n,)
        Beyond the skull.
    parting : ndarray of shape (n,)
        How far the hair falls to one side over the forehead.
    baldness : ndarray of shape (n,)
        0 for a full head of hair, 1 for none on the crown.
    grain : ndarray of int of shape (n,)
        Where in the noise the strands of hair are taken.
    """

    codes: FloatArray
    genders: NDArray[np.str_]
    ages: NDArray[np.str_]
    tones: NDArray[np.str_]
    hair: FloatArray
    clothes: FloatArray
    hair_length: FloatArray
    hair_line: FloatArray
    hair_volume: FloatArray
    parting: FloatArray
    baldness: FloatArray
    grain: IntArray

    def __len__(self) -> int:
        return len(self.codes)


def draw_people(model: FaceModel, n: int, seed: int) -> People:
    """Draw ``n`` people; person i depends on the seed and i only, so that more people leave the first ones as they are.

    Parameters
    ----------
    model : FaceModel
    n : int
    seed : int
    """
    people = [_draw(model, np.random.default_rng((seed, i)), i) for i in range(n)]
    columns = zip(*people, strict=True)
    return People(*(np.array(column) for column in columns))


def _draw(model: FaceModel, rng: np.random.Generator, i: int) -> tuple[object, ...]:
    # Genders alternate so that any number of people is balanced; ages and tones go round at other paces.
    gender = GENDERS[i % 2]
    age_band = list(AGES)[int(rng.integers(len(AGES)))]
    tone = list(TONES)[int(rng.integers(len(TONES)))]
    age = rng.uniform(*AGES[age_band])
    labels = {
        "woman": float(gender == "F"),
        "born": PORTRAIT_YEAR - age,
        "tone": rng.uniform(*TONES[tone]),
    }
    noise = rng.standard_normal(model.n_codes)
    noise *= DISTINCT * np.sqrt(model.n_codes) / np.linalg.norm(noise)
    person = (noise @ model.spread) * np.where(model.parity > 0, 1.0, ASYMMETRY)
    code = model.labelled(labels) + person
    grey = np.clip((age - 38) / 40 + rng.normal(0, 0.2), 0, 1)
    natural = HAIR_COLOURS[rng.choice(len(HAIR_COLOURS), p=_COLOUR_ODDS[tone])]
    if gender == "F" and rng.random() < 0.5:
        grey = 0.0  # dyed
    faded = natural * (1 - grey) + (GREY if grey < 0.75 else WHITE) * grey
    hair = np.clip(faded * rng.uniform(0.85, 1.15), 0.03, 0.95)
    clothes = CLOTHES[int(rng.integers(len(CLOTHES)))] * rng.uniform(0.8, 1.15)
    if gender == "F":
        length, volume = rng.choice([0.9, 1.7, 2.6]) + rng.uniform(-0.3, 0.3), rng.uniform(0.16, 0.36)
        line, parting, bald = rng.uniform(0.86, 1.04), rng.uniform(-0.28, 0.28), 0.0
    else:
        length, volume = rng.uniform(0.1, 0.35), rng.uniform(0.05, 0.18)
        line, parting = rng.uniform(0.90, 1.12), rng.uniform(-0.14, 0.14)
        bald = float(rng.random() < (age - 25) / 110)
    return (
        code, gender, age_band, tone, hair, np.clip(clothes, 0, 1), length, line, volume, parting, bald,
        int(rng.integers(1 << 16)),
    )  # fmt: skip
