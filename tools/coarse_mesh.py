"""Choose the points and triangles by which faces are drawn: contours, and some points between them.

    python -m tools.coarse_mesh -o src/ksame/data/canvas.npz

With all 504 points a drawing would take thrice as long and look the same. The result is stored because the library that
finds the triangles takes half a second to load.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from ksame.spaces.aam.warp import triangulate
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.geometry import BROWS, EYES, INNER_LIPS, IRISES, OUTLINE, with_forehead

N_PICKS = 230
NOSE = (168, 6, 197, 195, 5, 4, 1, 2, 98, 327, 48, 278, 64, 294, 129, 358, 49, 279)
LIPS = (61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291, 375, 321, 405, 314, 17, 84, 181, 91, 146)


def coarse_mesh():
    """Return the points, contours first, then whichever is furthest from those chosen, and their triangles."""
    points = with_forehead(face_model().base)[:, :2]
    chosen = sorted({*OUTLINE, *BROWS, *NOSE, *LIPS, *INNER_LIPS, *(point for ring in EYES for point in ring)})
    apart = np.linalg.norm(points[:, None] - points[None, chosen], axis=2).min(axis=1)
    apart[[point for iris in IRISES for point in iris]] = -1.0
    while len(chosen) < N_PICKS:
        chosen.append(int(apart.argmax()))
        apart = np.minimum(apart, np.linalg.norm(points - points[chosen[-1]], axis=1))
    picks = np.array(sorted(chosen), dtype=np.intp)
    return picks, triangulate(points[picks])


def main() -> None:
    """Choose and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    picks, triangles = coarse_mesh()
    np.savez_compressed(options.output, picks=picks.astype(np.int16), triangles=triangles.astype(np.int16))


if __name__ == "__main__":
    main()
