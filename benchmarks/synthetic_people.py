"""How good the synthetic people are, by a detector, a recogniser and a linear classifier.

    python benchmarks/synthetic_people.py [PORTRAITS] [--people 1000] [--json FILE]

PORTRAITS (default: the folder ``faces`` under $KSAME_SHARED, or ../shared) are those behind the face model;
without them the likeness to real people is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from ksame.arrays import FloatArray
from ksame.faces.faceset import FaceSet, quantise
from ksame.models import FaceDetector, SFace
from ksame.synthetic import synthetic
from ksame.synthetic.expressions import EXPRESSIONS
from ksame.synthetic.lighting import ILLUMINATIONS

THRESHOLD = 0.363  # SFace: cosine from which two pictures show one person
ROOT = Path(__file__).resolve().parent.parent


def embed(faces: FaceSet) -> FloatArray:
    """Embed each picture where the detector finds the face; NaN rows elsewhere."""
    detector, recogniser = FaceDetector(), SFace()
    rows = np.full((len(faces), 128), np.nan)
    for row, image in zip(rows, faces.images, strict=True):
        picture = quantise(image)
        found = detector.detect(picture)
        if found:
            row[:] = recogniser.embed(picture, found[0].landmarks)
    return rows


def different_people(n: int, portraits: FloatArray | None, size: tuple[int, int]) -> dict[str, Any]:
    faces = synthetic(n, size=size)
    rows = embed(faces)
    seen = rows[~np.isnan(rows[:, 0])]
    pairs = (seen @ seen.T)[np.triu_indices(len(seen), 1)]
    result: dict[str, Any] = {
        "people": n,
        "found": len(seen) / n,
        "pairs below threshold": float((pairs < THRESHOLD).mean()),
        "mean similarity of two people": float(pairs.mean()),
    }
    if portraits is not None:
        likeness = seen @ portraits.T
        result["portraits"] = len(portraits)
        result["highest similarity to a portrait"] = float(likeness.max())
        result["people like some portrait"] = float((likeness.max(axis=1) >= THRESHOLD).mean())
        real = portraits @ portraits.T
        np.fill_diagonal(real, -1.0)
        result["portraits like another person's portrait"] = float((real.max(axis=1) >= THRESHOLD).mean())
    return result


def one_person(n: int, portraits: FloatArray | None) -> dict[str, Any]:
    kinds = len(EXPRESSIONS) * len(ILLUMINATIONS)
    faces = synthetic(n, kinds, expressions=tuple(EXPRESSIONS), illuminations=tuple(ILLUMINATIONS))
    flat = embed(faces)
    rows = flat.reshape(n, kinds, -1)
    alike = np.einsum("nid,njd->nij", rows, rows)
    first, second = np.triu_indices(kinds, 1)
    pairs = alike[:, first, second]
    result: dict[str, Any] = {
        "people": n,
        "pictures of each": kinds,
        "found": float((~np.isnan(rows[..., 0])).mean()),
        "pairs above threshold": float(np.nanmean(pairs > THRESHOLD)),
        "first picture against the others, above": float(np.nanmean(alike[:, 0, 1:] > THRESHOLD)),
    }
    if portraits is not None:
        likeness = np.nanmax(flat @ portraits.T, axis=1)
        result["pictures like some portrait"] = float((likeness >= THRESHOLD).mean())
    return result


def classified(n: int) -> dict[str, float]:
    """Linear support vector machine on 32 x 25 grey pixels, five folds by subject."""
    import cv2
    from sklearn.model_selection import GroupKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    moods = [synthetic(n, size=(134, 99), expressions=(name,)) for name in ("neutral", "smile")]
    images = np.concatenate([faces.images for faces in moods])
    small = [cv2.resize(image.mean(axis=-1), (25, 32), interpolation=cv2.INTER_AREA).ravel() for image in images]
    subjects = np.concatenate([faces.subjects for faces in moods])
    scores = {}
    for label in ("gender", "expression"):
        labels = np.concatenate([faces.attribute(label) for faces in moods])
        machine = make_pipeline(StandardScaler(), LinearSVC(C=1e-3, dual=True, max_iter=20000, random_state=0))
        folds = cross_val_score(machine, np.array(small), labels, groups=subjects, cv=GroupKFold(5))
        scores[label] = float(folds.mean())
    return scores


def speed() -> dict[str, float]:
    rates = {}
    for size in ((134, 99), (224, 176)):
        synthetic(16, size=size)
        start = time.perf_counter()
        synthetic(96, size=size)
        rates[f"{size[0]} x {size[1]}"] = 96 / (time.perf_counter() - start)
    return rates


def main() -> int:
    shared = Path(os.environ.get("KSAME_SHARED", ROOT.parent / "shared"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("portraits", type=Path, nargs="?", default=shared / "faces")
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    portraits = None
    if options.portraits.is_dir():
        from tools.train_face_model import measure

        portraits = measure(options.portraits).embeddings
    result = {
        "different people, as chosen": different_people(options.people, portraits, (224, 176)),
        "different people, larger": different_people(options.people, portraits, (300, 236)),
        "one person": one_person(max(2, options.people // 20), portraits),
        "linear SVM, folds by subject": classified(min(400, options.people)),
        "faces a second": speed(),
    }
    text = json.dumps(result, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
