"""How grouping grows with the number of faces, in time, memory and loss.

Time is processor time, all threads together, so that other programs do not count. Codes are drawn like those of real
portraits and without any structure: see :func:`ksame.bench.grouping.draw_codes`. ``ksame bench grouping k-same``
compares with others.

    python -m benchmarks.grouping_speed            # 10^3 to 10^6 faces, a few minutes
    python -m benchmarks.grouping_speed --faces 100000
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from ksame.bench.grouping import FEATURES, draw_codes, exact_greedy, grouped
from ksame.methods.grouping import STRATEGIES, sse

KINDS = ("portraits", "even")


def measure(kind: str, n: int, strategy: str, k: int) -> dict[str, float]:
    """Group n faces in this process; return processor seconds, peak memory per byte of input, loss and group sizes."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    codes = draw_codes(n, even=kind == "even")
    start, wall = time.process_time(), time.perf_counter()
    labels = grouped(codes, k, strategy)
    seconds, wall = time.process_time() - start, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    sizes = np.bincount(labels)
    return {
        "n": n,
        "seconds": seconds,
        "wall_seconds": wall,
        "peak_mb": peak / 1e6,
        "peak_over_input": peak / codes.nbytes,
        "loss_per_face": sse(codes, labels) / n,
        "smallest_group": int(sizes.min()),
        "largest_group": int(sizes.max()),
    }


def measure_alone(kind: str, n: int, strategy: str, k: int) -> dict[str, float]:
    """Return :func:`measure` of a process of its own, so that its peak of memory is that of this run."""
    command = [sys.executable, "-m", "benchmarks.grouping_speed", "--measure", kind, str(n), strategy, str(k)]
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def growth(kind: str, strategy: str, sizes: list[int], k: int) -> dict[str, Any]:
    """Measure rising numbers of faces, and fit the exponent from 10,000 on."""
    runs = []
    for n in sizes:
        runs.append(run := measure_alone(kind, n, strategy, k))
        print(
            f"{kind:9s} {strategy:13s} n = {n:>9,}: {run['seconds']:8.2f} s, memory {run['peak_mb']:6.0f} MB "
            f"({run['peak_over_input']:.2f} x input), loss/face {run['loss_per_face']:.4f}",
            flush=True,
        )
    large = [(run["n"], run["seconds"]) for run in runs if run["n"] >= 10_000]
    exponent = float(np.polyfit(*np.log(np.array(large)).T, 1)[0]) if len(large) > 1 else None
    if exponent is not None:
        print(f"{kind:9s} {strategy:13s} grows like n^{exponent:.2f} from 10,000 faces on (wanted: at most 1.15)")
    return {"kind": kind, "strategy": strategy, "k": k, "runs": runs, "exponent": exponent}


def loss_against_exact(kind: str, n: int, k: int) -> dict[str, Any]:
    """Compare the loss of every strategy with that of the exact greedy run, on the same codes."""
    codes = draw_codes(n, even=kind == "even")
    start = time.process_time()
    exact = sse(codes, exact_greedy(codes, k))
    found: dict[str, Any] = {"kind": kind, "n": n, "exact_seconds": time.process_time() - start}
    for strategy in STRATEGIES[:2]:
        start = time.process_time()
        labels = grouped(codes, k, strategy)
        found[strategy] = {"seconds": time.process_time() - start, "loss_ratio": sse(codes, labels) / exact}
        print(
            f"{kind:9s} {n:,} faces, {strategy}: loss {found[strategy]['loss_ratio']:.4f} x the exact greedy run "
            f"(wanted: at most 1.05), {found[strategy]['seconds']:.1f} s against {found['exact_seconds']:.1f} s",
            flush=True,
        )
    return found


def main(faces: int = 1_000_000, k: int = 10) -> dict[str, Any]:
    """Measure everything up to so many faces; print it, and return it ready for JSON."""
    sizes = [n for n in (1_000, 10_000, 100_000, 1_000_000) if n <= faces]
    few = [n for n in sizes if n <= 10_000]  # the local search takes longer by far
    losses = [n for n in (20_000, 100_000) if n <= faces]
    return {
        "features": FEATURES,
        "k": k,
        "growth": [
            *(growth(kind, "greedy", sizes, k) for kind in KINDS),
            growth("portraits", "mdav", sizes, k),
            *(growth("portraits", strategy, few, k) for strategy in STRATEGIES[2:]),
        ],
        "loss": [loss_against_exact(kind, n, k) for n in losses for kind in KINDS],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faces", type=int, default=1_000_000, help="largest number of faces")
    parser.add_argument("--measure", nargs=4, metavar=("KIND", "N", "GROUPING", "K"), help="one run, as JSON")
    options = parser.parse_args()
    if options.measure:
        drawn, number, chosen, shared = options.measure
        print(json.dumps(measure(drawn, int(number), chosen, int(shared))))
    else:
        main(options.faces)
