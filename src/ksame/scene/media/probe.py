"""What is in a file or folder: told by its content, whatever its name."""

from __future__ import annotations

from pathlib import Path

from ksame.errors import InputError, UsageError
from ksame.pictures import readable_formats
from ksame.scene.media.images import Animation, ImageSequence, Photograph, is_animation
from ksame.scene.media.integrity import DamagePolicy, check_complete
from ksame.scene.media.recording import Recording
from ksame.scene.media.source import Media

_HEIC_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx")
_OTHER_BRANDS = (b"avif", b"avis", b"mif1", b"msf1")
"""AVIF, and what may be AVIF or HEIC."""
_PICTURE_STARTS = (b"\xff\xd8\xff", b"\x89PNG", b"II*\x00", b"MM\x00*", b"BM")


def open_media(path: Path, damaged: DamagePolicy = "refuse") -> Media:
    """Open a photograph, a recording or a folder of pictures.

    What is missing, empty, cut off, encrypted, only sound, or nothing that can be read raises an :class:`InputError`.
    Where frames of a recording cannot be decoded, ``damaged`` decides between an error and black frames.
    """
    path = Path(path)
    if damaged not in ("refuse", "mask"):
        raise UsageError(f"--damaged must be refuse or mask. Got {damaged!r}.")
    try:
        if path.is_dir():
            return ImageSequence(path)
        if path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty. Copy it again from where it was recorded.")
        with path.open("rb") as file:
            start = file.read(64)
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file. Check the name.") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the permissions.") from error
    if _is_heic(start) and "HEIF" not in readable_formats():
        raise InputError(f"{path}: to read HEIC pictures: pip install pi-heif. Or save it as JPEG or PNG first.")
    if _is_picture(start):
        return Animation(path) if is_animation(path) else Photograph(path)
    check_complete(path)
    return Recording(path, damaged)


def _is_heic(start: bytes) -> bool:
    brand = start[8:12]
    return start[4:8] == b"ftyp" and (brand in _HEIC_BRANDS or (brand in (b"mif1", b"msf1") and b"avif" not in start))


def _is_picture(start: bytes) -> bool:
    other = start[4:8] == b"ftyp" and start[8:12] in _OTHER_BRANDS
    webp = start[:4] == b"RIFF" and start[8:12] == b"WEBP"
    return other or webp or _is_heic(start) or start.startswith(_PICTURE_STARTS)
