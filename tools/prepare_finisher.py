"""Prepare what the finisher is trained on: photographs of heads, and drawings of them and of other people.

    python -m tools.prepare_finisher -o PAIRS.npz --faces FACES --people PEOPLE

FACES holds ``portraits/*.jpg`` and ``heldout.txt``, the stems of those that are left out; PEOPLE holds photographs of
people who do not exist. Every photograph gives two views: as it is, and with the head turned further by the depth of
its mesh, lids, brows and irises moved. A view is the square about the head region, its masks, and the drawing of the
person's own face. Then the same with faces of surrogates: what the photograph would be, made by warping and relighting,
and their drawings.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

import cv2
import numpy as np
from PIL import Image
from tools.face_model_training import drawn_points
from tools.make_surrogates import own_looks

from ksame.heads.covers import FACE, HEAD
from ksame.heads.drawing import Invention, Looks, draw
from ksame.heads.head import EXPRESSION, EyesConfig, Head, Region, expression_of, filled, neutral_shape, wearing
from ksame.heads.surrogate import draw_surrogate, skin_of, toned
from ksame.models import FaceDetector, FaceMesh
from ksame.spaces.aam.warp import PiecewiseAffine, triangulate
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.geometry import (
    BROWS,
    EYE_CORNERS,
    EYES,
    INNER_LIPS,
    IRISES,
    LIDS,
    OUTLINE,
    with_forehead,
)
from ksame.spaces.facemodel.labels import genders

PHOTO, TURNED, OTHER, DRAWING, MASK = 512, 320, 256, 256, 128
OTHERS, TURNED_OTHERS = 2, 1
TURN, FURTHEST = (4.0, 36.0), 42.0  # degrees that are added, and how far a head may be turned in all
BLINKING, SHUT = 0.6, 0.97  # share of turned heads whose lids are lowered, and how far at most
BROW = {"brow_up": 0.5, "brow_down": 0.4}  # how far brows are moved at most, in blendshapes
GAZE = (0.1, 0.05)  # how far irises are moved, sideways and upwards: standard deviations, in widths of the eye
# what it learns is drawn less far than what it is then given
DRAWN = EyesConfig(opened=1.25, closing=0.0, upwards=1.5, brows=0.0)
EYE_WEIGHT, BROW_WEIGHT = 255, 120  # how much these count in training, as a mask
_MESH = np.array([1.0, 1.0, -1.0])  # depth grows away from the viewer in a mesh, towards them in the face model


def morphed(image, points, moved):
    """Return a photograph whose face is brought from one mesh, (478, 3), to another.

    The outline of the head beyond it follows a little, as that of a ball does that turns.
    """
    mesh, goal = with_forehead(points), with_forehead(moved)
    rim, shift = mesh[list(OUTLINE), :2], (goal - mesh)[list(OUTLINE), :2]
    middle, pad = rim.mean(axis=0), 3 * float(np.ptp(rim[:, 0]))
    rings = [middle + (rim - middle) * factor for factor in (1.3, 1.7)]
    height, width = image.shape[:2]
    corners = np.array([[-pad, -pad], [width + pad, -pad], [width + pad, height + pad], [-pad, height + pad]])
    behind = np.concatenate([rim, *rings, corners])
    steps = np.concatenate([0.6 * shift, 0.25 * shift, np.zeros((len(rim) + 4, 2))])
    drawn = drawn_points()
    out = image
    for source, step in ((behind, steps), (mesh[drawn, :2], (goal - mesh)[drawn, :2])):
        warp = PiecewiseAffine(source + pad, triangulate(source + pad), (int(height + 2 * pad), int(width + 2 * pad)))
        covered, (where,) = warp.locate(source + step, (height, width), source)
        layer = cv2.remap(image, where[0], where[1], cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
        edge = np.ones((height, width), np.float32)
        if source is not behind:
            edge = cv2.GaussianBlur(covered.astype(np.float32), (0, 0), 1.0) * covered
        out = np.rint(out + (layer.astype(np.float32) - out) * edge[..., None]).astype(np.uint8)
    return out


def with_expression(points, moves, shut: float, look):
    """Return a mesh, (478, 3), with its expression changed.

    Parameters
    ----------
    points : ndarray of shape (478, 3)
    moves : ndarray of shape (n_expression,)
        What is added, in blendshapes.
    shut : float
        How far the lids are lowered, as a share of how far they are open.
    look : ndarray of shape (2,)
        How far the irises are moved, in widths of the eye.
    """
    head = Head.of(points)
    aligned = neutral_shape(head.aligned, -moves)
    for (upper, lower), corners, iris in zip(LIDS, EYE_CORNERS, IRISES, strict=True):
        apart = aligned[list(lower)] - aligned[list(upper)]
        aligned[list(upper)] += 0.9 * shut * apart
        aligned[list(lower)] -= 0.1 * shut * apart
        aligned[list(iris), :2] += look * np.linalg.norm(np.subtract(*aligned[list(corners)]))
    return head.place(aligned) * _MESH


def with_other_expression(points, rng):
    """Return a mesh, (478, 3), with lids, brows and irises moved; portraits show them at rest, wide open, ahead."""
    moves = np.array([rng.uniform(0, BROW.get(name, 0.0)) for name in EXPRESSION])
    moves[EXPRESSION.index(str(rng.choice(list(BROW))))] = 0.0  # brows go up or down
    shut = SHUT * rng.uniform() ** 0.7 if rng.uniform() < BLINKING else 0.0
    return with_expression(points, moves, shut, rng.normal(0, GAZE, 2))


def between_lids(points):
    """Return a mesh, (478, 3), with the irises' centres between the lids, so that no triangle of a warp folds."""
    kept = points.copy()
    for (upper, lower), iris in zip(LIDS, IRISES, strict=True):
        top, bottom = sorted(points[list(lid)[2:5], 1].mean() for lid in (upper, lower))
        kept[iris[0], 1] = np.clip(kept[iris[0], 1], *np.interp([0.15, 0.85], [0, 1], [top, bottom]))
    return kept


