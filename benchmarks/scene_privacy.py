"""Who is still recognised in photographs that were de-identified: three recognisers, of which SFace is in the loop.

``python -m benchmarks.scene_privacy FOLDER --set heldout -o SCRATCH [--cover head] [--k 10] [--seed 1] [--method M]``
de-identifies by the command line, anew each time, leaves the pictures in SCRATCH and judges them there. With
``--made DIR`` pictures are judged that are there already, named as their originals or, with ``--link-table FILE``,
numbered; both options may be given several times.

- ``--set heldout``: FOLDER holds ``portraits`` (one photograph per person, named by subject), ``second`` (other
  photographs of some of them, named SUBJECT_1.jpg), ``labels.csv`` (subject, gender) and ``heldout.txt`` (the subjects
  whose portraits are de-identified). The gallery is all untouched portraits.
- ``--set people``: FOLDER holds photographs named by subject and ``labels.csv``. The gallery is these photographs.
  Women and men, and the half with darker and that with lighter skin (median brightness of the cheeks in the photograph,
  split at the median of the set), are judged apart too.

Three attacks:

- *another photograph*: the second photographs de-identified; who in the gallery is likeliest?
- *same photograph*: photographs of the gallery de-identified; who in the gallery is likeliest?
- *one of ten*: the same, but the gallery holds ten people of the same gender, the right one among them: chance 10 %.
  Computed for all possible lists of nine others rather than drawn once per person. Where no face is found, the attacker
  guesses.

*No face found* counts released pictures in which the detector finds none, *masked* those in which nobody was replaced:
all of them where the method is a mask.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from math import comb
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.edgeface import EdgeFace
from benchmarks.released import Reader, Recipe, Released, deidentify, kept, picture_files, read
from ksame.arrays import ByteArray, FloatArray
from ksame.models import DlibResNet, SFace
from ksame.spaces.facemodel.geometry import CHEEKS, polygon

LISTED = 10
SIZES = (512, 128, 128)
"""Lengths of the recognisers' vectors."""


class Observer:
    """Everything that is measured on one photograph, as one row: three vectors and the brightness of the cheeks."""

    def __init__(self) -> None:
        self.recognisers = (EdgeFace(), SFace(), DlibResNet())
        self._reader = Reader()

    def row(self, path: Path) -> FloatArray:
        """Return a row of shape (769,); not a number where there is no face, or no mesh to find the cheeks by."""
        pixels = read(path)
        face = self._reader.face(pixels)
        if face is None:
            return np.full(sum(SIZES) + 1, np.nan)
        light = np.nan if face.mesh is None else brightness(pixels, face.mesh.points)
        return np.concatenate([*(network.embed(pixels, face.landmarks) for network in self.recognisers), [light]])

    def rows(self, paths: Sequence[Path]) -> FloatArray:
        """Return one row per photograph."""
        return np.array([self.row(path) for path in paths]).reshape(len(paths), sum(SIZES) + 1)


def brightness(pixels: ByteArray, points: FloatArray) -> float:
    """Return the median brightness, 0 to 255, of the cheeks of a mesh of shape (478, 2 or 3)."""
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    return float(np.median(np.concatenate([grey[polygon(grey.shape, points[list(one), :2])] for one in CHEEKS])))


def split(rows: FloatArray) -> list[FloatArray]:
    """Return the vectors of each recogniser, (n, d), out of rows."""
    return np.split(rows[:, :-1], np.cumsum(SIZES)[:-1], axis=1)


@dataclass(frozen=True, eq=False)
class Study:
    """Photographs of known people, and which of them are de-identified.

    Attributes
    ----------
    gallery : tuple of Path
        One untouched photograph per person.
    genders : ndarray of shape (n_people,)
    probes : mapping of attack to (paths, numbers in the gallery)
    by_group : bool
        Whether women and men, and people with darker and lighter skin, are also judged apart.
    """

    gallery: tuple[Path, ...]
    genders: NDArray[np.str_]
    probes: Mapping[str, tuple[list[Path], list[int]]]
    by_group: bool = False


