"""Picture readers are kept quiet, and nothing else is."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

import pytest
from PIL import Image

from ksame.errors import PrivacyWarning
from ksame.pictures import open_picture

SAMPLES = Path(str(files("ksame.data") / "samples"))


def look(path):
    with open_picture(path) as picture:
        picture.load()


def test_no_warning_is_lost_after_pictures_were_read_in_several_threads():
    pictures = [SAMPLES / "f99.jpg", SAMPLES / "m12.jpg"] * 20
    for _ in range(5):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            before = list(warnings.filters)
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(look, pictures))
            assert warnings.filters == before
            with pytest.warns(PrivacyWarning, match="heard"):
                warnings.warn("heard", PrivacyWarning, stacklevel=1)


def test_what_a_reader_warns_of_is_not_an_error(monkeypatch):
    """A picture of more pixels than Pillow likes, but fewer than it refuses."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 420 * 420 - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        look(SAMPLES / "m12.jpg")
    with pytest.warns(Image.DecompressionBombWarning):
        Image.open(SAMPLES / "m12.jpg").close()


def test_warnings_are_heard_while_a_picture_is_open():
    with open_picture(SAMPLES / "m12.jpg"), pytest.warns(PrivacyWarning, match="heard"):
        warnings.warn("heard", PrivacyWarning, stacklevel=1)
