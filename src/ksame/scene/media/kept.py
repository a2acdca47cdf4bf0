"""What a photograph has beside 8 bits of red, green and blue: transparency, more bits, and how hard it was pressed."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageCms, ImageOps
from PIL.JpegImagePlugin import get_sampling

from ksame.scene.media.source import Pixels, turned

_SUM_AT_50 = 3689
"""Of the standard's table for brightness, from which those of all other qualities follow."""
_TURNS = {1: 0, 2: 4, 3: 2, 4: 6, 5: 5, 6: 3, 7: 7, 8: 1}
"""For each EXIF orientation what :func:`turned` has to do."""


@dataclass(frozen=True, eq=False)
class Kept:
    """What of a photograph the composed picture does not hold.

    Attributes
    ----------
    alpha : ndarray of shape (height, width), uint8, or None
        Upright; None where nothing is transparent.
    deep : ndarray of shape (height, width, 3), uint16, or None
        All bits of a picture with 16, upright, transparent parts on white.
    bits : int
        Of a channel in the file.
    jpeg : (int, int) or None
        Quality and subsampling, as Pillow counts them, of a JPEG file.
    """

    alpha: Pixels | None
    deep: NDArray[np.uint16] | None
    bits: int
    jpeg: tuple[int, int] | None

    @classmethod
    def of(cls, picture: Image.Image, path: Path, bits: int) -> Kept:
        """Look at a picture that was loaded, of so many bits."""
        upright = ImageOps.exif_transpose(picture)
        alpha = _alpha(upright)
        values = None if alpha is None else np.array(alpha)
        if values is not None and values.min() == 255:
            values = None
        deep = _deep(picture, path) if bits == 16 else None
        return cls(values, deep, bits, _jpeg(picture))


def bits_of(picture: Image.Image) -> int:
    """Return the bits of a channel in the file of a picture that is not loaded yet: then Pillow forgets them."""
    if picture.mode.startswith("I"):
        return 16
    if picture.format == "HEIF":
        return int(picture.info.get("bit_depth", 8))
    for tile in getattr(picture, "tile", ()):
        layout = tile[3] if isinstance(tile[3], (tuple, list)) else (tile[3],)
        return 16 if any(isinstance(word, str) and ";16" in word for word in layout) else 8
    return 8


def _alpha(picture: Image.Image) -> Image.Image | None:
    if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        return picture.convert("RGBA").getchannel("A")
    return None


def _deep(picture: Image.Image, path: Path) -> NDArray[np.uint16] | None:
    """Read all bits; None where that cannot be done, or where a profile gives the values another meaning."""
    profile = picture.info.get("icc_profile")
    if profile is not None:
        plain = np.asarray(picture.convert("RGB"), dtype=int)
        if np.abs(plain - np.asarray(_to_srgb(picture, profile), dtype=int)).max() > 1:
            return None
    read: Any = cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8), cv2.IMREAD_UNCHANGED)
    if read is None or read.dtype != np.uint16 or read.shape[:2] != (picture.height, picture.width):
        return None
    values = read if read.ndim == 3 else read[..., None]
    colour = np.ascontiguousarray(
        np.broadcast_to(values[..., -2::-1] if values.shape[2] == 4 else values[..., ::-1], (*values.shape[:2], 3))
    )
    if values.shape[2] == 4:
        share = values[..., 3:].astype(np.float64) / 65535
        colour = np.rint(colour * share + 65535 * (1 - share)).astype(np.uint16)
    return turned(colour, _TURNS.get(picture.getexif().get(ExifTags.Base.Orientation, 1), 0))


def _jpeg(picture: Image.Image) -> tuple[int, int] | None:
    """Return the quality of the standard's tables that presses as hard; the file's own would tell of the camera."""
    tables = getattr(picture, "quantization", None)
    if picture.format not in ("JPEG", "MPO") or not tables:
        return None
    total = sum(next(iter(tables.values())))
    qualities = range(1, 101)
    quality = min(qualities, key=lambda quality: abs(_table_sum(quality) - total))
    return quality, max(0, get_sampling(picture))


def _table_sum(quality: int) -> float:
    scale = 5000 / quality if quality < 50 else 200 - 2 * quality
    return max(64.0, _SUM_AT_50 * scale / 100)


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
    alpha = _alpha(picture)
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
