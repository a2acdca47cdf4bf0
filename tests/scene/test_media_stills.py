"""Photographs keep what their format can hold: pages, bits, transparency, quality."""

import io
import struct
import sys
from fractions import Fraction

import av
import cv2
import numpy as np
import pytest
from PIL import Image, features

from ksame.errors import InputError
from ksame.scene.media import EncoderConfig, Output, WorkFolder, open_media
from scene.clips import drawn_frame

WHERE = np.s_[8:24, 16:40]


def changed_through(source, destination, encoding=None):
    """Copy a photograph, and make a part of it grey."""
    media = open_media(source)
    with Output(media, destination, encoding or EncoderConfig(), WorkFolder(destination.parent / "work")) as output:
        for frame in media.frames():
            touched = np.zeros(frame.pixels.shape[:2], dtype=bool)
            pixels = frame.pixels.copy()
            touched[WHERE], pixels[WHERE] = True, 128
            output.write(pixels, frame.native, touched)
        output.finish()
    return output.losses


def outside(array):
    kept = np.ones(array.shape[:2], dtype=bool)
    kept[WHERE] = False
    return array[kept]


def test_a_picture_of_several_pages_is_refused(tmp_path):
    pages = [Image.fromarray(drawn_frame(i)) for i in range(6)]
    pages[0].save(tmp_path / "pages.tif", save_all=True, append_images=pages[1:])
    with pytest.raises(InputError, match=r"pages.tif: it has 6 pages.*Split"):
        open_media(tmp_path / "pages.tif")


def test_a_preview_is_no_page(tmp_path):
    small = Image.fromarray(drawn_frame(3)).resize((16, 12))
    small.encoderinfo = {"tiffinfo": {254: 1}}
    Image.fromarray(drawn_frame(3)).save(tmp_path / "photo.tif", save_all=True, append_images=[small])
    assert open_media(tmp_path / "photo.tif").size == (64, 48)


@pytest.mark.parametrize("suffix", [".png", ".tif"])
@pytest.mark.parametrize("channels", [1, 3])
def test_sixteen_bits_are_kept(suffix, channels, tmp_path):
    rng = np.random.default_rng(4)
    deep = rng.integers(0, 65536, (48, 64, channels), dtype=np.uint16)
    cv2.imwrite(str(tmp_path / f"deep{suffix}"), deep[..., ::-1] if channels == 3 else deep)
    assert changed_through(tmp_path / f"deep{suffix}", tmp_path / f"out{suffix}") == ()
    written = cv2.imread(str(tmp_path / f"out{suffix}"), cv2.IMREAD_UNCHANGED)[..., ::-1]
    assert written.dtype == np.uint16
    np.testing.assert_array_equal(outside(written), outside(np.broadcast_to(deep, (48, 64, 3))))
    assert (written[WHERE] == 128 * 257).all()


@pytest.mark.parametrize("suffix", [".jpg", ".bmp", ".webp"])
def test_bits_that_are_lost_are_told(suffix, tmp_path):
    cv2.imwrite(str(tmp_path / "deep.png"), np.full((48, 64, 3), 777, dtype=np.uint16))
    (loss,) = changed_through(tmp_path / "deep.png", tmp_path / f"out{suffix}")
    assert "16 bits became 8" in loss


@pytest.mark.parametrize("suffix", [".png", ".tif", ".webp"])
def test_transparency_is_kept_but_not_what_it_hides(suffix, tmp_path):
    rng = np.random.default_rng(5)
    pixels = rng.integers(0, 256, (48, 64, 4), dtype=np.uint8)
    pixels[..., 3] = 255
    pixels[30:, :, 3], pixels[:, 50:, 3] = 0, 128
    Image.fromarray(pixels).save(tmp_path / "cut.png")
    assert changed_through(tmp_path / "cut.png", tmp_path / f"out{suffix}", EncoderConfig(quality=100)) == ()
    with Image.open(tmp_path / f"out{suffix}") as picture:
        written = np.asarray(picture)
    np.testing.assert_array_equal(outside(written[..., 3]), outside(pixels[..., 3]))
    assert (written[WHERE][..., 3] == 255).all()
    if suffix != ".webp":
        assert (written[30:, :50, :3] == 255).all()
        np.testing.assert_array_equal(written[:8, :50], pixels[:8, :50])
        assert np.abs(written[:30, 50:, :3].astype(int) - pixels[:30, 50:, :3]).max() <= 2


def test_transparency_that_is_lost_is_told(tmp_path):
    Image.new("RGBA", (64, 48), (10, 200, 30, 100)).save(tmp_path / "cut.png")
    (loss,) = changed_through(tmp_path / "cut.png", tmp_path / "out.jpg")
    assert "transparen" in loss
    Image.new("RGBA", (64, 48), (10, 200, 30, 255)).save(tmp_path / "whole.png")
    assert changed_through(tmp_path / "whole.png", tmp_path / "two.jpg") == ()


