"""Writing pictures."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image

from ksame.errors import OutputError
from ksame.scene.media.encoding import Encoding
from ksame.scene.media.kept import Kept
from ksame.scene.media.pictures import Photograph
from ksame.scene.media.planes import Picture
from ksame.scene.media.source import Media

_QUALITY = 92
"""Of JPEG, WebP and AVIF where the source does not tell."""
_SEE_THROUGH = ("PNG", "WEBP", "TIFF", "AVIF")
_DEEP = ("PNG", "TIFF")
"""Formats that hold transparency, and those that hold 16 bits."""


class PhotographSink:
    """Takes one picture and writes it.

    Attributes
    ----------
    next_frame : int
    losses : tuple of str
        What of the source the format cannot hold.
    """

    def __init__(self, media: Media, encoding: Encoding, form: str) -> None:
        self.next_frame = 0
        self._kept = media.kept if isinstance(media, Photograph) else None
        self._media = media
        self._encoding = encoding
        self._form = form
        self._picture: Picture | None = None
        self.losses = self._lost()

    def _lost(self) -> tuple[str, ...]:
        found = []
        kept = self._kept
        if kept is not None and kept.bits > 8 and not self._is_deep:
            found.append(f"its {kept.bits} bits became 8 bits; 16 bits without a colour profile go into .png and .tif")
        if kept is not None and kept.alpha is not None and self._form not in _SEE_THROUGH:
            found.append("what was transparent became white; .png, .webp, .tif and .avif keep it")
        if self._is_deep and self._form == "TIFF" and self._exif():
            found.append("a .tif of 16 bits is written without metadata; choose .png")
        return tuple(found)

    @property
    def _is_deep(self) -> bool:
        return self._kept is not None and self._kept.deep is not None and self._form in _DEEP

    def write(self, picture: Picture) -> None:
        """Keep the picture."""
        self._picture = Picture(picture.pixels.copy(), None, picture.touched)
        self.next_frame += 1

    def finish(self, path: Path) -> None:
        """Write it."""
        if self._picture is None:
            raise OutputError("No picture was written.")
        pixels: NDArray[Any] = self._picture.pixels
        if self._kept is not None and self._picture.touched is not None:
            see_through = self._form in _SEE_THROUGH
            pixels = whole(pixels, self._picture.touched, self._kept, deep=self._is_deep, see_through=see_through)
        jpeg = None if self._kept is None else self._kept.jpeg
        save_picture(pixels, path, self._form, self._encoding.quality, self._exif(), jpeg)

    def abandon(self) -> None:
        """Forget it."""
        self._picture = None

    def _exif(self) -> bytes:
        """Return the EXIF tags that were named."""
        if not isinstance(self._media, Photograph):
            return b""
        kept = Image.Exif()
        for name in set(self._media.entries) & set(self._encoding.keep_metadata):
            kept[ExifTags.Base[name].value] = self._media.exif[ExifTags.Base[name].value]
        return kept.tobytes() if len(kept) else b""


def whole(
    pixels: NDArray[np.uint8], touched: NDArray[np.bool_], kept: Kept, *, deep: bool, see_through: bool
) -> NDArray[Any]:
    """Give a composed picture back what it had beside 8 bits of colour, but not where it was touched.

    There it is opaque: the border of what is transparent may be the outline of a head. Colours are those that are seen
    on white, so that nothing is published under what is transparent.

    Returns
    -------
    pixels : ndarray of shape (height, width, 3 or 4), uint8 or uint16
    """
    top = 65535 if deep and kept.deep is not None else 255
    dtype = np.uint16 if top == 65535 else np.uint8
    shown = pixels.astype(dtype) * dtype(top // 255)
    if kept.deep is not None and top == 65535:
        shown = np.where(touched[..., None], shown, kept.deep)
    if kept.alpha is None or not see_through:
        return shown
    alpha = np.where(touched, 255, kept.alpha)
    share = alpha[..., None] / 255
    with np.errstate(divide="ignore", invalid="ignore"):
        colour = np.where(share > 0, (shown - top * (1 - share)) / share, top)
    values = np.concatenate([colour, alpha[..., None] * float(top // 255)], axis=2)
    return np.rint(values).clip(0, top).astype(dtype)


def save_picture(
    pixels: NDArray[Any],
    path: Path,
    form: str,
    quality: int | None = None,
    exif: bytes = b"",
    jpeg: tuple[int, int] | None = None,
) -> None:
    """Write a picture without any metadata but ``exif``.

    Parameters
    ----------
    pixels : ndarray of shape (height, width, 3 or 4), uint8 or uint16
    path : Path
    form : str
        As Pillow names it. Without a ``quality`` WebP and AVIF are written at 92, the same for JPEG with full colour
        resolution, unless ``jpeg`` has the quality and subsampling of its source; the others without loss.
    """
    if pixels.dtype == np.uint16:
        path.write_bytes(_deep_file(pixels, form, exif))
        return
    picture = Image.fromarray(pixels)
    chosen = _QUALITY if quality is None else max(1, quality)
    extra: dict[str, Any] = {"exif": exif} if exif else {}
    if form == "JPEG":
        pressed, subsampling = jpeg if jpeg is not None and quality is None else (chosen, 0)
        picture.save(path, form, quality=pressed, subsampling=subsampling, optimize=True, **extra)
    elif form in ("WEBP", "AVIF"):
        picture.save(path, form, quality=chosen, **extra)
    elif form == "TIFF":
        picture.save(path, form, compression="tiff_lzw", **extra)
    elif form == "PNG":
        picture.save(path, form, compress_level=6, **extra)
    else:
        picture.save(path, form)


def _deep_file(pixels: NDArray[np.uint16], form: str, exif: bytes) -> bytes:
    """Return a file with 16 bits a channel."""
    order = [2, 1, 0, 3][: pixels.shape[2]]
    made, data = cv2.imencode(".png" if form == "PNG" else ".tif", np.ascontiguousarray(pixels[..., order]))
    if not made:
        raise OutputError(f"A {form} file of 16 bits cannot be made.")
    found = data.tobytes()
    if form != "PNG" or not exif:
        return found
    body = b"eXIf" + exif.removeprefix(b"Exif\0\0")
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    head = io.BytesIO(found).read(33)  # signature and IHDR
    return head + chunk + found[33:]
