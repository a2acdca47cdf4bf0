"""Picture files, read and written the same way for face sets and scenes.

Pixels come upright, in sRGB, with transparent parts on white. A file that is damaged or has several pages is refused.
What is written has no metadata but those that were asked for.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageCms, ImageOps, ImageSequence

from ksame.errors import InputError, OutputError
from ksame.quiet import QUIET_READERS

Pixels = NDArray[np.uint8]
PixelT = TypeVar("PixelT", np.uint8, np.uint16)

FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "AVIF", "PPM")
"""As Pillow names them."""
PICTURE_SUFFIXES: Mapping[str, str] = {
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".png": "PNG",
    ".webp": "WEBP",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".bmp": "BMP",
    ".avif": "AVIF",
}
"""Format by the suffix of a file that is written."""
STRICT = {"err_detect": "crccheck+bitstream+buffer+explode"}
"""Options with which a decoder of FFmpeg stops at what it would patch up by default."""
_TIFF_SUBFILE_TYPE = 254
_QUALITY = 92
"""Of JPEG, WebP and AVIF files whose source does not tell."""
_PNG_HEAD = 33
"""Length of the signature and IHDR."""
_ORIENTATIONS = {1: 0, 2: 4, 3: 2, 4: 6, 5: 5, 6: 3, 7: 7, 8: 1}
"""EXIF orientation as a number for :func:`orient`."""
_STRIP = 256
"""Rows that are taken over at a time, by choice."""
_LUMINANCE_SUM = 3689
"""Sum of the JPEG standard's luminance table (ITU-T T.81, K.1): quality 50, from which all other qualities follow."""


def readable_formats() -> tuple[str, ...]:
    """Return the formats that can be read; HEIC is one of them where its reader is installed."""
    try:
        from pi_heif import register_heif_opener
    except ImportError:
        return FORMATS
    register_heif_opener(thumbnails=False)
    return (*FORMATS, "HEIF")


@contextmanager
def open_picture(path: Path) -> Iterator[Image.Image]:
    """Open a picture file; whatever goes wrong while it is used becomes an :class:`InputError` that names the file."""
    try:
        if path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty. Copy it again from where it was taken.")
        with QUIET_READERS, Image.open(path, formats=readable_formats()) as picture:
            yield picture
    except InputError:
        raise
    except Image.DecompressionBombError as error:
        raise InputError(f"{path}: the picture is too large ({error}). Make it smaller first.") from error
    except Exception as error:  # decoders raise whatever they come across in a damaged file
        raise InputError(f"{path}: not a readable picture ({error}). Save it again as PNG or JPEG.") from error


def load_checked(picture: Image.Image, path: Path) -> None:
    """Load a picture that was opened, and refuse it where it has several pages or is damaged."""
    _check_pages(picture, path)
    picture.load()
    if picture.format in ("JPEG", "MPO"):
        _check_jpeg(path)


def read_values(path: Path) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """Read a picture with the channels that it has.

    Returns
    -------
    values : ndarray of shape (height, width, 1 or 3), uint8, or uint16 for grey of 16 bits
    """
    with open_picture(path) as picture:
        load_checked(picture, path)
        return to_values(picture)


def read_rgb(path: Path) -> Pixels:
    """Read a picture as RGB of 8 bits, of shape (height, width, 3)."""
    with open_picture(path) as picture:
        load_checked(picture, path)
        return to_rgb(picture)


def to_rgb(picture: Image.Image) -> Pixels:
    """Return the pixels of a loaded picture as RGB of 8 bits, of shape (height, width, 3)."""
    values = _as_bytes(to_values(picture))
    return values if values.shape[2] == 3 else np.repeat(values, 3, axis=2)


def to_values(picture: Image.Image) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """Return the pixels of a loaded picture; see :func:`read_values`. Palettes and CMYK become RGB."""
    profile = picture.info.get("icc_profile")
    picture = _upright(picture)
    if picture.mode == "F":
        raise ValueError("32-bit pictures have no agreed range; save as 8 or 16 bits")
    if picture.mode.startswith("I"):
        deep = np.asarray(picture).astype(np.int64)
        if deep.min() < 0 or deep.max() > 65535:
            raise ValueError("32-bit pictures have no agreed range; save as 8 or 16 bits")
        if profile is None:
            return deep.astype(np.uint16)[..., None]
        picture = Image.fromarray(_as_bytes(deep.astype(np.uint16)))
    alpha = _alpha(picture)
    colour = _to_srgb(picture, profile)
    if alpha is not None:
        colour = Image.composite(colour, Image.new("RGB", colour.size, "white"), alpha)
    elif picture.mode in ("1", "L"):
        return _in_strips(colour.convert("L"))[..., None]
    return _in_strips(colour)


