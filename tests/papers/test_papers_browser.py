"""The page in a real Chromium: no console message, no request, nothing wider than the window."""

import re

import pytest
from PIL import Image

from browser import browse, needs_browser
from ksame.papers.data import SyntheticData
from ksame.papers.experiment import TINY
from ksame.papers.report import write_reproduction

pytestmark = needs_browser


@pytest.fixture(scope="module")
def page(performed, few, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    names = ["fig2", "table", "fig7b"]
    paper = few("newton2005", *names)
    outcomes = {"newton2005": {name: performed("newton2005", name) for name in names}}
    write_reproduction([paper], outcomes, folder, data=SyntheticData(), scale=TINY, seed=0)
    return folder / "index.html"


@pytest.mark.parametrize("width", [1280, 500])
def test_it_draws_without_a_message(page, tmp_path, width):
    shot = tmp_path / "shot.png"
    done = browse(page, tmp_path, f"--window-size={width},1200", f"--screenshot={shot}")
    assert "CONSOLE" not in done.stderr, done.stderr
    assert not re.search(r"https?://", done.stderr)
    with Image.open(shot) as picture:
        assert picture.size == (width, 1200)
        assert len(picture.convert("RGB").getcolors(1 << 24)) > 100, "an empty page"


def test_all_figures_are_shown(page, tmp_path):
    done = browse(page, tmp_path, "--dump-dom")
    assert done.stdout.count("<figure>") == 4
    assert done.stdout.count("<tr>") > 9
