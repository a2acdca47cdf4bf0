"""What k-Same-M gains over k-Same-Pixel: sharper faces at the same k, and expressions that survive Select.

    python -m benchmarks.model_release [FACES]

``FACES`` is a folder of portraits; synthetic people are measured in any case. Ghosts are contours that are averaged
away, so sharpness is the mean length of the brightness gradient along the contours of eyes and lips, as a share of the
originals'.
"""

import sys
import warnings
from pathlib import Path

import cv2
import numpy as np

import ksame
from ksame.faces.faceset import FaceSet, quantise
from ksame.models import BLENDSHAPES, FaceDetector, FaceMesh
from ksame.photographs import portrait_mesh
from ksame.spaces.facemodel.labels import expression

RECIPES = (
    ("k-same-pixel", {}),
    ("k-same-m", {"coding": "aam"}),
    ("k-same-m", {}),
    ("k-same-m", {"surrogate": "someone-else"}),
)


# The contours of lips and eyes in the mesh.
CONTOURS = [61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 409, 270, 269, 267, 0, 37, 39, 40, 185]
CONTOURS += [33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160, 161, 246]
CONTOURS += [362, 382, 381, 380, 374, 373, 390, 249, 263, 466, 388, 387, 386, 385, 384, 398]


def sharpness(images: np.ndarray) -> float:
    """Mean gradient on the contours, over the distinct images in which a face is found."""
    networks = FaceDetector(), FaceMesh()
    values = []
    for image in np.unique(images, axis=0):
        mesh = portrait_mesh(image / np.float32(255), *networks)
        if isinstance(mesh, str):
            continue
        gradient = np.hypot(*np.gradient(image.astype(np.float64).mean(axis=2)))
        x, y = np.rint(mesh.points[CONTOURS, :2]).astype(int).clip(0, np.array(gradient.shape[::-1]) - 1).T
        values.append(cv2.dilate(gradient, np.ones((3, 3)))[y, x].mean())
    return float(np.mean(values))


def compare(faces: FaceSet, title: str) -> None:
    """Print the sharpness of every recipe."""
    original = sharpness(quantise(faces.images))
    for k in (5, 10, 20):
        for name, params in RECIPES:
            release, _ = ksame.deidentify(faces, ksame.recipe(name, k=k, grouping="mdav+refine", **params), seed=1)
            share = sharpness(release.faces) / original
            print(f"{title}, k = {k}, {name} {params}: sharpness {share:.0%} of the originals'")


def expressions_kept(k: int = 5) -> None:
    """Print how often the expression of a released face is named as its label."""
    names = ("neutral", "smile", "surprise")
    people = ksame.synthetic(60, 3, expressions=names, seed=21)
    label = dict(zip(people.names, people.attribute("expression"), strict=True))
    networks = FaceDetector(), FaceMesh()
    for surrogate in ("mean", "someone-else"):
        recipe = ksame.recipe("k-same-m", k=k, select="expression", surrogate=surrogate)
        release, linkage = ksame.deidentify(people, recipe, seed=1)
        named: dict[bytes, str] = {}
        right = []
        for face, linked in zip(release.faces, linkage.faces, strict=True):
            if face.tobytes() not in named:
                mesh = portrait_mesh(face / np.float32(255), *networks)
                weights = {} if isinstance(mesh, str) else dict(zip(BLENDSHAPES, mesh.blendshapes, strict=True))
                named[face.tobytes()] = expression(weights) if weights else "no face found"
            right.append(named[face.tobytes()] == label[linked.sources[0]])
        print(f"expression named rightly on released faces, {surrogate}: {np.mean(right):.0%} of {len(right)}")


def main(folder: str | None = None) -> None:
    """Run all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ksame.errors.KsameWarning)
        compare(ksame.synthetic(100, expressions=("smile",), seed=20), "100 synthetic people")
        if folder is not None:
            compare(ksame.load_photographs(Path(folder)).faces, Path(folder).name)
        expressions_kept()


if __name__ == "__main__":
    main(*sys.argv[1:2])
