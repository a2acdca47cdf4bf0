"""Sun, Meng and Ariyaeeinia (2015): k-Diff-furthest is never named in its own distance, and keeps faces different."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray, IntArray
from ksame.attacks import AttackData, Eigenfaces, Embedding, rank1_scores
from ksame.attacks.arithmetic import difference_votes
from ksame.attacks.scoring import clopper_pearson
from ksame.faces.faceset import FaceSet, quantise
from ksame.methods import Furthest, KSame
from ksame.methods.furthest import Condition, pair_clusters
from ksame.models import SFace
from ksame.papers.experiment import Findings, Pictures, Row, Task
from ksame.papers.figures import Bars, Curves, Histograms, Sheet
from ksame.papers.measure import attack, mean_rate, released_codes
from ksame.papers.paper import Paper
from ksame.papers.sun2015_claims import ALONE, CLAIMS, CONDITIONS, JOINED, OURS, SETS
from ksame.spaces import AamSpace
from ksame.spaces.reference import cross_squared_distances
from ksame.utility import diversity

TRAINING, TESTED = 783, 40
KS = (2, 3, 4, 5, 6, 7, 8, 9, 10)
RUNS = 1000
K = 5
"""Of Table I and Figs. 8 and 9."""

PAPER = Paper(
    "sun2015",
    "Z. Sun, L. Meng, A. Ariyaeeinia. Distinguishable De-identified Faces. FG 2015.",
    "LFPW and IMM: an appearance model of 823 faces, 40 neutral faces tested, 1,000 runs",
    CLAIMS,
)

_BINS = 24
_SIZE = (168, 132)


@dataclass(frozen=True, eq=False)
class _People:
    """The forty people of the experiments and the appearance model in which they are coded."""

    space: AamSpace
    faces: FaceSet
    codes: FloatArray

    def release(self, method: Furthest | KSame, seed: int) -> tuple[FloatArray, IntArray]:
        return released_codes(self.codes, self.faces.subjects, method, seed)

    def pictures(self, codes: FloatArray, subjects: NDArray[Any]) -> FaceSet:
        """Render codes as faces with the points of their mesh."""
        return FaceSet(quantise(self.space.decode(codes)), subjects, self.space.landmarks(codes))


def _people(task: Task) -> _People:
    """Build a model of 9 shape and 50 texture parameters, brightness left out, and code the forty in it."""
    known = task.faces(TRAINING + TESTED, size=_SIZE, grey=False, whole=True)
    n = len(known)
    tested = np.random.default_rng(task.seed).permutation(n)[: min(TESTED, n)]
    shape, texture = min(9, n - 2), min(50, n - 2)
    space = AamSpace(shape=shape, texture=texture, zero_first_texture=True).fit(known)
    faces = known.take(np.sort(tested))
    return _People(space, faces, space.encode(faces))


@PAPER.experiment(
    "fig6",
    "Figs. 6 and 7",
    Curves("fig6", "Rank-1 recognition over k.", "k", ("method",), bound=True),
    Curves(
        "fig7",
        "The same without k-Same-M, larger.",
        "k",
        ("method",),
        {"method": (*(f"k-Diff, {c} condition, {what}" for c in CONDITIONS for what in (ALONE, JOINED)), OURS)},
        zoomed=True,
    ),
    heavy=True,
)
def recognition(task: Task) -> Findings:
    """Recognition in the own distance.

    Over k, and who is left at the end of a run.
    """
    people = _people(task)
    codes, n = people.codes, len(people.codes)
    runs = task.scale.runs(RUNS)
    rows: list[Row] = []
    for k in task.progress([k for k in task.scale.levels(KS, keep=(2, 5, 10)) if 2 * k <= n], "k-Diff"):
        scores: dict[str, list[FloatArray]] = {}
        left: dict[str, list[int]] = {}
        for run in range(runs):
            for method, (made, source, lost) in _runs(people, k, task.seed + run).items():
                distances = np.sqrt(cross_squared_distances(made, codes))
                scores.setdefault(method, []).append(rank1_scores(distances, np.arange(n), source))
                left.setdefault(method, []).append(lost)
        for method, by_run in scores.items():
            rates = [float(s.sum()) / n for s in by_run]
            low, high = clopper_pearson(float(sum(s.sum() for s in by_run)), sum(len(s) for s in by_run))
            over = float(np.mean(left[method])) / n
            rows.append(
                {"method": method, "k": k, "rank1": float(np.mean(rates)), "most": max(rates), "low": low,
                 "high": high, "left_over": over, "n": n, "runs": runs}
            )  # fmt: skip
    notes = (
        f"{n} people coded in a model of {codes.shape[1]} parameters, {runs} runs for every k",
        "left_over: share of faces that found no cluster; the paper lets them swap or join the last clusters, we "
        "repair, and withhold what cannot be repaired",
    )
    return Findings(rows, notes)


def _runs(people: _People, k: int, seed: int) -> dict[str, tuple[FloatArray, IntArray, int]]:
    """Release once by every method: released codes, whom they stand for, and how many found no cluster."""
    codes, n = people.codes, len(people.codes)
    closest = people.release(KSame(k), seed)
    made: dict[str, tuple[FloatArray, IntArray, int]] = {"k-Same-M": (*closest, 0)}
    for condition in CONDITIONS:
        pairs, left = pair_clusters(codes, k, "shifted", condition, np.random.default_rng(seed), repair=False)
        for what, then in ((ALONE, [*pairs, *_swaps(codes, left)]), (JOINED, _joined(codes, pairs, left))):
            made[f"k-Diff, {condition} condition, {what}"] = (*_shifted(codes, then), len(left))
    ours = people.release(Furthest(k), seed)
    made[OURS] = (*ours, n - len(ours[0]))
    return made


Pairs = list[tuple[list[int], list[int]]]


def _shifted(codes: FloatArray, pairs: Pairs) -> tuple[FloatArray, IntArray]:
    """Give every cluster the place of the other one (eq. 1)."""
    made, source = [], []
    for pair in pairs:
        for own, other in (pair, pair[::-1]):
            made.append(codes[own] - codes[own].mean(axis=0) + codes[other].mean(axis=0))
            source += own
    return np.concatenate(made), np.array(source, dtype=np.intp)


def _swaps(codes: FloatArray, left: list[int]) -> Pairs:
    """Let leftovers change faces two by two: what a pair of one-member clusters comes to."""
    pairs, waiting = [], list(left)
    while len(waiting) > 1:
        first = waiting.pop(0)
        far = max(waiting, key=lambda i: float(((codes[i] - codes[first]) ** 2).sum()))
        waiting.remove(far)
        pairs.append(([first], [far]))
    return pairs


def _joined(codes: FloatArray, pairs: Pairs, left: list[int]) -> Pairs:
    """Let leftovers join the cluster in which they are protected, or else the least bad one (lines 23 to 29)."""
    if not pairs:
        return _swaps(codes, left)
    made = [(list(first), list(second)) for first, second in pairs]
    for face in left:
        tries = [
            (_margin(codes, face, pair[side], pair[1 - side]), p, side)
            for p, pair in enumerate(made)
            for side in (0, 1)
        ]
        _, best, side = max(tries)
        made[best][side].append(face)
    return made


def _margin(codes: FloatArray, face: int, own: list[int], other: list[int]) -> float:
    """Return how much nearer a face would be to somebody else than to itself if it joined a cluster."""
    shift = codes[other].mean(axis=0) - codes[[*own, face]].mean(axis=0)
    gaps = np.linalg.norm(codes - (codes[face] + shift), axis=1)
    gaps[face] = np.inf
    return float(np.linalg.norm(shift) - gaps.min())


def _methods(k: int, condition: Condition = "exact") -> dict[str, Furthest | KSame]:
    return {
        "k-Diff-furthest": Furthest(k, condition=condition),
        "k-Same-closest": KSame(k),
        "k-Same-furthest": Furthest(k, release="centroid", condition=condition),
    }


def _spread_methods(k: int) -> dict[str, Furthest | KSame]:
    """Return the methods of Table I with the paper's own condition, and ours."""
    ours = _methods(k)
    exact = {f"{name}, exact condition": ours[name] for name in ("k-Diff-furthest", "k-Same-furthest")}
    return {**_methods(k, "paper"), **exact}


