"""The short form of :mod:`fuzzing`: seeded, so that every run tries the same broken files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzzing import READERS, fuzz


@pytest.mark.parametrize(("name", "cases"), [("certificate", 25), ("linkage", 20), ("tracks", 60), ("labels", 40)])
def test_broken_files_give_a_clear_error(name, cases, tmp_path):
    ended = fuzz(name, tmp_path, seed=3, cases=cases)
    assert set(ended) <= {0, 2, 3, 4, 5}
    assert ended[5], "most broken files cannot be read"


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_many_broken_files_give_a_clear_error(name, tmp_path):
    seconds = os.environ.get("KSAME_FUZZ_SECONDS", "60")
    script = Path(__file__).with_name("fuzzing.py")
    words = [sys.executable, str(script), name, "--seconds", seconds, "--seed", os.environ.get("KSAME_FUZZ_SEED", "11")]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
