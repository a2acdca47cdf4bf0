"""Real portraits for benchmarks, registered by eyes and nose."""

import os
from pathlib import Path

import numpy as np

from ksame.faces.faceset import FaceSet
from ksame.faces.reading import read_image
from ksame.faces.registration import Template, register
from ksame.models import detect

SHARED = Path(os.environ.get("KSAME_SHARED", Path(__file__).resolve().parents[2] / "shared"))


def portraits(folder: Path | None = None) -> FaceSet:
    """Return the portraits below ``folder``, 99 x 134 pixels in grey, with the places of eyes and nose."""
    template = Template.eyes_and_nose()
    images, subjects = [], []
    for path in sorted((folder or SHARED / "faces" / "portraits").glob("*.jpg")):
        picture = read_image(path)
        found = detect(picture)
        if found:
            face, _ = register(picture, max(found, key=lambda face: face.score).landmarks[:3], template)
            images.append(face.mean(axis=2, keepdims=True))
            subjects.append(path.stem)
    return FaceSet(np.stack(images), np.array(subjects), np.tile(np.array(template.points), (len(images), 1, 1)))
