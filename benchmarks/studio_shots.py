"""Pictures of the studio's pages: ``python -m benchmarks.studio_shots docs/images``, with ``--all SCRATCH`` every page.

It needs Playwright and a Chromium (CHROMIUM names it where it is not on the PATH). The people do not exist.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import numpy as np
from PIL import Image

import ksame

SAMPLES = files("ksame.data") / "samples"
WIDTHS = (1280, 400)
WAIT = 180_000  # milliseconds
SEED = """async () => {
    const path = `/api/projects/${location.hash.slice(4)}`;
    const { project } = await (await fetch(path)).json();
    const body = JSON.stringify({ settings: { ...project.settings, seed: 4 } });
    await fetch(path, { method: "PATCH", headers: { "content-type": "application/json" }, body });
}"""
"""Lets the pictures show the same faces every time."""


def shoot(page, folder: Path | None, name: str) -> None:
    """Take a page at both widths, and in the dark."""
    if folder is None:
        return
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(150)
        page.screenshot(path=folder / f"{name}-{width}.png", full_page=True)
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})


def photographs(page, folder: Path | None, docs: Path, media: list[Path]) -> None:
    """Go through the flow of photographs and video."""
    page.click("#new-scene")
    page.wait_for_selector("#choose-media")
    shoot(page, folder, "scene-empty")
    page.set_input_files("#input-media", media)
    page.wait_for_selector(f"text={len(media)} files added")
    page.click("#find")
    page.wait_for_selector("article.job progress")
    shoot(page, folder, "scene-looking")
    page.wait_for_selector(".person")
    page.wait_for_load_state("networkidle")
    page.locator("#people").screenshot(path=docs / "studio-people.png")
    page.evaluate(SEED)
    page.wait_for_timeout(4000)  # until the page has seen it
    page.select_option("#preview-file", label="two-people.mp4")
    page.wait_for_selector(".view img[alt^='two-people.mp4']")
    page.click("#preview-go")
    page.wait_for_selector("text=These are the pixels")
    page.locator("#status").evaluate("each => (each.textContent = '')")
    page.locator("#preview").screenshot(path=docs / "studio-preview.png")
    page.click("#correct-P1 summary")
    page.click("#draw summary")
    shoot(page, folder, "scene-review")
    page.click("#start")
    page.wait_for_selector("#job-2 progress[value]")
    shoot(page, folder, "scene-running")
    page.wait_for_selector("#job-2:not([data-state=running])")
    page.click("#command-2 summary")
    shoot(page, folder, "scene-done")
    page.click("a:has-text('All projects')")


def face_set(page, folder: Path | None, scratch: Path) -> None:
    """Go through the flow of a face set, and audit it."""
    portraits = scratch / "portraits"
    portraits.mkdir()
    for i, image in enumerate(ksame.synthetic(16, size=(134, 100), seed=9).images):
        Image.fromarray((image * 255 + 0.5).astype(np.uint8)).save(portraits / f"face{i:02d}.png")
    page.click("#new-faces")
    page.set_input_files("#input-faces", portraits)
    page.wait_for_selector("text=16 files added")
    page.click("#start")
    page.wait_for_selector("#job-1:not([data-state=running])")
    shoot(page, folder, "faces-done")
    page.click("a:has-text('All projects')")
    page.click("#new-audit")
    page.set_input_files("#input-originals", portraits)
    page.wait_for_selector("text=16 files added")
    page.set_input_files("#input-released", portraits)
    page.wait_for_selector("#file-list summary:has-text('32 files')")
    page.click("#start")
    page.wait_for_selector("#job-1:not([data-state=running])")
    shoot(page, folder, "audit-done")
    page.click("a:has-text('All projects')")


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("docs", type=Path)
    parser.add_argument("--all", type=Path, dest="everything")
    options = parser.parse_args()
    for place in (options.docs, options.everything):
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        media = [Path(scratch) / name for name in ("two-people.mp4", "m12.jpg", "f38.jpg")]
        for path in media:
            path.write_bytes((SAMPLES / path.name).read_bytes())
        words = [sys.executable, "-m", "ksame", "studio", f"{scratch}/studio", "--no-open"]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as studio:
            try:
                address = re.search(r"http://\S+", studio.stderr.readline())[0]
                browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
                page = browser.new_page(viewport={"width": WIDTHS[0], "height": 900})
                page.set_default_timeout(WAIT)
                page.goto(address)
                page.wait_for_selector("#new-scene")
                photographs(page, options.everything, options.docs, media)
                if options.everything:
                    face_set(page, options.everything, Path(scratch))
                    page.wait_for_selector("#new-scene")
                    shoot(page, options.everything, "home")
                    page.emulate_media(color_scheme="dark")
                    page.click("a:has-text('Photographs and video')")
                    page.wait_for_selector("#job-2")
                    page.wait_for_load_state("networkidle")
                    shoot(page, options.everything, "dark")
                browser.close()
            finally:
                studio.send_signal(2)
                studio.communicate(timeout=60)
    for path in options.docs.glob("studio-*.png"):
        with Image.open(path) as picture:
            picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=200).save(path, optimize=True)


if __name__ == "__main__":
    main()
