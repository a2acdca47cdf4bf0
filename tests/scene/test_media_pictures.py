"""Photographs, moving pictures and folders of pictures."""

import io
from fractions import Fraction

import numpy as np
import pytest
from PIL import Image, ImageCms

from ksame.errors import InputError
from ksame.scene.media import EncoderConfig, Output, WorkFolder, open_media
from scene.clips import drawn_frame, make_clip, number_of, numbers, through

SUFFIXES = [".jpg", ".png", ".webp", ".tif", ".bmp"]


def only(path):
    frames = list(open_media(path).frames())
    assert len(frames) == 1
    return frames[0].pixels


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("wanted", SUFFIXES)
def test_every_format(suffix, wanted, tmp_path):
    Image.fromarray(drawn_frame(5)).save(tmp_path / f"photo{suffix}", **({"quality": 95} if suffix == ".jpg" else {}))
    media = through(tmp_path / f"photo{suffix}", tmp_path / f"out{wanted}")
    assert (media.kind, media.size, media.n_frames, media.exact) == ("photograph", (64, 48), 1, True)
    assert number_of(only(tmp_path / f"out{wanted}")) == 5
    if {suffix, wanted} <= {".png", ".tif", ".bmp"}:
        np.testing.assert_array_equal(only(tmp_path / f"out{wanted}"), drawn_frame(5))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_applied(orientation, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(drawn_frame(5)).save(tmp_path / "photo.png", exif=exif)
    media = through(tmp_path / "photo.png", tmp_path / "out.png")
    p = drawn_frame(5)
    turned = [
        p,
        p[:, ::-1],
        p[::-1, ::-1],
        p[::-1],
        p.swapaxes(0, 1),
        np.rot90(p, -1),
        p[::-1, ::-1].swapaxes(0, 1),
        np.rot90(p),
    ]
    np.testing.assert_array_equal(only(tmp_path / "out.png"), turned[orientation - 1])
    assert media.size == turned[orientation - 1].shape[1::-1]
    with Image.open(tmp_path / "out.png") as picture:
        assert not picture.getexif()


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".tif"])
def test_metadata_are_dropped_unless_named(suffix, tmp_path):
    exif = Image.Exif()
    exif[0x013B] = "A. Photographer"
    exif[0x8298] = "Copyright holder"
    exif.get_ifd(0x8825)[1] = "N"
    Image.fromarray(drawn_frame(5)).save(tmp_path / f"photo{suffix}", exif=exif)
    through(tmp_path / f"photo{suffix}", tmp_path / f"out{suffix}")
    with Image.open(tmp_path / f"out{suffix}") as picture:
        assert not dict(picture.getexif()).keys() & {0x013B, 0x8298, 0x8825}
    written = (tmp_path / f"out{suffix}").read_bytes()
    assert b"Photographer" not in written
    assert b"holder" not in written
    through(tmp_path / f"photo{suffix}", tmp_path / f"kept{suffix}", EncoderConfig(keep_metadata=("Copyright",)))
    kept = (tmp_path / f"kept{suffix}").read_bytes()
    assert b"Copyright holder" in kept
    assert b"Photographer" not in kept


def test_colours_go_over_to_srgb_and_the_profile_is_dropped(tmp_path):
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB"))
    picture = Image.new("LAB", (16, 16), (136, 209, 195))
    picture.save(tmp_path / "photo.tif", icc_profile=lab.tobytes())
    through(tmp_path / "photo.tif", tmp_path / "out.png")
    with Image.open(tmp_path / "out.png") as picture:
        assert "icc_profile" not in picture.info
    red = only(tmp_path / "out.png")[8, 8].astype(int)
    assert red[0] > 230
    assert red[1:].max() < 40
    broken = Image.fromarray(drawn_frame(5))
    broken.save(tmp_path / "broken.png", icc_profile=b"no profile at all")
    np.testing.assert_array_equal(only(tmp_path / "broken.png"), drawn_frame(5))


