"""What the shipped face model gives away about the people it was trained on.

    python benchmarks/face_model_privacy.py [PORTRAITS] [--people 300] [--json FILE]

1. Likeness: does the mean face, a class mean, or any mode at three standard deviations look like a portrait?
2. Membership: a model is trained on two thirds of the people. Does it describe them better than the others, and are
   people drawn from it more like them than like the others? An area under the ROC curve of 0.5 means that nobody can
   tell who was in the training set.
3. Readings: how well gender and year of birth are read from codes, in cross-validation and on faces the model never
   saw (spectacle wearers and people whose forehead is covered).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from tools.face_model_training import Prepared, learn, prepare
from tools.train_face_model import measure

from ksame.arrays import FloatArray
from ksame.faces.faceset import quantise
from ksame.models import BLENDSHAPES, FaceDetector, SFace
from ksame.spaces.facemodel import FaceModel, face_model
from ksame.spaces.facemodel.labels import genders
from ksame.synthetic.expressions import EXPRESSIONS
from ksame.synthetic.people import FIRST_OTHER, draw_people
from ksame.synthetic.render import Painter, Shot

ROOT = Path(__file__).resolve().parent.parent
THRESHOLD = 0.363


def embedded(model: FaceModel, codes: FloatArray, numbers: NDArray[np.intp]) -> FloatArray:
    """Paint codes, (n, n_codes), with the hair of the people numbered; embed those that are found."""
    people = replace(draw_people(model, numbers), codes=codes)
    painted = Painter(model, (224, 176)).paint(people, [[Shot(EXPRESSIONS["neutral"])]] * len(codes))
    return _embedded(images[0] for images, _ in painted)


def _embedded(images: Iterable[NDArray[np.float32]]) -> FloatArray:
    detector, recogniser = FaceDetector(), SFace()
    rows = []
    for image in images:
        picture = quantise(image)
        found = detector.detect(picture)
        if found:
            rows.append(recogniser.embed(picture, found[0].landmarks))
    return np.array(rows)


def likeness(data: Prepared) -> dict[str, Any]:
    model = face_model()
    modes = np.concatenate([sign * 3.0 * np.eye(model.n_codes) for sign in (1, -1)])
    means = np.stack([model.labelled({"woman": value}) for value in (0.0, 0.5, 1.0)])
    result: dict[str, Any] = {}
    for name, codes in (("means", means), ("modes at 3 standard deviations", modes)):
        similarity = embedded(model, codes, np.arange(len(codes)) % 2) @ data.embeddings.T
        result[name] = {
            "renderings": len(similarity),
            "mean similarity to a portrait": float(similarity.mean()),
            "highest": float(similarity.max()),
            "pairs above threshold": float((similarity > THRESHOLD).mean()),
        }
    real = data.embeddings @ data.embeddings.T
    pairs = real[np.triu_indices(len(real), 1)]
    result["portraits of different people"] = {
        "mean similarity": float(pairs.mean()),
        "highest": float(pairs.max()),
        "pairs above threshold": float((pairs > THRESHOLD).mean()),
    }
    return result


def membership(data: Prepared, people: int) -> dict[str, Any]:
    rows = np.flatnonzero(data.plain)
    order = np.random.default_rng(0).permutation(rows)
    member = np.zeros(len(data.plain), dtype=bool)
    member[order[: 2 * len(order) // 3]] = True
    model = learn(data, member)
    mean = model.textures(np.zeros((1, model.n_codes)))[0]
    errors, similarities = [], []
    for i in rows:
        code = model.encode(data.shapes[i] + data.base, data.textures[i])
        rebuilt = model.textures(code[None])[0]
        errors.append(((rebuilt - data.textures[i]) ** 2).mean() / ((mean - data.textures[i]) ** 2).mean())
    numbers = FIRST_OTHER + np.arange(people)
    drawn = embedded(model, draw_people(model, numbers).codes, numbers)
    similarities = data.embeddings[rows] @ drawn.T
    inside = member[rows]
    error = np.array(errors)
    return {
        "members": int(inside.sum()),
        "others": int((~inside).sum()),
        "texture explained, members": float(1 - error[inside].mean()),
        "texture explained, others": float(1 - error[~inside].mean()),
        "AUC by reconstruction error": float(roc_auc_score(inside, -error)),
        "synthetic people": len(drawn),
        "AUC by nearest synthetic person": float(roc_auc_score(inside, similarities.max(axis=1))),
        "AUC by mean similarity to synthetic people": float(roc_auc_score(inside, similarities.mean(axis=1))),
    }


def readings(data: Prepared) -> dict[str, float]:
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import cross_val_predict

    model = face_model()
    codes = np.stack([model.encode(s + data.base, t) for s, t in zip(data.shapes, data.textures, strict=True)])
    woman, born = data.attributes[:, 0] > 0.5, data.attributes[:, 1]
    plain = data.plain
    guess = cross_val_predict(Ridge(150.0), codes[plain], woman[plain].astype(float), cv=10)
    year = cross_val_predict(Ridge(150.0), codes[plain], born[plain], cv=10)
    unseen = genders(model, codes[~plain]) == np.where(woman[~plain], "F", "M")
    return {
        "gender, cross-validated": float(((guess > 0.43) == woman[plain]).mean()),
        "gender, textures never seen": float(unseen.mean()),
        "year of birth, correlation": float(np.corrcoef(year, born[plain])[0, 1]),
        "year of birth, mean error": float(abs(year - born[plain]).mean()),
    }


def main() -> int:
    shared = Path(os.environ.get("KSAME_SHARED", ROOT.parent / "shared"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("portraits", type=Path, nargs="?", default=shared / "faces")
    parser.add_argument("--people", type=int, default=300)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    data = prepare(options.portraits, measure(options.portraits), BLENDSHAPES)
    result = {
        "likeness": likeness(data),
        "membership": membership(data, options.people),
        "readings": readings(data),
    }
    text = json.dumps(result, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
