"""Nobody is missed: what an independent detector finds in real clips lies where pass 1 says that faces are."""

import cv2
import numpy as np
import pytest

from ksame.scene.looking import look
from scene.centerface import CenterFace
from scene.clips import read, size_of

SURE, SIDE = 0.5, 20
MIDDLE = 0.6  # of the box: eyes, nose and mouth; further out are ears, hair and, beside a turned head, background
ENOUGH = 0.99  # of that ellipse; the rest is rounding

NO_FACES = {
    "openface_default.wmv": {95: "a red cup", 96: "a red cup", 97: "a red cup", 98: "a red cup", 112: "a red cup"},
    "openface_multi_face.avi": {
        **dict.fromkeys((174, 177, 178, 379, 383), "an elbow"),
        **dict.fromkeys((252, 276, 278), "a pullover"),
        397: "a whiteboard",
        **dict.fromkeys((437, 439, 440, 441, 474, 493, 495, 496), "a hand"),
        **dict.fromkeys((471, 497, 565), "a hand with a mug"),
        538: "trousers",
        **dict.fromkeys((632, 651, 652), "an upper arm"),
    },
}
"""What CenterFace takes for a face and is none, by clip and frame; looked at one by one. In these frames the least
sure of its faces is left out; all others count."""


def region(sightings, size) -> np.ndarray:
    """Return where faces will be replaced: the hull of a mesh, the box where there is none."""
    mask = np.zeros(size[::-1], dtype=np.uint8)
    for sighting in sightings:
        if sighting.points is None:
            x, y, w, h = sighting.box
            low, high = np.floor([x, y]).astype(int), np.ceil([x + w, y + h]).astype(int)
            cv2.rectangle(mask, low.tolist(), high.tolist(), 1, -1)
        else:
            hull = cv2.convexHull(sighting.points[:, :2].astype(np.float32))
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
        cast = look(read(path), size_of(path), tmp_path / path.name)
        n_faces = n_covered = n_none = 0
        least = 1.0
        for frame in read(path):
            found = judge.detect(frame.pixels, SURE)
            found = found[found[:, 2:4].max(axis=1) > SIDE]
            if frame.index in NO_FACES.get(path.name, {}):
                n_none += 1
                found = found[:-1]
            mask = region(cast.at(frame.index), cast.size)
            for face in found:
                share = covered(face, mask)
                n_faces += 1
                n_covered += share >= ENOUGH
                least = min(least, share)
                if share < ENOUGH:
                    missed.append(f"{path.name} frame {frame.index}: {face[:4].round().tolist()} to {share:.2f}")
        print(f"{path.name:50} {cast.n_frames:6} {n_faces:6} {n_covered:7} {least:6.2f} {n_none:7}")
    assert not missed, "\n".join(missed)