def test_sixteen_bits_cmyk_grey_palette_and_alpha(tmp_path):
    ramp = np.linspace(0, 65535, 64 * 48).reshape(48, 64).astype(np.uint16)
    Image.fromarray(ramp).save(tmp_path / "deep.png")
    assert np.abs(only(tmp_path / "deep.png")[..., 0] - ramp / 257).max() <= 1
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(tmp_path / "print.jpg")
    assert only(tmp_path / "print.jpg")[4, 4].tolist() == pytest.approx([254, 0, 0], abs=4)
    Image.new("L", (8, 8), 77).save(tmp_path / "grey.png")
    assert only(tmp_path / "grey.png")[4, 4].tolist() == [77, 77, 77]
    Image.new("RGB", (8, 8), (10, 200, 30)).quantize(4).save(tmp_path / "palette.png")
    assert only(tmp_path / "palette.png")[4, 4].tolist() == [10, 200, 30]
    Image.new("RGBA", (8, 8), (10, 200, 30, 0)).save(tmp_path / "clear.png")
    assert only(tmp_path / "clear.png")[4, 4].tolist() == [255, 255, 255]
    Image.new("F", (8, 8), 0.5).save(tmp_path / "real.tif")
    with pytest.raises(InputError, match="no agreed range"):
        only(tmp_path / "real.tif")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_cut_off_photographs(suffix, tmp_path):
    path = tmp_path / f"photo{suffix}"
    noise = np.random.default_rng(1).integers(0, 255, (48, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match="not a readable picture"):
        open_media(path)


def test_bombs_are_refused(tmp_path, monkeypatch):
    Image.fromarray(drawn_frame(5)).save(tmp_path / "photo.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(InputError, match="too large"):
        open_media(tmp_path / "photo.png")


@pytest.mark.parametrize("suffix", [".webp", ".png"])
def test_moving_pictures(suffix, tmp_path):
    frames = [Image.fromarray(drawn_frame(i)) for i in range(12)]
    durations = [40, 80, 120] * 4
    options = {"lossless": True} if suffix == ".webp" else {}
    frames[0].save(tmp_path / f"move{suffix}", save_all=True, append_images=frames[1:], duration=durations, **options)
    media = open_media(tmp_path / f"move{suffix}")
    assert media.kind == "video"
    assert numbers(media) == list(range(12))
    for wanted in (".mp4", ".gif"):
        through(tmp_path / f"move{suffix}", tmp_path / f"out{wanted}")
        times = [round(f.time, 3) for f in open_media(tmp_path / f"out{wanted}").frames()]
        assert times == pytest.approx([sum(durations[:i]) / 1000 for i in range(12)])


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "pictures"
    path.mkdir()
    for i in range(12):
        Image.fromarray(drawn_frame(i)).save(path / f"ward7_{i + 1}.png")
    (path / "notes.txt").write_text("not a picture")
    (path / ".hidden.png").write_bytes(b"")
    return path


def test_a_folder_is_a_recording(folder, tmp_path):
    media = through(folder, tmp_path / "out")
    assert (media.kind, media.n_frames, media.rate) == ("folder", 12, Fraction(25))
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [f"{i:06d}.png" for i in range(1, 13)]
    assert numbers(open_media(tmp_path / "out")) == list(range(12))
    through(folder, tmp_path / "out.mp4")
    assert numbers(open_media(tmp_path / "out.mp4")) == list(range(12))
    through(folder, tmp_path / "out", EncoderConfig(codec="jpeg"), force=True)
    assert sorted(p.suffix for p in (tmp_path / "out").iterdir()) == [".jpg"] * 12
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "out.mp4", "pictures"]


def test_a_recording_as_pictures(tmp_path):
    through(make_clip(tmp_path / "clip.mp4", n=12), tmp_path / "out")
    assert numbers(open_media(tmp_path / "out")) == list(range(12))


def test_folders_that_are_none(folder, tmp_path):
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="no pictures"):
        open_media(tmp_path / "none")
    Image.fromarray(drawn_frame(1, (32, 32))).save(folder / "ward7_5.png")
    with pytest.raises(InputError, match="ward7_5.png: 32x32 pixels, but ward7_1.png has 64x48"):
        open_media(folder)


def test_the_fingerprint_follows_the_content(folder, tmp_path):
    before = open_media(folder).fingerprint
    assert open_media(folder).fingerprint == before
    Image.fromarray(drawn_frame(40)).save(folder / "ward7_5.png")
    assert open_media(folder).fingerprint != before


def test_a_photograph_replaces_only_when_told(tmp_path):
    buffer = io.BytesIO()
    Image.fromarray(drawn_frame(5)).save(buffer, "PNG")
    (tmp_path / "photo.png").write_bytes(buffer.getvalue())
    (tmp_path / "out.png").write_bytes(b"old")
    media = open_media(tmp_path / "photo.png")
    with Output(media, tmp_path / "out.png", EncoderConfig(), WorkFolder(tmp_path / "work"), force=True) as output:
        for frame in media.frames():
            output.write(frame.pixels)
        assert (tmp_path / "out.png").read_bytes() == b"old"
        output.finish()
    assert number_of(only(tmp_path / "out.png")) == 5
