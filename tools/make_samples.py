"""Make the sample media of the demo: photographs of people who do not exist, and a short film of two of them.

    python -m tools.make_samples PEOPLE -o src/ksame/data/samples

PEOPLE holds the photographs (CC0). In the film, heads turn by the depth of their meshes.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
from PIL import Image
from tools.prepare_finisher import turned

from ksame.models import FaceDetector, FaceMesh

PHOTOGRAPHS = ("f38", "f52", "f99", "m12", "m25", "m56")
FILMED = ("m08", "f97")
PHOTO, FRAMES, SIDE = 420, 60, 320


def main() -> None:
    """Write photographs and film."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("people", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for name in PHOTOGRAPHS:
        small = Image.open(options.people / f"{name}.jpg").resize((PHOTO, PHOTO), Image.Resampling.LANCZOS)
        small.save(options.output / f"{name}.jpg", quality=85, optimize=True)
    detector, mesher, seen = FaceDetector(), FaceMesh(), []
    for name in FILMED:
        picture = cv2.imread(str(options.people / f"{name}.jpg"))[..., ::-1]
        picture = np.asarray(cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA))
        seen.append((picture, np.asarray(mesher.fit(picture, detector.detect(picture)[0]).points, dtype=np.float64)))
    with av.open(str(options.output / "two-people.mp4"), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(25), options={"crf": "24", "preset": "slow"})
        stream.width, stream.height, stream.pix_fmt = 2 * SIDE, SIDE, "yuv420p"
        for i in range(FRAMES):
            phase = 2 * np.pi * i / FRAMES
            halves = [
                turned(picture, points, 24 * np.sin(phase + 2 * j), 6 * np.sin(2 * phase + j))[0]
                for j, (picture, points) in enumerate(seen)
            ]
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(np.hstack(halves)), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


if __name__ == "__main__":
    main()
