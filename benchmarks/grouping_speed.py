"""How grouping grows with the number of faces, in time, memory and loss, and how it compares with others.

Time is processor time, all threads together, so that other programs do not count. Codes are drawn like those of real
portraits, whose eigenfaces' standard deviations fall like i^-0.6 (600 portraits, 59 components), and without any
structure (``even``), which is the worst case: there every face is nearly as far from every other.

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
from numpy.typing import NDArray

from ksame.bench.face_sets import plain_loop
from ksame.methods import KSame, Problem
from ksame.methods.grouping import STRATEGIES, Neighbours, partition, sse

FEATURES = 59
KINDS = ("portraits", "even")
PIXEL_KS = (2, 3, 5, 10, 50, 100)

Array = NDArray[Any]


def draw_codes(kind: str, n: int, *, seed: int = 0) -> Array:
    """Return codes of shape (n, 59), float32, with the spectrum of portraits or with an even one."""
    rng = np.random.default_rng(seed)
    spread = np.arange(1, FEATURES + 1) ** (-0.6 if kind == "portraits" else 0.0)
    codes = np.empty((n, FEATURES), dtype=np.float32)
    for start in range(0, n, 10_000):
        rows = codes[start : start + 10_000]
        rows[:] = rng.standard_normal(rows.shape) * spread
    return codes


def measure(kind: str, n: int, strategy: str, k: int) -> dict[str, float]:
    """Group n faces in this process; return processor seconds, peak memory per byte of input, loss and group sizes."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    codes = draw_codes(kind, n)
    start, wall = time.process_time(), time.perf_counter()
    labels = partition(Neighbours(codes), k, strategy, np.random.default_rng(0))
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


def whole_greedy(codes: Array, k: int, rng: np.random.Generator) -> Array:
    """Return the groups of Newton et al. (2005, Fig. 4), every group from all faces that are left: no leaves."""
    points = codes.astype(np.float64)
    squares = (points**2).sum(axis=1)
    left, labels = np.arange(len(points)), np.empty(len(points), dtype=np.intp)
    group = 0
    while len(left):
        size = len(left) if len(left) < 2 * k else k
        centre = rng.integers(len(left))
        apart = squares - 2.0 * (points @ points[centre])
        apart[centre] = -np.inf
        chosen = np.argpartition(apart, size - 1)[:size]
        labels[left[chosen]] = group
        group += 1
        stay = np.ones(len(left), dtype=bool)
        stay[chosen] = False
        rest = len(left) - size  # fill the gaps from the end instead of copying everything
        gaps, movers = chosen[chosen < rest], rest + np.flatnonzero(stay[rest:])
        for array in (left, points, squares):
            array[gaps] = array[movers]
        left, points, squares = left[:rest], points[:rest], squares[:rest]
    return labels


def loss_against_whole(kind: str, n: int, k: int) -> dict[str, Any]:
    """Compare the loss of every strategy with that of greedy without leaves, on the same codes."""
    codes = draw_codes(kind, n)
    start = time.process_time()
    whole = sse(codes, whole_greedy(codes, k, np.random.default_rng(0)))
    found: dict[str, Any] = {"kind": kind, "n": n, "whole_seconds": time.process_time() - start}
    for strategy in STRATEGIES[:2]:
        start = time.process_time()
        labels = partition(Neighbours(codes), k, strategy, np.random.default_rng(0))
        found[strategy] = {"seconds": time.process_time() - start, "loss_ratio": sse(codes, labels) / whole}
        print(
            f"{kind:9s} {n:,} faces, {strategy}: loss {found[strategy]['loss_ratio']:.4f} x greedy without leaves "
            f"(wanted: at most 1.05), {found[strategy]['seconds']:.1f} s against {found['whole_seconds']:.1f} s",
            flush=True,
        )
    return found


def against_anonypyx(sizes: tuple[int, ...], k: int) -> dict[str, Any]:
    """Group the same codes with ``anonypyx`` (PyPI) where it is installed."""
    try:
        import pandas as pd
        from anonypyx.microaggregation import MDAVGeneric, RandomChoiceAggregation
    except ImportError:
        print("anonypyx is not installed; pip install anonypyx to compare with it")
        return {"installed": False}
    runs = []
    for n in sizes:
        codes = draw_codes("portraits", n)
        table = pd.DataFrame(codes.astype(np.float64))
        for strategy, theirs in (("greedy", RandomChoiceAggregation), ("mdav", MDAVGeneric)):
            if strategy == "mdav" and n > 4_000:  # theirs would take minutes
                continue
            start = time.process_time()
            clusters = theirs(table, table.columns).partition(k)
            their_seconds = time.process_time() - start
            their_labels = np.empty(n, dtype=np.intp)
            for number, cluster in enumerate(clusters):
                their_labels[np.asarray(cluster, dtype=np.intp)] = number
            start = time.process_time()
            ours = partition(Neighbours(codes), k, strategy, np.random.default_rng(0))
            seconds = time.process_time() - start
            run = {
                "n": n,
                "strategy": strategy,
                "seconds": seconds,
                "anonypyx_seconds": their_seconds,
                "speed_ratio": their_seconds / seconds,
                "loss_ratio": sse(codes, ours) / sse(codes, their_labels),
            }
            runs.append(run)
            print(
                f"anonypyx, {n:,} faces, {strategy}: {their_seconds:.2f} s, ksame {seconds:.3f} s, "
                f"ratio {run['speed_ratio']:.1f}; loss of ksame {run['loss_ratio']:.3f} x theirs",
                flush=True,
            )
    return {"installed": True, "runs": runs}


def against_plain_loop(n: int = 805, d: int = 13_266, rounds: int = 3) -> dict[str, float]:
    """Compare k-Same-Pixel with the plain loop: same pixels, same seeds, in turn; the groups must be the same."""
    rng = np.random.default_rng(0)
    pixels = np.clip(0.5 + 0.1 * rng.standard_normal((n, 60)) @ rng.standard_normal((60, d)) / 8, 0, 1)
    subjects = np.array([f"{i:04d}" for i in range(n)])
    slow, fast = [], []
    for turn in range(rounds):
        start = time.process_time()
        expected = {k: plain_loop(pixels, k, np.random.default_rng(turn)) for k in PIXEL_KS}
        slow.append(time.process_time() - start)
        start = time.process_time()
        problem = Problem(pixels, subjects)
        outcomes = {k: KSame(k).run(problem, np.random.default_rng(turn)) for k in PIXEL_KS}
        fast.append(time.process_time() - start)
        for k in PIXEL_KS:
            released, labels = expected[k]
            assert np.array_equal(outcomes[k].groups, labels), f"other groups at k = {k}"
            assert np.allclose(outcomes[k].surrogates[outcomes[k].rows], released)
    result = {"plain_seconds": float(np.median(slow)), "seconds": float(np.median(fast))}
    result["speed_ratio"] = result["plain_seconds"] / result["seconds"]
    print(
        f"k-Same-Pixel, {n} x {d}, k = {PIXEL_KS}: plain loop {result['plain_seconds']:.2f} s, "
        f"ksame {result['seconds']:.2f} s, ratio {result['speed_ratio']:.1f} (wanted: at least 20)",
        flush=True,
    )
    return result


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
        "loss": [loss_against_whole(kind, n, k) for n in losses for kind in KINDS],
        "anonypyx": against_anonypyx(tuple(n for n in (1_000, 4_000, 20_000) if n <= faces), k),
        "plain_loop": against_plain_loop(),
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
