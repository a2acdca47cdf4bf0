"""Make the sample media of the demo: photographs of people who do not exist, and a short film of two of them.

    python -m tools.make_samples PEOPLE -o src/ksame/data/samples

PEOPLE holds the photographs (CC0). In the film, heads turn by the depth of their meshes; they blink, smile, look round
and move their brows.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
from PIL import Image
from tools.prepare_finisher import turned, with_expression

from ksame.heads.head import EXPRESSION
from ksame.models import FaceDetector, FaceMesh

PHOTOGRAPHS = ("f38", "f52", "f99", "m12", "m25", "m56")
FILMED = ("m08", "f97")
PHOTO, FRAMES, SIDE = 420, 100, 320
BLINKS, BLINK = (0.18, 0.55, 0.8), 0.04  # when eyes are shut, and how long that takes, in shares of the film


def performed(points, share: float, who: int):
    """Return a mesh, (478, 3), as it is at a share of the film; people move at different times."""
    phase = 2 * np.pi * share
    wave = np.sin(2 * phase + 1.5 * who)
    strengths = {
        "brow_up": 0.5 * max(wave, 0.0),
        "brow_down": 0.5 * max(-wave, 0.0),
        "smile": 0.4 * max(np.sin(phase + 2 + who), 0.0),
    }
    moves = np.array([strengths.get(name, 0.0) for name in EXPRESSION])
    shut = 0.95 * max(0.0, *(1 - abs((share - 0.06 * who) % 1 - at) / BLINK for at in BLINKS))
    look = np.array([0.12 * np.sin(3 * phase + who), 0.04 * np.sin(2 * phase + 2 * who)])
    return with_expression(points, moves, shut, look)


def write_film(pictures, path: Path) -> None:
    """Film people side by side.

    Parameters
    ----------
    pictures : sequence of ndarray of shape (side, side, 3)
        A photograph of each.
    path : Path
    """
    detector, mesher, (side, _, _) = FaceDetector(), FaceMesh(), pictures[0].shape
    meshes = [np.asarray(mesher.fit(each, detector.detect(each)[0]).points, dtype=np.float64) for each in pictures]
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(25), options={"crf": "24", "preset": "slow"})
        stream.width, stream.height, stream.pix_fmt = len(pictures) * side, side, "yuv420p"
        for share in np.arange(FRAMES) / FRAMES:
            phase, parts = 2 * np.pi * share, []
            for who, (picture, points) in enumerate(zip(pictures, meshes, strict=True)):
                yaw, pitch = 24 * np.sin(phase + 2 * who), 6 * np.sin(2 * phase + who)
                parts.append(turned(picture, points, performed(points, share, who), yaw, pitch)[0])
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(np.hstack(parts)), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


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
    filmed = [cv2.imread(str(options.people / f"{name}.jpg"))[..., ::-1] for name in FILMED]
    shrunk = [np.asarray(cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA)) for picture in filmed]
    write_film(shrunk, options.output / "two-people.mp4")


if __name__ == "__main__":
    main()
