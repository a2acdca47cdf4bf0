"""Speed beside yardsticks: everything that needs nothing but the package and people who do not exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ksame.bench import face_sets, media, start
from ksame.bench.base import Benchmark, Comparison, Settings
from ksame.bench.report import machine, page
from ksame.registry import Registry

__all__ = ["BENCHMARKS", "FULL", "QUICK", "TINY", "Benchmark", "Comparison", "Settings", "machine", "measure", "page"]

QUICK, FULL, TINY = Settings(), Settings(faces=805, rounds=5), Settings(faces=16, height=48, width=36, rounds=1)

BENCHMARKS: Registry[Benchmark] = Registry("benchmark")
BENCHMARKS.add(Benchmark("start", "importing ksame, and the help of the command line", start.start))
BENCHMARKS.add(Benchmark("k-same", "forming groups and their means", face_sets.k_same))
BENCHMARKS.add(Benchmark("eigenfaces", "training the recogniser", face_sets.eigenfaces))
BENCHMARKS.add(Benchmark("aam", "fitting an appearance model", face_sets.appearance_model))
BENCHMARKS.add(Benchmark("audit", "attacking released files", face_sets.auditing))
BENCHMARKS.add(Benchmark("photographs", "de-identifying photographs", media.photographs))
BENCHMARKS.add(Benchmark("video", "de-identifying a recording", media.video))


def measure(names: Sequence[str], settings: Settings) -> Iterator[tuple[str, Comparison]]:
    """Run benchmarks by name, all where none is named; yield the name and each comparison as soon as it is done."""
    chosen: Iterable[Benchmark] = [BENCHMARKS[name] for name in names] or BENCHMARKS.values()
    for benchmark in chosen:
        for comparison in benchmark.run(settings):
            yield benchmark.name, comparison
