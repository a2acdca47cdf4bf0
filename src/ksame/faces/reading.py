"""Reading and writing single pictures. Whatever is read comes without its metadata."""

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ksame.errors import InputError
from ksame.faces.faceset import ByteArray
from ksame.pictures import read_values

StrPath = str | os.PathLike[str]
"""Where a file or folder is: a plain string is as good as a path."""
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".ppm", ".pgm"})


def read_image(file: StrPath) -> NDArray[np.float32]:
    """Read a PNG, JPEG, WebP, TIFF, PPM or PGM file, 8 or 16 bits, grey or colour.

    The EXIF orientation and the colour profile are applied, and all metadata dropped: colours are in sRGB, transparent
    pixels are shown on white.

    Returns
    -------
    image : ndarray of shape (height, width, 1 or 3), float32 in [0, 1]

    Raises
    ------
    InputError
        When the file is missing, empty, damaged, of several pages or no picture.
    """
    values = read_values(Path(file))
    return (values / np.float64(np.iinfo(values.dtype).max)).astype(np.float32)


def encode_png(image: ByteArray) -> bytes:
    """Return the PNG file of an 8-bit image of shape (height, width, 1 or 3), without any metadata."""
    buffer = io.BytesIO()
    Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).save(buffer, format="PNG", compress_level=6)
    return buffer.getvalue()


def decode_png(data: bytes) -> ByteArray:
    """Return the 8-bit image of shape (height, width, 1 or 3) in a PNG file that :func:`encode_png` made."""
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            if picture.mode not in ("L", "RGB"):  # of a palette the numbers would be compared, not what is seen
                raise InputError(f"expected a grey or RGB PNG file, got mode {picture.mode}")
            array: NDArray[Any] = np.asarray(picture)
    except InputError:
        raise
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"not a readable PNG file ({error})") from error
    if array.dtype != np.uint8:
        raise InputError(f"expected an 8-bit PNG file, got {array.dtype}")
    return array[..., None] if array.ndim == 2 else array


def is_bare_png(data: bytes) -> bool:
    """Return whether a PNG file holds pixels and nothing else: no text, profile, further frames or bytes after it.

    Examples
    --------
    >>> data = encode_png(np.zeros((2, 2, 1), np.uint8))
    >>> is_bare_png(data), is_bare_png(data + b"Ann")
    (True, False)
    """
    at = 8
    while at + 12 <= len(data):
        length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        at += 12 + length
        if kind == b"IEND":
            return at == len(data)
        if kind not in (b"IHDR", b"IDAT"):
            return False
    return False
