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

from ksame.arrays import ByteArray, FloatArray
from ksame.heads.drawing import Looks
from ksame.spaces.facemodel import face_model
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
    shares: tuple[float, float] = (0.5, 0.72)  # between which the share of the first is drawn
    spread: float = 0.8  # of shapes: at 1.05 and 0.9, smiles were less the person's own (``benchmarks.scene_use``)
    # years by which a mix of two, and then a finished head, reads younger than its parts, as the face model reads them
    mix_younger: float = 7.0
    finished_younger: float = 9.0
    # how much darker a finished head is than its drawing, on average over 200 portraits that the finisher learned from
    finished_darker: float = 0.05
    max_aged: float = 26.0  # years by which a mix is made older or younger, along the face model's direction of age
    # log R/G and B/G of skin of a tone: a fit, in powers of the tone, to the cheeks of 560 evened faces; it takes the
    # colour of the photographs' light away
    red: tuple[float, float, float] = (0.129, -0.591, -0.218)
    blue: tuple[float, float, float] = (-0.075, 0.151, -0.160)
    tones: tuple[float, float] = (-1.3, -0.2)  # for which the fit holds; also of the brightness that is drawn
    # the same the other way round: the tone, less 0.2 to be sure, as 1, log R/G and log B/G of the same cheeks tell it
    by_hue: tuple[float, float, float] = (0.35, -2.4, 0.83)
    min_red: float = 0.1  # log R/G below which a picture has too little colour to tell: no skin among the 560 had less
    max_lighter: float = 0.4  # than the brightness is the tone at most: muted colours look like those of pale skin


SURROGATE = SurrogateConfig()


class Skin(NamedTuple):
    """What a picture shows of somebody's skin: that of the cheeks, light evened."""

    brightness: float  # logarithm of the share of white, in this picture
    tone: float  # the same in ordinary light


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
    tones: FloatArray  # (n,): of the skin
    encoded: tuple[ByteArray, ...]  # the textures, as JPEG

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
    with (files("ksame.data") / "surrogates.npz").open("rb") as file, np.load(file) as stored:
        women, born, tones = stored["labels"].astype(np.float64).T
        encoded = tuple(np.split(stored["textures"], stored["offsets"][1:-1]))
        return Bank(stored["shapes"].astype(np.float64), stored["irises"], women > 0.5, born, tones, encoded)


def draw_surrogate(woman: bool, born: float, skin: Skin, rng: np.random.Generator) -> Surrogate:
    """Draw somebody of a gender, about a year of birth and a skin."""
    faces = bank()
    alike = np.flatnonzero(faces.women == woman)
    apart = (
        np.abs(faces.born[alike] - (born - SURROGATE.mix_younger)) / SURROGATE.years
        + np.abs(faces.tones[alike] - skin.tone) / SURROGATE.tone
    )
    first = int(rng.choice(alike[np.argsort(apart, kind="stable")[: SURROGATE.first]]))
    apart = apart + np.abs(faces.tones[alike] - faces.tones[first]) / SURROGATE.tone
    apart[alike == first] = np.inf
    second = int(rng.choice(alike[np.argsort(apart, kind="stable")[: SURROGATE.second]]))
    return faces.mix(first, second, float(rng.uniform(*SURROGATE.shares)), born, skin)


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
    """Read the skin of a texture, (height, width, 3), from 0 to 255.

    Dim light makes skin darker without changing its hue. So whoever is darker than their hue tells stands in the dim.
    Warm light makes the hue that of darker skin; then the brightness tells, as it does where there is no colour.
    """
    red, green, blue = colour = np.maximum(face_model().evener.skin_colour(texture), 1.0)
    brightness = float(np.log(colour @ LUMA / 255))
    if np.log(red / green) < SURROGATE.min_red:
        return Skin(brightness, brightness)
    by_hue = float(np.array(SURROGATE.by_hue) @ [1.0, np.log(red / green), np.log(blue / green)])
    lightest = min(SURROGATE.tones[1], brightness + SURROGATE.max_lighter)
    return Skin(brightness, max(brightness, min(by_hue, lightest)))


def toned(texture: NDArray[Any], skin: Skin) -> ByteArray:
    """Give a texture, (height, width, 3), from 0 to 255, the brightness of a skin, and the hue of its tone."""
    brightness, tone = np.clip(skin, *SURROGATE.tones).tolist()
    ratio = np.exp(np.array([SURROGATE.red, (0.0, 0.0, 0.0), SURROGATE.blue]) @ [1.0, tone, tone**2])
    wanted = 255 * np.exp(brightness) * ratio / (ratio @ LUMA)
    gain = wanted / np.maximum(face_model().evener.skin_colour(texture), 1.0)
    return np.asarray(np.rint((texture * gain.astype(np.float32)).clip(0, 255)), dtype=np.uint8)
