"""Prepare what the finisher is trained on: photographs of heads, and drawings of them and of other people.

    python tools/prepare_finisher.py -o PAIRS.npz --faces FACES --people PEOPLE

FACES holds ``portraits/*.jpg`` and ``heldout.txt``, the stems of those that are left out; PEOPLE holds photographs of
people who do not exist. Every photograph gives two views: as it is, and with the head turned further by the depth of
its mesh. A view is the square about the head region, its masks, the drawing of the person's own face, and drawings of
surrogates in the same pose and expression.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

import cv2
import numpy as np
from make_surrogates import own_looks
from PIL import Image

from ksame.heads.drawing import Looks, draw
from ksame.heads.head import Cover, Head, Region, expression_of, filled, neutral_shape
from ksame.heads.surrogate import draw_surrogate, tone_of, toned
from ksame.models import Detector, FaceMesh
from ksame.spaces.aam.warp import PiecewiseAffine, triangulate
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.geometry import OUTLINE, drawn_points, with_forehead
from ksame.spaces.facemodel.labels import genders

PHOTO, TURNED, DRAWING, MASK = 512, 384, 256, 256
OTHERS, TURNED_OTHERS = 3, 1
TURN, FURTHEST = (14.0, 36.0), 42.0  # degrees that are added, and how far a head may be turned in all


def turned(image, points, yaw: float, pitch: float):
    """Return a photograph with its head turned by so many degrees, and the mesh, (478, 3), in it.

    The mesh turns about an axis inside the head; the outline of the head beyond it stays, as that of a ball does.
    """
    mesh = with_forehead(points)
    rim = mesh[list(OUTLINE)]
    width = float(np.ptp(rim[:, 0]))
    axis = np.array([*rim[:, :2].mean(axis=0), rim[:, 2].mean()])  # z grows away from the viewer
    a, b = np.radians([yaw, pitch])
    about_y = np.array([[np.cos(a), 0, -np.sin(a)], [0, 1, 0], [np.sin(a), 0, np.cos(a)]])
    about_x = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
    moved = (mesh - axis) @ (about_x @ about_y).T + axis
    rings = [axis[:2] + (rim[:, :2] - axis[:2]) * factor for factor in (1.3, 1.7)]
    shift = moved[list(OUTLINE), :2] - rim[:, :2]
    height, across = image.shape[:2]
    pad = 3 * width
    corners = np.array([[-pad, -pad], [across + pad, -pad], [across + pad, height + pad], [-pad, height + pad]])
    behind = np.concatenate([rim[:, :2], *rings, corners])
    steps = np.concatenate([0.6 * shift, 0.25 * shift, np.zeros((len(rim) + 4, 2))])
    drawn = drawn_points()
    for source, step in ((behind, steps), (mesh[drawn, :2], (moved - mesh)[drawn, :2])):
        warp = PiecewiseAffine(source + pad, triangulate(source + pad), (int(height + 2 * pad), int(across + 2 * pad)))
        covered, (where,) = warp.locate(source + step, (height, across), source)
        layer = cv2.remap(image, where[0], where[1], cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
        if source is behind:
            out = np.asarray(layer)
        else:
            edge = cv2.GaussianBlur(covered.astype(np.float32), (0, 0), 1.0)[..., None]
            edge = edge * covered[..., None]
            out = np.rint(out + (layer.astype(np.float32) - out) * edge).astype(np.uint8)
    return out, moved[: len(points)]


def webp(image, quality: int = 90) -> bytes:
    """Return a picture as WebP."""
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "WEBP", quality=quality, method=4)
    return buffer.getvalue()


def png(image) -> bytes:
    """Return a picture as PNG."""
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def view(image, points, blendshapes, looks, others, size: int) -> list[bytes]:
    """Return photograph and masks of one view, then each drawing and its directions."""
    head = Head.of(points)
    neutral = neutral_shape(head.aligned, expression_of(blendshapes))
    region = Region.of(head, neutral)
    matrix = region.to_square(size)
    shrink = region.side / size
    soft = cv2.GaussianBlur(image, (0, 0), 0.45 * shrink) if shrink > 1.3 else image
    square = cv2.warpAffine(soft, matrix, (size, size), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    matrix = region.to_square(MASK)
    inside = np.full(image.shape[:2], 255, np.uint8)
    known = cv2.warpAffine(inside, matrix, (MASK, MASK), flags=cv2.INTER_LINEAR, borderValue=0)
    outlines = (Region.of(head, neutral, cover).outline for cover in Cover)
    masks = [filled((MASK, MASK), outline @ matrix[:, :2].T + matrix[:, 2]) for outline in outlines]
    parts = [webp(square, 88), png(np.dstack([*masks, known]))]
    for face in (Looks(neutral, toned(looks.texture, tone_of(looks.texture)), looks.iris), *others):
        drawing = draw(face, head, neutral, region, DRAWING)
        drawing[..., 3] = 2 * drawing[..., 3] - 1
        bytes_of = np.rint((drawing.clip(-1, 1) + 1) * 127.5).astype(np.uint8)
        parts += [webp(bytes_of[..., :3]), webp(bytes_of[..., [4, 5, 3]], 80)]
    return parts


def main() -> int:
    """Prepare and write the pairs; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--faces", type=Path, required=True)
    parser.add_argument("--people", type=Path, required=True)
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    left_out = set((options.faces / "heldout.txt").read_text(encoding="utf-8").split())
    files = [path for path in sorted((options.faces / "portraits").glob("*.jpg")) if path.stem not in left_out]
    files += sorted(options.people.glob("*.jpg"))
    if options.limit:
        files = files[:: max(1, len(files) // options.limit)]
    detector, mesher, model, rng = Detector(), FaceMesh(), face_model(), np.random.default_rng(7)
    parts: list[bytes] = []
    counts: list[int] = []
    for path in files:
        image = cv2.imread(str(path))[..., ::-1].copy()
        found = detector.detect(image)
        if not found:
            sys.stderr.write(f"{path.name}: no face found; left out\n")
            continue
        mesh = mesher.fit(image, max(found, key=lambda face: face.box[2] * face.box[3]))
        points = np.asarray(mesh.points, dtype=np.float64)
        looks, code, _, _ = own_looks(image, points, mesh.blendshapes)
        born, tone = float(model.predicted(code[None], "born")[0]), tone_of(looks.texture)
        woman = bool(genders(model, code[None])[0] == "F")
        others = [draw_surrogate(woman, born, tone, rng).looks for _ in range(OTHERS)]
        parts += view(image, points, mesh.blendshapes, looks, others, PHOTO)
        counts.append(1 + OTHERS)
        yaw = rng.uniform(*TURN) * rng.choice([-1, 1])
        now = Head.of(points).yaw
        yaw = now - float(np.clip(now - yaw, -FURTHEST, FURTHEST))
        other, moved = turned(image, points, yaw, rng.uniform(-12, 12))
        parts += view(other, moved, mesh.blendshapes, looks, others[:TURNED_OTHERS], TURNED)
        counts.append(1 + TURNED_OTHERS)
    offsets = np.cumsum([0, *map(len, parts)])
    blob = np.frombuffer(b"".join(parts), dtype=np.uint8)
    np.savez(options.output, blob=blob, offsets=offsets, n_drawings=np.array(counts))
    sys.stderr.write(f"{len(counts)} views of {len(files)} photographs, {len(blob) / 1e6:.1f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
