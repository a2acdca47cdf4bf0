"""The sheets in the documentation: the sample photographs and the sample film, before and after.

``python -m benchmarks.scene_docs docs [--people PEOPLE]``. The people do not exist (CC0); they are among those the
finisher learned from. With PEOPLE, a folder of more of them, also a sheet of awkward kinds.
"""

from __future__ import annotations

import argparse
import tempfile
from importlib.resources import files
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.scene_looks import clip_sheet, photograph_sheet, read, save
from ksame.scene.config import Job
from ksame.scene.job import run

WIDTH = 1080
KINDS = {
    "turned": ("f65", "f82", "f66", "f58"),
    "small": ("m38", "m63", "f05", "f98"),
    "spectacled": ("f69", "m95"),
    "bearded": ("m20", "m11", "m62", "m59"),
    "partly hidden": ("f54", "f43", "f14", "f79"),
    "dark skin": ("m84", "m61", "f65", "f13"),
    "dark": ("m30", "f13", "m44", "f48"),
}
"""Photographs of each kind; "dark" ones are darkened here."""
TILE, DARKER = 190, 0.28


def kinds_sheet(people: Path, scratch: Path) -> Path:
    """Put photographs of awkward kinds above what becomes of them, a pair of rows a kind."""
    rows = []
    for kind, stems in KINDS.items():
        folder = scratch / kind.replace(" ", "-")
        folder.mkdir()
        files = []
        for stem in stems:
            source = folder / f"{stem}.png"
            dark = DARKER if kind == "dark" else 1.0
            Image.fromarray(np.rint(read(people / f"{stem}.jpg") * dark).astype(np.uint8)).save(source)
            files.append((source, folder / f"{stem}-after.png"))
        run(Job(files, folder / "work", seed=1, force=True))
        for which in (0, 1):
            tiles = [np.asarray(Image.open(file[which]).resize((TILE, TILE))) for file in files]
            tiles += [np.full((TILE, TILE, 3), 255, np.uint8)] * (4 - len(tiles))
            rows.append(np.hstack(tiles))
    return save(np.vstack(rows), scratch / "kinds.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--people", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        samples = scratch / "samples"
        samples.mkdir()
        for sample in (files("ksame.data") / "samples").iterdir():
            (samples / sample.name).write_bytes(sample.read_bytes())
        sheets = {
            "scenes": photograph_sheet(sorted(samples.glob("*.jpg")), scratch),
            "film": clip_sheet(samples / "two-people.mp4", scratch, 4),
        }
        if options.people is not None:
            sheets["kinds"] = kinds_sheet(options.people, scratch)
        for title, sheet in sheets.items():
            with Image.open(sheet) as picture:
                width = min(WIDTH, picture.width)
                small = picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)
            small.save(options.folder / f"{title}.jpg", quality=88)
            print(options.folder / f"{title}.jpg")


if __name__ == "__main__":
    main()
