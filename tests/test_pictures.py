"""The one reader of pictures: the same file gives the same colours to a face set and to a scene."""

import cv2
import numpy as np
import pytest
from PIL import Image

from icc import ADOBE_RGB, DISPLAY_P3, decoded, encoded, grey_profile, in_srgb, profile
from ksame.errors import InputError
from ksame.faces.reading import read_image
from ksame.scene.media import open_media

SPACES = {"Adobe RGB": (ADOBE_RGB, 563 / 256), "Display P3": (DISPLAY_P3, None)}
RNG = np.random.default_rng(11)
# Colours that sRGB can hold in either space: outside it programs clip in their own ways.
SKIN = np.clip(np.array([0.72, 0.55, 0.47]) + RNG.normal(0, 0.08, (24, 20, 3)), 0.3, 0.85)
SKIN_BYTES = np.rint(SKIN * 255).astype(np.uint8)


def scene_pixels(path):
    (frame,) = open_media(path).frames()
    return frame.pixels


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.webp", "a.jpg"])
def test_faces_with_a_colour_profile_are_read_in_srgb(tmp_path, space, name):
    primaries, gamma = SPACES[space]
    options = {"a.webp": {"lossless": True}, "a.jpg": {"quality": 100, "subsampling": 0}}.get(name, {})
    Image.fromarray(SKIN_BYTES).save(tmp_path / name, icc_profile=profile(primaries, gamma), **options)
    expected = in_srgb(SKIN_BYTES / 255, primaries, gamma)
    assert np.abs(expected - SKIN_BYTES / 255).max() > 5 / 255
    assert np.abs(read_image(tmp_path / name) - expected).max() < (5 if name == "a.jpg" else 2) / 255


def test_grey_faces_with_a_colour_profile_are_read_in_srgb_and_stay_grey(tmp_path):
    grey = np.arange(32, 256, dtype=np.uint8).reshape(16, 14)  # colour engines interpolate coarsely near black
    Image.fromarray(grey).save(tmp_path / "a.png", icc_profile=grey_profile(1.6))
    image = read_image(tmp_path / "a.png")
    assert image.shape == (16, 14, 1)
    assert np.abs(image[..., 0] - encoded(decoded(grey / 255, 1.6))).max() < 2 / 255


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P", "CMYK"])
@pytest.mark.parametrize("with_profile", [False, True])
def test_a_face_set_and_a_scene_read_the_same_colours(tmp_path, mode, with_profile):
    picture = Image.fromarray(SKIN_BYTES).convert(mode)
    if mode == "RGBA":
        picture.putalpha(Image.fromarray(SKIN_BYTES[..., 0]))
    extra = {"icc_profile": profile(ADOBE_RGB, 2.2)} if with_profile else {}
    path = tmp_path / ("a.tif" if mode == "CMYK" else "a.png")
    picture.save(path, **extra)
    face = np.rint(read_image(path) * 255).astype(np.uint8)
    np.testing.assert_array_equal(np.broadcast_to(face, (*face.shape[:2], 3)), scene_pixels(path))


def test_a_face_set_refuses_a_picture_of_several_pages(tmp_path):
    pages = [Image.fromarray(SKIN_BYTES), Image.fromarray(SKIN_BYTES[::-1].copy())]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    with pytest.raises(InputError, match=r"a.tif: it has 2 pages.*Split"):
        read_image(tmp_path / "a.tif")


def test_a_face_set_refuses_a_jpeg_whose_data_make_no_sense(tmp_path):
    path = tmp_path / "a.jpg"
    Image.fromarray(RNG.integers(0, 256, (96, 128, 3), dtype=np.uint8)).save(path, quality=90)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 400] = bytes(400)
    path.write_bytes(data)
    with pytest.raises(InputError, match="a.jpg: the picture is damaged"):
        read_image(path)


def test_sixteen_bit_grey_maps_are_read(tmp_path):
    deep = np.array([[0, 1, 256, 32768, 65535]], dtype=np.uint16)
    cv2.imwrite(str(tmp_path / "a.pgm"), deep)
    np.testing.assert_allclose(read_image(tmp_path / "a.pgm")[..., 0], deep / 65535, atol=1e-7)