@PAPER.experiment(
    "table1",
    "Table I, Fig. 8",
    Histograms(
        "fig8",
        "Distances between all pairs of faces.",
        "distance",
        "pairs",
        ("set",),
        {"set": SETS},
        "distance in the model",
    ),
)
def spread(task: Task) -> Findings:
    """Diversity of released faces."""
    people = _people(task)
    k = min(K, len(people.codes) // 4)
    edge = float(np.sqrt(cross_squared_distances(people.codes, people.codes)).max()) * 1.05
    runs = task.scale.runs(100)
    rows: list[Row] = []
    for name, method in {"originals": None, **_spread_methods(k)}.items():
        sets = [people.codes] if method is None else [people.release(method, task.seed + r)[0] for r in range(runs)]
        spreads = [diversity(codes, bins=_BINS, edge=edge) for codes in sets]
        columns = zip(*((s.smallest, s.largest, s.mean, s.std) for s in spreads), strict=True)
        table = {what: float(np.mean(c)) for what, c in zip(("min", "max", "average", "std"), columns, strict=True)}
        rows.append({"method": name, "k": k, **table, "runs": len(spreads)})
        width = edge / _BINS
        rows += [{"set": name, "distance": i * width, "pairs": c} for i, c in enumerate(spreads[0].counts)]
    notes = (
        f"{len(people.codes)} people, k = {k}; the table averages {runs} runs, the histograms show the first",
        "std leaves out the pairs that show one and the same face, as the paper does",
        "clusters grow by the condition of the paper, and leftovers are repaired; our exact condition beside it",
    )
    return Findings(rows, notes)


@PAPER.experiment("fig9", "Fig. 9", Sheet("fig9", "Most and least alike, and how far apart."))
def pairs(task: Task) -> Findings:
    """Pairs of faces."""
    people = _people(task)
    made, source = people.release(Furthest(min(K, len(people.codes) // 4)), task.seed)
    rows: list[Row] = []
    images, captions = [], []
    for name, codes, who in (
        ("originals", people.codes, people.faces.subjects),
        ("k-Diff", made, people.faces.subjects[source]),
    ):
        distances = np.sqrt(cross_squared_distances(codes, codes))
        far = np.unravel_index(distances.argmax(), distances.shape)
        np.fill_diagonal(distances, np.inf)
        near = np.unravel_index(distances.argmin(), distances.shape)
        for what, (i, j) in (("most alike", near), ("least alike", far)):
            gap = float(np.linalg.norm(codes[i] - codes[j]))
            rows.append({"set": name, "pair": what, "distance": gap})
            images.append(quantise(people.pictures(codes[[i, j]], who[[i, j]]).images))
            captions.append(f"{name},\n{what}\n{gap:.1f}")
    return Findings(rows, (), Pictures(np.stack(images), tuple(captions), ("", "")))


@PAPER.experiment(
    "deep",
    "beyond the paper",
    Bars(
        "deep",
        "k = 5: naive recognition by three recognisers, and by difference vectors.",
        "method",
        ("recogniser",),
        {"k": (1, 5), "gallery": "rendered originals"},
    ),
)
def deep(task: Task) -> Findings:
    """What other recognisers say.

    Those that the theorem does not speak of; and what difference vectors tell.
    """
    people = _people(task)
    n, subjects = len(people.codes), people.faces.subjects
    cropped = people.pictures(people.codes, subjects)
    network = Embedding(SFace())
    rows: list[Row] = [
        attack("naive", network, AttackData(gallery, cropped), method="untouched", k=1, gallery=what)
        for what, gallery in (("rendered originals", cropped), ("photographs", people.faces))
    ]
    for k in task.progress([k for k in (2, 3, 5, 10) if 4 * k <= n or k == 2], "recognisers"):
        for name, method in _methods(k).items():
            made, source = people.release(method, task.seed)
            shown = people.pictures(made, subjects[source])
            labels = {"method": name, "k": k, "gallery": "rendered originals"}
            own = rank1_scores(np.sqrt(cross_squared_distances(made, people.codes)), subjects, subjects[source])
            rows.append(mean_rate([own], **labels, attack="naive", recogniser="own distance"))
            data = AttackData(cropped, shown)
            rows += [attack("naive", recogniser, data, **labels) for recogniser in (network, Eigenfaces())]
            photographs = AttackData(people.faces, shown)
            rows.append(attack("naive", network, photographs, **{**labels, "gallery": "photographs"}))
            votes = difference_votes(made, people.codes)
            told = rank1_scores(-votes, subjects, subjects[source])
            rows.append(mean_rate([told], **labels, attack="difference", recogniser="difference vectors"))
    notes = (
        f"{n} people; released faces rendered from their parameters, 168 x 132 pixels in colour",
        "difference vectors: pairings under which many released faces lie alike to their originals",
    )
    return Findings(rows, notes)
