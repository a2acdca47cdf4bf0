"""Who is who: tracks of the same person joined by their embeddings, within a file and over the files of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from ksame.arrays import FloatArray
from ksame.geometry import centre, side
from ksame.scene.track.tracks import Tracks, in_order

Key = tuple[int, str]
"""Number of the file in the batch, and name of the person in it."""

UNCONFIRMED = "U"
"""Begins the names of what is perhaps no face."""

_SOON = 45  # frames within which a track without a face to recognise may go on as another
_NEAR = 1.0  # how far off, in sides, it may then be


@dataclass(frozen=True, eq=False)
class Stretch:
    """What joining needs to know of a track."""

    first: int  # the first frame in which the face was seen
    end: int  # the one after the last
    entry: FloatArray  # boxes in the first and the last of these frames
    exit: FloatArray
    embeddings: FloatArray  # of the best pictures, (n_pictures, 128); may be empty
    shot: int


def join(stretches: Sequence[Stretch], threshold: float) -> list[int]:
    """Return a number from 0 for the person of every track: the most alike first, never two that are there at once.

    Above the cosine ``threshold`` of their mean embeddings two groups are one person.
    """
    n = len(stretches)
    members = [[i] for i in range(n)]
    means = np.array([stretch.embeddings.sum(axis=0) for stretch in stretches]).reshape(n, 128)  # 0 where there is none
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
        goes_on = _continued(i, members, stretches) if members[i] and not means[i].any() else None
        if goes_on is not None:
            members[goes_on] += members[i]
            members[i] = []
    numbers = {i: number for number, group in enumerate(filter(None, members)) for i in group}
    return [numbers[i] for i in range(n)]


def unit_mean(vectors: Sequence[FloatArray] | FloatArray) -> FloatArray | None:
    """Return the mean of embeddings, of unit length; None where there is none."""
    if not len(vectors):
        return None
    mean = np.sum(vectors, axis=0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12))


def _compare(
    i: int, means: FloatArray, stretches: Sequence[Stretch], members: list[list[int]], alike: FloatArray
) -> None:
    """Compare group ``i`` with all others."""
    length = np.linalg.norm(means, axis=1)
    for j in range(len(members)):
        if j != i and length[i] and length[j]:
            meet = _meet(members[i], members[j], stretches)
            alike[i, j] = alike[j, i] = -np.inf if meet else float(means[i] @ means[j] / (length[i] * length[j]))


def _meet(a: Sequence[int], b: Sequence[int], stretches: Sequence[Stretch]) -> bool:
    """Tell whether two groups are there at once."""
    return any(stretches[i].first < stretches[j].end and stretches[j].first < stretches[i].end for i in a for j in b)


def _continued(i: int, members: list[list[int]], stretches: Sequence[Stretch]) -> int | None:
    """Return the group that an unrecognisable track belongs to by place and time, or None."""
    best, soonest = None, _SOON + 1
    for number, group in enumerate(members):
        if number == i or not group or _meet(members[i], group, stretches):
            continue
        for a, b in product(members[i], group):
            earlier, later = sorted((stretches[a], stretches[b]), key=lambda stretch: stretch.first)
            pause = later.first - earlier.end
            size = max(side(earlier.exit), side(later.entry), 1.0)
            near = float(np.hypot(*(centre(earlier.exit) - centre(later.entry)))) < _NEAR * size
            if earlier.shot == later.shot and near and pause < soonest:
                best, soonest = number, pause
    return best


@dataclass(frozen=True, eq=False)
class People:
    """Who is who in a batch: the same person has the same name, and later the same surrogate, in every file."""

    # Those of the file itself where there is one only, so that they are the names in its tracks. Over several files
    # "P1", "P2" and so on, by how many pixels of the batch they are in; "U1" and so on for what is perhaps no face.
    names: Mapping[Key, str]
    # people never seen well enough to be told from others: any of them may be somebody who has a name already
    unmatched: frozenset[str] = frozenset()
    unconfirmed: frozenset[str] = frozenset()  # what is perhaps no face: it is masked, and counts as nobody

    @cached_property
    def ordered(self) -> tuple[str, ...]:
        """All names, in order: people, then what is perhaps no face."""
        return tuple(sorted(self._keys, key=in_order))

    @cached_property
    def _keys(self) -> dict[str, list[Key]]:
        keys: dict[str, list[Key]] = {}
        for key, name in self.names.items():
            keys.setdefault(name, []).append(key)
        return keys

    def keys(self, name: str) -> list[Key]:
        """Return where a person is."""
        return self._keys.get(name, [])

    def only(self, files: Iterable[int]) -> People:
        """Return who is in some of the files, which are numbered anew."""
        numbers = {old: new for new, old in enumerate(files)}
        names = {(numbers[n], local): name for (n, local), name in self.names.items() if n in numbers}
        left = set(names.values())
        return People(names, self.unmatched & left, self.unconfirmed & left)


def by_name(files: Sequence[Tracks]) -> People:
    """Take the same name in several files for the same person."""
    names = {(number, person.name): person.name for number, tracks in enumerate(files) for person in tracks.people}
    known = {person.name for tracks in files for person in tracks.people if person.embedding is not None}
    confirmed = {track.person for tracks in files for track in tracks.tracks if track.confirmed}
    unconfirmed = frozenset(track.person for tracks in files for track in tracks.tracks) - confirmed
    return People(names, frozenset(names.values()) - known - unconfirmed, unconfirmed)


def join_files(files: Sequence[Tracks], same_person: float) -> People:
    """Find the same people in several files by their embeddings; from the cosine ``same_person`` on two are one.

    Somebody is compared with everyone in a group, and the mean cosine counts. That with the mean embedding would not
    do: a mean of many is near to everybody, so that the group grows and grows. Two people of one file are never joined,
    and nobody without an embedding is, nor what is perhaps no face. Whoever is joined wrongly shares a surrogate with
    somebody else; a person counted twice would make a group smaller than it says, so the limit is low.
    """
    if len(files) == 1:
        return by_name(files)
    entries = [((number, person.name), person) for number, tracks in enumerate(files) for person in tracks.people]
    entries.sort(key=lambda entry: (-_amount(files[entry[0][0]], entry[1].name), entry[0][0], in_order(entry[1].name)))
    groups: list[list[Key]] = []
    width = max((len(person.embedding) for _, person in entries if person.embedding is not None), default=1)
    sums = np.zeros((len(entries), width))  # of each group's embeddings
    counts = np.zeros(len(entries))  # how many these are; 0 for somebody who cannot be told from others
    unconfirmed: list[Key] = []
    for key, person in entries:
        if person.name in files[key[0]].unconfirmed:
            unconfirmed.append(key)
            continue
        where = len(groups)
        if person.embedding is not None:
            known, count = sums[:where], counts[:where]
            cosines = np.where(count > 0, known @ person.embedding / np.maximum(count, 1), -np.inf)
            alike = np.flatnonzero(cosines >= same_person)
            ranked = alike[np.argsort(-cosines[alike], kind="stable")]
            where = int(next((i for i in ranked if key[0] not in {file for file, _ in groups[i]}), where))
        if where == len(groups):
            groups.append([])
        groups[where].append(key)
        if person.embedding is not None:
            sums[where] += person.embedding
            counts[where] += 1
    names = {key: f"P{i}" for i, group in enumerate(groups, 1) for key in group}
    names |= {key: f"{UNCONFIRMED}{i}" for i, key in enumerate(unconfirmed, 1)}
    unmatched = {f"P{i}" for i in range(1, len(groups) + 1) if not counts[i - 1]}
    return People(names, frozenset(unmatched), frozenset(names[key] for key in unconfirmed))


def _amount(tracks: Tracks, person: str) -> float:
    """Return how many pixels of a file somebody is in."""
    return sum(float(np.prod(track.boxes[:, 2:], axis=1, dtype=np.float64).sum()) for track in tracks.of(person))
