"""The page itself: small, quick, readable by everyone, nothing wider than the window."""

import io
import json
import subprocess
import tarfile
from functools import lru_cache
from pathlib import Path

import pytest

from studio.test_browser import chromium, tab  # noqa: F401 -- fixtures
from studio.test_browser import pytestmark as needed

pytestmark = needed
STATIC = Path(__file__).parents[2] / "src" / "ksame" / "studio" / "static"


@lru_cache(maxsize=1)
def axe(folder):
    """The checker of the axe project, got once from where npm gets packages."""
    try:
        words = ["npm", "pack", "axe-core@4", "--json", "--pack-destination", str(folder)]
        done = subprocess.run(words, capture_output=True, timeout=90, check=True)
        with tarfile.open(folder / json.loads(done.stdout)[0]["filename"]) as archive:
            return archive.extractfile("package/axe.min.js").read().decode()
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        pytest.skip(f"axe-core cannot be got from npm ({type(error).__name__})")


@pytest.fixture(scope="session")
def checker(tmp_path_factory):
    return axe(tmp_path_factory.mktemp("axe"))


def violations(page, checker):
    """What axe finds wrong and calls serious or critical."""
    page.evaluate(checker)  # unlike a script element, this is not held back by the page's own policy
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [(each["id"], each["nodes"][0]["html"][:200]) for each in found if each["impact"] in ("serious", "critical")]


def looks(page, checker, where):
    """Check a page in both themes and at both widths."""
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        assert violations(page, checker) == [], (where, theme)
    for width in (400, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (where, width)
    assert page.evaluate("getComputedStyle(document.querySelector('button')).transitionDuration") in ("0s", ""), where


def test_everyone_can_read_every_page(tab, checker, media, portraits):  # noqa: F811
    page = tab()
    looks(page, checker, "home")
    page.click("#new-scene")
    page.wait_for_selector("#choose-media")
    looks(page, checker, "empty project")
    page.set_input_files("#input-media", [media / "two-people.mp4", media / "m12.jpg"])
    page.wait_for_selector("text=2 files added")
    page.click("#find")
    page.wait_for_selector("article.job progress")
    page.wait_for_selector(".person")
    for details in ("#correct-P1", "#draw", "#rename", "#vault"):
        page.click(f"{details} summary")
    page.check("#wish-P2-keep", force=True)
    page.click("#preview-go")
    page.wait_for_selector("text=These are the pixels")
    looks(page, checker, "people and preview")
    page.select_option("#method", "blackout")
    page.wait_for_selector("#level")
    page.click("#start")
    page.wait_for_selector("#job-2:not([data-state=running])")
    page.click("#command-2 summary")
    looks(page, checker, "downloads")
    page.click("#delete-project")
    looks(page, checker, "a question")
    page.click("#sure-yes")
    for kind in ("faces", "audit"):
        page.click(f"#new-{kind}")
        page.wait_for_selector("#start")
        looks(page, checker, kind)
        page.click("a:has-text('All projects')")
        page.wait_for_selector("#new-scene")
    looks(page, checker, "list of projects")


def test_the_first_page_is_small_and_soon_ready(tab):  # noqa: F811
    sizes, times = [], []
    page = tab()
    page.on("response", lambda answer: sizes.append(len(answer.body())))
    for _ in range(3):
        sizes.clear()
        page.reload()
        page.wait_for_selector("body[data-ready]")
        page.wait_for_load_state("networkidle")
        times.append(page.evaluate("performance.getEntriesByName('ready')[0].startTime"))
    assert 1000 < sum(sizes) < 300_000, sum(sizes)
    assert min(times) < 1000, times


def test_nothing_in_the_page_is_from_elsewhere():
    for path in STATIC.iterdir():
        text = io.StringIO(path.read_text())
        for line in text:
            assert "http" not in line.replace("http://www.w3.org/2000/svg", ""), (path.name, line)
            assert "innerHTML" not in line, (path.name, line)
            assert "eval(" not in line, (path.name, line)
