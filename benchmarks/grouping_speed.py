"""k-Same-Pixel against the plain loop of the paper's pseudo-code, on 805 faces of 13,266 pixels.

Both sides get the same pixels and the same seeds, in one process and in turn, and must form the same groups.

    python -m benchmarks.grouping_speed
"""

import time

import numpy as np

from ksame.bench.face_sets import plain_loop
from ksame.methods import KSame, Problem

KS = (2, 3, 5, 10, 50, 100)


def main(n: int = 805, d: int = 13_266, rounds: int = 3) -> float:
    """Print and return the ratio of the times."""
    rng = np.random.default_rng(0)
    pixels = np.clip(0.5 + 0.1 * rng.standard_normal((n, 60)) @ rng.standard_normal((60, d)) / 8, 0, 1)
    subjects = np.array([f"{i:04d}" for i in range(n)])
    slow, fast = [], []
    for turn in range(rounds):
        start = time.perf_counter()
        expected = {k: plain_loop(pixels, k, np.random.default_rng(turn)) for k in KS}
        slow.append(time.perf_counter() - start)
        start = time.perf_counter()
        problem = Problem(pixels, subjects)
        outcomes = {k: KSame(k).run(problem, np.random.default_rng(turn)) for k in KS}
        fast.append(time.perf_counter() - start)
        for k in KS:
            released, labels = expected[k]
            assert np.array_equal(outcomes[k].groups, labels), f"other groups at k = {k}"
            assert np.allclose(outcomes[k].surrogates[outcomes[k].rows], released)
    ratio = float(np.median(slow) / np.median(fast))
    print(f"k-Same-Pixel, {n} x {d}, k = {KS}: plain loop {np.median(slow):.2f} s, ksame {np.median(fast):.2f} s")
    print(f"ratio {ratio:.1f} (wanted: at least 20)")
    return ratio


if __name__ == "__main__":
    main()
