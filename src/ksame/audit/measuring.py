"""What is left to use, measured on the pairs that were cropped."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ksame.arrays import FloatArray
from ksame.audit.pairs import PairCrops
from ksame.audit.result import (
    AccuracyRecord,
    DiversityRecord,
    LabelRecord,
    LossRecord,
    MeshRecord,
    PocRecord,
    Utility,
    VerdictRecord,
)
from ksame.errors import UsageError
from ksame.progress import Progress, silent
from ksame.utility import Accuracy, diversity, label_utility, mean_loss, mean_mesh_error, require_classifiers

_CLASSES = 20  # values of a label above which it counts as a number, not as classes
_FACES_APART = 1500  # faces beyond which distances between all pairs are taken over a sample


def measure_utility(pairs: Sequence[PairCrops], *, seed: int = 0, progress: Progress = silent) -> Utility:
    """Measure loss, detection, meshes, labels and diversity."""
    seen = [p for p in pairs if not p.after.empty]
    notes: list[str] = []
    if len(seen) < len(pairs):
        notes.append(f"Labels and diversity leave out {len(pairs) - len(seen)} pictures without a face.")
    labels: list[LabelRecord] = []
    names = list(dict.fromkeys(name for p in seen for name in p.pair.original.attributes))
    for name in progress(names, "reading labels") if names else ():
        records = _label(name, seen, seed)
        labels += [] if isinstance(records, str) else records
        notes += [records] if isinstance(records, str) else []
    before, after = _diversity(seen, seed)
    return Utility(
        detected=float(np.mean([p.after.detected for p in pairs])),
        detected_before=float(np.mean([p.before.detected for p in pairs])),
        loss=_loss(pairs),
        mesh=_mesh(pairs),
        labels=tuple(labels),
        diversity_before=before,
        diversity_after=after,
        notes=tuple(notes),
    )


def poc_points(verdict: VerdictRecord, utility: Utility, method: str, parameter: str) -> list[PocRecord]:
    """Place a release on the privacy operating characteristic: by every label, then by structural similarity."""
    worth = {}
    for label in utility.labels:
        accuracy = label.by_group or label.by_subject
        if label.kernel == "rbf" and accuracy is not None:
            worth[f"{label.label} read rightly"] = accuracy.rate
    if utility.loss is not None:
        worth["structural similarity"] = min(max(utility.loss.ssim, 0.0), 1.0)
    return [
        PocRecord(method=method, parameter=parameter, privacy=1.0 - verdict.rate, utility=value, measure=measure)
        for measure, value in worth.items()
    ]


def compared(own: Sequence[PocRecord], others: Sequence[Sequence[PocRecord]]) -> tuple[PocRecord, ...]:
    """Return this release and others by the first measure that all of them have; nothing where there is none."""
    for point in own:
        same = [next((p for p in points if p.measure == point.measure), None) for points in others]
        if same and all(same):
            return (point, *(other for other in same if other is not None))
    return ()


def _loss(pairs: Sequence[PairCrops]) -> LossRecord | None:
    losses = [p.loss for p in pairs if p.loss is not None]
    if not losses:
        return None
    mean = mean_loss(losses)
    before = float(np.mean([p.entropy_before for p in pairs if p.loss is not None]))
    psnr = mean.psnr if np.isfinite(mean.psnr) else None
    return LossRecord(pairs=len(losses), entropy_before=before, **{**vars(mean), "psnr": psnr})


def _mesh(pairs: Sequence[PairCrops]) -> MeshRecord | None:
    moved = [p.mesh_error for p in pairs if p.mesh_error is not None]
    if not moved:
        return None
    return MeshRecord(pairs=len(moved), **vars(mean_mesh_error(moved)))


def _label(name: str, seen: Sequence[PairCrops], seed: int) -> list[LabelRecord] | str:
    """Return what can be read, or why nothing can."""
    rows = [p for p in seen if p.pair.original.attributes.get(name)]
    values = np.array([p.pair.original.attributes[name] for p in rows])
    kinds = len(np.unique(values))
    if kinds < 2:
        return f"The label {name} has one value only, so there is nothing to read."
    if kinds > _CLASSES or kinds > len(rows) / 4:
        return f"The label {name} has {kinds} values on {len(rows)} faces and was not read as classes."
    try:
        require_classifiers()
    except UsageError as error:
        return f"The label {name} was not read. {error}"
    read = partial(label_utility, labels=values, subjects=[p.subject for p in rows], name=name, seed=seed)
    files = [p.pair.original.name for p in rows]
    same = [b"" if p.after.wide is None else p.after.wide.tobytes() for p in rows]  # equal where every byte is
    before = read(_codes([p.before.tight for p in rows]), groups=files)
    after = read(_codes([p.after.tight for p in rows]), groups=same)
    return [
        LabelRecord(
            label=name,
            kernel=released.kernel,
            majority=released.majority,
            originals=_accuracy(original.by_subject),
            by_subject=_accuracy(released.by_subject),
            by_group=_accuracy(released.by_group),
        )
        for original, released in zip(before, after, strict=True)
    ]


def _accuracy(accuracy: Accuracy | None) -> AccuracyRecord | None:
    return None if accuracy is None else AccuracyRecord(**vars(accuracy))


def _diversity(seen: Sequence[PairCrops], seed: int) -> tuple[DiversityRecord | None, DiversityRecord | None]:
    if len(seen) < 2:
        return None, None
    rows = np.arange(len(seen))
    if len(rows) > _FACES_APART:
        rows = np.sort(np.random.default_rng(seed).choice(rows, _FACES_APART, replace=False))
    pairs = [seen[int(i)] for i in rows]
    before, after = (_codes([getattr(p, side).tight for p in pairs], mean=True) for side in ("before", "after"))
    edge = max(diversity(codes, bins=1).largest for codes in (before, after))
    first, second = (DiversityRecord(**vars(diversity(codes, edge=edge))) for codes in (before, after))
    return first, second


def _codes(faces: Sequence[object], *, mean: bool = False) -> FloatArray:
    """Return pixels, (n_faces, n_pixels); with ``mean``, scaled so that distances are in grey values per pixel."""
    rows = np.stack([np.asarray(face, dtype=np.float32).ravel() for face in faces])
    return np.asarray(rows / np.sqrt(rows.shape[1]) if mean else rows / 255.0)
