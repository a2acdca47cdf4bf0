"""How the time of k-Same grows with the number of faces (Newton et al. 2005, section 4.2, claim linear time).

python -m benchmarks.linear_time
"""

import time

import numpy as np

from ksame.methods.grouping import STRATEGIES, partition, squared_distances


def main(k: int = 10, d: int = 60) -> None:
    """Print seconds for doubling numbers of faces, and the exponent fitted to them."""
    numbers = (500, 1000, 2000, 4000)
    rng = np.random.default_rng(0)
    seconds: dict[str, list[float]] = {name: [] for name in ("distances", *STRATEGIES)}
    for n in numbers:
        codes = rng.standard_normal((n, d))
        start = time.perf_counter()
        distances = squared_distances(codes)
        seconds["distances"].append(time.perf_counter() - start)
        for strategy in STRATEGIES:
            start = time.perf_counter()
            partition(distances, k, strategy, np.random.default_rng(0))
            seconds[strategy].append(time.perf_counter() - start)
    for name, times in seconds.items():
        exponent = np.polyfit(np.log(numbers), np.log(times), 1)[0]
        listed = ", ".join(f"{n}: {t:.3f} s" for n, t in zip(numbers, times, strict=True))
        print(f"{name:14s} {listed}; grows like n^{exponent:.2f}")


if __name__ == "__main__":
    main()
