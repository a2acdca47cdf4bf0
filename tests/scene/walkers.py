"""Clips for tests: synthetic people moved over a background, and the real ones where the data folder has them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import av
import cv2
import numpy as np

import ksame


@dataclass(frozen=True)
class Frame:
    index: int
    time: float
    pixels: np.ndarray


@lru_cache(maxsize=1)
def people() -> np.ndarray:
    """Four people who do not exist, 8-bit RGB, (4, 224, 176, 3)."""
    return (ksame.synthetic(4, seed=5).images * 255 + 0.5).astype(np.uint8)


def background(size: tuple[int, int], seed: int = 0) -> np.ndarray:
    """A smooth picture without faces."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(40, 200, (5, 7, 3), dtype=np.uint8)
    return cv2.resize(coarse, size, interpolation=cv2.INTER_CUBIC)


def paste(picture: np.ndarray, person: int, centre: tuple[float, float], height: float, turn: int = 0) -> None:
    """Draw a person, head and shoulders, into a picture."""
    face = people()[person]
    scale = height / face.shape[0]
    angle = np.radians(turn)
    a, b = scale * np.cos(angle), scale * np.sin(angle)
    matrix = np.array([[a, -b, 0.0], [b, a, 0.0]])
    matrix[:, 2] = np.array(centre) - matrix[:, :2] @ [face.shape[1] / 2, face.shape[0] / 2]
    size = picture.shape[1::-1]
    drawn = cv2.warpAffine(face, matrix, size, flags=cv2.INTER_AREA)
    where = cv2.warpAffine(np.full(face.shape[:2], 255, np.uint8), matrix, size) > 127
    picture[where] = drawn[where]


def clip(pictures: Sequence[np.ndarray], rate: float = 25.0) -> Iterator[Frame]:
    for i, picture in enumerate(pictures):
        yield Frame(i, i / rate, picture)


def read(path: Path) -> Iterator[Frame]:
    """Read a real clip."""
    with av.open(str(path)) as container:
        for i, frame in enumerate(container.decode(video=0)):
            yield Frame(i, float(frame.time or 0.0), frame.to_ndarray(format="rgb24"))


def size_of(path: Path) -> tuple[int, int]:
    with av.open(str(path)) as container:
        return container.streams.video[0].width, container.streams.video[0].height
