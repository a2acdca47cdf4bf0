"""Run every benchmark: ``make bench``, or ``python -m benchmarks NAME``."""

import importlib
import sys

ALL = ("grouping_speed",)

for name in sys.argv[1:] or ALL:
    importlib.import_module(f"benchmarks.{name}").main()
