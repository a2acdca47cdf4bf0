"""Photographs, animations that Pillow reads, and image sequences."""

from __future__ import annotations

import re
from collections.abc import Container, Generator
from fractions import Fraction
from pathlib import Path

from PIL import Image

from ksame import pictures
from ksame.errors import InputError
from ksame.scene.media.metadata import exif_entries
from ksame.scene.media.source import DecodedFrame, Media, Timestamp

_MILLISECOND = Fraction(1, 1000)
_MIN_DURATION, _DEFAULT_DURATION = 10, 100
"""Of a frame, in milliseconds: browsers show shorter ones for the default time."""
_RATE = Fraction(25)
"""Frames per second of an image sequence, whose files do not tell."""


class Photograph(Media):
    """One picture. Nothing of it is kept in memory: a batch may have thousands."""

    kind = "photograph"

    def __init__(self, path: Path) -> None:
        with pictures.open_picture(path) as picture:
            pictures.load_checked(picture, path)
            size = pictures.upright_size(picture)
            self.metadata_keys = exif_entries(picture.getexif())
        super().__init__(path, size, 1, exact=True, rate=_RATE, time_base=1 / _RATE)

    def read_extras(self) -> pictures.PictureExtras:
        """Read what the picture has beside 8 bits of red, green and blue."""
        with pictures.open_picture(self.path) as picture:
            bits = pictures.bits_per_channel(picture)
            if picture.format not in ("JPEG", "MPO"):  # what is asked of these stands before the pixels
                picture.load()
            return pictures.PictureExtras.of(picture, self.path, bits)

    def read_exif(self) -> Image.Exif:
        """Read the EXIF tags."""
        with pictures.open_picture(self.path) as picture:
            return picture.getexif()

    def _decode(self, wanted: Container[int]) -> Generator[DecodedFrame, None, None]:
        with pictures.open_picture(self.path) as picture:
            picture.load()
            yield Timestamp(0, 1), pictures.to_rgb(picture) if 0 in wanted else None, None


class Animation(Media):
    """A moving WebP, PNG or AVIF file."""

    def __init__(self, path: Path) -> None:
        with pictures.open_picture(path) as picture:
            n_frames = int(getattr(picture, "n_frames", 1))
            self.loop = int(picture.info.get("loop", 0))
            picture.load()
            rate = Fraction(1000, _duration(picture))
            super().__init__(path, picture.size, n_frames, exact=True, rate=rate, time_base=_MILLISECOND)

    def _decode(self, wanted: Container[int]) -> Generator[DecodedFrame, None, None]:
        pts = 0
        with pictures.open_picture(self.path) as picture:
            for index in range(self.n_frames):
                picture.seek(index)
                picture.load()
                timestamp = Timestamp(pts, _duration(picture))
                yield timestamp, pictures.to_rgb(picture) if index in wanted else None, None
                pts += timestamp.duration


def _duration(picture: Image.Image) -> int:
    duration = round(float(picture.info.get("duration", _DEFAULT_DURATION)))
    return duration if duration >= _MIN_DURATION else _DEFAULT_DURATION


def is_animation(path: Path) -> bool:
    """Tell whether a picture file moves."""
    with pictures.open_picture(path) as picture:
        return picture.format in ("PNG", "WEBP", "AVIF") and bool(getattr(picture, "is_animated", False))


class ImageSequence(Media):
    """A folder of numbered pictures of one size: a recording as some cameras and programs write it."""

    kind = "folder"

    def __init__(self, path: Path) -> None:
        visible = (p for p in path.iterdir() if p.is_file() and not p.name.startswith("."))
        self._pictures = sorted(
            (p for p in visible if p.suffix.lower() in pictures.PICTURE_SUFFIXES), key=natural_order
        )
        if not self._pictures:
            suffixes = ", ".join(pictures.PICTURE_SUFFIXES)
            raise InputError(f"{path}: there are no pictures in the folder. Expected files with {suffixes}.")
        first_size = _size(self._pictures[0])
        for file in self._pictures[1:]:
            if (size := _size(file)) != first_size:
                raise InputError(
                    f"{file}: {size[0]}x{size[1]} pixels, but {self._pictures[0].name} has "
                    f"{first_size[0]}x{first_size[1]}. A folder is read as one recording: all its pictures must have "
                    "one size."
                )
        super().__init__(path, first_size, len(self._pictures), exact=True, rate=_RATE, time_base=1 / _RATE)

    def _decode(self, wanted: Container[int]) -> Generator[DecodedFrame, None, None]:
        for index, path in enumerate(self._pictures):
            yield Timestamp(index, 1), pictures.read_rgb(path) if index in wanted else None, None

    def _files(self) -> list[Path]:
        return self._pictures


def _size(path: Path) -> tuple[int, int]:
    with pictures.open_picture(path) as picture:
        return pictures.upright_size(picture)


def natural_order(path: Path) -> tuple[tuple[int, int | str], ...]:
    """Return a key that sorts "9.png" before "10.png".

    Examples
    --------
    >>> sorted([Path("b10.png"), Path("b9.png")], key=natural_order)[0].name
    'b9.png'
    """
    parts = re.split(r"(\d+)", path.name)
    return tuple((0, int(part)) if part.isdecimal() else (1, part) for part in parts)