@pytest.mark.parametrize("quality", [55, 80, 97])
@pytest.mark.parametrize("subsampling", [0, 2])
def test_a_jpeg_is_about_as_large_as_its_source(quality, subsampling, tmp_path):
    y, x = np.mgrid[0:240, 0:320]
    noise = np.random.default_rng(6).integers(0, 40, (240, 320, 3))
    pixels = (np.stack([x % 200, y % 200, (x + y) % 200], axis=2) + noise).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.jpg", quality=quality, subsampling=subsampling)
    changed_through(tmp_path / "photo.jpg", tmp_path / "out.jpg")
    assert 0.7 < (tmp_path / "out.jpg").stat().st_size / (tmp_path / "photo.jpg").stat().st_size < 1.1


@pytest.mark.skipif(not features.check("avif"), reason="this Pillow cannot read AVIF")
def test_avif(tmp_path):
    exif = Image.Exif()
    exif[0x013B] = "A. Photographer"
    Image.fromarray(drawn_frame(5)).save(tmp_path / "photo.avif", quality=95, exif=exif)
    assert open_media(tmp_path / "photo.avif").kind == "photograph"
    changed_through(tmp_path / "photo.avif", tmp_path / "out.avif")
    with Image.open(tmp_path / "out.avif") as picture:
        assert (picture.format, picture.size) == ("AVIF", (64, 48))
    assert b"Photographer" not in (tmp_path / "out.avif").read_bytes()
    frames = [Image.fromarray(drawn_frame(i)) for i in range(4)]
    frames[0].save(tmp_path / "move.avif", save_all=True, append_images=frames[1:], duration=100)
    assert open_media(tmp_path / "move.avif").n_frames == 4


def box(name, *content):
    data = b"".join(content)
    return struct.pack(">I4s", 8 + len(data), name) + data


def heic(pixels, n_pictures=1):
    """A HEIC file, as telephones write it, of one or more pictures."""
    buffer = io.BytesIO()
    height, width = pixels.shape[:2]
    with av.open(buffer, "w", format="mp4") as container:
        stream = container.add_stream("libx265", rate=1, options={"x265-params": "log-level=none:bframes=0:crf=5"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format="yuv420p")
        frame.pts, frame.time_base = 0, Fraction(1)
        container.mux(stream.encode(frame) + stream.encode(None))
    buffer.seek(0)
    with av.open(buffer) as container:
        header = container.streams.video[0].codec_context.extradata
        data = next(bytes(p) for p in container.demux(video=0) if p.size)
    numbers = range(1, n_pictures + 1)
    ftyp = box(b"ftyp", b"heic", bytes(4), b"mif1heic")

    def meta(at):
        places = b"".join(struct.pack(">HHHII", i, 0, 1, at, len(data)) for i in numbers)
        infos = [box(b"infe", b"\2\0\0\0", struct.pack(">HH", i, 0), b"hvc1\0") for i in numbers]
        linked = b"".join(struct.pack(">HB2B", i, 2, 0x81, 2) for i in numbers)
        return box(
            b"meta",
            bytes(4),
            box(b"hdlr", bytes(8), b"pict", bytes(13)),
            box(b"pitm", bytes(4), struct.pack(">H", 1)),
            box(b"iloc", bytes(4), b"\x44\0", struct.pack(">H", n_pictures), places),
            box(b"iinf", bytes(4), struct.pack(">H", n_pictures), *infos),
            box(
                b"iprp",
                box(b"ipco", box(b"hvcC", header), box(b"ispe", bytes(4), struct.pack(">II", width, height))),
                box(b"ipma", bytes(4), struct.pack(">I", n_pictures), linked),
            ),
        )

    at = len(ftyp) + len(meta(0)) + 8
    return ftyp + meta(at) + box(b"mdat", data)


def test_heic(tmp_path):
    pytest.importorskip("pi_heif")
    (tmp_path / "photo.heic").write_bytes(heic(drawn_frame(5)))
    media = open_media(tmp_path / "photo.heic")
    (frame,) = media.frames()
    assert (media.kind, media.size) == ("photograph", (64, 48))
    assert np.abs(frame.pixels.astype(int) - drawn_frame(5)).mean() < 6
    changed_through(tmp_path / "photo.heic", tmp_path / "out.jpg")
    (tmp_path / "burst.heic").write_bytes(heic(drawn_frame(5), 3))
    with pytest.raises(InputError, match="3 pages"):
        open_media(tmp_path / "burst.heic")


def test_heic_without_its_reader(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pi_heif", None)
    (tmp_path / "photo.heic").write_bytes(heic(drawn_frame(5)))
    with pytest.raises(InputError, match="pip install pi-heif"):
        open_media(tmp_path / "photo.heic")
