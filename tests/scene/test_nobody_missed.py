"""Nobody is missed: what an independent detector finds in real clips lies where pass 1 says that faces are."""

import cv2
import numpy as np
import pytest

from ksame.scene.track import find_tracks
from scene.centerface import CenterFace
from scene.walkers import read, size_of

SURE, SIDE = 0.5, 20
MIDDLE = 0.6  # of the box: eyes, nose and mouth; further out are ears, hair and, beside a turned head, background
ENOUGH = 0.99  # of that ellipse; the rest is rounding

NO_FACES = {
    "openface_default.wmv": {
        "a red cup": {95: (610, 411), 96: (610, 411), 97: (611, 411), 98: (615, 410), 112: (610, 411)},
    },
    "openface_multi_face.avi": {
        "an elbow": {174: (634, 258), 177: (633, 267), 178: (634, 274), 379: (634, 186), 383: (634, 194)},
        "a pullover": {252: (458, 418), 276: (446, 418), 278: (458, 434)},
        "a whiteboard": {397: (275, 74)},
        "a hand": {
            437: (219, 338),
            465: (202, 202),
            439: (211, 338),
            440: (211, 338),
            441: (210, 337),
            474: (206, 225),
        },
        "the other hand": {493: (250, 337), 495: (229, 349), 496: (230, 353)},
        "a hand with a mug": {471: (58, 241), 497: (70, 313), 565: (114, 274)},
        "trousers": {538: (155, 354)},
        "an upper arm": {632: (138, 241), 651: (162, 218), 652: (170, 218)},
    },
}
"""What CenterFace takes for a face and is none, by clip and frame, with its place; looked at one by one."""
NEAR = 8  # pixels from that place


def is_no_face(name, index, face) -> bool:
    places = [frames[index] for frames in NO_FACES.get(name, {}).values() if index in frames]
    middle = face[:2] + face[2:4] / 2
    return any(np.hypot(*(middle - place)) < NEAR for place in places)


def region(faces, size) -> np.ndarray:
    """Return where faces will be replaced: the hull of a mesh, the box where there is none."""
    mask = np.zeros(size[::-1], dtype=np.uint8)
    for face in faces:
        if face.mesh is None:
            x, y, w, h = face.box
            low, high = np.floor([x, y]).astype(int), np.ceil([x + w, y + h]).astype(int)
            cv2.rectangle(mask, low.tolist(), high.tolist(), 1, -1)
        else:
            hull = cv2.convexHull(face.mesh.points[:, :2].astype(np.float32))
            cv2.fillConvexPoly(mask, np.round(hull).astype(np.int32), 1)
    return mask


def covered(face, mask) -> float:
    """Return the share of the middle of a face's box that lies in the mask."""
    x, y, w, h = face[:4]
    ellipse = np.zeros_like(mask)
    axes = (max(1, int(MIDDLE * w / 2)), max(1, int(MIDDLE * h / 2)))
    cv2.ellipse(ellipse, (round(x + w / 2), round(y + h / 2)), axes, 0, 0, 360, 1, -1)
    return float(mask[ellipse > 0].mean()) if ellipse.any() else 1.0


@pytest.mark.shared
@pytest.mark.slow
def test_every_face_that_an_independent_detector_finds_is_covered(shared, tmp_path):
    clips = sorted(path for path in (shared / "clips").iterdir() if path.suffix in (".avi", ".gif", ".wmv"))
    if not clips:
        pytest.skip(f"no clips in {shared / 'clips'}")
    judge = CenterFace()
    missed = []
    print(f"\n{'clip':50} {'frames':>6} {'faces':>6} {'covered':>7} {'least':>6} {'no face':>7}")
    for path in clips:
        cast = find_tracks(lambda start, path=path: read(path), size_of(path), tmp_path / path.name)
        n_faces = n_covered = n_none = 0
        least = 1.0
        for frame in read(path):
            found = judge.detect(frame.pixels, SURE)
            found = found[found[:, 2:4].max(axis=1) > SIDE]
            mask = region(cast.at(frame.index), cast.size)
            for face in found:
                if is_no_face(path.name, frame.index, face):
                    n_none += 1
                    continue
                share = covered(face, mask)
                n_faces += 1
                n_covered += share >= ENOUGH
                least = min(least, share)
                if share < ENOUGH:
                    missed.append(f"{path.name} frame {frame.index}: {face[:4].round().tolist()} to {share:.2f}")
        print(f"{path.name:50} {cast.n_frames:6} {n_faces:6} {n_covered:7} {least:6.2f} {n_none:7}")
    assert not missed, "\n".join(missed)
