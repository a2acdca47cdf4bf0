"""Before/after sheets, to be looked at: photographs in both covers, and frames of every clip.

``python -m benchmarks.scene_looks FOLDER_OF_MEDIA... -o SCRATCH [--photographs 12] [--frames 4]``. The sheets show the
originals: they stay in the scratch folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from ksame.heads import COVERS
from ksame.scene.config import Job, JobConfig
from ksame.scene.job import run
from ksame.scene.media import open_media

PICTURES, CLIPS = (".jpg", ".jpeg", ".png"), (".mp4", ".mov", ".mkv", ".avi", ".webm", ".wmv", ".gif")


def photograph_sheet(paths: list[Path], scratch: Path) -> Path:
    """Put originals above the same photographs with each cover."""
    rows = [[read(path) for path in paths]]
    for cover in COVERS.values():
        files = [(path, scratch / f"{cover.name}-{number:03d}.png") for number, path in enumerate(paths)]
        run(Job(files, scratch / "work", JobConfig(cover=cover), seed=1, force=True))
        rows.append([read(output) for _, output in files])
    height = min(picture.shape[0] for picture in rows[0])
    width = min(picture.shape[1] for picture in rows[0])
    sheet = np.vstack([np.hstack([picture[:height, :width] for picture in row]) for row in rows])
    return save(sheet, scratch / "photographs.png")


def clip_sheet(path: Path, scratch: Path, count: int) -> Path:
    """Put some frames of a clip above the same frames afterwards."""
    made = scratch / f"{path.stem}.mp4"
    run(Job([(path, made)], scratch / "work", seed=1, force=True))
    frames = sum(1 for _ in open_media(path).frames())
    wanted = set(np.linspace(0, frames - 1, count).round().astype(int).tolist())
    rows = [
        np.hstack([frame.pixels for frame in open_media(file).frames() if frame.index in wanted])
        for file in (path, made)
    ]
    return save(np.vstack(rows), scratch / f"{path.stem}.png")


def read(path: Path) -> np.ndarray:
    return next(iter(open_media(path).frames())).pixels


def save(sheet: np.ndarray, path: Path) -> Path:
    Image.fromarray(sheet).save(path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--photographs", type=int, default=12)
    parser.add_argument("--frames", type=int, default=4)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for folder in options.folders:
        files = sorted(path for path in folder.iterdir() if path.is_file())
        pictures = [path for path in files if path.suffix.lower() in PICTURES]
        if pictures:
            step = max(1, len(pictures) // options.photographs)
            print(photograph_sheet(pictures[::step][: options.photographs], options.output), flush=True)
        for path in files:
            if path.suffix.lower() in CLIPS:
                print(clip_sheet(path, options.output, options.frames), flush=True)


if __name__ == "__main__":
    main()
