"""Other programs to measure against, each in an environment of its own: most bring an OpenCV that replaces ours."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from numpy.typing import NDArray

from ksame.bench.base import MissingYardstickError, Timed
from ksame.models.store import default_offline

_BIN, _SUFFIX = ("Scripts", ".exe") if sys.platform == "win32" else ("bin", "")


@dataclass(frozen=True)
class Yardstick:
    """A package that is not part of ksame."""

    name: str
    requirement: str  # for pip
    licence: str

    @property
    def folder(self) -> Path:
        """Where its environment is."""
        return platformdirs.user_cache_path("ksame", appauthor=False) / "yardsticks" / self.name

    def command(self, name: str, *, install: bool) -> Path:
        """Return a program of its environment; raise where it is missing and may not be installed."""
        program = self.folder / _BIN / f"{name}{_SUFFIX}"
        if not (self.folder / "complete").exists():
            if not install:
                raise MissingYardstickError(f"{self.requirement} ({self.licence}) is not installed; add --install")
            if default_offline():
                raise MissingYardstickError(f"{self.requirement} is not installed, and KSAME_OFFLINE forbids downloads")
            self._install()
        return program

    def _install(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        venv.create(self.folder, with_pip=True)
        words = [str(self.folder / _BIN / f"python{_SUFFIX}"), "-m", "pip", "install", "--quiet", self.requirement]
        done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 -- our own words
        if done.returncode:
            raise MissingYardstickError(f"{self.requirement} cannot be installed: {done.stderr.strip()[-200:]}")
        (self.folder / "complete").touch()

    def run(self, script: str, *, install: bool, **arrays: NDArray[Any]) -> Timed[Mapping[str, Any]]:
        """Run a script on arrays, which are in ``data``; it calls ``begin()``, ``end()`` and ``tell(**found)``."""
        python = self.command("python", install=install)
        with tempfile.TemporaryDirectory() as folder:
            np.savez(Path(folder) / "data.npz", **arrays)  # type: ignore[arg-type]  # no name is allow_pickle
            words = [str(python), "-c", _HEAD + script, str(Path(folder) / "data.npz")]
            done = subprocess.run(words, capture_output=True, text=True, check=True)  # noqa: S603 -- our own words
        told: dict[str, Any] = json.loads(done.stdout)
        seconds, cpu = told.pop("took")
        return Timed(seconds, cpu, told)


_HEAD = """
import json, sys, time
import numpy as np
data = np.load(sys.argv[1])
clocks = []
def begin():
    clocks.append((time.perf_counter(), time.process_time()))
end = begin
def tell(**found):
    print(json.dumps({"took": [b - a for a, b in zip(*clocks)], **found}))
"""

DEFACE = Yardstick("deface", "deface==1.5.0", "MIT")
ANONYPYX = Yardstick("anonypyx", "anonypyx==0.2.11", "MIT")
OPENCV = Yardstick("opencv", "opencv-contrib-python-headless<5", "Apache-2.0")
