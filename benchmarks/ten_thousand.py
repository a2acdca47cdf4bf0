"""Memory and time of ``ksame deidentify`` on thousands of photographs.

``python -m benchmarks.ten_thousand FOLDER N [--portraits PORTRAITS]``: makes N photographs of 480 x 640 pixels in
FOLDER, crops, flips and other brightness of portraits (people who do not exist where no portraits are given),
de-identifies them in a process of its own, and looks at its memory every five seconds. Prints for every stage the
memory when the first 500 files were through, that at its end, how much it grew per file between, and the processor
seconds per thousand files.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
from PIL import Image, ImageEnhance, ImageOps

import ksame

SIZE = (480, 640)
_EVERY = 5.0  # seconds between two looks
_FIRST = 500
_RUN = """
import json, sys, time
from pathlib import Path
import ksame
from ksame.scene.release import ReleaseOptions

def note(what, done, total):
    print(json.dumps([what, done, total, time.process_time()]), flush=True)

ksame.deidentify_media(Path(sys.argv[1]), Path(sys.argv[2]), seed=1, on_progress=note)
"""


def portraits(folder: Path | None) -> list[Image.Image]:
    if folder is None:
        faces = (ksame.synthetic(60, seed=8, size=(600, 480)).images * 255).round().astype(np.uint8)
        return [Image.fromarray(face) for face in faces]
    return [Image.open(path).convert("RGB") for path in sorted(folder.glob("*.jpg"))]


def make(folder: Path, n: int, people: list[Image.Image]) -> None:
    """Make photographs of 480 x 640 pixels: crops, flips and other brightness of portraits."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for i in range(n):
        whole = people[i % len(people)]
        width = int(min(whole.width, whole.height * SIZE[0] / SIZE[1]) * rng.uniform(0.85, 1))
        height = width * SIZE[1] // SIZE[0]
        left, top = int(rng.integers(whole.width - width + 1)), int(rng.integers(whole.height - height + 1))
        picture = whole.crop((left, top, left + width, top + height)).resize(SIZE)
        picture = ImageOps.mirror(picture) if rng.random() < 0.5 else picture
        ImageEnhance.Brightness(picture).enhance(rng.uniform(0.7, 1.2)).save(folder / f"{i:06d}.jpg", quality=90)


def watch(folder: Path, n: int) -> None:
    """De-identify the photographs and print what it took."""
    process = subprocess.Popen(
        [sys.executable, "-c", _RUN, str(folder / "in"), str(folder / "out")], stdout=subprocess.PIPE, text=True
    )
    looked, samples = 0.0, list[tuple[str, int, float]]()
    stages: dict[str, list[float]] = {}
    assert process.stdout is not None
    child = psutil.Process(process.pid)
    for line in process.stdout:
        what, done, total, spent = json.loads(line)
        stages.setdefault(what, [spent, spent])[1] = spent
        if time.monotonic() - looked >= _EVERY or done == _FIRST or 0 < done == total:
            looked = time.monotonic()
            samples.append((what, done, child.memory_info().rss / 1e6))
            print(f"{what:20} {done:6} of {total:6} {samples[-1][2]:7.0f} MB {spent:8.0f} s of processors", flush=True)
    if process.wait():
        raise SystemExit(process.returncode)
    print(f"\n{n} photographs of {SIZE[0]} x {SIZE[1]} pixels; load {os.getloadavg()[0]:.1f}")
    for what, (begun, end) in stages.items():
        held = [(done, rss) for stage, done, rss in samples if stage == what]
        (first, before), (last, after) = min(held, key=lambda pair: abs(pair[0] - min(_FIRST, n // 2))), held[-1]
        growth = 1000 * (after - before) / max(1, last - first)
        print(
            f"{what:20} {before:6.0f} MB after {first}, {after:6.0f} MB after {last}: {growth:6.1f} kB per file; "
            f"{1000 * (end - begun) / n:6.0f} s of processors per 1,000 files"
        )
    print(f"most memory at any look: {max(rss for _, _, rss in samples):.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("n", type=int)
    parser.add_argument("--portraits", type=Path)
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    make(options.folder / "in", options.n, portraits(options.portraits))
    watch(options.folder, options.n)


if __name__ == "__main__":
    main()
