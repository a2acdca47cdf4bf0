"""Writing photographs and image sequences."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.errors import OutputError
from ksame.pictures import PictureExtras, save_picture
from ksame.scene.media.conversion import OutputFrame
from ksame.scene.media.encoding import EncoderConfig, losses
from ksame.scene.media.images import Photograph
from ksame.scene.media.metadata import kept_exif
from ksame.scene.media.source import Media

_WITH_ALPHA = ("PNG", "WEBP", "TIFF", "AVIF")
_WITH_16_BITS = ("PNG", "TIFF")


class PhotographWriter:
    """Takes one picture and writes it in a format, as Pillow names it."""

    def __init__(self, media: Media, encoding: EncoderConfig, picture_format: str) -> None:
        self.next_frame = 0
        self._format = picture_format
        self._quality = encoding.quality
        self._extras = media.read_extras() if isinstance(media, Photograph) else PictureExtras(None, None, 8, None)
        self._exif = kept_exif(media.read_exif(), encoding.keep_metadata) if isinstance(media, Photograph) else b""
        self._deep = self._extras.deep is not None and picture_format in _WITH_16_BITS
        self._frame: OutputFrame | None = None

    @property
    def losses(self) -> tuple[str, ...]:
        """What of the source the format cannot hold."""
        lost = []
        bits = self._extras.bits
        if bits > 8 and not self._deep:
            lost.append(f"its {bits} bits became 8 bits; 16 bits without a colour profile go into .png and .tif")
        if self._extras.alpha is not None and self._format not in _WITH_ALPHA:
            lost.append("what was transparent became white; .png, .webp, .tif and .avif keep it")
        if self._deep and self._format == "TIFF" and self._exif:
            lost.append("a .tif of 16 bits is written without metadata; choose .png")
        return tuple(lost)

    def write(self, frame: OutputFrame) -> None:
        """Keep the picture until the end, itself and not a copy: it must not be changed."""
        self._frame = OutputFrame(frame.pixels, None, frame.touched)
        self.next_frame += 1

    def finish(self, path: Path) -> None:
        """Write the picture."""
        if self._frame is None:
            raise OutputError("No picture was written.")
        pixels: NDArray[Any] = self._frame.pixels
        if self._frame.touched is not None:
            alpha = self._extras.alpha if self._format in _WITH_ALPHA else None
            pixels = _with_extras(pixels, self._frame.touched, self._extras.deep if self._deep else None, alpha)
        save_picture(pixels, path, self._format, self._quality, self._exif, self._extras.jpeg)


class ImageSequenceWriter:
    """Writes a folder of numbered pictures; those that stand in the work folder already are kept."""

    def __init__(self, media: Media, encoding: EncoderConfig, work: Path) -> None:
        self.losses = losses(media, 8, encoding)
        self._work = work
        self._quality = encoding.quality
        self._format, self._suffix = ("JPEG", ".jpg") if encoding.codec == "jpeg" else ("PNG", ".png")
        self.next_frame = 0
        while self._file(self.next_frame).is_file():
            self.next_frame += 1

    def _file(self, index: int) -> Path:
        return self._work / f"{index + 1:06d}{self._suffix}"

    def write(self, frame: OutputFrame) -> None:
        """Write the next picture."""
        file = self._file(self.next_frame)
        part = file.with_suffix(".part")
        save_picture(frame.pixels, part, self._format, self._quality)
        part.replace(file)
        self.next_frame += 1

    def finish(self, path: Path) -> None:
        """Gather the pictures in a folder."""
        path.mkdir()
        for file in map(self._file, range(self.next_frame)):
            try:
                os.link(file, path / file.name)
            except OSError:
                shutil.copyfile(file, path / file.name)


def _with_extras(
    pixels: NDArray[np.uint8],
    touched: NDArray[np.bool_],
    deep: NDArray[np.uint16] | None,
    alpha: NDArray[np.uint8] | None,
) -> NDArray[Any]:
    """Return a picture with the 16 bits and the transparency of its source, but not where it was touched.

    There it is opaque: the border of what is transparent may be the outline of a head. Colours are those that are seen
    on white, so that nothing is published under what is transparent.
    """
    if deep is None and alpha is None:
        return pixels
    dtype = np.uint8 if deep is None else np.uint16
    white = np.iinfo(dtype).max
    on_white = pixels.astype(dtype) * dtype(white // 255)
    if deep is not None:
        on_white = np.where(touched[..., None], on_white, deep)
    if alpha is None:
        return on_white
    alpha = np.where(touched, 255, alpha)[..., None]
    opacity = alpha / 255
    with np.errstate(divide="ignore", invalid="ignore"):
        colour = np.where(opacity > 0, (on_white - white * (1 - opacity)) / opacity, white)
    values = np.concatenate([colour, alpha * float(white // 255)], axis=2)
    return np.rint(values).clip(0, white).astype(dtype)
