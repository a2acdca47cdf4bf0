"""Make the bank of faces from which surrogates are mixed: shapes and textures of people who do not exist.

    python -m tools.make_surrogates PEOPLE -o src/ksame/data/surrogates.npz

PEOPLE holds photographs made by a generator, free to be used (CC0), one face each. Their light is evened, their
expression taken away, the skin between the brows smoothed; brows and beards are made lighter, and hues brought to where
the mean face has them. Whoever wears spectacles, is turned, small, or has hair over the forehead is left out. What
reads the tone of skin is learned from all of them, graded by eye in ``tools/skin_tones.csv``.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import cv2
import numpy as np

from ksame.heads.drawing import Looks
from ksame.heads.head import EXPRESSION, Head, expression_of, neutral_shape
from ksame.heads.surrogate import brightness_of, lit
from ksame.models import FaceDetector, FaceMesh
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.geometry import BROWS, EYES, IRISES, OUTER_LIPS, polygon, with_forehead
from ksame.spaces.facemodel.light import LUMA, blur_inside, log_luma

MOST_YAW = 22.0  # degrees: beyond, one cheek is too coarse
LEAST_WIDTH = 85.0  # pixels across the mesh
MOST_GAP = 0.16  # opening of the mouth, as the blendshape jawOpen, beyond which cheeks are stretched
QUALITY = 93  # of the JPEGs
TONES = {"light": -0.42, "medium": -0.7, "dark": -1.0}  # of skin in ordinary light, log brightness; by choice
RIDGE = 50.0  # of the reader of tones; by how well it tells dark from light among 400 portraits
LIGHTS = ((1.0, 1.0, 1.0), (1.12, 1.0, 0.82), (0.9, 1.0, 1.15), None)  # plain, warm, cool, and without colour
BROAD, FINE = 10.0, 3.0  # pixels of the base over which hue and brightness are evened
SHAVED, DULLED = 0.4, 0.15  # shares of what is too dark below the nose, and of what shines, that are taken away
BROW, THINNER = 0.7, 0.5  # how dark brows are at most, as a logarithm; exponent that takes more of what is less dark
CREASED = 0.9  # brightness of what counts as a crease or a brow, in medians of the skin about it


def own_looks(image, points, blendshapes):
    """Return what a person looks like without expression, their code, and what speaks against them as a donor.

    Parameters
    ----------
    image : ndarray of shape (height, width, 3)
        8-bit RGB.
    points : ndarray of shape (478, 3)
    blendshapes : ndarray of shape (52,)
    """
    model = face_model()
    head, expression = Head.of(points), expression_of(blendshapes)
    raw = model.warp.to_base(image / np.float32(255), with_forehead(points[:, :2]))
    mean = model.warp.image(model.textures(np.zeros((1, model.n_codes)))[0]) * model.warp.mask[..., None]
    evener = model.evener
    texture, _ = evener.without_hair(evener.without_top_light(evener.without_side_light(raw), mean), mean)
    rows = texture[model.warp.mask]
    code = model.encode(points * [1.0, 1.0, -1.0], rows)
    away = model.moved(np.zeros((1, model.n_codes)), dict(zip(EXPRESSION, -expression, strict=True)))
    calm = rows + (model.textures(away) - model.textures(np.zeros_like(away)))[0]
    looks = Looks(
        neutral_shape(head.aligned, expression),
        np.rint(model.warp.image(rows).clip(0, 1) * 255).astype(np.uint8),
        _iris(image, points),
    )
    smooth = with_even_colour(with_light_brows(without_frown(model.warp.image(calm).clip(0, 1))), mean)
    plain = np.rint(smooth * 255).astype(np.uint8)
    against = [
        reason
        for reason, holds in {
            "turned": abs(head.yaw) > MOST_YAW,
            "small": np.ptp(points[:, 0]) < LEAST_WIDTH,
        }.items()
        if holds
    ]
    return looks, code, plain, against


def without_frown(texture):
    """Return a texture, (height, width, 3), with smooth skin between the brows: donors frown, and the finisher more."""
    base = face_model().base[:, :2]
    gap, rise = np.linalg.norm(base[107] - base[336]), np.linalg.norm(base[9] - base[168])
    rows, columns = np.mgrid[: texture.shape[0], : texture.shape[1]]
    apart = np.hypot((columns - base[9, 0]) / (0.62 * gap), (rows - base[9, 1]) / (1.1 * rise))
    share = np.clip(2.2 * (1 - apart), 0, 1)[..., None].astype(np.float32)
    grey = texture.mean(axis=2)
    skin = ((grey > CREASED * np.median(grey[apart < 1])) & (apart < 1.4)).astype(np.float32)
    sigma = 0.3 * gap
    smooth = cv2.GaussianBlur(texture * skin[..., None], (0, 0), sigma)
    smooth /= np.maximum(cv2.GaussianBlur(skin, (0, 0), sigma), 1e-3)[..., None]
    return texture + (smooth - texture) * share


def with_even_colour(texture, mean):
    """Return a texture, (height, width, 3), whose hues lie in the face as those of the mean do.

    Donors shine: where they do, skin is pale, and cheeks look orange beside it. Many have beards, of which the finisher
    makes stray moustaches. So what shines is also darkened a little, and what is dark below the nose is lightened.
    Fine detail stays.
    """
    evener, inside = face_model().evener, face_model().warp.mask.copy()
    base = face_model().base[:, :2]
    for ring in (OUTER_LIPS, *EYES):
        inside &= ~polygon(inside.shape, base[list(ring)])
    now, wanted = (blur_inside(each, BROAD, inside) for each in (texture, mean))
    gain = hue(wanted) / hue(now)
    even = texture * gain / np.median(gain[evener.cheeks], axis=0)
    even *= ((texture @ np.float32(LUMA)) / np.maximum(even @ np.float32(LUMA), 0.01))[..., None]
    now, wanted = (log_luma(blur_inside(each, FINE, inside)) for each in (even, mean))
    lighter = wanted - now - np.median((wanted - now)[evener.cheeks])
    below_nose = (np.arange(len(texture))[:, None] > base[2, 1]) & inside
    lighter = SHAVED * lighter.clip(0) * below_nose + DULLED * lighter.clip(None, 0) * inside
    return (even * np.exp(cv2.GaussianBlur(lighter, (0, 0), 0.5 * FINE))[..., None]).clip(0, 1)


def hue(picture):
    """Return the colours of a picture, (height, width, 3), by its brightness."""
    return picture / np.maximum(picture @ np.float32(LUMA), 0.02)[..., None]


def with_light_brows(texture):
    """Return a texture, (height, width, 3), with brows thinner and no darker than most: the finisher darkens them."""
    base = face_model().base[:, :2]
    width = float(np.ptp(base[:, 0]))
    area = np.zeros(texture.shape[:2], np.uint8)
    for brow in (BROWS[:5], BROWS[6:]):
        ring = base[list(brow)] + [0, 0.02 * width]
        cv2.polylines(area, [np.rint(ring).astype(np.int32)], False, 1, round(0.12 * width))
    grey = texture @ np.float32(LUMA)
    near = cv2.dilate(area, np.ones((round(0.1 * width),) * 2, np.uint8)) > 0
    skin = (near & (grey > CREASED * np.median(grey[near]))).astype(np.float32)
    sigma = 0.06 * width
    plain = cv2.GaussianBlur(texture * skin[..., None], (0, 0), sigma)
    plain /= np.maximum(cv2.GaussianBlur(skin, (0, 0), sigma), 1e-3)[..., None]
    dark = np.log((plain @ np.float32(LUMA) + 0.02) / (grey + 0.02)).clip(0)
    darkest = max(float(np.percentile(dark[area > 0], 90)), 1e-3)
    high = np.ones((round(0.12 * width), 3), np.uint8)
    across = np.maximum(cv2.GaussianBlur(cv2.dilate(dark, high), (0, 0), 0.02 * width), 0.3 * darkest)
    keep = min(1.0, BROW / darkest) * (dark / across).clip(0, 1) ** THINNER
    share = cv2.GaussianBlur(area.astype(np.float32), (0, 0), 0.02 * width)[..., None]
    return texture + (plain - texture) * share * (1 - keep[..., None]) * (dark > 0)[..., None]


def _iris(image, points) -> tuple[int, int, int]:
    """Return the median colour of both irises, pupil and lids left out."""
    rows, columns = np.mgrid[: image.shape[0], : image.shape[1]]
    taken = []
    for disc in IRISES:
        x, y = points[disc[0], :2]
        radius = max(1.0, float(np.linalg.norm(points[list(disc[1:]), :2] - [x, y], axis=1).mean()))
        apart = np.hypot(columns - x, rows - y) / radius
        taken.append(image[(apart > 0.45) & (apart < 0.9) & (rows > y - 0.3 * radius)])
    red, green, blue = np.median(np.concatenate(taken), axis=0).round().astype(int).tolist()
    return red, green, blue


def codes_in_lights(texture):
    """Return the codes of a texture, (height, width, 3), from 0 to 1, in several lights: (n_lights, n_texture)."""
    model, codes = face_model(), []
    for light in LIGHTS:
        shown = texture.mean(axis=2, keepdims=True).repeat(3, axis=2) if light is None else (texture * light).clip(0, 1)
        rows = lit(shown[model.warp.mask].astype(np.float32), brightness_of(255 * shown))
        codes.append(model.encode(model.base, rows)[model.n_shape :])
    return np.array(codes)


def reader_of_tones(codes: dict) -> np.ndarray:
    """Learn what reads the tone of skin from codes in several lights, by subject: weights and intercept."""
    with Path(__file__).with_name("skin_tones.csv").open(encoding="utf-8") as file:
        graded = {row["subject"]: TONES[row["tone"]] for row in csv.DictReader(file)}
    names = [name for name in codes if name in graded]
    known = np.concatenate([np.pad(codes[name], ((0, 0), (0, 1)), constant_values=1.0) for name in names])
    tones = np.repeat([graded[name] for name in names], len(LIGHTS))
    penalty = np.diag([*[RIDGE * len(LIGHTS)] * (known.shape[1] - 1), 0.0])
    return np.linalg.solve(known.T @ known + penalty, known.T @ tones)


def main() -> int:
    """Make and write the bank; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("people", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--without", default="", help="stems of people to leave out, separated by commas")
    options = parser.parse_args()
    detector, mesher, model = FaceDetector(), FaceMesh(), face_model()
    shapes, textures, irises, labels, names = [], [], [], [], []
    codes = {}  # of the textures of all of them
    for path in sorted(options.people.glob("*.jpg")):
        image = cv2.imread(str(path))[..., ::-1].copy()
        found = detector.detect(image)
        mesh = mesher.fit(image, max(found, key=lambda face: face.box[2] * face.box[3]))
        looks, code, plain, against = own_looks(image, np.asarray(mesh.points, dtype=np.float64), mesh.blendshapes)
        codes[path.stem] = codes_in_lights(looks.texture / 255)
        if path.stem in options.without.split(","):
            against.append("by eye")
        if against:
            sys.stderr.write(f"{path.name}: {', '.join(against)}\n")
            continue
        shapes.append(looks.shape)
        textures.append(cv2.imencode(".jpg", plain[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])[1])
        irises.append(looks.iris)
        born = float(model.predicted(code[None], "born")[0])
        labels.append([path.stem.startswith("f"), born])
        names.append(path.stem)
    reader = reader_of_tones(codes)
    tones = [float(codes[name][0] @ reader[:-1] + reader[-1]) for name in names]
    with options.output.with_suffix(".part").open("wb") as file:
        np.savez_compressed(
            file,
            shapes=(np.array(shapes) - model.base).astype(np.float16),
            textures=np.concatenate(textures),
            offsets=np.cumsum([0, *map(len, textures)]).astype(np.int32),
            irises=np.array(irises, dtype=np.uint8),
            labels=np.column_stack([labels, tones]).astype(np.float32),
            reader=reader.astype(np.float32),
            names=np.array(names),
        )
    options.output.with_suffix(".part").replace(options.output)
    sys.stderr.write(f"{len(names)} people, {options.output.stat().st_size / 1e6:.2f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