def heldout(folder: Path, people: int | None) -> Study:
    """Portraits, of which some are held out, and second photographs."""
    gallery = picture_files(folder / "portraits")
    subjects = [path.stem for path in gallery]
    chosen = _some((folder / "heldout.txt").read_text(encoding="utf-8").split(), people)
    second = [path for path in picture_files(folder / "second") if path.stem.split("_")[0] in chosen]
    probes = {
        "another": (second, [subjects.index(path.stem.split("_")[0]) for path in second]),
        "same": ([gallery[subjects.index(name)] for name in chosen], [subjects.index(name) for name in chosen]),
    }
    return Study(tuple(gallery), _genders(folder, subjects), probes)


def everyone(folder: Path, people: int | None) -> Study:
    """Photographs of people, all of whom are de-identified; judged by gender and skin as well."""
    gallery = picture_files(folder)
    chosen = _some(gallery, people)
    probes = {"same": (chosen, [gallery.index(path) for path in chosen])}
    return Study(tuple(gallery), _genders(folder, [path.stem for path in gallery]), probes, by_group=True)


SETS = {"heldout": heldout, "people": everyone}


def _some(items: list, count: int | None) -> list:
    """Return ``count`` items, evenly spread."""
    if count is None or count >= len(items):
        return items
    return [items[i] for i in np.linspace(0, len(items) - 1, count).round().astype(int)]


def _genders(folder: Path, subjects: Sequence[str]) -> NDArray[np.str_]:
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as table:
        known = {row["subject"]: row["gender"] for row in csv.DictReader(table)}
    return np.array([known[name] for name in subjects])


@dataclass
class Scores:
    """What one recogniser made of probes: per probe, whether right at rank 1, and how probably out of ten."""

    truths: NDArray[np.intp]
    first: NDArray[np.bool_]
    ten: FloatArray = field(repr=False)

    def of(self, people: NDArray[np.bool_]) -> Scores:
        """Return the scores of some of the people in the gallery."""
        chosen = people[self.truths]
        return Scores(self.truths[chosen], self.first[chosen], self.ten[chosen])


def attack(gallery: FloatArray, probes: FloatArray, truths: Sequence[int], genders: NDArray[np.str_]) -> Scores:
    """Look for the people of probes, (m, d), in a gallery, (n, d); a row of not-a-numbers is a face not found."""
    first, ten = [], []
    for probe, truth in zip(probes, truths, strict=True):
        likely = np.nan_to_num(gallery @ probe, nan=-1.0)
        found = not np.isnan(probe).any()
        others = np.flatnonzero((genders == genders[truth]) & (np.arange(len(genders)) != truth))
        first.append(found and int(likely.argmax()) == truth)
        ten.append(picked_right(likely, truth, others) if found else 1 / LISTED)
    return Scores(np.array(truths, dtype=np.intp), np.array(first, dtype=bool), np.array(ten))


def picked_right(likely: FloatArray, truth: int, others: NDArray[np.intp], listed: int = LISTED) -> float:
    """Return how probably somebody is the likeliest in a list of themselves and ``listed - 1`` of the others.

    The list is drawn at random; it must miss everybody who is likelier. Who is as likely counts as likelier.
    """
    ahead = int((likely[others] >= likely[truth]).sum())
    return comb(len(others) - ahead, listed - 1) / comb(len(others), listed - 1)


def groups(study: Study, light: FloatArray) -> dict[str, NDArray[np.bool_]]:
    """Return who is judged together: all, and women, men, darker and lighter skin where asked for."""
    named = {"all": np.ones(len(study.gallery), dtype=bool)}
    if study.by_group:
        middle = np.nanmedian(light)
        named |= {"women": study.genders == "F", "men": study.genders == "M"}
        named |= {"darker skin": light < middle, "lighter skin": light >= middle}
        print(f"Skin: median brightness of the cheeks in the photograph, split at {middle:.0f} of 255.\n")
    return named


