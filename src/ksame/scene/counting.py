"""How many real people share a face: who surely is a person, and who are perhaps one and the same.

To replace a face it is enough that it may be one. To count it as somebody among whom others are hidden, it must surely
be one, and surely somebody else than the others: whoever counts too few only promises too little.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from ksame.faces.faceset import ByteArray
from ksame.models import Face, FaceDetector
from ksame.scene.identities import Subject
from ksame.scene.observe import DetectorConfig
from ksame.scene.observe.confirm import Examiner
from ksame.scene.observe.detect import search_near


class Witness:
    """Says whether a face surely is a person's: both second opinions must say so, where one is enough to replace it.

    A drawing may well pass one of them. One object may be used from several threads.

    Parameters
    ----------
    config : DetectorConfig
        ``again`` and ``second`` are what the opinions must reach; see there for the measurement.
    """

    def __init__(self, config: DetectorConfig) -> None:
        self._config = config
        self._detector = FaceDetector()
        self._examiner = Examiner(self._detector)

    def confirms(self, rgb: ByteArray, face: Face) -> bool:
        """Tell whether a face in a frame surely is a person's."""
        roll = face.roll
        detection = search_near(self._detector, rgb, np.array(face.box), roll, self._config.low)
        if detection is None or not face.confirmed:
            return False
        opinions = self._examiner.examine(rgb, detection)
        return opinions.again >= self._config.again and opinions.second >= self._config.second


def distinct(people: Sequence[Subject], threshold: float) -> dict[str, int]:
    """Number the people of a group so that those who are perhaps one person have one number.

    Parameters
    ----------
    people : sequence of Subject
        Those who are not surely people are left out.
    threshold : float
        Cosine from which two views may show one person. Nothing else counts: one person may be twice in a picture, in
        a mirror or a collage.
    """
    sure = [person for person in people if person.confirmed]
    numbers = list(range(len(sure)))
    for i, one in enumerate(sure):
        for j in range(i):
            vectors = (np.stack([view.embedding for view in person.views]) for person in (one, sure[j]))
            if (next(vectors) @ next(vectors).T).max() >= threshold:
                old, new = numbers[i], numbers[j]
                numbers = [new if number == old else number for number in numbers]
    return {person.name: number for person, number in zip(sure, numbers, strict=True)}


def smallest_sharing(people: Iterable[tuple[int, int | None]]) -> int | None:
    """Return the smallest number of real people who share a face; None where nobody does.

    Parameters
    ----------
    people : iterable of (int, int or None)
        Everyone who was replaced: their group, and their number in it, None for whoever is not surely a person. Such a
        one may be alone with their face, so that no group counts less than one.

    Examples
    --------
    >>> smallest_sharing([(0, 0), (0, 1), (0, 1), (1, 0), (1, 1), (1, 2)])
    2
    >>> smallest_sharing([(0, None), (0, None)])
    1
    """
    groups: dict[int, set[int]] = defaultdict(set)
    for group, number in people:
        groups[group] |= set() if number is None else {number}
    return min((max(1, len(numbers)) for numbers in groups.values()), default=None)
