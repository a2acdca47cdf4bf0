"""Photographs, animations that Pillow reads, and folders of pictures."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image, ImageCms, ImageOps, UnidentifiedImageError

from ksame.errors import InputError
from ksame.scene.media.encoding import PICTURE_SUFFIXES
from ksame.scene.media.source import Media, Pixels, Stamp

FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP")
JPEG_QUALITY = 92
_MILLISECOND = Fraction(1, 1000)
_SHORTEST = 10
_USUAL = 100
_FOLDER_RATE = Fraction(25)


@contextmanager
def _picture(path: Path) -> Iterator[Image.Image]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path, formats=FORMATS) as picture:
                yield picture
    except InputError:
        raise
    except Image.DecompressionBombError as error:
        raise InputError(f"{path}: the picture is too large ({error}). Make it smaller first.") from error
    except (OSError, SyntaxError, ValueError, EOFError, UnidentifiedImageError) as error:
        raise InputError(f"{path}: not a readable picture ({error}). Save it again as PNG or JPEG.") from error


def flatten(picture: Image.Image) -> Pixels:
    """Return the pixels of a loaded picture as people see them: upright, in sRGB, transparent parts on white.

    Grey and colour, 8 and 16 bits, palettes and CMYK are read.
    """
    profile = picture.info.get("icc_profile")
    picture = ImageOps.exif_transpose(picture)
    if picture.mode.startswith("I;16") or picture.mode == "I":
        values = np.asarray(picture).astype(np.int64)
        if picture.mode == "I" and (values.min() < 0 or values.max() > 65535):
            raise ValueError("32-bit pictures have no agreed range; save as 8 or 16 bits")
        picture = Image.fromarray(((values * 255 + 32767) // 65535).astype(np.uint8))
    if picture.mode == "F":
        raise ValueError("32-bit pictures have no agreed range; save as 8 or 16 bits")
    alpha = None
    if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        alpha = picture.convert("RGBA").getchannel("A")
    colour = _to_srgb(picture, profile)
    if alpha is not None:
        colour = Image.composite(colour, Image.new("RGB", colour.size, "white"), alpha)
    return np.array(colour, dtype=np.uint8)


def _to_srgb(picture: Image.Image, profile: bytes | None) -> Image.Image:
    if profile is not None:
        if picture.mode not in ("RGB", "L", "CMYK", "LAB"):
            picture = picture.convert("RGB")
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            shown = ImageCms.profileToProfile(picture, source, ImageCms.createProfile("sRGB"), outputMode="RGB")
            if shown is not None:
                return shown
        except (ImageCms.PyCMSError, OSError):
            pass  # a broken profile, or one for another kind of picture: the plain values are shown
    return picture.convert("RGB")


class Photograph(Media):
    """One picture."""

    kind = "photograph"

    def __init__(self, path: Path) -> None:
        with _picture(path) as picture:
            picture.load()
            size = _upright_size(picture)
            self.exif = picture.getexif()
        super().__init__(path, size, 1, exact=True, rate=_FOLDER_RATE, time_base=1 / _FOLDER_RATE)

    def _read(self, start: int) -> Iterator[tuple[Stamp, Pixels | None]]:
        yield Stamp(0, 1), None if start > 0 else read_picture(self.path)


def read_picture(path: Path) -> Pixels:
    """Read one picture as :func:`flatten` shows it."""
    with _picture(path) as picture:
        picture.load()
        return flatten(picture)


def _upright_size(picture: Image.Image) -> tuple[int, int]:
    sideways = picture.getexif().get(ExifTags.Base.Orientation, 1) in (5, 6, 7, 8)
    return (picture.height, picture.width) if sideways else picture.size


class Animation(Media):
    """A moving WebP or PNG file."""

    def __init__(self, path: Path) -> None:
        with _picture(path) as picture:
            n_frames = int(getattr(picture, "n_frames", 1))
            size = picture.size
            self.loop = int(picture.info.get("loop", 0))
            picture.load()
            first = _shown_for(picture)
        rate = Fraction(1000, first)
        super().__init__(path, size, n_frames, exact=True, rate=rate, time_base=_MILLISECOND)

    def _read(self, start: int) -> Iterator[tuple[Stamp, Pixels | None]]:
        at = 0
        with _picture(self.path) as picture:
            for index in range(self.n_frames):
                picture.seek(index)
                picture.load()
                duration = _shown_for(picture)
                yield Stamp(at, duration), None if index < start else flatten(picture)
                at += duration


def _shown_for(picture: Image.Image) -> int:
    duration = round(float(picture.info.get("duration", _USUAL)))
    return duration if duration >= _SHORTEST else _USUAL


def is_animation(path: Path) -> bool:
    """Tell whether a picture file moves."""
    with _picture(path) as picture:
        return picture.format in ("PNG", "WEBP") and bool(getattr(picture, "is_animated", False))


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

    def _read(self, start: int) -> Iterator[tuple[Stamp, Pixels | None]]:
        for index, path in enumerate(self._pictures):
            yield Stamp(index, 1), None if index < start else read_picture(path)

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


def save_picture(pixels: Pixels, path: Path, form: str, quality: int | None = None, exif: bytes = b"") -> None:
    """Write a picture without any metadata but ``exif``.

    JPEG is written at quality 92 with full colour resolution, WebP at 92, the others without loss.
    """
    picture = Image.fromarray(pixels)
    chosen = JPEG_QUALITY if quality is None else max(1, quality)
    extra = {"exif": exif} if exif else {}
    if form == "JPEG":
        picture.save(path, form, quality=chosen, subsampling=0, optimize=True, **extra)
    elif form == "WEBP":
        picture.save(path, form, quality=chosen, **extra)
    elif form == "TIFF":
        picture.save(path, form, compression="tiff_lzw", **extra)
    elif form == "PNG":
        picture.save(path, form, compress_level=6, **extra)
    else:
        picture.save(path, form)
