"""What the finisher gives away of the people it learned from.

``python -m benchmarks.finisher_privacy FACES PEOPLE [--people-each 150]``, where FACES holds ``portraits`` and
``heldout.txt``, and PEOPLE the photographs of people who do not exist.

- *Membership*: a person's own drawing is finished into their own photograph, with the head taken away. Is it nearer to
  the photograph for people it was trained on than for others? Area under the ROC curve; 0.5 is chance.
- *Likeness*: heads of surrogates finished into photographs of people it never saw, compared by SFace with everyone it
  was trained on. Does it put training people's heads where it lacks knowledge?
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score
from tools.make_surrogates import own_looks

from ksame.heads.drawing import Invention, Looks
from ksame.heads.head import Head, Region, expression_of, neutral_shape
from ksame.heads.invention import invent, taken_away
from ksame.heads.surrogate import draw_surrogate, skin_of, toned
from ksame.models import FaceDetector, FaceMesh, SFace, five_points
from ksame.models.finisher import finisher
from ksame.pictures import read_rgb
from ksame.spaces.facemodel import face_model
from ksame.spaces.facemodel.labels import genders


def finished(image, points, blendshapes, rng):
    """Return a photograph with its own face finished into it, with somebody else's, and where the head was."""
    looks, code, _, _ = own_looks(image, points, blendshapes)
    head = Head.of(points)
    neutral = neutral_shape(head.aligned, expression_of(blendshapes))
    region = Region.of(head, neutral)
    model, skin = face_model(), skin_of(looks.texture)
    woman = bool(genders(model, code[None])[0] == "F")
    other = draw_surrogate(woman, float(model.predicted(code[None], "born")[0]), skin, rng).looks
    hidden = taken_away(image.shape, [region.outline])
    made = []
    for face in (Looks(neutral, toned(looks.texture, skin), looks.iris), other):
        out = image.copy()
        invent(out, hidden.copy(), Invention.of(face, head, neutral), finisher("cpu"), size=256)
        made.append(out)
    return *made, hidden


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faces", type=Path)
    parser.add_argument("people", type=Path)
    parser.add_argument("--people-each", type=int, default=150)
    options = parser.parse_args()
    left_out = set((options.faces / "heldout.txt").read_text(encoding="utf-8").split())
    portraits = sorted((options.faces / "portraits").glob("*.jpg"))
    members = [path for path in portraits if path.stem not in left_out]
    others = [path for path in portraits if path.stem in left_out]
    detector, mesher, recogniser, rng = FaceDetector(), FaceMesh(), SFace(), np.random.default_rng(1)

    def seen(path):
        image = read_rgb(path)
        mesh = mesher.fit(image, detector.detect(image)[0])
        return image, np.asarray(mesh.points, dtype=np.float64), mesh.blendshapes

    known = []
    for path in [*members, *sorted(options.people.glob("*.jpg"))]:
        image, points, _ = seen(path)
        known.append(recogniser.embed(image, five_points(points)))
    losses: dict[bool, list[float]] = {True: [], False: []}
    alike, untouched = [], []
    for member, paths in ((True, members), (False, others)):
        step = max(1, len(paths) // options.people_each)
        for path in paths[::step][: options.people_each]:
            image, points, blendshapes = seen(path)
            own, other, hidden = finished(image, points, blendshapes, rng)
            losses[member].append(float(np.abs(own.astype(float) - image)[hidden].mean()))
            if not member:
                untouched.append(np.array(known) @ recogniser.embed(image, five_points(points)))
                alike.append(np.array(known) @ recogniser.embed(other, five_points(points)))
    auc = roc_auc_score([1] * len(losses[True]) + [0] * len(losses[False]), np.negative(losses[True] + losses[False]))
    inside, outside = np.mean(losses[True]), np.mean(losses[False])
    print(f"membership: loss {inside:.2f} of members, {outside:.2f} of others, AUC {auc:.2f}")
    for name, rows in (("invented heads", alike), ("untouched", untouched)):
        print(
            f"{name} against {len(known)} training people: mean {np.mean(rows):.3f}, highest {np.max(rows):.3f}, "
            f"pairs above {recogniser.threshold}: {np.mean(np.array(rows) > recogniser.threshold):.3%}"
        )


if __name__ == "__main__":
    main()
