"""Whole processes, in turns: the first second beside NumPy's, photographs and video beside deface with its defaults."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path

from ksame.bench.base import Comparison, Settings, Timed, compare, processor_time, timed
from ksame.bench.yardsticks import DEFACE
from ksame.errors import ExitCode, InputError
from ksame.scene.media import open_media

_METHODS = ("someone-else", "blur")


def start(settings: Settings) -> Iterator[Comparison]:
    """Start Python, import ksame or show its help, end."""
    for what, words in (("import ksame", ("-c", "import ksame")), ("ksame --help", ("-m", "ksame", "--help"))):
        ours, numpy = timed(partial(_python, *words)), timed(partial(_python, "-c", "import numpy"))
        yield compare(what, "import numpy", ours, numpy, rounds=2 * settings.rounds - 1)


def _python(*words: str) -> None:
    subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)  # noqa: S603 -- our own words


def photographs(settings: Settings) -> Iterator[Comparison]:
    """De-identify the sample photographs."""
    samples = [each for each in (files("ksame.data") / "samples").iterdir() if each.name.endswith(".jpg")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side in ("before", "deface"):  # deface writes beside what it reads
            (folder / side).mkdir()
            for sample in samples:
                (folder / side / sample.name).write_bytes(sample.read_bytes())
        theirs = [folder / "deface" / sample.name for sample in samples]
        yield from _against_deface(f"{len(samples)} photographs", folder / "before", theirs, settings)


def video(settings: Settings) -> Iterator[Comparison]:
    """De-identify a recording: the sample, or the user's own."""
    source = settings.clip or files("ksame.data") / "samples" / "two-people.mp4"
    with tempfile.TemporaryDirectory() as name:
        clip = Path(name) / f"clip{Path(source.name).suffix}"
        clip.write_bytes(source.read_bytes())
        media = open_media(clip)
        size = " x ".join(map(str, media.size))
        what = f"video, {sum(1 for _ in media.frames())} frames of {size}"
        yield from _against_deface(what, clip, [clip], settings)


def _against_deface(what: str, given: Path, theirs: Sequence[Path], settings: Settings) -> Iterator[Comparison]:
    def memory(own: float, other: float) -> dict[str, float]:
        return {"MB": own, "yardstick's MB": other} if own and other else {}

    def deface() -> Timed[float]:
        return process([str(DEFACE.command("deface", install=settings.install)), *map(str, theirs)])

    for method in _METHODS:
        output = given.with_name(f"{method}{given.suffix}")
        words = [sys.executable, "-m", "ksame", "deidentify", str(given), "-o", str(output), "-m", method, "--force"]
        yield compare(
            f"{method}: {what}",
            DEFACE.requirement,
            partial(process, words),
            deface,
            rounds=max(1, settings.rounds // 2),
            figures=memory,
        )


def process(words: Sequence[str]) -> Timed[float]:
    """Run a command; return seconds and the peak memory of its process tree in MB, 0 where that cannot be seen."""
    start, used = time.perf_counter(), processor_time()
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 -- our own
    peak = 0.0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.1):
            peak = max(peak, tree_memory(running.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = running.wait()
    took = time.perf_counter() - start
    done.set()
    watcher.join()
    if code not in (ExitCode.DONE, ExitCode.WITHHELD):
        raise InputError(f"{' '.join(words)} failed with exit code {code}.")
    return Timed(took, processor_time() - used, peak)


def tree_memory(root: int) -> float:
    """Return the resident memory of a process and all that it started, in MB; shared pages count once per process."""
    children: dict[int, list[int]] = {}
    sizes: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            status = (entry / "status").read_text()
        except OSError:
            continue
        lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        sizes[int(entry.name)] = int(lines.get("VmRSS", "0 kB").split()[0])
        children.setdefault(int(lines["PPid"]), []).append(int(entry.name))
    waiting, total = [root], 0
    while waiting:
        process = waiting.pop()
        total += sizes.get(process, 0)
        waiting += children.get(process, [])
    return total / 1024
