"""Who shares a face with whom: partitions of n faces into groups of at least k.

The privacy of k-Same does not depend on the grouping (Newton et al. 2005, section 4.2: it is microaggregation); only
the loss does. Inside a leaf everything works on the matrix of squared distances alone. A set that does not fit into one
leaf is cut into several, and the groups that lost most by the cuts are formed again across them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ksame import scratch
from ksame.arrays import FloatArray, IntArray, members
from ksame.errors import parameter_error
from ksame.methods.cutting import cut

STRATEGIES = ("greedy", "mdav", "greedy+refine", "mdav+refine")

LEAF = 2048
"""Faces that are grouped all against all: up to here time and memory grow with the square of their number."""

_GROUPS = 4  # that a leaf holds at least, however large k is
_AGAIN = 0.25  # share of the groups of a leaf that are formed again with those of other leaves
_TILE = 256  # rows and columns of the distances that fit into a cache


@dataclass(frozen=True, eq=False, repr=False)
class Neighbours:
    """Codes of shape (n, n_features), among which neighbours are sought; their distances are computed once."""

    codes: FloatArray

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def distances(self) -> FloatArray:
        """Squared distances, (n, n); asked for within a leaf only."""
        return squared_distances(np.asarray(self.codes, dtype=np.float64))

    def loss(self, labels: IntArray) -> float:
        """Return :func:`sse`, from the distances where they are known already."""
        if "distances" not in self.__dict__:
            return sse(self.codes, labels)
        inside = (self.distances[np.ix_(group, group)].sum() / (2.0 * len(group)) for group in members(labels))
        return float(sum(inside))

    def take(self, rows: IntArray) -> Neighbours:
        """Return some of the rows; where it is all of them itself, with the distances that are known."""
        return self if len(rows) == len(self) else Neighbours(scratch.doubles(self.codes, rows))


def squared_distances(codes: FloatArray) -> FloatArray:
    """Return squared Euclidean distances, (n, n), between rows of shape (n, n_features).

    Computed from one Gram matrix and rounded to ten digits below the largest, so that faces that are equally far away
    stay equally far on every machine and with any number of threads.
    """
    centre = codes.mean(axis=0)
    offset = float(centre @ centre)
    if offset > 100.0 * (float(np.vdot(codes, codes)) / len(codes) - offset):  # a far origin would cost digits
        codes = scratch.doubles(codes, origin=centre)
    distances = np.asarray(codes @ codes.T)
    squares = np.diag(distances).copy()
    tiles = [slice(start, start + _TILE) for start in range(0, len(codes), _TILE)]
    largest = 0.0
    for number, a in enumerate(tiles):
        for b in tiles[number:]:
            above = squares[a, None] + squares[None, b] - 2.0 * distances[a, b]
            below = squares[b, None] + squares[None, a] - 2.0 * distances[b, a]
            both = np.maximum((above + below.T) / 2.0, 0.0)
            if a == b:
                np.fill_diagonal(both, 0.0)
            largest = max(largest, float(both.max()))
            distances[a, b], distances[b, a] = both, both.T
    if largest > 0:
        digits = 10 - int(np.ceil(np.log10(largest)))
        for a in tiles:
            np.round(distances[a], decimals=digits, out=distances[a])
    return distances


def partition(people: Neighbours, k: int, strategy: str, rng: np.random.Generator) -> IntArray:
    """Split n faces into groups of k to 2k-1; return the group of each, (n,), numbered from 0.

    As many faces as fit into a leaf are grouped together. More are cut into leaves of near faces first. The quarter of
    the groups that lose most, at the borders of each leaf, is formed again together with those of all other leaves,
    until these fit into one leaf.
    """
    if strategy not in STRATEGIES:
        raise parameter_error("grouping", "k-Same", f"one of {', '.join(STRATEGIES)}", strategy)
    n, leaf = len(people), max(LEAF, _GROUPS * k)
    if not 2 <= k <= n:
        raise parameter_error("k", "k-Same", f"an integer in [2, number of subjects = {n}]", k)
    labels = np.full(n, -1, dtype=np.intp)
    groups = 0
    rows = np.arange(n)
    while len(rows):
        leaves = cut(people.codes, rows, -(-len(rows) // leaf))
        for faces in leaves:
            near = people.take(faces)
            formed = _together(near.distances, k, strategy, rng)
            settled = formed if len(leaves) == 1 else _settled(near.codes, formed)
            labels[faces] = np.where(settled < 0, -1, settled + groups)
            groups += int(settled.max()) + 1
        rows = np.flatnonzero(labels < 0)
    return labels


def _together(distances: FloatArray, k: int, strategy: str, rng: np.random.Generator) -> IntArray:
    """Group the faces of one leaf."""
    start, _, then = strategy.partition("+")
    labels = greedy(distances, k, rng) if start == "greedy" else mdav(distances, k)
    return refine(distances, labels, k) if then else labels


def _settled(codes: FloatArray, labels: IntArray) -> IntArray:
    """Return the groups that stay, numbered anew; -1 for the faces of those that lose most for each face."""
    loss = group_losses(codes, labels) / np.bincount(labels)
    stay = len(loss) - int(_AGAIN * len(loss))
    number = np.full(len(loss), -1, dtype=np.intp)
    number[np.sort(np.argsort(loss, kind="stable")[:stay])] = np.arange(stay)
    return number[labels]


def greedy(distances: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """Group a random face with its k-1 nearest, remove them, go on (Newton et al. 2005, Fig. 4)."""
    n = len(distances)
    labels = np.full(n, -1, dtype=np.intp)
    left = np.arange(n)
    group = 0
    while len(left):
        size = len(left) if len(left) < 2 * k else k
        centre = left[rng.integers(len(left))]
        chosen = _nearest(distances, centre, left, size)
        labels[left[chosen]] = group
        left = np.delete(left, chosen)
        group += 1
    return labels


def mdav(distances: FloatArray, k: int) -> IntArray:
    """Group round the two faces at the far ends of what is left, again and again.

    Maximum Distance to Average Vector (Domingo-Ferrer and Torra 2005). The face furthest from the centroid is the one
    with the largest sum of squared distances to all others, so no centroid is ever formed.
    """
    n = len(distances)
    labels = np.full(n, -1, dtype=np.intp)
    left = np.arange(n)
    sums = distances.sum(axis=1)
    group = 0

    def close(centre: int, size: int) -> None:
        nonlocal left, group, sums
        chosen = _nearest(distances, centre, left, size)
        members = left[chosen]
        labels[members] = group
        left = np.delete(left, chosen)
        sums = sums - distances[:, members].sum(axis=1)
        group += 1

    while len(left) >= 3 * k:
        far = int(left[np.argmax(sums[left])])
        close(far, k)
        close(int(left[np.argmax(distances[far, left])]), k)
    if len(left) >= 2 * k:
        close(int(left[np.argmax(sums[left])]), k)
    labels[left] = group
    return labels


def _nearest(distances: FloatArray, centre: int, left: IntArray, size: int) -> IntArray:
    """Return positions in ``left`` of ``centre`` and the ``size - 1`` faces nearest to it; ties by lower index."""
    key = np.where(left == centre, -1.0, distances[centre, left])
    return np.argsort(key, kind="stable")[:size]


def refine(distances: FloatArray, labels: IntArray, k: int, *, sweeps: int = 100) -> IntArray:
    """Lower the loss by moving and swapping faces between groups while sizes stay in [k, 2k-1].

    A local search that ends when a whole sweep finds no exchange that helps. The result is never worse than ``labels``.
    """
    search = _Search(distances, labels, k)
    for _ in range(sweeps):
        if not sum(search.improve(face) for face in range(len(labels))):
            break
    return search.labels


class _Search:
    """The state of the local search: who is where, and the sums that give the gain of any exchange at once."""

    def __init__(self, distances: FloatArray, labels: IntArray, k: int) -> None:
        self.distances = distances
        self.labels = labels.copy()
        self.k = k
        self.sizes = np.bincount(labels).astype(np.float64)
        # sums[i, g]: squared distances from face i to the members of group g; inner[g]: over ordered pairs inside g.
        self.sums = distances @ np.eye(len(self.sizes))[labels]
        self.inner = np.bincount(labels, weights=self.sums[np.arange(len(labels)), labels])
        self.worth = 1e-9 * max(float((self.inner / self.sizes).sum()) / 2.0, 1e-300)

    def improve(self, face: int) -> bool:
        """Make the most useful move or swap of ``face``, if any helps."""
        move, target = self._best_move(face)
        swap, partner = self._best_swap(face)
        if max(move, swap) <= self.worth:
            return False
        home = int(self.labels[face])
        if move >= swap:
            self._transfer(face, target)
        else:
            self._transfer(face, int(self.labels[partner]))
            self._transfer(partner, home)
        return True

    def _best_move(self, face: int) -> tuple[float, int]:
        home = self.labels[face]
        if self.sizes[home] <= self.k:
            return -np.inf, -1
        n, w, s = self.sizes, self.inner, self.sums[face]
        leave = w[home] / n[home] - (w[home] - 2 * s[home]) / (n[home] - 1)
        join = (w + 2 * s) / (n + 1) - w / n
        gains = np.where(n < 2 * self.k - 1, leave - join, -np.inf) / 2.0
        gains[home] = -np.inf
        best = int(np.argmax(gains))
        return float(gains[best]), best

    def _best_swap(self, face: int) -> tuple[float, int]:
        home, labels, n, d = self.labels[face], self.labels, self.sizes, self.distances[face]
        own = self.sums[np.arange(len(labels)), labels]
        gains = (self.sums[face, home] - self.sums[:, home] + d) / n[home]
        gains += (own - self.sums[face, labels] + d) / n[labels]
        gains[labels == home] = -np.inf
        best = int(np.argmax(gains))
        return float(gains[best]), best

    def _transfer(self, face: int, target: int) -> None:
        home = int(self.labels[face])
        self.inner[home] -= 2 * self.sums[face, home]
        self.inner[target] += 2 * self.sums[face, target]
        self.sums[:, home] -= self.distances[:, face]
        self.sums[:, target] += self.distances[:, face]
        self.sizes[home] -= 1
        self.sizes[target] += 1
        self.labels[face] = target


def group_means(codes: FloatArray, labels: IntArray) -> FloatArray:
    """Return the mean row of every group, (n_groups, n_features)."""
    groups = members(labels)
    means = scratch.empty((len(groups), codes.shape[1]), np.float64)
    for mean, group in zip(means, groups, strict=True):
        mean[:] = codes[group[0]]
        for face in group[1:]:
            mean += codes[face]
        mean /= len(group)
    return means


def group_losses(codes: FloatArray, labels: IntArray) -> FloatArray:
    """Return the sum of squared distances of the faces of every group to their mean, (n_groups,)."""
    means = group_means(codes, labels)
    losses = np.zeros(len(means))
    for rows in scratch.blocks(len(codes), codes.shape[1] * 8):
        np.add.at(losses, labels[rows], ((codes[rows] - means[labels[rows]]) ** 2).sum(axis=1))
    return losses


def sse(codes: FloatArray, labels: IntArray) -> float:
    """Return the sum of squared distances of every face to the mean of its group."""
    return float(group_losses(codes, labels).sum())
