"""How many real people share a face: who is confirmed as a person, and who may be one and the same.

To replace a face it is enough that it may be one. To count it as somebody among whom others are hidden, it must be
confirmed, and be somebody else than the others: counting too few only promises too little.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from ksame.arrays import ByteArray
from ksame.models import Face, FaceDetector
from ksame.scene.decide.subject import Subject
from ksame.scene.observe import DetectorConfig
from ksame.scene.observe.confirm import Examiner
from ksame.scene.observe.detect import search_near


@lru_cache(maxsize=1)
def _examiner() -> tuple[FaceDetector, Examiner]:
    """Load the networks once for all files; they may be used from several threads."""
    detector = FaceDetector()
    return detector, Examiner(detector)


def is_person(rgb: ByteArray, face: Face, config: DetectorConfig) -> bool:
    """Tell whether a face in a frame, (height, width, 3), is a person's beyond doubt.

    Both second opinions must say so, where one is enough to replace it: a drawing may well pass one of them. ``again``
    and ``second`` of the configuration are what they must reach; see there for the measurement.
    """
    detector, examiner = _examiner()
    detection = search_near(detector, rgb, np.array(face.box), face.roll, config.low)
    if detection is None or not face.confirmed:
        return False
    opinions = examiner.examine(rgb, detection)
    return opinions.again >= config.again and opinions.second >= config.second


def distinct(people: Sequence[Subject], threshold: float) -> dict[str, int]:
    """Number the confirmed people of a group so that those who may be one person have one number.

    They may be from the cosine ``threshold`` of two views on. Nothing else counts: one person may be twice in a
    picture, in a mirror or a collage.
    """
    confirmed = [person for person in people if person.confirmed]
    embeddings = [np.stack([view.embedding for view in person.views]) for person in confirmed]
    numbers = list(range(len(confirmed)))
    for i in range(len(confirmed)):
        for j in range(i):
            if (embeddings[i] @ embeddings[j].T).max() >= threshold:
                old, new = numbers[i], numbers[j]
                numbers = [new if number == old else number for number in numbers]
    return {person.name: number for person, number in zip(confirmed, numbers, strict=True)}


def smallest_sharing(people: Iterable[tuple[int | str, int | None]]) -> int | None:
    """Return the smallest number of real people who share a face; None where nobody does.

    ``people`` are all who were replaced: their group, and their number in it, None for whoever is not confirmed. These
    may be alone with their face, so that no group counts less than one.

    Examples
    --------
    >>> smallest_sharing([(0, 0), (0, 1), (0, 1), (1, 0), (1, 1), (1, 2)])
    2
    >>> smallest_sharing([(0, None), (0, None)])
    1
    """
    groups: dict[int | str, set[int]] = defaultdict(set)
    for group, number in people:
        groups[group] |= set() if number is None else {number}
    return min((max(1, len(numbers)) for numbers in groups.values()), default=None)
