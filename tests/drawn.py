"""Drawn faces: small registered portraits of people who do not exist, quick enough for every test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray
from ksame.errors import parameter_error
from ksame.faces.faceset import FaceSet

EXPRESSIONS = ("neutral", "smile", "surprise")


@dataclass(frozen=True)
class _Traits:
    """What makes a drawn person; every field has one value for each image, shape (n, 1, 1) or (n, 1, 1, 3)."""

    skin: FloatArray
    hair: FloatArray
    lips: FloatArray
    iris: FloatArray
    width: FloatArray
    jaw: FloatArray
    hairline: FloatArray
    eye_gap: FloatArray
    eye_y: FloatArray
    eye_size: FloatArray
    brow_lift: FloatArray
    brow_tilt: FloatArray
    brow_weight: FloatArray
    nose_length: FloatArray
    nose_width: FloatArray
    mouth_y: FloatArray
    mouth_width: FloatArray
    lip_weight: FloatArray
    beard: FloatArray


def drawn_faces(
    n_subjects: int,
    images_per_subject: int = 1,
    *,
    seed: int = 0,
    width: int = 99,
    height: int = 134,
    grey: bool = False,
) -> FaceSet:
    """Draw people, with the labels gender and expression and with exact landmarks (both eyes and the nose).

    Parameters
    ----------
    n_subjects, images_per_subject : int
        Image j of a subject shows expression j of neutral, smile, surprise (and round again) under its own light.
    seed : int
        Same seed, same people.
    width, height : int
        Size of each image.
    grey : bool
        One channel instead of three.

    Examples
    --------
    >>> faces = drawn_faces(3, 2, seed=5)
    >>> faces.shape, faces.n_subjects, sorted(faces.attributes)
    ((6, 134, 99, 3), 3, ['expression', 'gender'])
    """
    for name, value in (("n_subjects", n_subjects), ("images_per_subject", images_per_subject)):
        if value < 1:
            raise parameter_error(name, "drawn_faces", "an integer of at least 1", value)
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_subjects), images_per_subject)
    expression = np.tile(np.arange(images_per_subject) % len(EXPRESSIONS), n_subjects)
    female = rng.random(n_subjects) < 0.5
    traits = _draw_traits(rng, female, person)
    smile = (expression == 1).astype(float)[:, None, None]
    opened = (expression == 2).astype(float)[:, None, None]
    light = rng.normal(0.0, 0.05, (len(person), 1, 1)) * (images_per_subject > 1)
    images = np.concatenate(
        [
            _paint(_part(traits, s), smile[s], opened[s], light[s], width, height)
            for s in (slice(i, i + 64) for i in range(0, len(person), 64))
        ]
    )
    images = np.clip(images + rng.normal(0.0, 0.008, images.shape), 0.0, 1.0)
    return FaceSet(
        images.mean(axis=3, keepdims=True) if grey else images,
        np.array([f"person-{p + 1:04d}" for p in person]),
        _landmarks(traits, width, height),
        {
            "gender": np.where(female, "F", "M")[person],
            "expression": np.array(EXPRESSIONS)[expression],
        },
        tuple(f"person-{p + 1:04d}/{i % images_per_subject + 1:03d}" for i, p in enumerate(person)),
    )


def _draw_traits(rng: np.random.Generator, female: NDArray[Any], person: NDArray[Any]) -> _Traits:
    n = len(female)
    f = female.astype(float)

    def number(mean: float, spread: float, gender: float = 0.0) -> FloatArray:
        values = rng.normal(mean, spread, n) + gender * (f - 0.5)
        return np.clip(values, mean - 2.5 * spread - abs(gender), mean + 2.5 * spread + abs(gender))[person][
            :, None, None
        ]

    tone = rng.beta(1.6, 1.2, n)[:, None]
    skin = (1 - tone) * np.array([0.36, 0.23, 0.16]) + tone * np.array([0.93, 0.76, 0.66])
    skin = np.clip(skin + rng.normal(0, 0.02, (n, 3)), 0, 1)
    dyes = np.array(
        [[0.08, 0.06, 0.05], [0.28, 0.17, 0.09], [0.52, 0.35, 0.16], [0.62, 0.60, 0.58], [0.42, 0.15, 0.07]]
    )
    hair = np.clip(dyes[rng.integers(len(dyes), size=n)] + rng.normal(0, 0.03, (n, 3)), 0, 1)
    lips = np.clip(skin * np.array([0.85, 0.55, 0.55]) + 0.12 * f[:, None] * np.array([1.0, -0.1, 0.1]), 0, 1)
    colours = np.array([[0.25, 0.15, 0.08], [0.20, 0.35, 0.50], [0.25, 0.38, 0.22], [0.12, 0.08, 0.06]])
    iris = colours[rng.integers(len(colours), size=n)]

    def colour(values: FloatArray) -> FloatArray:
        return values[person][:, None, None, :]

    return _Traits(
        colour(skin),
        colour(hair),
        colour(lips),
        colour(iris),
        width=number(0.78, 0.05, -0.05),
        jaw=number(0.30, 0.09, 0.12),
        hairline=number(-0.66, 0.07, 0.08),
        eye_gap=number(0.36, 0.030),
        eye_y=number(-0.20, 0.025),
        eye_size=number(0.120, 0.016, 0.02),
        brow_lift=number(0.155, 0.022, 0.02),
        brow_tilt=number(0.05, 0.07),
        brow_weight=number(0.036, 0.009, -0.016),
        nose_length=number(0.32, 0.04),
        nose_width=number(0.115, 0.022, -0.02),
        mouth_y=number(0.43, 0.03),
        mouth_width=number(0.26, 0.035),
        lip_weight=number(0.050, 0.011, 0.02),
        beard=np.maximum(number(-0.1, 0.35, -0.3), 0.0),
    )


def _part(traits: _Traits, part: slice) -> _Traits:
    return _Traits(**{name: values[part] for name, values in vars(traits).items()})


def _landmarks(traits: _Traits, width: int, height: int) -> FloatArray:
    nose_y = traits.eye_y + traits.nose_length
    points = [
        (-traits.eye_gap, traits.eye_y),
        (traits.eye_gap, traits.eye_y),
        (np.zeros_like(nose_y), nose_y),
    ]
    to_pixels = [((x[:, 0, 0] + 1) / 2 * (width - 1), (y[:, 0, 0] + 1) / 2 * (height - 1)) for x, y in points]
    return np.stack([np.stack(xy, axis=1) for xy in to_pixels], axis=1)


def _soft(distance: FloatArray, edge: float) -> FloatArray:
    """Return 1 inside (negative distance), 0 outside, with an edge of the given width."""
    return np.clip(0.5 - distance / edge, 0.0, 1.0)


def _oval(x: FloatArray, y: FloatArray, rx: FloatArray, ry: FloatArray, edge: float) -> FloatArray:
    return _soft((np.sqrt((x / rx) ** 2 + (y / ry) ** 2) - 1.0) * np.minimum(rx, ry), edge)


def _paint(t: _Traits, smile: FloatArray, opened: FloatArray, light: FloatArray, width: int, height: int) -> FloatArray:
    """Return images of shape (n, height, width, 3) in the square from -1 to 1."""
    x = np.linspace(-1, 1, width)[None, None, :]
    y = np.linspace(-1, 1, height)[None, :, None]
    edge = 3.0 / width
    canvas = np.full((len(t.width), height, width, 3), 0.72)

    def lay(mask: FloatArray, paint: FloatArray) -> None:
        canvas[...] = canvas + mask[..., None] * (paint - canvas)

    side = np.abs(x) + 0 * y
    lay(_oval(x, y + 0.25, t.width * 1.16, 0.95 + 0 * t.width, edge), t.hair)
    rx = t.width * (1.0 - t.jaw * np.clip(y - 0.1, 0.0, None) ** 1.5)
    head = _oval(x, y + 0.05, rx, 0.98 + 0 * rx, edge)
    shade = 1.0 - 0.28 * np.clip(side / t.width, 0, 1) ** 3 + 0.05 * np.exp(-(((y + 0.35) / 0.3) ** 2))
    lay(head, t.skin * (shade + light * x)[..., None])
    lay(head * 0.5 * t.beard * _soft(0.18 - y + 0 * x, 0.2), t.hair)
    lay(
        _soft(y - t.hairline - 0.12 * (x / t.width) ** 2 + 0.1, 2 * edge)
        * _oval(x, y, t.width * 1.1, 1.2 + 0 * rx, edge),
        t.hair,
    )
    lay(
        0.30 * np.exp(-(((side - t.nose_width) / 0.035) ** 2) - ((y - t.eye_y - t.nose_length) / 0.07) ** 2),
        t.skin * 0.35,
    )
    lay(
        0.16 * np.exp(-(((side - 0.55 * t.nose_width) / 0.05) ** 2)) * _soft(np.abs(y - t.eye_y - 0.14) - 0.14, 0.1),
        t.skin * 0.5,
    )
    _paint_eyes(lay, t, opened, smile, x, y, edge)
    _paint_mouth(lay, t, opened, smile, x, y, edge)
    return canvas


def _paint_eyes(lay, t, opened, smile, x, y, edge) -> None:  # type: ignore[no-untyped-def]  # arrays as in _paint
    size = t.eye_size * (1.0 + 0.25 * opened - 0.22 * smile)
    white, dark = np.full(3, 0.95), np.full(3, 0.05)
    for sign in (-1.0, 1.0):
        u, v = x - sign * t.eye_gap, y - t.eye_y
        socket = _oval(u, v, t.eye_size * 1.45, size * 0.62, edge)
        lay(0.35 * _oval(u, v, t.eye_size * 1.9, size * 1.15, 4 * edge), t.skin * 0.55)
        lay(socket, white)
        lay(socket * _oval(u, v, size * 0.55, size * 0.62, edge), t.iris)
        lay(socket * _oval(u, v, size * 0.25, size * 0.28, edge), dark)
        arch = v + t.brow_lift + 0.07 * opened + sign * t.brow_tilt * u - 1.2 * (u / 0.6) ** 2 * 0.3
        lay(
            _soft(np.abs(arch) - t.brow_weight, edge) * _soft(np.abs(u) - t.eye_size * 1.7, 2 * edge),
            t.hair * 0.8,
        )


def _paint_mouth(lay, t, opened, smile, x, y, edge) -> None:  # type: ignore[no-untyped-def]  # arrays as in _paint
    reach = t.mouth_width * (1.0 + 0.28 * smile - 0.25 * opened)
    curve = y - t.mouth_y + (0.10 * smile + 0.012) * ((x / reach) ** 2 - 0.5)
    gap = 0.028 * smile + 0.11 * opened
    inside = np.sqrt(np.clip(1.0 - (x / reach) ** 2, 0.0, 1.0))
    lay(_soft(np.abs(curve) - (t.lip_weight + gap) * inside, edge) * (np.abs(x) < reach), t.lips)
    lay(
        _soft(np.abs(curve) - np.maximum(gap, 0.006) * inside, edge) * (np.abs(x) < reach * 0.92),
        np.full(3, 0.12),
    )
    teeth = _soft(np.abs(curve + 0.35 * gap) - 0.55 * gap * inside, edge) * (np.abs(x) < reach * 0.8)
    lay(teeth * np.clip(smile + 0.5 * opened, 0, 1), np.full(3, 0.93))
