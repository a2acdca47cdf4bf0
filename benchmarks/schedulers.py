"""How much faster two workers of ``--scheduler processes`` are than one, on a folder of photographs.

``python -m benchmarks.schedulers [FOLDER] [--photographs 40]``: without a folder, people who do not exist are drawn.
The photographs are de-identified with both, and the results are compared byte for byte. Wall-clock time means something
on an idle machine only; the load is printed with it.
"""

import argparse
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

import ksame
from ksame.pictures import PICTURE_SUFFIXES
from ksame.scene.release import ReleaseOptions


def drawn(folder: Path, n: int) -> list[Path]:
    folder.mkdir()
    for i, face in enumerate((ksame.synthetic(n, seed=8, size=(480, 400)).images * 255).round().astype(np.uint8)):
        Image.fromarray(face).save(folder / f"{i:03d}.png")
    return sorted(folder.iterdir())


def run(files: list[Path], out: Path, workers: int, method: str) -> tuple[float, dict[str, bytes], dict[str, float]]:
    begun: dict[str, list[float]] = {}

    def note(what: str, done: int, total: int) -> None:
        begun.setdefault(what, []).append(time.perf_counter())

    config = replace(ksame.JobConfig(method=method, scheduler="processes"), workers=workers)
    start = time.perf_counter()
    options = ReleaseOptions(keep_names=True)
    ksame.deidentify_media(files, out, config=config, options=options, seed=1, on_progress=note)
    seconds = time.perf_counter() - start
    stages = {what: times[-1] - times[0] for what, times in begun.items()}
    return seconds, {path.name: path.read_bytes() for path in out.iterdir()}, stages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--photographs", type=int, default=40)
    parser.add_argument("--method", default="someone-else")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        if options.folder is None:
            files = drawn(place / "in", options.photographs)
        else:
            found = (path for path in sorted(options.folder.rglob("*")) if path.suffix.lower() in PICTURE_SUFFIXES)
            files = list(found)[: options.photographs]
        print(f"{len(files)} photographs, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
        one, first, stages = run(files, place / "one", 1, options.method)
        two, second, faster = run(files, place / "two", 2, options.method)
        assert first == second, "two workers wrote other bytes than one"
    for what, seconds in stages.items():
        print(f"{what:20} {seconds:6.1f} s with one worker, {faster[what]:6.1f} s with two")
    print(f"all {one:.1f} s and {two:.1f} s: {one / two:.2f} times as fast; load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
