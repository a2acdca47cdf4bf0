"""Whether a label such as gender or expression can still be read from the faces.

Support vector machines with a linear kernel (Gross et al. 2005) and with a radial one (Gross et al. 2006), five-fold.
The papers keep the images of a subject in one fold. A k-Same release shows one face for several subjects, so the same
bytes then stand in training and test; folds by group keep equal bytes together as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ksame.arrays import FloatArray, IntArray
from ksame.attacks.base import connected
from ksame.attacks.scoring import clopper_pearson
from ksame.errors import InputError, UsageError, parameter_error

Kernel = Literal["linear", "rbf"]
KERNELS: tuple[Kernel, ...] = ("linear", "rbf")
FOLDS = 5
_COST = 10.0  # of a face on the wrong side, with a kernel whose faces have unit variance


@dataclass(frozen=True)
class Accuracy:
    """How often a label was read correctly from faces that were not trained on."""

    rate: float
    # Clopper-Pearson, 95 %; faces that share bytes are not independent, so it is optimistic for k-Same
    interval: tuple[float, float]
    n_faces: int


@dataclass(frozen=True)
class LabelUtility:
    """One label read by one kernel."""

    label: str
    kernel: Kernel  # {"linear", "rbf"}
    # None where there are too few subjects, or groups, for the folds
    by_subject: Accuracy | None
    by_group: Accuracy | None
    majority: float  # what always naming the commonest class scores


def require_classifiers() -> None:
    """Raise where labels cannot be read: scikit-learn comes with an extra, since nothing else needs it."""
    if find_spec("sklearn") is None:
        raise UsageError("Reading labels needs scikit-learn. Install it with `pip install 'ksame[labels]'`.")


def label_utility(
    codes: FloatArray,
    labels: Sequence[str] | NDArray[np.str_],
    *,
    subjects: Sequence[str] | NDArray[np.str_],
    groups: Sequence[Any] | NDArray[Any],
    name: str,
    folds: int = FOLDS,
    seed: int = 0,
) -> list[LabelUtility]:
    """Train and test on released faces, by both kernels and both kinds of folds.

    Parameters
    ----------
    codes : ndarray of shape (n_faces, n_features)
        Pixels, or any coding.
    labels, subjects : sequence of length n_faces
    groups : sequence of length n_faces
        Equal where the released bytes are; see :func:`ksame.privacy.models.patterns`.
    name : str
        Of the label.
    seed : int
        Shuffles subjects and groups into folds.
    """
    require_classifiers()
    classes = np.asarray(labels)
    if not len(codes) == len(classes) == len(subjects) == len(groups):
        raise InputError(
            f"Expected as many labels, subjects and groups as faces, {len(codes)}. "
            f"Got {len(classes)}, {len(subjects)} and {len(groups)}."
        )
    if folds < 2:
        raise parameter_error("folds", "label_utility", "an integer of at least 2", folds)
    _, counts = np.unique(classes, return_counts=True)
    if len(counts) < 2:
        raise InputError(f"The label {name!r} has one value only, so there is nothing to tell apart.")
    gram = _gram(codes)
    people = np.unique(np.asarray(subjects), return_inverse=True)[1]
    together = connected(people, groups)
    readings = []
    for kernel in KERNELS:
        matrix = gram if kernel == "linear" else _radial(gram)
        rates = [_accuracy(matrix, classes, unit, folds, seed) for unit in (people, together)]
        readings.append(LabelUtility(name, kernel, rates[0], rates[1], float(counts.max() / counts.sum())))
    return readings


def _gram(codes: FloatArray) -> FloatArray:
    """Return inner products of centred faces, scaled so that a face has length one on average."""
    rows = np.asarray(codes, dtype=np.float32)
    gram = np.asarray(rows @ rows.T, dtype=np.float64)
    gram = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    size = float(np.trace(gram)) / len(gram)
    return np.asarray(gram / size if size > 0 else gram)


def _radial(gram: FloatArray) -> FloatArray:
    """Return a Gaussian of the distance; its width is the median distance."""
    square = np.diag(gram)[:, None] + np.diag(gram)[None, :] - 2 * gram
    apart = square[np.triu_indices(len(square), 1)]
    width = float(np.median(apart[apart > 1e-9])) if (apart > 1e-9).any() else 1.0
    return np.asarray(np.exp(-square.clip(0, None) / width))


def _accuracy(kernel: FloatArray, classes: NDArray[Any], unit: IntArray, folds: int, seed: int) -> Accuracy | None:
    from sklearn.model_selection import StratifiedGroupKFold
    from sklearn.svm import SVC

    carriers = [len(np.unique(unit[classes == c])) for c in np.unique(classes)]
    if len(np.unique(unit)) < folds or min(carriers) < 2:
        return None
    right = np.zeros(len(classes), dtype=bool)
    codes = np.unique(classes, return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(len(classes))
    smallest = int(np.bincount(codes).min())
    splitter = StratifiedGroupKFold(n_splits=min(folds, smallest))
    for train, test in splitter.split(order, codes[order], unit[order]):
        rows, test_rows = order[train], order[test]
        if len(np.unique(codes[rows])) < 2:
            guess = np.full(len(test_rows), codes[rows[0]])
        else:
            machine = SVC(C=_COST, kernel="precomputed").fit(kernel[np.ix_(rows, rows)], codes[rows])
            guess = machine.predict(kernel[np.ix_(test_rows, rows)])
        right[test_rows] = guess == codes[test_rows]
    return Accuracy(float(right.mean()), clopper_pearson(int(right.sum()), len(right)), len(right))
