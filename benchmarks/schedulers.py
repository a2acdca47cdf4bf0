"""How much faster two workers of ``--scheduler processes`` are than one, on a folder of photographs.

``python -m benchmarks.schedulers [FOLDER] [--photographs 40]``: without a folder, people who do not exist are drawn.
The photographs are de-identified with both, and the results are compared byte for byte. Wall-clock time means something
on an idle machine only; the load is printed with it. On a busy one, processor time tells more: in every stage two
workers need at least what this process and the busier of them spent.
"""

import argparse
import os
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
from PIL import Image

import ksame
from ksame.pictures import PICTURE_SUFFIXES
from ksame.scene.release import ReleaseOptions


def drawn(folder: Path, n: int) -> list[Path]:
    folder.mkdir()
    for i, face in enumerate((ksame.synthetic(n, seed=8, size=(480, 400)).images * 255).round().astype(np.uint8)):
        Image.fromarray(face).save(folder / f"{i:03d}.png")
    return sorted(folder.iterdir())


class Stages:
    """Wall-clock time of every stage, and the processor time of this process and of each worker in it."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = {}
        self.here: dict[str, float] = {}
        self.workers: dict[str, dict[int, float]] = {}
        self._stage = ""
        self._begun = (0.0, 0.0, dict[int, float]())

    def note(self, what: str) -> None:
        """Say that something of a stage is done; it began when the one before ended, the first one here."""
        if what != self._stage:
            self.end()
            self._stage = what
            self._begun = self._begun if self.wall else _spent()

    def end(self) -> None:
        """End the stage that is going on."""
        begun, now = self._begun, _spent()
        if self._stage:
            self.wall[self._stage] = now[0] - begun[0]
            self.here[self._stage] = now[1] - begun[1]
            self.workers[self._stage] = {pid: cpu - begun[2].get(pid, 0.0) for pid, cpu in now[2].items()}
            self._begun = now
        self._stage = ""

    def busiest(self, what: str) -> float:
        """Return the seconds without which a stage cannot be done, were every process alone with a processor."""
        return self.here[what] + max(self.workers[what].values(), default=0.0)


def _spent() -> tuple[float, float, dict[int, float]]:
    """Return the time, the processor time of this process, and that of each worker."""
    spent = {}
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            times = child.cpu_times()
            spent[child.pid] = times.user + times.system
    return time.perf_counter(), time.process_time(), spent


def run(files: list[Path], out: Path, workers: int, method: str) -> tuple[dict[str, bytes], Stages]:
    stages = Stages()
    config = replace(ksame.JobConfig(method=method, scheduler="processes"), workers=workers)
    options = ReleaseOptions(keep_names=True)

    def note(what: str, done: int, total: int) -> None:
        stages.note(what)
        if done == total:
            stages.end()

    ksame.deidentify_media(files, out, config=config, options=options, seed=1, on_progress=note)
    return {path.name: path.read_bytes() for path in out.iterdir()}, stages


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
        first, one = run(files, place / "one", 1, options.method)
        second, two = run(files, place / "two", 2, options.method)
        assert first == second, "two workers wrote other bytes than one"
    print("stage                 seconds with one and two workers   processor seconds, and those of the busiest")
    for what in one.wall:
        print(
            f"{what:20} {one.wall[what]:8.1f} {two.wall[what]:8.1f} {one.wall[what] / two.wall[what]:6.2f} times "
            f"{one.busiest(what):12.1f} {two.busiest(what):8.1f} {one.busiest(what) / two.busiest(what):6.2f} times"
        )
    wall = [sum(stages.wall.values()) for stages in (one, two)]
    busiest = [sum(map(stages.busiest, stages.wall)) for stages in (one, two)]
    print(
        f"all stages           {wall[0]:8.1f} {wall[1]:8.1f} {wall[0] / wall[1]:6.2f} times "
        f"{busiest[0]:12.1f} {busiest[1]:8.1f} {busiest[0] / busiest[1]:6.2f} times; load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
