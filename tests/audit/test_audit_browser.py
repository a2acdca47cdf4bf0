"""The report in a real Chromium: no console message, no request, nothing wider than the window."""

import re
from pathlib import Path

import pytest
from PIL import Image

from browser import browse, needs_browser
from ksame.audit import write_report

pytestmark = needs_browser


@pytest.fixture(scope="module", params=["blur", "k-same"])
def page(request, blur_audit, k_audit, tmp_path_factory) -> Path:
    """The report of another tool's pictures, and that of a release with a promise."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(blur_audit if request.param == "blur" else k_audit, path)
    return path


@pytest.mark.parametrize("width", [1280, 400])
def test_it_draws_without_a_message(page, tmp_path, width):
    shot = tmp_path / "shot.png"
    done = browse(page, tmp_path, f"--window-size={width},900", f"--screenshot={shot}")
    assert "CONSOLE" not in done.stderr, done.stderr
    assert not re.search(r"https?://", done.stderr)
    with Image.open(shot) as picture:
        assert picture.size == (width, 900)
        assert len(picture.convert("L").getcolors()) > 40


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_window_and_all_pictures_load(page, tmp_path, width):
    """A page around the report measures it; the report itself runs no script."""
    probe = tmp_path / "probe.html"
    inner = page.read_text(encoding="utf-8")
    policy = "img-src data:; style-src 'unsafe-inline'"
    script = (
        "<script>addEventListener('load',()=>{const d=document.documentElement,e=[...document.images];"
        "const edge=x=>x.getBoundingClientRect().right;"
        "const wide=[...document.querySelectorAll('main *')].filter(x=>!x.closest('svg'))"
        ".filter(x=>edge(x)>innerWidth+1||x.closest('.card')&&edge(x)>edge(x.closest('.card'))-8&&!x.matches('.card'));"
        "document.title=`measured ${d.scrollWidth<=innerWidth} ${wide.length} "
        "${e.length} ${e.filter(x=>!x.naturalWidth).length}`})</script>"
    )
    probe.write_text(
        inner.replace(policy, policy + "; script-src 'unsafe-inline'").replace("</body>", script + "</body>")
    )
    shown = browse(probe, tmp_path, f"--window-size={width},900", "--dump-dom").stdout
    fits, wide, pictures, broken = re.search(r"<title>measured (\w+) (\d+) (\d+) (\d+)</title>", shown).groups()
    assert (fits, wide, broken) == ("true", "0", "0")
    assert int(pictures) >= 42


def test_a_request_would_be_noticed(page, tmp_path):
    """The policy stops an address that somebody smuggles in, and the check above would see it."""
    forged = tmp_path / "forged.html"
    text = page.read_text(encoding="utf-8").replace("</body>", '<img src="http://127.0.0.1:9/x.png"></body>')
    forged.write_text(text)
    done = browse(forged, tmp_path, "--window-size=400,900", f"--screenshot={tmp_path / 'shot.png'}")
    assert "Content Security Policy" in done.stderr
