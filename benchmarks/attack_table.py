"""How often people are named after de-identification, by scenario: the table of docs/attacks.md.

    python -m benchmarks.attack_table [--people N] [--recogniser eigenfaces|sface] [--components N]
                                      [--methods NAME,NAME] [--portraits FOLDER]

Every portrait is released once and attacked with the same photograph in the gallery, the closed world of Newton et al.
(2005). Needs the folder of real portraits, named by KSAME_SHARED or ``--portraits``.
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.portraits import portraits
from ksame.attacks import SCENARIOS, AttackData, Eigenfaces, Embedding, Recogniser, run_attack
from ksame.deidentify import deidentify
from ksame.errors import KsameWarning
from ksame.faces.faceset import FaceSet
from ksame.models import SFace
from ksame.recipes import recipe

METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("bar-mask", {}),
    ("t-mask", {}),
    ("blackout", {}),
    ("noise", {"m": 9000}),
    ("threshold", {"t": 118.0}),
    ("pixelate", {"p": 8}),
    ("pixelate", {"p": 15}),
    ("blur", {"sigma": 4.0}),
    ("blur", {"sigma": 8.0}),
    ("k-same-pixel", {"k": 2}),
    ("k-same-pixel", {"k": 5}),
    ("k-same-eigen", {"k": 5}),
    ("k-same-furthest", {"k": 5}),
    ("k-diff-furthest", {"k": 3}),
    ("k-diff-furthest", {"k": 5}),
)
COLUMNS = tuple(name for name in SCENARIOS if name != "pooled")


def release(faces: FaceSet, name: str, params: dict[str, Any]) -> tuple[FaceSet, float | None]:
    """Release faces; return them with the people they stand for, and the promised bound."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KsameWarning)
        made, linkage = deidentify(faces, recipe(name, **params), seed=1)
    return FaceSet(made.faces, np.array([face.subject for face in linkage.faces])), made.certificate.promise.bound


def table(faces: FaceSet, recogniser: Recogniser, methods: tuple[str, ...] = ()) -> list[str]:
    """Return the lines of the table, in Markdown."""
    heading = ("method", *COLUMNS, "promised")
    lines = [f"| {' | '.join(heading)} |", f"|{' --- |' * len(heading)}"]
    untouched = run_attack("naive", recogniser, AttackData(faces, faces)).rank1
    lines.append(f"| untouched | {untouched:.1%} |{' |' * len(COLUMNS)}")
    for name, params in METHODS:
        if methods and name not in methods:
            continue
        released, bound = release(faces, name, params)
        data = AttackData(faces, released)
        cells = []
        for scenario in COLUMNS:
            result = run_attack(scenario, recogniser, data)
            verdict = result.verdict(bound)
            cells.append(f"{result.rank1:.1%}" + (" **broken**" if verdict and verdict.value == "broken" else ""))
        shown = ", ".join(f"{key} = {value:g}" for key, value in params.items())
        promise = "nothing" if bound is None else f"{bound:.1%}"
        lines.append(f"| {name} {shown} | {' | '.join(cells)} | {promise} |")
        print(lines[-1], flush=True)
    return lines


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=600)
    parser.add_argument("--recogniser", choices=("eigenfaces", "sface"), default="eigenfaces")
    parser.add_argument("--components", type=int)
    parser.add_argument("--methods", default="")
    parser.add_argument("--portraits", type=Path)
    options = parser.parse_args(arguments)
    faces = portraits(options.portraits)
    faces = faces.take(np.arange(min(options.people, len(faces))))
    start = time.perf_counter()
    recogniser: Recogniser = Embedding(SFace())
    if options.recogniser == "eigenfaces":
        recogniser = Eigenfaces(options.components)
    lines = table(faces, recogniser, tuple(filter(None, options.methods.split(","))))
    print(f"\n{len(faces)} people, {recogniser.name}, {time.perf_counter() - start:.0f} s\n", *lines, sep="\n")


if __name__ == "__main__":
    main()
