"""People over a whole batch: the same person has the same name, and later the same surrogate, in every file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ksame.faces.faceset import FloatArray
from ksame.scene.sightings import Cast, Person, in_order

Key = tuple[int, str]
"""Number of the file in the batch, and name of the person in it."""

UNSURE = "U"
"""Begins the names of what is perhaps no face."""


@dataclass(frozen=True, eq=False)
class Everyone:
    """Who is who in a batch.

    Attributes
    ----------
    names : mapping of (file, local name) to name
        Those of the file itself where there is one only, so that they are the names in its tracks. Over several files
        "P1", "P2" and so on, by how many pixels of the batch they are in; "U1", "U2" and so on for what is perhaps no
        face.
    strangers : frozenset of str
        People never seen well enough to be told from others: any of them may be somebody who has a name already.
    unsure : frozenset of str
        What is perhaps no face: it is masked, and counts as nobody.
    """

    names: Mapping[Key, str]
    strangers: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()

    @property
    def people(self) -> tuple[str, ...]:
        """All names, in order: people, then what is perhaps no face."""
        return tuple(sorted(set(self.names.values()), key=in_order))

    def keys(self, name: str) -> list[Key]:
        """Return where a person is."""
        return [key for key, other in self.names.items() if other == name]


def join(casts: Sequence[Cast], same_person: float) -> Everyone:
    """Find the same people in several files by their embeddings.

    Two people of one file are never joined, and nobody without an embedding is, nor what is perhaps no face. Whoever is
    joined wrongly shares a surrogate with somebody else; a person counted twice would make a group smaller than it
    says, so the limit is low.

    Parameters
    ----------
    same_person : float
        Cosine from which two people are one.
    """
    if len(casts) == 1:
        return _as_named(casts[0])
    entries = [
        (_amount(cast, person.name), (number, person.name), person)
        for number, cast in enumerate(casts)
        for person in cast.people
    ]
    entries.sort(key=lambda entry: (-entry[0], entry[1][0], in_order(entry[1][1])))
    unsure = [key for _, key, person in entries if person.name in casts[key[0]].unsure]
    entries = [entry for entry in entries if entry[1] not in unsure]
    clusters: list[list[tuple[Key, Person]]] = []
    means: list[FloatArray | None] = []
    for _, key, person in entries:
        best, where = same_person, -1
        for i, mean in enumerate(means):
            if mean is None or person.embedding is None or any(other[0] == key[0] for other, _ in clusters[i]):
                continue
            cosine = float(mean @ person.embedding) / max(float(np.linalg.norm(mean)), 1e-9)
            if cosine >= best:
                best, where = cosine, i
        if where < 0:
            clusters.append([(key, person)])
            means.append(person.embedding)
        else:
            clusters[where].append((key, person))
            means[where] = np.mean([p.embedding for _, p in clusters[where] if p.embedding is not None], axis=0)
    names = {key: f"P{i + 1}" for i, cluster in enumerate(clusters) for key, _ in cluster}
    names |= {key: f"{UNSURE}{i + 1}" for i, key in enumerate(unsure)}
    return Everyone(
        names,
        frozenset(f"P{i + 1}" for i, mean in enumerate(means) if mean is None),
        frozenset(names[key] for key in unsure),
    )


def _as_named(cast: Cast) -> Everyone:
    strangers = {person.name for person in cast.people if person.embedding is None}
    return Everyone({(0, p.name): p.name for p in cast.people}, frozenset(strangers - cast.unsure), cast.unsure)


def _amount(cast: Cast, person: str) -> float:
    """Return how many pixels of a file somebody is in."""
    return sum(float(np.prod(track.boxes[:, 2:], axis=1, dtype=np.float64).sum()) for track in cast.of(person))