def released(study: Study, options: argparse.Namespace) -> dict[str, Released]:
    """Return what became of the probes of each attack: as it is in ``--made``, or made now."""
    if options.made:
        pairs = list(zip_longest(options.made, options.link_table or ()))
        return {name: _merged(paths, pairs) for name, (paths, _) in study.probes.items()}
    recipe = Recipe(options.cover, options.k, options.seed, options.method)
    folder = options.output / "-".join([options.set, *str(recipe).replace(",", "").split(), *_limit(options)])
    print(f"Released by `ksame deidentify {' '.join(recipe.words)}` into {folder}.\n", flush=True)
    return {name: deidentify(paths, folder / name, recipe) for name, (paths, _) in study.probes.items()}


def _limit(options: argparse.Namespace) -> list[str]:
    return [] if options.people is None else [f"{options.people}-people"]


def _merged(paths: Sequence[Path], pairs: Sequence[tuple[Path, Path | None]]) -> Released:
    """Find originals in several folders; the first that holds one counts."""
    found = [Released.of(paths, folder, table) for folder, table in pairs]
    made = {stem: path for one in reversed(found) for stem, path in one.made.items()}
    known = [one.masked for one in found if one.masked is not None]
    return Released(made, frozenset().union(*known) if known else None)


def report(study: Study, done: Mapping[str, Released], scratch: Path, name: str) -> None:
    """Print the table of one set."""
    observer = Observer()
    rows = kept(scratch / f"gallery-{name}.npz", study.gallery, lambda: observer.rows(study.gallery))
    lost = np.isnan(rows[:, 0]).sum()
    print(f"Gallery: {len(rows)} photographs, {lost} without a face that is found.\n")
    vectors, named = split(rows), groups(study, rows[:, -1])
    scores: dict[str, list[Scores]] = {}
    missing, masked = [], []
    for kind, (paths, truths) in study.probes.items():
        pairs = [(p, t) for p, t in zip(paths, truths, strict=True) if p.stem in done[kind].made]
        print(f"{kind} photograph: {len(pairs)} of {len(paths)} were released.\n")
        seen = observer.rows([done[kind].made[path.stem] for path, _ in pairs])
        numbers = [truth for _, truth in pairs]
        scores[kind] = [attack(v, p, numbers, study.genders) for v, p in zip(vectors, split(seen), strict=True)]
        missing.append(int(np.isnan(seen[:, 0]).sum()))
        masked.append(done[kind].masked)
    lost_or_masked = f"{sum(missing)} | {'–' if None in masked else sum(map(len, masked))}"
    print("| people | recogniser | another photo, rank 1 | same photo, rank 1 | one of ten | no face found | masked |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for group, chosen in named.items():
        for i, network in enumerate(observer.recognisers):
            cells = [share(scores[kind][i].of(chosen).first) if kind in scores else "–" for kind in ("another", "same")]
            ten = scores["same"][i].of(chosen).ten
            cells.append(f"{ten.mean():.1%}" if len(ten) else "–")
            end = lost_or_masked if group == "all" else " | "
            print(f"| {group} | {network.name} | {' | '.join(cells)} | {end} |")


def share(hits: NDArray[np.bool_]) -> str:
    """Return hits as a count and a share."""
    return f"{hits.sum()} of {len(hits)} ({hits.mean():.1%})" if len(hits) else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", choices=SETS, default="heldout")
    parser.add_argument("-o", "--output", type=Path, required=True, help="scratch folder, which is kept between runs")
    parser.add_argument("--people", type=int, help="judge only so many, evenly spread; all by default")
    parser.add_argument("--made", type=Path, action="append", help="folder of pictures that are de-identified already")
    parser.add_argument("--link-table", type=Path, action="append", help="of the folder given by --made, in order")
    parser.add_argument("--cover")
    parser.add_argument("--method")
    parser.add_argument("-k", "--k", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    start = time.perf_counter()
    study = SETS[options.set](options.folder, options.people)
    done = released(study, options)
    made = time.perf_counter() - start
    report(study, done, options.output, options.set)
    print(f"\n<!-- made in {made:.0f} s, judged in {time.perf_counter() - start - made:.0f} s -->")


if __name__ == "__main__":
    main()
