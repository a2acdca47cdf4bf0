"""Surrogates: people who do not exist, and what they look like.

Most are mixed of two faces of a bank. The bank holds shapes and textures of people whom a generator made up
(``tools/make_surrogates.py``); nobody in it is anybody. A surrogate is two of them of one gender and about one age and
skin tone, in uneven shares. Methods that release a mean instead take it from the face model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from ksame.arrays import READING, ByteArray, FloatArray
from ksame.heads.drawing import Looks
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.labels import WOMAN
from ksame.spaces.facemodel.light import LUMA


@dataclass(frozen=True)
class SurrogateConfig:
    """How surrogates are mixed; by choice, where nothing else is said."""

    # differences in age and in skin tone that count alike in choosing
    years: float = 6.0
    tone: float = 0.05
    # of so many faces that fit best, the first and the second of a mix are drawn
    first: int = 8
    second: int = 12
    draws: int = 6  # at most, for one that clearly reads as its gender
    clear: float = 0.15  # how far a mix must read from the line between genders, which are 1 apart; finishing blurs it
    shares: tuple[float, float] = (0.5, 0.72)  # between which the share of the first is drawn
    spread: float = 0.8  # of shapes: at 1.05 and 0.9, smiles were less the person's own (``benchmarks.scene_use``)
    # years by which a mix of two, and then a finished head, reads younger than its parts, as the face model reads them
    mix_younger: float = 7.0
    finished_younger: float = 6.5
    # how much darker a finished head is than its drawing, on average over 200 portraits that the finisher learned from
    finished_darker: float = 0.05
    max_aged: float = 26.0  # years by which a mix is made older or younger, along the face model's direction of age
    # log R/G and B/G of skin of a tone: a fit, in powers of the tone, to the cheeks of 560 evened faces; it takes the
    # colour of the photographs' light away
    red: tuple[float, float, float] = (0.129, -0.591, -0.218)
    blue: tuple[float, float, float] = (-0.075, 0.151, -0.160)
    tones: tuple[float, float] = (-1.3, -0.2)  # for which the fit holds; also of the brightness that is drawn


SURROGATE = SurrogateConfig()


class Skin(NamedTuple):
    """What a picture shows of somebody's skin."""

    brightness: float  # of the cheeks, light evened: logarithm of the share of white, in this picture
    tone: float  # what it would be in ordinary light


ORDINARY = Skin(-0.5, -0.5)
"""The median of the portraits behind the face model."""
_UNKNOWN = Skin(np.nan, np.nan)


@dataclass(frozen=True, eq=False)
class Surrogate:
    """Somebody who does not exist."""

    looks: Looks
    # year of birth and skin, for comparison with whoever becomes them
    born: float = np.nan
    skin: Skin = _UNKNOWN


@dataclass(frozen=True, eq=False)
class Bank:
    """Faces of people who do not exist."""

    shapes: FloatArray  # (n, 478, 3): without expression, from the base of the face model
    irises: ByteArray  # (n, 3): 8-bit colours
    women: NDArray[np.bool_]  # (n,)
    born: FloatArray  # (n,): year of birth as the face model reads it
    tones: FloatArray  # (n,): of the skin, as it is read
    encoded: tuple[ByteArray, ...]  # the textures, as JPEG
    reader: FloatArray  # (n_texture + 1,): what reads a tone, see :func:`tone_of`

    def texture(self, i: int) -> NDArray[np.float32]:
        """Return the texture of a face, (height, width, 3), from 0 to 255."""
        decoded: Any = cv2.imdecode(self.encoded[i], cv2.IMREAD_COLOR)
        return np.asarray(decoded[..., ::-1], dtype=np.float32)

    def mix(self, first: int, second: int, share: float, born: float, skin: Skin) -> Surrogate:
        """Mix two faces; ``share`` is that of the first, ``born`` and ``skin`` what age and skin become."""
        shape = face_model().base + SURROGATE.spread * (share * self.shapes[first] + (1 - share) * self.shapes[second])
        drawn = Skin(*(value + SURROGATE.finished_darker for value in skin))
        textures = [toned(self.texture(i), drawn).astype(np.float32) for i in (first, second)]
        texture = np.rint(share * textures[0] + (1 - share) * textures[1]).astype(np.uint8)
        red, green, blue = self.irises[first].tolist()
        looks, born = _aged(Looks(shape, texture, (red, green, blue)), born)
        return Surrogate(looks, born, skin)


@lru_cache(maxsize=1)
def bank() -> Bank:
    """Return the bank that comes with ksame, read at the first call."""
    with READING, (files("ksame.data") / "surrogates.npz").open("rb") as file, np.load(file) as stored:
        women, born, tones = stored["labels"].astype(np.float64).T
        encoded = tuple(np.split(stored["textures"], stored["offsets"][1:-1]))
        shapes, reader = (stored[name].astype(np.float64) for name in ("shapes", "reader"))
        return Bank(shapes, stored["irises"], women > 0.5, born, tones, encoded, reader)


