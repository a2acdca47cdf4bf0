"""Who is who: tracks of the same person joined by their embeddings, within a file and over the files of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ksame.arrays import FloatArray
from ksame.geometry import centre, side
from ksame.scene.track.tracks import Person, Tracks, in_order

Key = tuple[int, str]
"""Number of the file in the batch, and name of the person in it."""

UNSURE = "U"
"""Begins the names of what is perhaps no face."""

_SOON = 45  # frames within which a track without a face to recognise may go on as another
_NEAR = 1.0  # how far off, in sides, it may then be


@dataclass(frozen=True, eq=False)
class Stretch:
    """What joining needs to know of a track.

    Attributes
    ----------
    first, end : int
        First frame in which the face was seen, and the one after the last.
    entry, exit : ndarray of shape (4,)
        Boxes in the first and the last of these frames.
    embeddings : ndarray of shape (n_pictures, 128)
        Of the best pictures; may be empty.
    shot : int
    """

    first: int
    end: int
    entry: FloatArray
    exit: FloatArray
    embeddings: FloatArray
    shot: int


def join(stretches: Sequence[Stretch], threshold: float) -> list[int]:
    """Group tracks by person: the most alike first, never two that are there at once.

    Parameters
    ----------
    stretches : sequence of Stretch
    threshold : float
        Cosine of mean embeddings above which two groups are one person.

    Returns
    -------
    people : list of int
        A number for every track, from 0.
    """
    n = len(stretches)
    members = [[i] for i in range(n)]
    means = np.array([s.embeddings.sum(axis=0) if len(s.embeddings) else np.zeros(128) for s in stretches])
    means = means.reshape(n, 128)
    alike = np.full((n, n), -np.inf)
    for i in range(n):
        _compare(i, means, stretches, members, alike)
    while n and alike.max() >= threshold:
        i, j = sorted(int(k) for k in np.unravel_index(int(alike.argmax()), alike.shape))
        members[i] += members[j]
        members[j] = []
        means[i] += means[j]
        means[j] = 0.0
        alike[j, :] = alike[:, j] = -np.inf
        _compare(i, means, stretches, members, alike)
    for i in range(n):
        if members[i] and not means[i].any():
            goes_on = _continued(i, members, stretches)
            if goes_on is not None:
                members[goes_on] += members[i]
                members[i] = []
    people = [0] * n
    for number, group in enumerate(group for group in members if group):
        for i in group:
            people[i] = number
    return people


def mean_embedding(stretches: Sequence[Stretch]) -> FloatArray | None:
    """Return the mean embedding of tracks, of unit length, or None."""
    vectors = [s.embeddings for s in stretches if len(s.embeddings)]
    if not vectors:
        return None
    mean = np.concatenate(vectors).sum(axis=0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12))


def _compare(
    i: int, means: FloatArray, stretches: Sequence[Stretch], members: list[list[int]], alike: FloatArray
) -> None:
    """Compare group ``i`` with all others."""
    length = np.linalg.norm(means, axis=1)
    for j in range(len(members)):
        if j == i or not members[j] or not length[i] or not length[j]:
            continue
        value = -np.inf
        if not _meet(members[i], members[j], stretches):
            value = float(means[i] @ means[j] / (length[i] * length[j]))
        alike[i, j] = alike[j, i] = value


def _meet(a: Sequence[int], b: Sequence[int], stretches: Sequence[Stretch]) -> bool:
    """Tell whether two groups are there at once."""
    return any(stretches[i].first < stretches[j].end and stretches[j].first < stretches[i].end for i in a for j in b)


def _continued(i: int, members: list[list[int]], stretches: Sequence[Stretch]) -> int | None:
    """Return the group that an unrecognisable track belongs to by place and time, or None."""
    best, soonest = None, _SOON + 1
    for g, group in enumerate(members):
        if g == i or not group or _meet(members[i], group, stretches):
            continue
        for a in members[i]:
            for b in group:
                one, other = sorted((stretches[a], stretches[b]), key=lambda s: s.first)
                pause = other.first - one.end
                size = max(side(one.exit), side(other.entry), 1.0)
                near = float(np.hypot(*(centre(one.exit) - centre(other.entry)))) < _NEAR * size
                if one.shot == other.shot and near and pause < soonest:
                    best, soonest = g, pause
    return best


@dataclass(frozen=True, eq=False)
class People:
    """Who is who in a batch: the same person has the same name, and later the same surrogate, in every file.

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


def join_files(casts: Sequence[Tracks], same_person: float) -> People:
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
    return People(
        names,
        frozenset(f"P{i + 1}" for i, mean in enumerate(means) if mean is None),
        frozenset(names[key] for key in unsure),
    )


def _as_named(cast: Tracks) -> People:
    strangers = {person.name for person in cast.people if person.embedding is None}
    return People({(0, p.name): p.name for p in cast.people}, frozenset(strangers - cast.unsure), cast.unsure)


def _amount(cast: Tracks, person: str) -> float:
    """Return how many pixels of a file somebody is in."""
    return sum(float(np.prod(track.boxes[:, 2:], axis=1, dtype=np.float64).sum()) for track in cast.of(person))
