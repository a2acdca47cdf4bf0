"""Who is who: tracks of the same person joined by their faces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ksame.faces.faceset import FloatArray
from ksame.geometry import centre, side

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