def draw_surrogate(woman: bool, born: float, skin: Skin, rng: np.random.Generator) -> Surrogate:
    """Draw somebody of a gender, about a year of birth and a skin; again if they do not clearly read as that gender."""
    faces = bank()
    alike = np.flatnonzero(faces.women == woman)
    apart = (
        np.abs(faces.born[alike] - (born - SURROGATE.mix_younger)) / SURROGATE.years
        + np.abs(faces.tones[alike] - skin.tone) / SURROGATE.tone
    )
    for _ in range(SURROGATE.draws):
        first = int(rng.choice(alike[np.argsort(apart, kind="stable")[: SURROGATE.first]]))
        further = apart + np.abs(faces.tones[alike] - faces.tones[first]) / SURROGATE.tone
        further[alike == first] = np.inf
        second = int(rng.choice(alike[np.argsort(further, kind="stable")[: SURROGATE.second]]))
        drawn = faces.mix(first, second, float(rng.uniform(*SURROGATE.shares)), born, skin)
        if _womanly(drawn.looks) * (1 if woman else -1) > SURROGATE.clear:
            break
    return drawn


def _womanly(looks: Looks) -> float:
    """Return how surely a face reads as a woman's; below 0 as a man's."""
    model = face_model()
    code = model.encode(looks.shape, (looks.texture[model.warp.mask] / 255).astype(np.float32))
    return float(model.predicted(code[None], "woman")[0]) - WOMAN


def _aged(looks: Looks, born: float) -> tuple[Looks, float]:
    """Make a face read as born in a year once it is finished, as far as it goes; also return the year it reached."""
    model = face_model()
    none, step = np.zeros((1, model.n_codes)), model.direction("born")[None]
    code = model.encode(looks.shape, (looks.texture[model.warp.mask] / 255).astype(np.float32))
    now, rate = model.predicted(code[None], "born")[0], np.ptp(model.predicted(np.concatenate([none, step]), "born"))
    years = float(np.clip((born - SURROGATE.finished_younger - now) / rate, -SURROGATE.max_aged, SURROGATE.max_aged))
    shape = looks.shape + (model.shapes(years * step) - model.shapes(none))[0]
    change = 255 * model.warp.image((model.textures(years * step) - model.textures(none))[0])
    texture = np.rint((looks.texture + change).clip(0, 255)).astype(np.uint8)
    return Looks(shape, texture, looks.iris), float(now + SURROGATE.finished_younger + years * rate)


def modelled(code: FloatArray) -> Surrogate:
    """Return whom a code of the face model, (n_codes,), stands for."""
    model = face_model()
    texture = model.warp.image(model.textures(code[None])[0].clip(0, 1))
    return Surrogate(Looks(model.shapes(code[None])[0], np.rint(255 * texture).astype(np.uint8)))


def skin_of(texture: NDArray[Any]) -> Skin:
    """Read the skin of a texture, (height, width, 3), from 0 to 255."""
    model, brightness = face_model(), brightness_of(texture)
    rows = lit((texture[model.warp.mask] / 255).astype(np.float32), brightness)
    return Skin(brightness, tone_of(model.encode(model.base, rows)))


def brightness_of(texture: NDArray[Any]) -> float:
    """Return the brightness of the skin of a texture, (height, width, 3), from 0 to 255."""
    colour = np.maximum(face_model().evener.skin_colour(texture), 1.0)
    return float(np.log(colour @ LUMA / 255))


def lit(rows: NDArray[np.float32], brightness: float) -> NDArray[np.float32]:
    """Make the texture of a skin, (n_pixels, 3), from 0 to 1, as bright as those of most portraits."""
    return np.asarray((rows * np.float32(np.exp(ORDINARY.brightness - brightness))).clip(0, 1))


def tone_of(code: FloatArray) -> float:
    """Read the tone of skin from the code of a face, (n_codes,), whose texture was lit.

    The whole texture tells it, not its brightness, so that dim or glaring light hardly makes it another. The reader
    is linear, learned from people who do not exist, graded by eye (``tools/skin_tones.csv``).
    """
    reader = bank().reader
    return float(code[face_model().n_shape :] @ reader[:-1] + reader[-1])


def toned(texture: NDArray[Any], skin: Skin) -> ByteArray:
    """Give a texture, (height, width, 3), from 0 to 255, the brightness of a skin, and the hue of its tone."""
    brightness, tone = np.clip(skin, *SURROGATE.tones).tolist()
    ratio = np.exp(np.array([SURROGATE.red, (0.0, 0.0, 0.0), SURROGATE.blue]) @ [1.0, tone, tone**2])
    wanted = 255 * np.exp(brightness) * ratio / (ratio @ LUMA)
    gain = wanted / np.maximum(face_model().evener.skin_colour(texture), 1.0)
    return np.asarray(np.rint((texture * gain.astype(np.float32)).clip(0, 255)), dtype=np.uint8)
