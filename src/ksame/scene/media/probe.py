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
_AVIF_BRANDS = (b"avif", b"avis")
_GENERAL_BRANDS = (b"mif1", b"msf1")


def open_media(path: Path, damaged: DamagePolicy = "refuse") -> Media:
    """Open a photograph, a recording or a folder of pictures.

    Parameters
    ----------
    path : Path
    damaged : "refuse" or "mask"
        What becomes of a recording with frames that cannot be decoded: an error, or these are black.

    Raises
    ------
    InputError
        When it is missing, empty, cut off, encrypted, only sound, or nothing that can be read.
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
    return start[4:8] == b"ftyp" and (
        start[8:12] in _HEIC_BRANDS or (start[8:12] in _GENERAL_BRANDS and b"avif" not in start)
    )


def _is_picture(start: bytes) -> bool:
    if _is_heic(start) or (start[4:8] == b"ftyp" and start[8:12] in (*_AVIF_BRANDS, *_GENERAL_BRANDS)):
        return True
    if start[:4] == b"RIFF":
        return start[8:12] == b"WEBP"
    return start.startswith((b"\xff\xd8\xff", b"\x89PNG", b"II*\x00", b"MM\x00*", b"BM"))
