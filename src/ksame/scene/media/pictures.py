"""Photographs, animations that Pillow reads, and folders of pictures."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from PIL import ExifTags, Image, ImageSequence

from ksame.errors import InputError
from ksame.scene.media.damage import check_jpeg
from ksame.scene.media.encoding import PICTURE_SUFFIXES
from ksame.scene.media.kept import Kept, bits_of, flatten
from ksame.scene.media.source import Media, Pixels, Read, Stamp

FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "AVIF")
_HEIF = "HEIF"
_MILLISECOND = Fraction(1, 1000)
_SHORTEST = 10
_USUAL = 100
_FOLDER_RATE = Fraction(25)
_SUBFILE = 254
"""Tag of a TIFF page that tells whether it is a preview."""
_NEVER_KEPT = ("Orientation", "GPSInfo", "ExifOffset")
"""Tags that are applied, and those that only point at others."""


def readable_formats() -> tuple[str, ...]:
    """Return the formats of pictures, as Pillow names them; HEIC is one of them where its reader is installed."""
    try:
        from pi_heif import register_heif_opener
    except ImportError:
        return FORMATS
    register_heif_opener(thumbnails=False)
    return (*FORMATS, _HEIF)


@contextmanager
def _picture(path: Path) -> Iterator[Image.Image]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path, formats=readable_formats()) as picture:
                yield picture
    except InputError:
        raise
    except Image.DecompressionBombError as error:
        raise InputError(f"{path}: the picture is too large ({error}). Make it smaller first.") from error
    except Exception as error:  # decoders raise whatever they come across in a damaged file
        raise InputError(f"{path}: not a readable picture ({error}). Save it again as PNG or JPEG.") from error


class Photograph(Media):
    """One picture.

    Attributes
    ----------
    exif : Image.Exif
    kept : Kept
        What it has beside 8 bits of red, green and blue.
    """

    kind = "photograph"

    def __init__(self, path: Path) -> None:
        with _picture(path) as picture:
            _check_pages(picture, path)
            bits = bits_of(picture)
            picture.load()
            size = _upright_size(picture)
            self.exif = picture.getexif()
            self.kept = Kept.of(picture, path, bits)
            _check_whole(picture, path)
        names = (ExifTags.TAGS.get(tag, "") for tag in self.exif)
        self.entries = tuple(name for name in names if name and name not in _NEVER_KEPT)
        super().__init__(path, size, 1, exact=True, rate=_FOLDER_RATE, time_base=1 / _FOLDER_RATE)

    def _read(self, start: int) -> Iterator[Read]:
        yield Stamp(0, 1), None if start > 0 else read_picture(self.path, checked=True), None


def _check_pages(picture: Image.Image, path: Path) -> None:
    """Refuse what would lose pages; previews and the second picture of some JPEG files are none."""
    if picture.format not in ("TIFF", _HEIF):
        return
    count = 0
    for page in ImageSequence.Iterator(picture):
        tags = getattr(page, "tag_v2", {})
        count += not tags.get(_SUBFILE, 0) & 1
    picture.seek(0)
    if count > 1:
        raise InputError(
            f"{path}: it has {count} pages, and one would be written. Split it into single pictures first."
        )


def _check_whole(picture: Image.Image, path: Path) -> None:
    if picture.format in ("JPEG", "MPO"):
        check_jpeg(path)


def read_picture(path: Path, *, checked: bool = False) -> Pixels:
    """Read one picture as :func:`flatten` shows it; ``checked`` where it is known not to be damaged."""
    with _picture(path) as picture:
        picture.load()
        if not checked:
            _check_whole(picture, path)
        return flatten(picture)


def _upright_size(picture: Image.Image) -> tuple[int, int]:
    sideways = picture.getexif().get(ExifTags.Base.Orientation, 1) in (5, 6, 7, 8)
    return (picture.height, picture.width) if sideways else picture.size


class Animation(Media):
    """A moving WebP, PNG or AVIF file."""

    def __init__(self, path: Path) -> None:
        with _picture(path) as picture:
            n_frames = int(getattr(picture, "n_frames", 1))
            size = picture.size
            self.loop = int(picture.info.get("loop", 0))
            picture.load()
            first = _shown_for(picture)
        rate = Fraction(1000, first)
        super().__init__(path, size, n_frames, exact=True, rate=rate, time_base=_MILLISECOND)

    def _read(self, start: int) -> Iterator[Read]:
        at = 0
        with _picture(self.path) as picture:
            for index in range(self.n_frames):
                picture.seek(index)
                picture.load()
                duration = _shown_for(picture)
                yield Stamp(at, duration), None if index < start else flatten(picture), None
                at += duration


def _shown_for(picture: Image.Image) -> int:
    duration = round(float(picture.info.get("duration", _USUAL)))
    return duration if duration >= _SHORTEST else _USUAL


def is_animation(path: Path) -> bool:
    """Tell whether a picture file moves."""
    with _picture(path) as picture:
        return picture.format in ("PNG", "WEBP", "AVIF") and bool(getattr(picture, "is_animated", False))


class Folder(Media):
    """Numbered pictures of one size: a recording as some cameras and programs write it."""

    kind = "folder"

    def __init__(self, path: Path) -> None:
        pictures = [p for p in path.iterdir() if p.is_file() and p.suffix.lower() in PICTURE_SUFFIXES]
        self._pictures = sorted((p for p in pictures if not p.name.startswith(".")), key=natural)
        if not self._pictures:
            suffixes = ", ".join(PICTURE_SUFFIXES)
            raise InputError(f"{path}: there are no pictures in the folder. Expected files with {suffixes}.")
        size = None
        for each in self._pictures:
            with _picture(each) as picture:
                found = _upright_size(picture)
            if size is not None and found != size:
                raise InputError(
                    f"{each}: {found[0]}x{found[1]} pixels, but {self._pictures[0].name} has {size[0]}x{size[1]}. "
                    "A folder is read as one recording: all its pictures must have one size."
                )
            size = found
        if size is None:
            raise InputError(f"{path}: there are no pictures in the folder.")
        super().__init__(path, size, len(self._pictures), exact=True, rate=_FOLDER_RATE, time_base=1 / _FOLDER_RATE)

    def _read(self, start: int) -> Iterator[Read]:
        for index, path in enumerate(self._pictures):
            yield Stamp(index, 1), None if index < start else read_picture(path), None

    def _files(self) -> list[Path]:
        return self._pictures


def natural(path: Path) -> tuple[tuple[int, int | str], ...]:
    """Return a key that sorts "9.png" before "10.png".

    Examples
    --------
    >>> sorted([Path("b10.png"), Path("b9.png")], key=natural)[0].name
    'b9.png'
    """
    parts = re.split(r"(\d+)", path.name)
    return tuple((0, int(part)) if part.isdecimal() else (1, part) for part in parts)
