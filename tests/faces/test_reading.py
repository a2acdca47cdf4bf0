import contextlib
import io
import struct
import warnings
import zlib

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from ksame.errors import InputError
from ksame.faces.reading import SUFFIXES, decode_png, encode_png, read_image

GREY = np.arange(6 * 5, dtype=np.uint8).reshape(6, 5) * 8
COLOUR = np.stack([GREY, 255 - GREY, GREY.T.reshape(6, 5)], axis=2)
EXACT = [("a.png", {}), ("a.tif", {}), ("a.tiff", {"compression": "tiff_lzw"}), ("a.webp", {"lossless": True})]
# What each EXIF orientation does to the picture that should be seen, so that undoing it shows the picture upright.
STORED = {
    1: lambda a: a,
    2: np.fliplr,
    3: lambda a: np.rot90(a, 2),
    4: np.flipud,
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, 1),
    7: lambda a: np.rot90(a.swapaxes(0, 1), 2),
    8: lambda a: np.rot90(a, -1),
}


def read(path, picture, **options):
    (picture if isinstance(picture, Image.Image) else Image.fromarray(np.ascontiguousarray(picture))).save(
        path, **options
    )
    return read_image(path)


@pytest.mark.parametrize(("name", "options"), EXACT)
def test_lossless_colour_is_read_to_the_bit(tmp_path, name, options):
    image = read(tmp_path / name, COLOUR, **options)
    assert image.dtype == np.float32
    assert np.array_equal(np.rint(image * 255), COLOUR)


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.jpg"])
def test_grey_has_one_channel(tmp_path, name):
    image = read(tmp_path / name, GREY)
    assert image.shape == (6, 5, 1)
    assert np.abs(image[..., 0] * 255 - GREY).max() <= (6 if name == "a.jpg" else 0)


@pytest.mark.parametrize("name", ["a.jpg", "a.jpeg", "a.webp"])
def test_lossy_colour_is_read_closely(tmp_path, name):
    smooth = np.stack(np.meshgrid(np.linspace(0, 255, 32), np.linspace(0, 255, 40)), axis=2).mean(axis=2)
    picture = np.repeat(smooth.astype(np.uint8)[..., None], 3, axis=2)
    assert np.abs(read(tmp_path / name, picture, quality=95) * 255 - picture).max() < 8


@pytest.mark.parametrize("name", ["a.png", "a.tif"])
def test_sixteen_bits_are_read_finer_than_eight(tmp_path, name):
    deep = np.array([[0, 1, 2, 256, 32768, 65535]], dtype=np.uint16)
    image = read(tmp_path / name, deep)
    assert image.shape == (1, 6, 1)
    assert np.allclose(image[0, :, 0], deep[0] / 65535, atol=1e-8)


def test_sixteen_bit_colour_is_read(tmp_path):
    rows = b"\0" + struct.pack(">6H", 65535, 0, 32896, 0, 65535, 257)  # one row of two pixels, unfiltered
    (tmp_path / "a.png").write_bytes(png((2, 1, 16, 2), rows))
    expected = np.array([[[1, 0, 32896 / 65535], [0, 1, 257 / 65535]]])
    assert np.allclose(read_image(tmp_path / "a.png"), expected, atol=1 / 255)


def png(header, data):
    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", *header, 0, 0, 0))
    return start + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def test_a_palette_is_looked_up(tmp_path):
    picture = Image.fromarray(np.array([[0, 1], [1, 0]], dtype=np.uint8)).convert("P")
    picture.putpalette([10, 20, 30, 200, 100, 50] + [0] * 750)
    image = read(tmp_path / "a.png", picture)
    assert np.rint(image * 255).tolist() == [[[10, 20, 30], [200, 100, 50]], [[200, 100, 50], [10, 20, 30]]]


def test_black_and_white_is_grey(tmp_path):
    image = read(tmp_path / "a.png", Image.fromarray(GREY > 100))
    assert np.array_equal(image[..., 0], (GREY > 100).astype(np.float32))


def test_cmyk_is_read_as_colour(tmp_path):
    assert read(tmp_path / "a.jpg", Image.fromarray(COLOUR).convert("CMYK")).shape == (6, 5, 3)


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_transparent_pixels_are_white_and_half_ones_half_white(tmp_path, mode):
    dark = Image.new(mode.replace("A", ""), (3, 1), 0).convert(mode)
    dark.putalpha(Image.fromarray(np.array([[0, 128, 255]], dtype=np.uint8)))
    image = read(tmp_path / "a.png", dark)
    assert np.allclose(image[0, :, 0], [1.0, 127 / 255, 0.0], atol=1.5 / 255)


