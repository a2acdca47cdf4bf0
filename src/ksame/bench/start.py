"""The first second: a fresh process that imports ksame or shows its help, beside one that imports NumPy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

from ksame.bench.base import Comparison, Settings, Timed, compare, timed


def start(settings: Settings) -> Iterator[Comparison]:
    """Start Python, import, end."""
    for what, words in (("import ksame", ("-c", "import ksame")), ("ksame --help", ("-m", "ksame", "--help"))):
        numpy = _python("-c", "import numpy")
        yield compare(what, "import numpy", _python(*words), numpy, rounds=2 * settings.rounds - 1)


def _python(*words: str) -> Callable[[], Timed[None]]:
    def run() -> None:
        subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)  # noqa: S603 -- our own words

    return timed(run)
