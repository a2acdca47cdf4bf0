"""Homogeneity: what a kept label tells about everybody who shares a face.

Who is known to be among the k people behind a released face is known to have a label that all of them have, however
large k is (Machanavajjhala et al. 2007, l-diversity). Keeping a label apart makes its groups homogeneous on purpose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from ksame.privacy.rounding import rough


def homogeneity(shared: NDArray[Any], labels: Sequence[str]) -> dict[str, float]:
    """Measure how far released faces give away a label of the people behind them.

    Parameters
    ----------
    shared : ndarray of shape (n_copies,)
        Equal numbers for copies of the same released face.
    labels : sequence of length n_copies
        The label of the originals behind each copy.

    Returns
    -------
    figures : mapping
        ``smallest_label_diversity``: the fewest different labels behind a face (l of l-diversity; 1: the face gives
        the label of everyone behind it away). ``label_homogeneity``: how often the most frequent label behind a face
        is that of somebody behind it. ``label_by_chance``: how often the most frequent label of all is.

    Examples
    --------
    >>> import numpy as np
    >>> homogeneity(np.array([0, 0, 0, 1, 1, 1]), ["F", "F", "F", "F", "M", "M"])
    {'smallest_label_diversity': 1, 'label_homogeneity': 0.83, 'label_by_chance': 0.67}
    """
    behind: dict[int, Counter[str]] = {}
    for face, label in zip(shared.tolist(), labels, strict=True):
        behind.setdefault(face, Counter())[label] += 1
    counts = list(behind.values())
    guessed = sum(max(each.values()) for each in counts)
    return {
        "smallest_label_diversity": min(len(each) for each in counts),
        "label_homogeneity": rough(guessed / len(labels)),
        "label_by_chance": rough(max(Counter(labels).values()) / len(labels)),
    }
