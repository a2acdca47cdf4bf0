"""Our Eigenfaces against OpenCV's, which needs an environment of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_same_neighbours_as_opencv(tmp_path):
    command = [
        sys.executable,
        "-m",
        "benchmarks.eigenfaces_opencv",
        "--faces",
        "120",
        "--width",
        "40",
        "--height",
        "50",
    ]
    done = subprocess.run(
        [*command, "--json", str(tmp_path / "found.json")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode == 77:
        pytest.skip(done.stderr.strip().splitlines()[0])
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["same_neighbour"] == 1.0
    assert found["largest_difference_in_distance"] < 1e-3