def _upright(picture: Image.Image) -> Image.Image:
    """Return a picture turned as its EXIF orientation tells; itself, not a copy, where it stands upright."""
    sideways = picture.getexif().get(ExifTags.Base.Orientation, 1) in _ORIENTATIONS.keys() - {1}
    return ImageOps.exif_transpose(picture) if sideways else picture


def _in_strips(picture: Image.Image) -> Pixels:
    """Return the values of a picture of mode L or RGB; asked for all at once, Pillow makes three copies of them."""
    width, height = picture.size
    values = np.empty((height, width, *([3] if picture.mode == "RGB" else [])), dtype=np.uint8)
    for top in range(0, height, _STRIP):
        values[top : top + _STRIP] = np.asarray(picture.crop((0, top, width, min(top + _STRIP, height))))
    return values


def _as_bytes(values: NDArray[Any]) -> Pixels:
    return values if values.dtype == np.uint8 else ((values.astype(np.int64) * 255 + 32767) // 65535).astype(np.uint8)


def upright_size(picture: Image.Image) -> tuple[int, int]:
    """Return width and height once the EXIF orientation is applied."""
    sideways = picture.getexif().get(ExifTags.Base.Orientation, 1) in (5, 6, 7, 8)
    return (picture.height, picture.width) if sideways else picture.size


def orient(pixels: NDArray[PixelT], orientation: int) -> NDArray[PixelT]:
    """Turn a picture by ``orientation % 4`` quarters, counterclockwise; from 4 on after a left-right flip."""
    if orientation >= 4:
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(np.rot90(pixels, orientation % 4))


@dataclass(frozen=True, eq=False)
class PictureExtras:
    """What a picture file holds beside 8 bits of red, green and blue."""

    alpha: Pixels | None  # (height, width): upright; None where nothing is transparent
    # (height, width, 3): all bits of a picture with 16, upright, transparent parts on white
    deep: NDArray[np.uint16] | None
    bits: int  # per channel, in the file
    jpeg: tuple[int, int] | None  # quality and subsampling, as Pillow counts them, of a JPEG file

    @classmethod
    def of(cls, picture: Image.Image, path: Path, bits: int) -> PictureExtras:
        """Look at a loaded picture; ``bits`` are those that :func:`bits_per_channel` told before."""
        transparency = _alpha(_upright(picture))
        alpha = None if transparency is None else np.array(transparency)
        if alpha is not None and alpha.min() == 255:
            alpha = None
        deep = _read_deep(picture, path) if bits == 16 else None
        return cls(alpha, deep, bits, _jpeg_quality(picture))


def bits_per_channel(picture: Image.Image) -> int:
    """Return the bits per channel in the file of a picture that is not loaded yet: loading forgets them."""
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


def _to_srgb(picture: Image.Image, profile: bytes | None) -> Image.Image:
    if profile is not None:
        if picture.mode not in ("RGB", "L", "CMYK", "LAB"):
            picture = picture.convert("RGB")
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            converted = ImageCms.profileToProfile(picture, source, ImageCms.createProfile("sRGB"), outputMode="RGB")
            if converted is not None:
                return converted
        except (ImageCms.PyCMSError, OSError):
            pass  # a broken profile, or one for another kind of picture: the plain values are shown
    return picture if picture.mode == "RGB" else picture.convert("RGB")


def _read_deep(picture: Image.Image, path: Path) -> NDArray[np.uint16] | None:
    """Read all 16 bits; None where that cannot be done, or where a profile gives the values another meaning."""
    import cv2

    profile = picture.info.get("icc_profile")
    if profile is not None:
        plain = np.asarray(picture.convert("RGB"), dtype=int)
        if np.abs(plain - np.asarray(_to_srgb(picture, profile), dtype=int)).max() > 1:
            return None
    values: Any = cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8), cv2.IMREAD_UNCHANGED)
    if values is None or values.dtype != np.uint16 or values.shape[:2] != (picture.height, picture.width):
        return None
    values = np.atleast_3d(values)
    bgr = values[..., :3]
    if values.shape[2] == 4:
        opacity = values[..., 3:] / 65535
        bgr = np.rint(bgr * opacity + 65535 * (1 - opacity)).astype(np.uint16)
    rgb = np.broadcast_to(bgr[..., ::-1], (*bgr.shape[:2], 3))
    return orient(rgb, _ORIENTATIONS.get(picture.getexif().get(ExifTags.Base.Orientation, 1), 0))


