"""Synthetic people: faces of people who do not exist, with every label known and every landmark exact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ksame.errors import parameter_error, seed_number, whole_number
from ksame.faces.faceset import FaceSet
from ksame.faces.registration import LARGEST
from ksame.progress import Progress, silent
from ksame.spaces.facemodel import face_model
from ksame.synthetic.expressions import EXPRESSIONS
from ksame.synthetic.lighting import ILLUMINATIONS
from ksame.synthetic.people import draw_people, pick_people
from ksame.synthetic.render import Painter, Shot

__all__ = ["synthetic"]

_MIN_SIDE = 32
_MEMORY = 2**36  # bytes of all pictures together
_TURN = 0.07  # standard deviation in radians of how far people turn between pictures


def synthetic(
    n: int,
    images_per_subject: int = 1,
    *,
    seed: int = 0,
    size: tuple[int, int] = (224, 176),
    expressions: Sequence[str] = ("neutral",),
    illuminations: Sequence[str] = ("flat",),
    progress: Progress = silent,
) -> FaceSet:
    """Make pictures of people who do not exist.

    Who they are is drawn from the face model that comes with ksame, about their labels' mean; hair, neck and
    clothes are painted. Each person is the same in all of their pictures. A single picture is frontal; of
    several, all are turned a little, so that pose and expression do not go together. The pictures of a person
    go through all pairs of ``expressions`` and ``illuminations`` in order, expressions fastest.

    Parameters
    ----------
    n : int
        How many people.
    images_per_subject : int
        How many pictures of each.
    seed : int
        The same seed gives the same bytes. Two seeds may show some of the same people; the same subject name
        is always the same person.
    size : (int, int)
        Height and width of a picture in pixels.
    expressions : sequence of str
        Out of neutral, smile, surprise, squint and disgust.
    illuminations : sequence of str
        Out of flat, front, left, right and top.
    progress : Progress
        Shows progress.

    Returns
    -------
    faces : FaceSet
        With 478 landmarks per picture, subjects called "nobody" and a number, and the labels gender (F, M),
        age_band, skin_tone, expression and illumination.

    Examples
    --------
    >>> faces = synthetic(2, 2, size=(67, 50), expressions=("neutral", "smile"))
    >>> faces.shape, faces.n_subjects, faces.attribute("expression").tolist()
    ((4, 67, 50, 3), 2, ['neutral', 'smile', 'neutral', 'smile'])
    """
    _check(n, images_per_subject, size, expressions, illuminations)
    seed = seed_number("synthetic", seed)
    model = face_model()
    numbers = pick_people(n, seed)
    people = draw_people(model, numbers)
    pairs = [(expression, light) for light in illuminations for expression in expressions]
    shown = [pairs[j % len(pairs)] for j in range(images_per_subject)]
    shots = [_shots(shown, seed, int(number)) for number in numbers]
    images = np.empty((n * images_per_subject, *size, 3), dtype=np.float32)
    landmarks = np.empty((len(images), len(model.base), 2))
    painted = Painter(model, size).paint(people, shots)
    for i in progress(range(n), "painting people"):
        rows = slice(i * images_per_subject, (i + 1) * images_per_subject)
        images[rows], landmarks[rows] = next(painted)
    owner = np.repeat(np.arange(n), images_per_subject)
    attributes = {
        "gender": people.genders[owner],
        "age_band": people.ages[owner],
        "skin_tone": people.tones[owner],
        "expression": np.array([expression for expression, _ in shown] * n),
        "illumination": np.array([light for _, light in shown] * n),
    }
    subjects = np.array([f"nobody {number}" for number in numbers[owner]])
    return FaceSet(images, subjects, landmarks, attributes)


def _shots(shown: list[tuple[str, str]], seed: int, number: int) -> list[Shot]:
    """Plan the pictures of one person: a single one frontal, several all turned a little."""
    turns, grains = np.zeros((1, 3)), np.array([number])
    if len(shown) > 1:
        rng = np.random.default_rng((seed, number))
        turns = rng.normal(0.0, _TURN, (len(shown), 3)).clip(-0.2, 0.2) * [1.0, 0.6, 0.4]
        grains = rng.integers(1 << 12, size=len(shown))
    return [
        Shot(EXPRESSIONS[expression], light, tuple(turn), int(grain))
        for (expression, light), turn, grain in zip(shown, turns, grains, strict=True)
    ]


def _check(n: int, images: int, size: tuple[int, int], expressions: Sequence[str], lights: Sequence[str]) -> None:
    if len(size) != 2 or not all(_MIN_SIDE <= side <= LARGEST for side in size):
        expected = f"height and width of {_MIN_SIDE} to {LARGEST} pixels"
        raise parameter_error("size", "synthetic", expected, size)
    max_images = _MEMORY // (12 * size[0] * size[1])  # three colours in four bytes each
    whole_number("n", "synthetic", n, 1, max_images)
    whole_number("images_per_subject", "synthetic", images, 1, max(1, max_images // n))
    for name, given, choices in (("expressions", expressions, EXPRESSIONS), ("illuminations", lights, ILLUMINATIONS)):
        if isinstance(given, str) or not given or any(item not in choices for item in given):
            raise parameter_error(name, "synthetic", f"a sequence of one or more out of {', '.join(choices)}", given)
