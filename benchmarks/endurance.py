"""Memory, open files and time of ``ksame deidentify`` on thousands of photographs, or on an hour of film.

``python -m benchmarks.endurance FOLDER photographs 10000 [--portraits PORTRAITS] [--size 480x640]``: crops, flips and
other brightness of portraits (people who do not exist where no portraits are given). With ``--workers N``, by so many
processes: memory is then that of the largest of them and of the one that leads them.

``python -m benchmarks.endurance FOLDER film CLIP [--minutes 60] [--size 640x480] [--rate 25]``: a clip, repeated.

Everything is made in FOLDER and de-identified in a process of its own, which is looked at every five seconds. Prints
for every stage what it held after its first 500 photographs or its first minute of film, the least and the most from
there on, the processor seconds of its second and of its last tenth, and the most files that were open.
"""

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import psutil
from PIL import Image, ImageEnhance, ImageOps

import ksame

_EVERY = 5.0  # seconds between two looks
_RUN = """
import json, sys, time
from pathlib import Path
import ksame
from ksame.scene.config import JobConfig

def note(what, done, total):
    print(json.dumps([what, done, total]), flush=True)

if __name__ == "__main__":
    workers = int(sys.argv[3])
    config = JobConfig(scheduler="processes", workers=workers) if workers else JobConfig()
    ksame.deidentify_media(Path(sys.argv[1]), Path(sys.argv[2]), config=config, seed=1, on_progress=note)
"""


@dataclass(frozen=True)
class Look:
    """What the process held when so much of a stage was done, and the processor seconds it had spent."""

    done: int
    total: int
    megabytes: float
    files: int
    spent: float


def portraits(folder: Path | None) -> list[Image.Image]:
    if folder is None:
        faces = (ksame.synthetic(60, seed=8, size=(600, 480)).images * 255).round().astype(np.uint8)
        return [Image.fromarray(face) for face in faces]
    return [Image.open(path).convert("RGB") for path in sorted(folder.glob("*.jpg"))]


def make_photographs(folder: Path, n: int, people: list[Image.Image], size: tuple[int, int]) -> None:
    """Write crops, flips and other brightness of portraits."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for i in range(n):
        whole = people[i % len(people)]
        width = int(min(whole.width, whole.height * size[0] / size[1]) * rng.uniform(0.85, 1))
        height = width * size[1] // size[0]
        left, top = int(rng.integers(whole.width - width + 1)), int(rng.integers(whole.height - height + 1))
        picture = whole.crop((left, top, left + width, top + height)).resize(size)
        picture = ImageOps.mirror(picture) if rng.random() < 0.5 else picture
        ImageEnhance.Brightness(picture).enhance(rng.uniform(0.7, 1.2)).save(folder / f"{i:06d}.jpg", quality=90)


def make_film(film: Path, clip: Path, n_frames: int, size: tuple[int, int], rate: int) -> None:
    """Write a clip, repeated until it has so many frames."""
    with av.open(str(clip)) as source:
        frames = [frame.reformat(*size, format="yuv420p") for frame in source.decode(video=0)]
    film.parent.mkdir(parents=True)
    with av.open(str(film), "w") as target:
        stream = target.add_stream("libx264", rate=rate, options={"preset": "ultrafast"})
        stream.width, stream.height = size
        for index, frame in zip(range(n_frames), itertools.cycle(frames), strict=False):
            frame.pts, frame.time_base = index, Fraction(1, rate)
            target.mux(stream.encode(frame))
        target.mux(stream.encode())


def look_at(process: psutil.Process, done: int, total: int) -> Look:
    """Look at a process and at those it started: the largest one's memory and open files, what all of them spent."""
    held, files, spent = 0.0, 0, 0.0
    for each in [process, *process.children(recursive=True)]:
        with suppress(psutil.Error), each.oneshot():  # it may have ended
            held, files = max(held, each.memory_info().rss / 1e6), max(files, each.num_fds())
            spent += sum(each.cpu_times()[:2])
    return Look(done, total, held, files, spent)


def watch(source: Path, output: Path, settled: int, workers: int = 0) -> None:
    """De-identify and print what it took; memory counts from where ``settled`` items of a stage are done."""
    script = output.with_name("run.py")
    script.write_text(_RUN)
    command = [sys.executable, str(script), str(source), str(output), str(workers)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child, looked = psutil.Process(process.pid), 0.0
    stages: dict[str, list[Look]] = {}
    for line in process.stdout:
        what, done, total = json.loads(line)
        if time.monotonic() - looked >= _EVERY or done in (settled, total) or what not in stages:
            looked = time.monotonic()
            look = look_at(child, done, total)
            stages.setdefault(what, []).append(look)
            print(
                f"{what:20} {done:6} of {total:6} {look.megabytes:6.0f} MB, {look.files} files, {look.spent:6.0f} s",
                flush=True,
            )
    if process.wait():
        raise SystemExit(process.returncode)
    print(f"\nload {os.getloadavg()[0]:.1f}")
    for what, looks in stages.items():
        total = looks[-1].total
        after = [look for look in looks if look.done >= min(settled, total // 2)]
        held = [look.megabytes for look in after]
        speeds = ", ".join(
            f"{name} tenth {spent_between(looks, total * tenth // 10, total * (tenth + 1) // 10):.0f} s"
            for name, tenth in (("second", 1), ("last", 9))
        )
        print(
            f"{what:20} {held[0]:5.0f} MB after {after[0].done}, then {min(held):5.0f} to {max(held):5.0f} MB; "
            f"{speeds} of processors; {max(look.files for look in after)} files open"
        )


def spent_between(looks: list[Look], begin: int, end: int) -> float:
    """Return the processor seconds between two counts of a stage, interpolated between looks."""
    done, spent = [look.done for look in looks], [look.spent for look in looks]
    return float(np.interp(end, done, spent) - np.interp(begin, done, spent))


def _size(text: str) -> tuple[int, int]:
    width, height = text.split("x")
    return int(width), int(height)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    kinds = parser.add_subparsers(dest="kind", required=True)
    photographs = kinds.add_parser("photographs")
    photographs.add_argument("n", type=int)
    photographs.add_argument("--portraits", type=Path)
    photographs.add_argument("--size", type=_size, default=(480, 640))
    photographs.add_argument("--workers", type=int, default=0)
    film = kinds.add_parser("film")
    film.add_argument("clip", type=Path)
    film.add_argument("--minutes", type=float, default=60.0)
    film.add_argument("--size", type=_size, default=(640, 480))
    film.add_argument("--rate", type=int, default=25)
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    if options.kind == "photographs":
        make_photographs(options.folder / "in", options.n, portraits(options.portraits), options.size)
        watch(options.folder / "in", options.folder / "out", settled=500, workers=options.workers)
    else:
        n_frames = int(options.minutes * 60 * options.rate)
        make_film(options.folder / "in" / "film.mp4", options.clip, n_frames, options.size, options.rate)
        watch(options.folder / "in" / "film.mp4", options.folder / "out.mp4", settled=60 * options.rate)


if __name__ == "__main__":
    main()
