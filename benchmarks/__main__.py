"""Everything that needs no portraits: ``make bench``; or modules by name: ``python -m benchmarks NAME``.

``ksame bench`` measures speed beside yardsticks. The modules here are research; each says in its first lines what it
needs.
"""

import importlib
import sys

from ksame.app.cli import app

WITHOUT_DATA = ("grouping_speed",)

if not sys.argv[1:]:
    app(["bench"], standalone_mode=False)
for name in sys.argv[1:] or WITHOUT_DATA:
    importlib.import_module(f"benchmarks.{name}").main()
