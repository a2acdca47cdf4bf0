"""The sheets in the documentation: the sample photographs and the sample film, before and after.

``python -m benchmarks.scene_docs docs``. The people do not exist (CC0); they are among those the finisher learned from.
"""

from __future__ import annotations

import argparse
import tempfile
from importlib.resources import files
from pathlib import Path

from PIL import Image

from benchmarks.scene_looks import clip_sheet, photograph_sheet

WIDTH = 1080


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
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
        for title, sheet in sheets.items():
            with Image.open(sheet) as picture:
                small = picture.resize((WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.LANCZOS)
            small.save(options.folder / f"{title}.jpg", quality=88)
            print(options.folder / f"{title}.jpg")


if __name__ == "__main__":
    main()
