"""Writing one photograph."""

from __future__ import annotations

from pathlib import Path

from PIL import ExifTags, Image

from ksame.errors import OutputError
from ksame.scene.media.encoding import Encoding
from ksame.scene.media.pictures import Photograph, save_picture
from ksame.scene.media.planes import Picture
from ksame.scene.media.source import Media


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
        self.losses: tuple[str, ...] = ()
        self._media = media
        self._encoding = encoding
        self._form = form
        self._picture: Picture | None = None

    def write(self, picture: Picture) -> None:
        """Keep the picture."""
        self._picture = Picture(picture.pixels.copy(), None, picture.touched)
        self.next_frame += 1

    def finish(self, path: Path) -> None:
        """Write it."""
        if self._picture is None:
            raise OutputError("No picture was written.")
        save_picture(self._picture.pixels, path, self._form, self._encoding.quality, self._exif())

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
