"""How often the mesh of a small face is believed, and how far it is from that of the same face when large.

python -m benchmarks.small_meshes [N_PORTRAITS]
"""

import sys

import cv2
import numpy as np

from benchmarks.portraits import SHARED
from ksame.models import FaceDetector
from ksame.scene.observe import DetectorConfig
from ksame.scene.observe.mesh import FaceMesher

SIDES = (16, 20, 24, 28, 32, 40, 48, 60)


def main(n: int = 40) -> dict[int, tuple[float, float]]:
    """Print and return for every side the share of believed meshes and their median error in eye distances."""
    mesher, detector = FaceMesher(DetectorConfig(mesh_side=1.0)), FaceDetector()
    believed: dict[int, list[float | None]] = {side: [] for side in SIDES}
    for file in sorted((SHARED / "people").glob("*.jpg"))[:n]:
        picture = cv2.cvtColor(cv2.imread(str(file)), cv2.COLOR_BGR2RGB)
        faces = detector.detect(picture)
        if not faces:
            continue
        large = mesher.fit(picture, max(faces, key=lambda face: face.side))
        if large.mesh is None:
            continue
        eyes = np.hypot(*(large.landmarks[1] - large.landmarks[0]))
        for side in SIDES:
            scale = side / large.side
            size = tuple(max(1, round(length * scale)) for length in picture.shape[1::-1])
            small = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
            found = detector.detect(small, tiny=True, score=0.3)
            face = mesher.fit(small, max(found, key=lambda one: one.side)) if found else None
            if face is None or face.mesh is None:
                believed[side].append(None)
                continue
            back = (face.mesh.points[:, :2] + 0.5) * [picture.shape[1] / size[0], picture.shape[0] / size[1]] - 0.5
            off = np.hypot(*(back - large.mesh.points[:, :2]).T).mean()
            believed[side].append(float(off / eyes))
    result = {}
    print("side  believed  median error  worst of 95 %")
    for side, errors in believed.items():
        kept = [error for error in errors if error is not None]
        share = len(kept) / max(1, len(errors))
        middle, worst = (float(np.percentile(kept, q)) if kept else float("nan") for q in (50, 95))
        print(f"{side:4}  {share:8.2f}  {middle:12.3f}  {worst:13.3f}")
        result[side] = (share, middle)
    return result


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