def _jpeg_quality(picture: Image.Image) -> tuple[int, int] | None:
    """Return the quality whose standard tables compress as much; the file's own tables would tell of the camera."""
    from PIL.JpegImagePlugin import get_sampling

    tables = getattr(picture, "quantization", None)
    if picture.format not in ("JPEG", "MPO") or not tables:
        return None
    total = sum(next(iter(tables.values())))
    quality = min(range(1, 101), key=lambda quality: abs(_table_sum(quality) - total))
    return quality, max(0, get_sampling(picture))


def _table_sum(quality: int) -> float:
    scale = 5000 / quality if quality < 50 else 200 - 2 * quality
    return max(64.0, _LUMINANCE_SUM * scale / 100)


def _check_pages(picture: Image.Image, path: Path) -> None:
    """Refuse what would lose pages; previews, and the second picture of some JPEG files, are none."""
    if picture.format not in ("TIFF", "HEIF"):
        return
    pages = [getattr(page, "tag_v2", {}).get(_TIFF_SUBFILE_TYPE, 0) & 1 for page in ImageSequence.Iterator(picture)]
    picture.seek(0)
    if (count := pages.count(0)) > 1:
        raise InputError(
            f"{path}: it has {count} pages, and only the first would be used. Split it into single pictures first."
        )


def _check_jpeg(path: Path) -> None:
    """Refuse a JPEG file whose data break off or make no sense: Pillow paints grey or rubble without a word."""
    import av
    from av.packet import Packet

    decoder = av.CodecContext.create("mjpeg", "r")
    decoder.options = STRICT
    try:
        frames = [*decoder.decode(Packet(path.read_bytes())), *decoder.decode(None)]
    except av.InvalidDataError:
        damaged = True
    except av.FFmpegError:
        damaged = False  # a kind of JPEG that this decoder does not know
    else:
        damaged = any(frame.is_corrupt for frame in frames)
    if damaged:
        raise InputError(
            f"{path}: the picture is damaged. Copy it again from where it was taken; if it looks right, save it anew."
        )


def save_picture(
    pixels: NDArray[Any],
    path: Path,
    picture_format: str,
    quality: int | None = None,
    exif: bytes = b"",
    jpeg: tuple[int, int] | None = None,
) -> None:
    """Write a picture without any metadata but ``exif``.

    Parameters
    ----------
    pixels : ndarray of shape (height, width, 3 or 4), uint8 or uint16
    picture_format : str
        As Pillow names it. Without a ``quality`` WebP and AVIF are written at 92, the same for JPEG with full
        colour resolution, unless ``jpeg`` has the quality and subsampling of its source; the others without loss.
    """
    if pixels.dtype == np.uint16:
        path.write_bytes(_deep_file(pixels, picture_format, exif))
        return
    lossy = {"quality": _QUALITY if quality is None else max(1, quality)}
    by_format: dict[str, dict[str, Any]] = {
        "JPEG": {**lossy, "subsampling": 0, "optimize": True},
        "WEBP": lossy,
        "AVIF": lossy,
        "TIFF": {"compression": "tiff_lzw"},
        "PNG": {"compress_level": 6},
    }
    options = by_format.get(picture_format, {})
    if picture_format == "JPEG" and jpeg is not None and quality is None:
        options |= {"quality": jpeg[0], "subsampling": jpeg[1]}
    if exif and picture_format != "BMP":
        options |= {"exif": exif}
    Image.fromarray(pixels).save(path, picture_format, **options)


def _deep_file(pixels: NDArray[np.uint16], picture_format: str, exif: bytes) -> bytes:
    """Return a file with 16 bits per channel."""
    import cv2

    order = [2, 1, 0, 3][: pixels.shape[2]]
    suffix = ".png" if picture_format == "PNG" else ".tif"
    encoded, data = cv2.imencode(suffix, np.ascontiguousarray(pixels[..., order]))
    if not encoded:
        raise OutputError(f"A {picture_format} file of 16 bits cannot be made.")
    file = data.tobytes()
    if picture_format != "PNG" or not exif:
        return file
    body = b"eXIf" + exif.removeprefix(b"Exif\0\0")
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return file[:_PNG_HEAD] + chunk + file[_PNG_HEAD:]
