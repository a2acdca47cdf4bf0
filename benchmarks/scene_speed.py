"""Frames per second and memory of ``ksame deidentify`` against those of deface, whole processes, in turns.

``python -m benchmarks.scene_speed CLIP [--rounds 3]``. deface is installed into an environment of its own, in the
user's cache. Both run with their defaults; memory is the peak of the whole process tree, sampled.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from ksame.scene.media import open_media

DEFACE = "deface==1.5.0"


def deface() -> Path:
    """Return the command of deface, installed on the first call."""
    folder = Path.home() / ".cache" / "ksame" / "deface"
    command = folder / "bin" / "deface"
    if not command.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", DEFACE], check=True)
    return command


def tree_memory(root: int) -> float:
    """Return the resident memory of a process and all that it started, in MB; shared pages count once a process."""
    parents: dict[int, list[int]] = {}
    sizes: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "status").read_text()
            except OSError:
                continue
            fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
            sizes[int(entry.name)] = int(fields.get("VmRSS", "0 kB").split()[0])
            parents.setdefault(int(fields["PPid"]), []).append(int(entry.name))
    waiting, total = [root], 0
    while waiting:
        process = waiting.pop()
        total += sizes.get(process, 0)
        waiting += parents.get(process, [])
    return total / 1024


def timed(command: list[str | Path]) -> tuple[float, float]:
    """Run a command; return seconds and the peak memory of its process tree in MB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0.0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.1):
            peak = max(peak, tree_memory(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = process.wait()
    took = time.perf_counter() - start
    done.set()
    watcher.join()
    if code not in (0, 3):
        raise SystemExit(f"{' '.join(map(str, command))} failed with exit code {code}")
    return took, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clip", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    n_frames = sum(1 for _ in open_media(options.clip).frames())
    other = deface()
    rates: dict[str, list[float]] = {"ksame": [], "deface": []}
    peaks: dict[str, list[float]] = {"ksame": [], "deface": []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            ours, theirs = Path(folder) / f"ksame{number}.mp4", Path(folder) / f"deface{number}.mp4"
            commands: dict[str, list[str | Path]] = {
                "ksame": [sys.executable, "-m", "ksame", "deidentify", options.clip, "-o", ours],
                "deface": [other, options.clip, "-o", theirs],
            }
            for name, command in commands.items():
                took, peak = timed(command)
                rates[name].append(n_frames / took)
                peaks[name].append(peak)
                print(
                    f"round {number + 1}: {name:6} {n_frames / took:5.1f} frames per second, {peak:4.0f} MB", flush=True
                )
    ratio = statistics.median(a / b for a, b in zip(rates["ksame"], rates["deface"], strict=True))
    print(f"ksame is {ratio:.2f} x as fast as deface (median of {options.rounds} rounds)")
    print(f"peak memory: ksame {max(peaks['ksame']):.0f} MB, deface {max(peaks['deface']):.0f} MB")


if __name__ == "__main__":
    main()
