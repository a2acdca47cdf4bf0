"""Who is still recognised in photographs that were de-identified: two recognisers, one of them not in the loop.

``python -m benchmarks.scene_privacy FACES [--people 200] [--variants face,soft,head,...]`` where FACES holds
``portraits`` (one photograph a person, named by subject), ``second`` (other photographs of some of them, named
SUBJECT_1.jpg) and ``labels.csv`` (subject, gender).

Three attacks on each variant:

- *another photograph*: the second photographs de-identified, the gallery all untouched portraits; who is first?
- *same photograph*: portraits de-identified, the gallery all untouched portraits; who is first?
- *one of ten*: the same, but the gallery holds ten portraits of the same gender, the right one among them: chance 10 %.
  Computed for all possible lists of nine others rather than drawn once a person.
"""

from __future__ import annotations

import argparse
import csv
import time
from dataclasses import dataclass
from math import comb
from pathlib import Path

import numpy as np

from ksame.models import DlibResNet, FaceMesh, SFace, detect, five_points
from ksame.scene.choosing import make_plans
from ksame.scene.composing import Composer
from ksame.scene.looking import look
from ksame.scene.masking import MASKS, Mask
from ksame.scene.media import open_media
from ksame.scene.people import join, treatments
from ksame.scene.pipeline import subjects_of
from ksame.scene.preparing import prepare
from ksame.scene.replacing.rim import Cover

VARIANTS = {
    "face": {"cover": Cover.FACE},
    "soft": {"cover": Cover.SOFT},
    "head": {"cover": Cover.HEAD},
    "face, no loop": {"cover": Cover.FACE, "loop": False},
    "k-same-m": {"method": "k-same-m", "cover": Cover.FACE, "loop": False},
    "blur": {"method": "blur"},
    "pixelate": {"method": "pixelate"},
}


@dataclass
class Photograph:
    """One photograph, whom it shows, and what was found in it."""

    path: Path
    truth: int
    cast: object
    prepared: object


def embeddings(pixels, recognisers, mesher):
    """Embed the largest face; None where no detector finds one."""
    found = detect(pixels) or detect(pixels, score=0.3)
    if not found:
        return None
    face = max(found, key=lambda one: one.box[2] * one.box[3])
    mesh = mesher.fit(pixels, face)
    points = five_points(mesh) if mesh.presence > 0.5 else face.points
    return [network.embed(pixels, points) for network in recognisers]


def read(path: Path):
    return next(iter(open_media(path).frames())).pixels


def seen(paths, truths, recogniser):
    """Look at photographs and get to know who is in them."""
    photographs = []
    for path, truth in zip(paths, truths, strict=True):
        media = open_media(path)
        cast = look(media.frames(), media.size, None, still=True, recogniser=recogniser)
        people = {person.name for person in cast.people}
        photographs.append(Photograph(path, truth, cast, prepare(media.frames(), cast, recogniser, people=people)))
    return photographs


def deidentified(photographs, recogniser, k, seed, *, method="someone-else", cover=None, loop=True):
    """Return the choice made for the whole batch, and an iterator over the photographs, de-identified."""
    everyone = join([photograph.cast for photograph in photographs], 0.45)
    wishes = treatments(everyone.people)
    subjects = subjects_of([photograph.prepared for photograph in photographs], everyone)
    rng = np.random.default_rng(seed)
    choice = make_plans(wishes, subjects, recogniser, rng, method=method, k=k, cover=cover, loop=loop)
    mask = Mask(method) if method in MASKS else Mask()

    def composed(number, photograph):
        plans = {p.name: choice.plans[everyone.names[number, p.name]] for p in photograph.cast.people}
        frame = next(iter(open_media(photograph.path).frames()))
        return Composer(photograph.cast, plans, photograph.prepared.references, mask).compose(frame)

    return choice, (composed(number, photograph) for number, photograph in enumerate(photographs))


def picked_right(likely, truth, others, listed=10):
    """Return how probably somebody is the likeliest in a list of themselves and ``listed - 1`` of the others.

    The list is drawn at random; it must miss everybody who is likelier. Who is as likely counts as likelier.
    """
    ahead = int((likely[others] >= likely[truth]).sum())
    return comb(len(others) - ahead, listed - 1) / comb(len(others), listed - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faces", type=Path)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variants", default=";".join(VARIANTS), help="separated by semicolons")
    options = parser.parse_args()
    with (options.faces / "labels.csv").open(encoding="utf-8") as file:
        gender = {row["subject"]: row["gender"] for row in csv.DictReader(file)}
    gallery = sorted((options.faces / "portraits").glob("*.jpg"))
    names = [path.stem for path in gallery]
    recognisers, mesher = (SFace(), DlibResNet()), FaceMesh()
    known = [embeddings(read(path), recognisers, mesher) for path in gallery]
    vectors = [np.array([row[i] for row in known]) for i in range(2)]
    rng = np.random.default_rng(options.seed)
    picked = np.sort(rng.choice(len(gallery), options.people, replace=False))
    sets = {"same": (seen([gallery[i] for i in picked], picked, recognisers[0]))}
    second = sorted((options.faces / "second").glob("*.jpg"))
    sets["another"] = seen(second, [names.index(path.stem.split("_")[0]) for path in second], recognisers[0])
    sexes = np.array([gender[name] for name in names])
    print("| variant | recogniser | another photo, rank 1 | same photo, rank 1 | one of ten | no face found | masked |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for variant in options.variants.split(";"):
        start = time.perf_counter()
        first: dict[str, list[list[bool]]] = {"same": [[], []], "another": [[], []]}
        ten: list[list[float]] = [[], []]
        missing = masked = 0
        for kind, photographs in sets.items():
            choice, made = deidentified(photographs, recognisers[0], options.k, options.seed, **VARIANTS[variant])
            for photograph, pixels in zip(photographs, made, strict=True):
                vector = embeddings(pixels, recognisers, mesher)
                missing += vector is None
                for i in range(2):
                    likely = np.full(len(names), -1.0) if vector is None else vectors[i] @ vector[i]
                    hit = vector is not None and int(likely.argmax()) == photograph.truth
                    first[kind][i].append(hit)
                    if kind == "same":
                        truth = int(photograph.truth)
                        others = np.flatnonzero((sexes == sexes[truth]) & (np.arange(len(names)) != truth))
                        ten[i].append(0.0 if vector is None else picked_right(likely, truth, others))
            masked += sum(plan.stands_in for plan in choice.plans.values())
        for i, network in enumerate(recognisers):
            other, same = first["another"][i], first["same"][i]
            print(
                f"| {variant} | {network.name} | {sum(other)} of {len(other)} | {sum(same)} of {len(same)} "
                f"({np.mean(same):.1%}) | {np.mean(ten[i]):.1%} | {missing} | {masked} |",
                flush=True,
            )
        print(f"<!-- {variant}: {time.perf_counter() - start:.0f} s -->", flush=True)


if __name__ == "__main__":
    main()
