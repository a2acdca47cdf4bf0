"""Our Eigenfaces beside OpenCV's EigenFaceRecognizer: the same neighbours, and how long training takes.

    python -m benchmarks.eigenfaces_opencv [--faces 805] [--width 99] [--height 134] [--python PYTHON] [--json FILE]

OpenCV's recogniser is in its contributed modules, whose package cannot live beside ours. It is installed into an
environment of its own, made for the occasion, unless ``--python`` names an interpreter that has it. The process ends
with status 77 where it cannot be installed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

import numpy as np

from ksame.attacks import Eigenfaces
from ksame.faces.faceset import FaceSet, quantise

NOT_INSTALLED = 77

REFERENCE = """
import json, sys, time
import cv2, numpy as np
data = np.load(sys.argv[1])
cv2.setNumThreads(int(sys.argv[2]))
recogniser = cv2.face.EigenFaceRecognizer_create(num_components=len(data["training"]) - 1)
start = time.perf_counter()
recogniser.train(list(data["training"]), np.arange(len(data["training"]), dtype=np.int32))
seconds = time.perf_counter() - start
found = [recogniser.predict(probe) for probe in data["probes"]]
print(json.dumps({"seconds": seconds, "nearest": [f[0] for f in found], "distances": [f[1] for f in found]}))
"""


def fields(n: int, height: int, width: int, seed: int = 0) -> np.ndarray:
    """Return smooth random pictures, 8 bits, (n, height, width): as many components as pictures, like faces."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(seed)
    rows = gaussian_filter(rng.normal(size=(n, height, width)), (0, 2.0, 2.0))
    return quantise(0.5 + 0.15 * rows / rows.std())


def contributed(folder: Path) -> Path:
    """Make an environment with OpenCV's contributed modules and return its interpreter."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "opencv-contrib-python-headless<5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"opencv-contrib-python-headless cannot be installed: {done.stderr.strip()[-300:]}", file=sys.stderr)
        sys.exit(NOT_INSTALLED)
    return python


def compared(python: Path, n: int, height: int, width: int, threads: int, folder: Path) -> dict[str, Any]:
    """Train and match with both; return times and agreement."""
    training = fields(n, height, width)
    rng = np.random.default_rng(1)
    near = training[rng.integers(0, n, 50)].astype(float) + rng.normal(0, 40.0, (50, height, width))
    probes = np.concatenate([np.clip(near, 0, 255).astype(np.uint8), fields(50, height, width, seed=2)])
    np.savez(folder / "faces.npz", training=training, probes=probes)
    command = [str(python), "-c", REFERENCE, str(folder / "faces.npz"), str(threads)]
    theirs = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    faces = FaceSet(training[..., None], np.arange(n).astype(str))
    start = time.perf_counter()
    trained = Eigenfaces().fit(faces)
    seconds = time.perf_counter() - start
    distances = trained.distances(FaceSet(probes[..., None], np.arange(100).astype(str)), faces)
    own = 255.0 * distances.min(axis=1)
    return {
        "faces": n,
        "pixels": height * width,
        "seconds": seconds,
        "opencv_seconds": theirs["seconds"],
        "times_faster": theirs["seconds"] / seconds,
        "same_neighbour": float((distances.argmin(axis=1) == np.array(theirs["nearest"])).mean()),
        "largest_difference_in_distance": float(np.abs(own / np.array(theirs["distances"]) - 1).max()),
    }


def main(arguments: list[str] | None = None) -> None:
    """Print agreement and times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faces", type=int, default=805)
    parser.add_argument("--width", type=int, default=99)
    parser.add_argument("--height", type=int, default=134)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--python", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = options.python or contributed(folder / "environment")
        found = compared(python, options.faces, options.height, options.width, options.threads, folder)
    for key, value in found.items():
        print(f"{key:32s} {value:.4g}")
    if options.json:
        options.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
