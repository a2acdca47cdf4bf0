"""People over a whole batch: the same person has the same name, and later the same surrogate, in every file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ksame.errors import UsageError
from ksame.faces.faceset import FloatArray
from ksame.scene.composing import Treatment
from ksame.scene.sightings import Cast, Person

Key = tuple[int, str]
"""Number of the file in the batch, and name of the person in it."""


@dataclass(frozen=True, eq=False)
class Everyone:
    """Who is who in a batch.

    Attributes
    ----------
    names : mapping of (file, local name) to name
        Names are "P1", "P2" and so on, by how much of the batch they are in.
    strangers : frozenset of str
        People never seen well enough to be told from others: any of them may be somebody who has a name already.
    """

    names: Mapping[Key, str]
    strangers: frozenset[str] = frozenset()

    @property
    def people(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(sorted(set(self.names.values()), key=lambda name: int(name[1:])))

    def keys(self, name: str) -> list[Key]:
        """Return where a person is."""
        return [key for key, other in self.names.items() if other == name]


def join(casts: Sequence[Cast], same_person: float) -> Everyone:
    """Find the same people in several files by their embeddings.

    Two people of one file are never joined, and nobody without an embedding is. Whoever is joined wrongly shares a
    surrogate with somebody else; a person counted twice would make a group smaller than it says, so the limit is low.

    Parameters
    ----------
    same_person : float
        Cosine from which two people are one.
    """
    entries = [
        (int(sum(len(track) for track in cast.of(person.name))), (number, person.name), person)
        for number, cast in enumerate(casts)
        for person in cast.people
    ]
    entries.sort(key=lambda entry: (-entry[0], entry[1]))
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
    return Everyone(
        {key: f"P{i + 1}" for i, cluster in enumerate(clusters) for key, _ in cluster},
        frozenset(f"P{i + 1}" for i, mean in enumerate(means) if mean is None),
    )


def treatments(
    people: Sequence[str],
    *,
    keep: Sequence[str] = (),
    only: Sequence[str] = (),
    mask: Sequence[str] = (),
    strangers: Collection[str] = (),
) -> dict[str, Treatment]:
    """Return what was asked for each person.

    With ``only``, everyone else is kept, but not ``strangers``: each may be one of those who are not to be seen, in
    profile or in the dark.

    Examples
    --------
    >>> {name: t.value for name, t in treatments(("P1", "P2", "P3"), keep=("P2",), mask=("P3",)).items()}
    {'P1': 'replace', 'P2': 'keep', 'P3': 'mask'}
    """
    named = [*keep, *only, *mask]
    unknown = sorted(set(named) - set(people))
    if unknown:
        known = ", ".join(people) or "nobody was found"
        raise UsageError(f"There is no {', '.join(unknown)} here. People found: {known}. See: ksame people.")
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise UsageError(f"{', '.join(twice)}: name each person in one of --keep, --only and --mask.")
    chosen = dict.fromkeys(people, Treatment.KEEP if only else Treatment.REPLACE)
    chosen.update(dict.fromkeys(strangers, Treatment.REPLACE))
    chosen.update(dict.fromkeys(only, Treatment.REPLACE))
    chosen.update(dict.fromkeys(keep, Treatment.KEEP))
    chosen.update(dict.fromkeys(mask, Treatment.MASK))
    return chosen
