"""Who shares a face with whom: partitions of n faces into groups of at least k.

Everything here works on the matrix of squared distances alone, so it serves any coding. The privacy of k-Same does not
depend on the grouping (Newton et al. 2005, section 4.2: it is microaggregation); only the loss does.
"""

import numpy as np

from ksame.arrays import FloatArray, IntArray
from ksame.errors import parameter_error

STRATEGIES = ("greedy", "mdav", "greedy+refine", "mdav+refine")


def squared_distances(codes: FloatArray) -> FloatArray:
    """Return squared Euclidean distances, (n, n), between rows of shape (n, n_features).

    Computed from one Gram matrix and rounded to ten digits below the largest, so that faces that are equally far away
    stay equally far on every machine and with any number of threads.
    """
    centre = codes.mean(axis=0)
    offset = float(centre @ centre)
    if offset > 100.0 * (float(np.vdot(codes, codes)) / len(codes) - offset):
        codes = codes - centre  # an origin far from all faces would cost digits; a near one is not worth a copy
    gram = codes @ codes.T
    squares = np.diag(gram)
    distances = squares[:, None] + squares[None, :] - 2.0 * gram
    distances = np.maximum((distances + distances.T) / 2.0, 0.0)
    np.fill_diagonal(distances, 0.0)
    largest = distances.max()
    if largest > 0:
        distances = np.round(distances, decimals=10 - int(np.ceil(np.log10(largest))))
    return np.asarray(distances)


def partition(distances: FloatArray, k: int, strategy: str, rng: np.random.Generator) -> IntArray:
    """Split n faces into groups of k to 2k-1.

    Parameters
    ----------
    distances : ndarray of shape (n, n)
        Squared distances.
    k : int
        In [2, n].
    strategy : {"greedy", "mdav", "greedy+refine", "mdav+refine"}

    Returns
    -------
    labels : ndarray of shape (n,)
        Group of each face, numbered from 0.
    """
    if strategy not in STRATEGIES:
        raise parameter_error("grouping", "k-Same", f"one of {', '.join(STRATEGIES)}", strategy)
    n = len(distances)
    if not 2 <= k <= n:
        raise parameter_error("k", "k-Same", f"an integer in [2, number of subjects = {n}]", k)
    start, _, then = strategy.partition("+")
    labels = greedy(distances, k, rng) if start == "greedy" else mdav(distances, k)
    return refine(distances, labels, k) if then else labels


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
        exchanges = sum(search.improve(face) for face in range(len(labels)))
        if not exchanges:
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
        self.worth = 1e-9 * max(sse(distances, labels), 1e-300)

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


def members(labels: IntArray) -> list[IntArray]:
    """Return the faces of every group, in the order of the groups' numbers; faces labelled -1 are in none."""
    order = np.argsort(labels, kind="stable")
    order = order[labels[order] >= 0]
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def group_means(codes: FloatArray, labels: IntArray) -> FloatArray:
    """Return the mean row of every group, (n_groups, n_features)."""
    groups = members(labels)
    means = np.empty((len(groups), codes.shape[1]))
    for mean, group in zip(means, groups, strict=True):
        mean[:] = codes[group[0]]
        for face in group[1:]:
            mean += codes[face]
        mean /= len(group)
    return means


def sse(distances: FloatArray, labels: IntArray) -> float:
    """Return the sum of squared distances of every face to the mean of its group."""
    return float(sum(distances[np.ix_(group, group)].sum() / (2.0 * len(group)) for group in members(labels)))
