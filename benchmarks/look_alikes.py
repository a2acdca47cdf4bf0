"""How alike different people are, and copies of one photograph: what the limit for one photograph rests on.

``python benchmarks/look_alikes.py [FOLDER]`` prints the highest correlation between different synthetic people, and for
a folder of registered faces that between different people and the lowest between each face and altered copies of it.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ksame import FaceSet, synthetic
from ksame.faces import load_folder
from ksame.faces.duplicates import ALIKE, small_copies
from ksame.faces.faceset import quantise

Change = Callable[[Image.Image], Image.Image]


def between_people(faces: FaceSet) -> float:
    """Return the highest correlation between images of different subjects, mirrored or not."""
    plain = small_copies(faces)
    mirrored = small_copies(faces.with_images(faces.images[:, :, ::-1]))
    alike = np.maximum(plain @ plain.T, plain @ mirrored.T)
    return float(alike[faces.subjects[:, None] != faces.subjects[None, :]].max())


def of_copies(faces: FaceSet, change: Change) -> float:
    """Return the lowest correlation between a face and its altered copy."""
    copies: NDArray[np.float64] = np.stack(
        [np.asarray(change(Image.fromarray(image))) / 255.0 for image in quantise(faces.images)]
    )
    return float((small_copies(faces) * small_copies(faces.with_images(copies))).sum(axis=1).min())


def compressed(quality: int) -> Change:
    """Return a change that saves as JPEG and opens again."""

    def change(image: Image.Image) -> Image.Image:
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=quality)
        return Image.open(buffer)

    return change


def halved(image: Image.Image) -> Image.Image:
    """Return the image, made half as large and large again."""
    return image.resize((image.width // 2, image.height // 2)).resize(image.size)


def main() -> None:
    """Print the table."""
    print(f"limit {ALIKE}")
    print(f"805 synthetic people: {between_people(synthetic(805, size=(134, 99))):.4f}")
    if len(sys.argv) > 1:
        faces = load_folder(Path(sys.argv[1])).faces
        print(f"{faces.n_subjects} people of {sys.argv[1]}: {between_people(faces):.4f}")
        changes = {"JPEG 50": compressed(50), "JPEG 20": compressed(20), "half the size": halved}
        for name, change in changes.items():
            print(f"copies, {name}: {of_copies(faces, change):.4f}")


if __name__ == "__main__":
    main()