def test_a_transparent_palette_entry_is_white(tmp_path):
    picture = Image.new("P", (2, 1), 1)
    picture.putpalette([255, 0, 0] + [0] * 765)
    picture.putpixel((0, 0), 2)
    image = read(tmp_path / "a.png", picture, transparency=bytes([255, 255, 0]))
    assert image.tolist() == [[[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]]


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.webp", "a.jpg"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_is_set_upright(tmp_path, name, orientation):
    upright = np.kron(np.array([[250, 20, 120], [60, 190, 90]], dtype=np.uint8), np.ones((16, 16), dtype=np.uint8))
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.ascontiguousarray(STORED[orientation](upright))).convert("RGB")
    options = {"lossless": True} if name == "a.webp" else {}
    image = read(tmp_path / name, stored, exif=exif, **options)
    assert image.shape == (32, 48, 3)
    assert np.abs(image[..., 0] * 255 - upright).max() <= (8 if name == "a.jpg" else 0)


def test_sixteen_bits_are_set_upright_too(tmp_path):
    deep = np.arange(6, dtype=np.uint16).reshape(2, 3) * 10000
    exif = Image.Exif()
    exif[0x0112] = 6
    image = read(tmp_path / "a.png", np.rot90(deep, 1), exif=exif)
    assert np.allclose(image[..., 0], deep / 65535, atol=1e-7)


def test_what_is_read_and_written_again_carries_no_metadata(tmp_path):
    exif, notes = Image.Exif(), PngImagePlugin.PngInfo()
    exif[0x010E] = "Ann Example, 12 Long Road"
    notes.add_text("Author", "Ann Example")
    image = read(tmp_path / "a.png", COLOUR, exif=exif, pnginfo=notes, dpi=(72, 72), icc_profile=b"profile")
    data = encode_png(np.rint(image * 255).astype(np.uint8))
    assert b"Ann Example" not in data
    assert chunks(data) == [b"IHDR", b"IDAT", b"IEND"]


def chunks(data):
    names, at = [], 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        names.append(data[at + 4 : at + 8])
        at += length + 12
    return names


@pytest.mark.parametrize("image", [COLOUR, GREY[..., None], np.zeros((1, 1, 1), np.uint8)], ids=["rgb", "grey", "one"])
def test_png_round_trip_without_metadata(image):
    data = encode_png(image)
    assert np.array_equal(decode_png(data), image)
    assert set(chunks(data)) == {b"IHDR", b"IDAT", b"IEND"}
    assert data == encode_png(image.copy())


@pytest.mark.parametrize("name", sorted(f"a{suffix}" for suffix in SUFFIXES))
@pytest.mark.parametrize("kind", ["missing", "empty", "truncated", "text", "folder"])
def test_what_is_no_picture_is_an_input_error_that_names_the_file(tmp_path, name, kind):
    path = tmp_path / name
    if kind == "empty":
        path.touch()
    elif kind == "text":
        path.write_text("file,subject\n")
    elif kind == "folder":
        path.mkdir()
    elif kind == "truncated":
        Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(path)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match=rf"{name}: "):
        read_image(path)


def test_floating_point_pictures_are_refused(tmp_path):
    Image.fromarray(np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)).save(tmp_path / "a.tif")
    with pytest.raises(InputError, match="32-bit pictures have no agreed range"):
        read_image(tmp_path / "a.tif")


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.webp", "a.tif"])
def test_damaged_bytes_give_a_picture_or_an_input_error_and_nothing_else(tmp_path, name):
    rng = np.random.default_rng(1)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(rng.integers(0, 256, (20, 24, 3), dtype=np.uint8)).save(tmp_path / name, exif=exif)
    whole = np.frombuffer((tmp_path / name).read_bytes(), np.uint8)
    for _ in range(60):
        damaged = whole.copy()
        spots = rng.integers(0, min(len(whole), rng.choice([60, 300, 5000])), size=rng.integers(1, 8))
        damaged[spots] = rng.integers(0, 256, len(spots))
        (tmp_path / name).write_bytes(damaged.tobytes())
        with warnings.catch_warnings(), contextlib.suppress(InputError):
            warnings.simplefilter("ignore")  # Pillow's own, about odd metadata
            assert read_image(tmp_path / name).ndim == 3


HUGE = (20_000, 20_000, 8, 2)


def test_a_picture_that_claims_to_be_huge_is_refused(tmp_path):
    (tmp_path / "a.png").write_bytes(png(HUGE, b"\0"))
    with pytest.raises(InputError, match="a.png: the picture is too large"):
        read_image(tmp_path / "a.png")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a picture",
        encode_png(COLOUR)[:60],
        png((2, 1, 16, 0), b"\0" + b"\1\2" * 2),
        png(HUGE, b"\0"),
    ],
    ids=["empty", "text", "truncated", "16 bits", "huge"],
)
def test_decode_png_takes_8_bit_png_files_only(data):
    with pytest.raises(InputError, match="PNG file"):
        decode_png(data)


def test_decode_png_takes_no_other_format():
    buffer = io.BytesIO()
    Image.fromarray(COLOUR).save(buffer, format="JPEG")
    with pytest.raises(InputError, match="not a readable PNG file"):
        decode_png(buffer.getvalue())
