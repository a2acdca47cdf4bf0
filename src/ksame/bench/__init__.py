"""Speed beside yardsticks: everything that needs nothing but the package and people who do not exist."""

from __future__ import annotations

from ksame.bench import face_sets, grouping, processes
from ksame.bench.base import Benchmark, Comparison, Settings
from ksame.bench.report import machine, page
from ksame.registry import Registry

__all__ = ["BENCHMARKS", "FULL", "QUICK", "TINY", "Benchmark", "Comparison", "Settings", "machine", "page"]

QUICK, FULL = Settings(), Settings(faces=805, rounds=5)
TINY = Settings(faces=16, height=48, width=36, codes=(100,), rounds=1)

BENCHMARKS: Registry[Benchmark] = Registry("benchmark")
BENCHMARKS.add(Benchmark("start", "importing ksame, and the help of the command line", processes.start))
BENCHMARKS.add(Benchmark("k-same", "forming groups and their means", face_sets.k_same))
BENCHMARKS.add(Benchmark("grouping", "forming groups of up to a million", grouping.grouping))
BENCHMARKS.add(Benchmark("eigenfaces", "training the recogniser", face_sets.eigenfaces))
BENCHMARKS.add(Benchmark("aam", "fitting an appearance model", face_sets.appearance_model))
BENCHMARKS.add(Benchmark("audit", "attacking released files", face_sets.auditing))
BENCHMARKS.add(Benchmark("photographs", "de-identifying photographs", processes.photographs))
BENCHMARKS.add(Benchmark("video", "de-identifying a recording", processes.video))
