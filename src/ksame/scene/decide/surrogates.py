"""Choose surrogates: groups of k people, each with one face of somebody who does not exist.

The theorem of k-Same needs k people to share one face; it does not need that face to be their average. People of a
gender are put in order of age and skin tone and cut into blocks, so that the cost grows with their number only. In each
block, candidates are put into views of a few people, and by their embeddings there people are dealt out to them in
groups of at least k. Then every group's face is judged on the published picture of every member. A face in which
somebody is recognised, or nearly so, is exchanged for a better one; whoever is recognised in every face of their own
group goes to another's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from ksame.arrays import FloatArray
from ksame.heads.surrogate import Surrogate, draw_surrogate
from ksame.progress import Progress, silent
from ksame.scene.decide.dealing import SEARCH, deal
from ksame.scene.decide.judge import Judge
from ksame.scene.decide.subject import Subject


@dataclass(frozen=True, eq=False)
class Group:
    """People who share one face, by their place among the subjects."""

    surrogate: Surrogate  # whom all of them become
    likeness: dict[int, float]  # of each to the surrogate in their views, as the judge sees it


@dataclass(frozen=True, eq=False)
class Block:
    """People whose groups are searched for by themselves, wherever that is done."""

    people: tuple[Subject, ...]  # of one gender
    k: int
    seed: int | tuple[int, ...]

    def __str__(self) -> str:
        return f"surrogates of {len(self.people)} people"


MapBlocks = Callable[[Sequence[Block]], Sequence[Sequence[Group]]]
"""Applies :func:`choose_in_block` to blocks, in other processes."""


def choose_surrogates(
    subjects: Sequence[Subject],
    k: int,
    judge: Judge,
    rng: np.random.Generator,
    executor: Executor,
    *,
    judged: bool = True,
    progress: Progress = silent,
    map_blocks: MapBlocks | None = None,
) -> list[Group]:
    """Deal people out to groups of at least ``k`` and give every group a face.

    Where a gender has fewer than ``2 k`` people, they make one group, which may be smaller than ``k``. Where the judge
    is not asked, the first faces drawn are taken. The result does not depend on the number of threads of the executor,
    which judges several pictures at a time, nor on where blocks are searched: here, unless there is ``map_blocks``.
    """
    parts = _blocks(subjects, k)
    seeds = rng.integers(2**63, size=len(parts)).tolist()
    blocks = [Block(tuple(subjects[i] for i in part), k, seed) for part, seed in zip(parts, seeds, strict=True)]
    if map_blocks is not None and len(blocks) > 1:
        by_block = map_blocks(blocks)
    else:
        by_block = [choose_in_block(block, judge, executor, judged=judged, progress=progress) for block in blocks]
    return [
        Group(group.surrogate, {part[i]: value for i, value in group.likeness.items()})
        for part, groups in zip(parts, by_block, strict=True)
        for group in groups
    ]


def choose_in_block(
    block: Block, judge: Judge, executor: Executor, *, judged: bool = True, progress: Progress = silent
) -> list[Group]:
    """Deal the people of one block out to groups, by their place in the block."""
    search = _Search(block.people, block.k, judge, np.random.default_rng(block.seed), executor, progress)
    return search.judged() if judged else search.first_drawn()


def draw_again(
    groups: Sequence[Group],
    subjects: Sequence[Subject],
    names: Sequence[str],
    judge: Judge,
    rng: np.random.Generator,
    executor: Executor,
    *,
    judged: bool = True,
) -> list[Group]:
    """Give the groups of some people another face: who shares one with whom, and every other face, stay as they are.

    Parameters
    ----------
    names : sequence of str
        People; whoever is named twice gets the second face after the first that was drawn.
    """
    turns, seed = Counter(names), int(rng.integers(2**63))
    drawn = []
    for number, group in enumerate(groups):
        members = list(group.likeness)
        people = tuple(subjects[i] for i in members)
        turn = sum(turns[person.name] for person in people)
        if turn:
            block = Block(people, len(people), (seed, number, turn))  # one group: nobody leaves it
            (other,) = choose_in_block(block, judge, executor, judged=judged)
            group = Group(other.surrogate, {members[i]: likeness for i, likeness in other.likeness.items()})
        drawn.append(group)
    return drawn


def _blocks(subjects: Sequence[Subject], k: int) -> list[list[int]]:
    """Cut the people of each gender, in order of age and skin tone, into blocks of a few groups each."""
    blocks = []
    for woman in (False, True):
        members = [i for i, subject in enumerate(subjects) if subject.woman is woman]
        order = sorted(members, key=lambda i: (SEARCH.year * subjects[i].born + SEARCH.skin * sum(subjects[i].skin), i))
        count = max(1, round(len(order) / (SEARCH.block * k)))
        blocks += [part.tolist() for part in np.array_split(order, count) if len(part)]
    return blocks


@dataclass(eq=False)
class _Search:
    """The search for the faces of one block."""

    people: Sequence[Subject]
    k: int
    judge: Judge
    rng: np.random.Generator
    executor: Executor
    progress: Progress

    @property
    def n_groups(self) -> int:
        return max(1, len(self.people) // self.k)

    def first_drawn(self) -> list[Group]:
        """Cut the block into groups in its order, and give each the first face drawn."""
        parts = [part.tolist() for part in np.array_split(np.arange(len(self.people)), self.n_groups)]
        return [self._shared(part, face) for part, face in zip(parts, self._draw(len(parts)), strict=True)]

    def judged(self) -> list[Group]:
        """Find a face for each group in which nobody is recognised, or the best of those that were tried."""
        drawn = self._draw(SEARCH.candidates * self.n_groups)
        cost = self._predicted_cost(drawn)
        chosen, owner = deal(cost, self.n_groups, self.rng)
        spare = [j for j in range(len(drawn)) if j not in set(chosen.tolist())]
        groups = []
        for number, first in enumerate(chosen.tolist()):
            members = np.flatnonzero(owner == number).tolist()
            spare = _by_cost(spare, cost, members)
            group = self._best(members, [drawn[j] for j in (first, *spare[: SEARCH.tries - 1])])
            spare = [j for j in spare if drawn[j] is not group.surrogate]
            groups.append(self._with_more_candidates(group))
        self._move_recognised(groups)
        return [group for group in groups if group.likeness]

    def _with_more_candidates(self, group: Group) -> Group:
        """Draw again for a group as long as somebody is recognised in its best face; most faces are soon given up."""
        for _ in range(SEARCH.draws - 1):
            if not self._recognised(group):
                break
            group = self._best(list(group.likeness), self._draw(SEARCH.candidates), group)
        return group

    def _move_recognised(self, groups: list[Group]) -> None:
        """Move whoever is recognised in their group's face to a group in whose face they are not.

        Where their own group would fall below k, somebody of the other one takes their place, if they can. Where nobody
        can, they move all the same: masked, they would be missing in their group just as well.
        """
        for group in groups:
            for person in self._recognised(group):
                fitting = self._fitting(person, [other for other in groups if other is not group])
                if not fitting:
                    continue
                value, other = fitting[0]
                replacement = None
                if len(group.likeness) <= self.k:
                    exchanges = ((*target, self._replacement(group, target[1])) for target in fitting)
                    value, other, replacement = next((e for e in exchanges if e[2]), (value, other, None))
                del group.likeness[person]
                other.likeness[person] = value
                if replacement is not None:
                    del other.likeness[replacement[0]]
                    group.likeness[replacement[0]] = replacement[1]

    def _fitting(self, person: int, groups: Sequence[Group]) -> list[tuple[float, Group]]:
        """Return the groups in whose faces a person is not recognised, with the likeness, the lowest first."""
        values = self.executor.map(lambda group: self._alike(person, group.surrogate), groups)
        fitting = [(value, group) for value, group in zip(values, groups, strict=True) if value <= self.judge.limit]
        return sorted(fitting, key=lambda pair: pair[0])

    def _replacement(self, group: Group, other: Group) -> tuple[int, float] | None:
        """Return who of another group is not recognised in this group's face, and their likeness."""
        for person in list(other.likeness)[: SEARCH.exchanges]:
            value = self._alike(person, group.surrogate)
            if value <= self.judge.limit:
                return person, value
        return None

    def _draw(self, count: int) -> list[Surrogate]:
        """Draw faces, each about as old as somebody here, and of their skin."""
        like = (self.people[int(self.rng.integers(len(self.people)))] for _ in range(count))
        return [draw_surrogate(person.woman, person.born, person.skin, self.rng) for person in like]

    def _best(self, members: Sequence[int], faces: Sequence[Surrogate], best: Group | None = None) -> Group:
        """Return the first face without faults, or the one with the fewest; see :meth:`_faults`."""
        for face in faces:
            if best is None:
                best = self._shared(members, face)
            elif self._faults(best):
                best = self._better(face, best) or best
        if best is None:
            raise ValueError("A group needs at least one candidate.")
        return best

    def _better(self, face: Surrogate, best: Group) -> Group | None:
        """Return a face with all members of a group if it has fewer faults than the best so far.

        Whoever is at fault there is judged first: a face that does not help them is soon given up.
        """
        order = sorted(best.likeness, key=lambda person: -self._fault(best.likeness[person]))
        n_first = sum(self._fault(value) > 0 for value in best.likeness.values())
        group = self._shared(order[:n_first], face)
        for i in range(n_first, len(order) + 1, SEARCH.at_a_time):
            if self._faults(group) >= self._faults(best):
                return None
            group.likeness.update(self._shared(order[i : i + SEARCH.at_a_time], face).likeness)
        return group if self._faults(group) < self._faults(best) else None

    def _faults(self, group: Group) -> int:
        """Return what speaks against a face: one for everyone who is too alike; to be recognised counts for more."""
        return sum(self._fault(value) for value in group.likeness.values())

    def _fault(self, likeness: float) -> int:
        if likeness > self.judge.limit:
            return len(self.people) + 1
        return int(likeness > self.judge.limit - SEARCH.distance)

    def _recognised(self, group: Group) -> list[int]:
        return [person for person, value in group.likeness.items() if value > self.judge.limit]

    def _shared(self, members: Sequence[int], face: Surrogate) -> Group:
        values = self.executor.map(lambda person: self._alike(person, face), members)
        return Group(face, dict(zip(members, values, strict=True)))

    def _alike(self, person: int, face: Surrogate) -> float:
        return self.judge.likeness(self.people[person], face)

    def _predicted_cost(self, drawn: Sequence[Surrogate]) -> FloatArray:
        """Predict the cost of everyone as every candidate, (n_people, n_drawn), from a few views."""
        screened = np.linspace(0, len(self.people) - 1, SEARCH.screened).round().astype(int)
        views = [self.people[i].views[0] for i in dict.fromkeys(screened.tolist())]

        def embed(surrogate: Surrogate) -> FloatArray:
            mean = sum(self.judge.embed(view, surrogate) for view in views)
            return np.asarray(mean / np.linalg.norm(mean))

        candidates = np.stack(list(self.progress(self.executor.map(embed, drawn), "choosing surrogates")))
        cosines = np.stack([person.views[0].embedding for person in self.people]) @ candidates.T
        years = np.abs(np.subtract.outer([p.born for p in self.people], [face.born for face in drawn]))
        skins = np.array([p.skin for p in self.people])[:, None] - [face.skin for face in drawn]
        return np.asarray(cosines + SEARCH.year * years + SEARCH.skin * np.abs(skins).sum(axis=2))


def _by_cost(candidates: list[int], cost: FloatArray, members: Sequence[int]) -> list[int]:
    """Sort candidates by what they cost the members of a group together."""
    return sorted(candidates, key=lambda j: float(np.exp(SEARCH.sharpness * cost[members, j]).sum()))