def turned(image, points, moved, yaw: float, pitch: float):
    """Return a photograph with a mesh brought to another, turned by so many degrees, and that mesh, (478, 3)."""
    axis = with_forehead(points)[list(OUTLINE)].mean(axis=0)
    a, b = np.radians([yaw, pitch])
    about_y = np.array([[np.cos(a), 0, -np.sin(a)], [0, 1, 0], [np.sin(a), 0, np.cos(a)]])
    about_x = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
    goal = (moved - axis) @ (about_x @ about_y).T + axis
    return morphed(image, between_lids(points), between_lids(goal)), goal


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


def square_of(image, region, size: int):
    """Cut the square about a region out of a photograph."""
    shrink = region.side / size
    soft = cv2.GaussianBlur(image, (0, 0), 0.45 * shrink) if shrink > 1.3 else image
    return cv2.warpAffine(
        soft, region.to_square(size), (size, size), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )


def become(image, head, neutral, region, own, other, size: int):
    """Return the square of a photograph in which somebody has another's face: its target, made without a network.

    The photograph is brought to the other's shape; inside the face shows the other's texture, in the light that lies
    between the photograph and the person's own texture; eyes and the inside of the mouth stay the photograph's.
    """
    worn = head.place(wearing(other.shape, head, neutral, DRAWN))
    points = head.place(head.aligned)
    moved = morphed(image, between_lids(points * _MESH), between_lids(worn * _MESH))
    picture = square_of(moved, region, size) / np.float32(255)
    faces = (other, Looks(other.shape, own.texture))
    theirs, mine = (draw(Invention.of(face, head, neutral, eyes=DRAWN), size) for face in faces)
    where = np.ascontiguousarray(theirs[..., 3])
    blur = lambda rows: cv2.GaussianBlur(rows * where[..., None], (0, 0), size / 14)  # noqa: E731
    light = (blur(picture) + 0.02) / (blur((mine[..., :3] + 1) / 2) + 0.02)
    lit = ((theirs[..., :3] + 1) / 2 * light.clip(0.2, 4)).clip(0, 1)
    matrix = region.to_square(size)
    flat = worn[:, :2] @ matrix[:, :2].T + matrix[:, 2]
    share = cv2.erode(where, np.ones((3, 3), np.uint8), iterations=max(1, size // 64))
    share = cv2.GaussianBlur(share, (0, 0), size / 100)
    for ring in (*EYES, INNER_LIPS):
        hole = filled((size, size), flat[list(ring)]).astype(np.float32) / 255
        share = share * (1 - cv2.GaussianBlur(hole, (0, 0), size / 300))
    return np.rint(255 * (picture + (lit - picture) * share[..., None])).clip(0, 255).astype(np.uint8)


def features(points):
    """Return how much parts of a square count, (MASK, MASK): eyes and brows, and a little round them."""
    weights = np.zeros((MASK, MASK), dtype=np.uint8)
    reach = np.ones((MASK // 16 + 1,) * 2, np.uint8)
    brows = filled(weights.shape, points[list(BROWS[:5])]) | filled(weights.shape, points[list(BROWS[6:])])
    weights[cv2.dilate(brows, reach) > 0] = BROW_WEIGHT
    for ring in EYES:
        weights[cv2.dilate(filled(weights.shape, points[list(ring)]), reach) > 0] = EYE_WEIGHT
    return weights


def views(image, head, neutral, looks, others, size: int) -> list[list[bytes]]:
    """Return, for the person's own face and for each other one, photograph, masks, drawing and its directions."""
    region = Region.of(head, neutral)
    matrix = region.to_square(MASK)
    inside = np.full(image.shape[:2], 255, np.uint8)
    known = cv2.warpAffine(inside, matrix, (MASK, MASK), flags=cv2.INTER_LINEAR, borderValue=0)
    outlines = (Region.of(head, neutral, cover).outline for cover in (HEAD, FACE))
    masks = [filled((MASK, MASK), outline @ matrix[:, :2].T + matrix[:, 2]) for outline in outlines]
    own = Looks(neutral, toned(looks.texture, skin_of(looks.texture)), looks.iris)
    rows = []
    for face in (own, *others):
        is_own = face is own
        photo = square_of(image, region, size) if is_own else become(image, head, neutral, region, own, face, OTHER)
        invention = Invention.of(face, head, neutral, eyes=DRAWN)
        mask = png(np.dstack([*masks, known, features(MASK * invention.points - 0.5)]))
        drawing = draw(invention, DRAWING)
        drawing[..., 3] = 2 * drawing[..., 3] - 1
        pixels = np.rint((drawing.clip(-1, 1) + 1) * 127.5).astype(np.uint8)
        rows.append([webp(photo, 80), mask, webp(pixels[..., :3], 82), webp(pixels[..., [4, 5, 3]], 60)])
    return rows


def main() -> int:
    """Prepare and write the pairs; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--faces", type=Path, required=True)
    parser.add_argument("--people", type=Path, required=True)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--part", default="0/1", help="such as 0/2: the first half")
    options = parser.parse_args()
    left_out = set((options.faces / "heldout.txt").read_text(encoding="utf-8").split())
    files = [path for path in sorted((options.faces / "portraits").glob("*.jpg")) if path.stem not in left_out]
    files += sorted(options.people.glob("*.jpg"))
    if options.limit:
        files = files[:: max(1, len(files) // options.limit)]
    part, n_parts = (int(number) for number in options.part.split("/"))
    files = files[part::n_parts]
    detector, mesher, model, rng = FaceDetector(), FaceMesh(), face_model(), np.random.default_rng((7, part))
    parts: list[bytes] = []
    for path in files:
        image = cv2.imread(str(path))[..., ::-1].copy()
        found = detector.detect(image)
        if not found:
            sys.stderr.write(f"{path.name}: no face found; left out\n")
            continue
        mesh = mesher.fit(image, max(found, key=lambda face: face.box[2] * face.box[3]))
        points = np.asarray(mesh.points, dtype=np.float64)
        looks, code, _, _ = own_looks(image, points, mesh.blendshapes)
        born, skin = float(model.predicted(code[None], "born")[0]), skin_of(looks.texture)
        woman = bool(genders(model, code[None])[0] == "F")
        others = [draw_surrogate(woman, born, skin, rng).looks for _ in range(OTHERS)]
        head = Head.of(points)
        neutral = neutral_shape(head.aligned, expression_of(mesh.blendshapes))
        shown = views(image, head, neutral, looks, others, PHOTO)
        yaw = head.yaw - float(np.clip(head.yaw - rng.uniform(*TURN) * rng.choice([-1, 1]), -FURTHEST, FURTHEST))
        other, moved = turned(image, points, with_other_expression(points, rng), yaw, rng.uniform(-12, 12))
        shown += views(other, Head.of(moved), neutral, looks, others[:TURNED_OTHERS], TURNED)
        parts += [part for view in shown for part in view]
    offsets = np.cumsum([0, *map(len, parts)])
    blob = np.frombuffer(b"".join(parts), dtype=np.uint8)
    np.savez(options.output, blob=blob, offsets=offsets)
    sys.stderr.write(f"{len(parts) // 4} views of {len(files)} photographs, {len(blob) / 1e6:.1f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
