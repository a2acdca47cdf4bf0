"""Drawing people who do not exist: who they are, before they are painted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import READING, FloatArray, IntArray
from ksame.spaces.facemodel import FaceModel
from ksame.spaces.facemodel.labels import AGE_BANDS, GENDERS, PORTRAIT_YEAR, SKIN_TONES

FIRST_OTHER = 1 << 24  # numbers from here on were not checked when people were chosen
DISTINCT = 1.3  # standard deviations from the mean person of the same labels
ASYMMETRY = 0.4  # share of the portraits' asymmetry that people get; much of it was light and pose
SHAPELY = 1.3  # how much more people differ in shape than the portraits do

HAIR_COLOURS = np.array(
    [[0.09, 0.08, 0.08], [0.20, 0.14, 0.10], [0.34, 0.23, 0.15], [0.56, 0.42, 0.26], [0.45, 0.22, 0.12]]
)
GREY, WHITE = np.array([0.52, 0.51, 0.50]), np.array([0.80, 0.79, 0.77])
_COLOUR_ODDS = {
    "dark": (0.85, 0.15, 0, 0, 0),
    "medium": (0.5, 0.35, 0.15, 0, 0),
    "light": (0.12, 0.28, 0.3, 0.22, 0.08),
}
IRISES = np.array([[0.16, 0.10, 0.07], [0.30, 0.20, 0.11], [0.36, 0.38, 0.24], [0.38, 0.48, 0.58]])
_IRIS_ODDS = {"dark": (0.8, 0.2, 0, 0), "medium": (0.5, 0.35, 0.1, 0.05), "light": (0.15, 0.3, 0.2, 0.35)}
LIPS = np.array([[0.62, 0.16, 0.20], [0.70, 0.34, 0.36], [0.50, 0.16, 0.24], [0.66, 0.38, 0.32]])
FRAMES = np.array([[0.07, 0.07, 0.08], [0.28, 0.18, 0.12], [0.45, 0.45, 0.47], [0.45, 0.12, 0.12], [0.58, 0.48, 0.28]])
SPECTACLES = 0.2  # share of people who wear them
CLOTHES = np.array(
    [
        [0.13, 0.15, 0.20],
        [0.30, 0.31, 0.34],
        [0.36, 0.16, 0.18],
        [0.18, 0.28, 0.25],
        [0.72, 0.72, 0.70],
        [0.20, 0.24, 0.42],
    ]
)


@dataclass(frozen=True, eq=False)
class People:
    """People who do not exist; rows are people."""

    codes: FloatArray  # (n, n_codes): in the face model, with its mean expression
    genders: NDArray[np.str_]  # (n,)
    ages: NDArray[np.str_]  # (n,): bands
    tones: NDArray[np.str_]  # (n,)
    hair: FloatArray  # (n, 3): colours
    clothes: FloatArray  # (n, 3)
    hair_length: FloatArray  # (n,): from the eyes down, in eye distances
    hair_line: FloatArray  # (n,): from the eyes up
    hair_volume: FloatArray  # (n,): beyond the skull
    parting: FloatArray  # (n,): how far the hair falls to one side over the forehead
    baldness: FloatArray  # (n,): 0 for a full head of hair, 1 for none on the crown
    curtain: FloatArray  # (n,): how far the hair at the sides covers the face
    grain: IntArray  # (n,): where in the noise the strands of hair are taken
    brow_weight: FloatArray  # (n,): how strong, in [0, 1]
    beard: FloatArray  # (n,)
    moustache: FloatArray  # (n,)
    lipstick: FloatArray  # (n,)
    irises: FloatArray  # (n, 3): colours
    lip_colours: FloatArray  # (n, 3)
    frame_colours: FloatArray  # (n, 3)
    spectacles: FloatArray  # (n, 4): half width and height, squareness and thickness, in eye distances; zeros for none

    def __len__(self) -> int:
        return len(self.codes)


def pick_people(n: int, seed: int) -> IntArray:
    """Pick who appears: numbers of people, (n,), women and men in turn.

    First come, in an order that depends on the seed, the people chosen when ksame was built, whom a recogniser finds
    unlike every portrait behind the face model and rarely like one another; then people who were not checked.
    """
    rng = np.random.default_rng(seed)
    chosen = chosen_people()
    queues = []
    for parity in range(len(GENDERS)):
        vetted = rng.permutation(chosen[chosen % 2 == parity])
        others = FIRST_OTHER + 2 * (int(rng.integers(FIRST_OTHER)) + np.arange(n)) + parity
        queues.append(np.concatenate([vetted, others]))
    return np.array([queues[i % 2][i // 2] for i in range(n)], dtype=np.intp)


@lru_cache(maxsize=1)
def chosen_people() -> IntArray:
    """Return the numbers of the people chosen when ksame was built."""
    with READING, (files("ksame.data") / "people.npy").open("rb") as file:
        return np.asarray(np.load(file, allow_pickle=False), dtype=np.intp)


def draw_people(model: FaceModel, numbers: IntArray) -> People:
    """Draw people by their numbers, (n,), even for women, odd for men: the same number is always the same person."""
    people = [_draw(model, int(number)) for number in numbers]
    return People(*(np.array(column) for column in zip(*people, strict=True)))


def _draw(model: FaceModel, number: int) -> tuple[object, ...]:
    rng = np.random.default_rng(number)
    gender = GENDERS[number % 2]
    age_band = list(AGE_BANDS)[int(rng.integers(len(AGE_BANDS)))]
    tone = list(SKIN_TONES)[int(rng.integers(len(SKIN_TONES)))]
    age = rng.uniform(*AGE_BANDS[age_band])
    labels = {"woman": float(gender == "F"), "born": PORTRAIT_YEAR - age, "tone": rng.uniform(*SKIN_TONES[tone])}
    noise = rng.standard_normal(model.n_codes)
    noise *= DISTINCT * np.sqrt(model.n_codes) / np.linalg.norm(noise)
    person = (noise @ model.spread) * np.where(model.parity > 0, 1.0, ASYMMETRY)
    person[: model.n_shape] *= SHAPELY
    code = model.labelled(labels) + person
    hair = _hair_colour(gender, age, tone, rng)
    clothes = np.clip(CLOTHES[int(rng.integers(len(CLOTHES)))] * rng.uniform(0.8, 1.15), 0, 1)
    return (code, gender, age_band, tone, hair, clothes, *_hair_style(gender, age, rng), *_features(gender, tone, rng))


def _hair_colour(gender: str, age: float, tone: str, rng: np.random.Generator) -> FloatArray:
    grey = np.clip((age - 38) / 40 + rng.normal(0, 0.2), 0, 1)
    natural = HAIR_COLOURS[rng.choice(len(HAIR_COLOURS), p=_COLOUR_ODDS[tone])]
    if gender == "F" and rng.random() < 0.5:
        grey = 0.0  # dyed
    faded = natural * (1 - grey) + (GREY if grey < 0.75 else WHITE) * grey
    return np.asarray(np.clip(faded * rng.uniform(0.85, 1.15), 0.03, 0.95))


def _hair_style(gender: str, age: float, rng: np.random.Generator) -> tuple[float, ...]:
    """Return length, line, volume, parting, baldness, curtain and grain."""
    if gender == "F":
        length, volume = rng.choice([0.9, 1.7, 2.6]) + rng.uniform(-0.3, 0.3), rng.uniform(0.10, 0.42)
        fringe = rng.random() < 0.25
        line, parting = rng.uniform(0.62, 0.75) if fringe else rng.uniform(0.85, 1.10), rng.normal(0, 0.22)
        bald, curtain = 0.0, rng.uniform(0.02, 0.24)
    else:
        length, volume = rng.uniform(0.0, 0.45), rng.uniform(0.03, 0.26)
        line, parting = rng.uniform(0.82, 1.16), rng.normal(0, 0.15)
        bald, curtain = float(rng.random() < (age - 25) / 110), rng.uniform(-0.02, 0.06)
    return length, line, volume, float(np.clip(parting, -0.4, 0.4)), bald, curtain, int(rng.integers(1 << 16))


def _features(gender: str, tone: str, rng: np.random.Generator) -> tuple[object, ...]:
    """Return weights of brows, beard, moustache and lipstick, three colours, the form of spectacles."""
    beard = moustache = lipstick = 0.0
    if gender == "M":
        kind = rng.random()
        if kind < 0.28:
            beard = rng.choice([0.25, 0.55, 0.75])
            moustache = beard
        elif kind < 0.36:
            moustache = rng.uniform(0.5, 0.8)
    elif rng.random() < 0.6:
        lipstick = rng.uniform(0.15, 0.45)
    irises = IRISES[rng.choice(len(IRISES), p=_IRIS_ODDS[tone])]
    frame = FRAMES[int(rng.integers(len(FRAMES)))]
    form = [rng.uniform(0.32, 0.40), rng.uniform(0.20, 0.32), rng.uniform(2.0, 4.5), rng.uniform(0.02, 0.055)]
    spectacles = np.array(form) * (rng.random() < SPECTACLES)
    lips = LIPS[int(rng.integers(len(LIPS)))]
    return rng.uniform(0.0, 0.6), beard, moustache, lipstick, irises, lips, frame, spectacles
