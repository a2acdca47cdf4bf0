"""The sheets in the documentation: one photograph in the public domain, and people who do not exist.

``python -m benchmarks.scene_docs docs``
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from PIL import Image
from skimage.data import astronaut

from benchmarks.scene_looks import clip_sheet, photograph_sheet
from ksame.synthetic.talking import talking_head, write_talking_head

PEOPLE = (7, 15, 20)  # seeds
SPEAKER = 114169
WIDTH = 880


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        paths = [scratch / f"{number}-original.png" for number in range(len(PEOPLE) + 1)]
        Image.fromarray(astronaut()[:330, 90:360]).save(paths[0])
        for seed, path in zip(PEOPLE, paths[1:], strict=True):
            Image.fromarray(next(iter(talking_head(1, seed=seed)))[:330, 25:295]).save(path)
        clip = scratch / "talking.mov"
        write_talking_head(clip, 100, seed=3, person=SPEAKER)
        sheets = {"scenes": photograph_sheet(paths, scratch), "talking-head": clip_sheet(clip, scratch, 4)}
        for title, sheet in sheets.items():
            with Image.open(sheet) as picture:
                small = picture.resize((WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.LANCZOS)
            small.save(options.folder / f"{title}.jpg", quality=88)
            print(options.folder / f"{title}.jpg")


if __name__ == "__main__":
    main()
