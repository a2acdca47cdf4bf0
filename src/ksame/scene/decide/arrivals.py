"""Decide for people who come one by one, not knowing who else will come.

Whoever comes joins the open group of their gender where the judge does not know them in its face, and opens another
group otherwise. A group is closed once k people share its face. So the first of a group is alone with their face until
others come: k is what a group is filled up to, not what holds at any time. :meth:`Arrivals.k_real` counts what held.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import numpy as np

from ksame.heads.surrogate import Surrogate
from ksame.scene.decide.counting import distinct, smallest_sharing
from ksame.scene.decide.judge import Judge
from ksame.scene.decide.plan import Decision, Treatment
from ksame.scene.decide.subject import Piece, Subject
from ksame.scene.decide.surrogates import choose_surrogates


@dataclass(eq=False)
class _OpenGroup:
    """A face, and those who have it so far, by name."""

    woman: bool
    surrogate: Surrogate
    members: dict[str, Subject] = field(default_factory=dict)


@dataclass(eq=False)
class Arrivals:
    """Gives everyone who comes a surrogate; the judge has the last word on every one."""

    k: int  # how many people share a face before another one is drawn
    judge: Judge
    rng: np.random.Generator
    executor: Executor  # judges pictures

    def __post_init__(self) -> None:
        self._groups: list[_OpenGroup] = []

    def decide(self, subject: Subject) -> Decision:
        """Return what becomes of somebody, by the newest views; the name says who it is.

        Whoever has a face keeps it as long as the judge does not know them in it.
        """
        own = next((group for group in self._groups if subject.name in group.members), None)
        if own is not None and not self.passes(subject, own.surrogate):
            del own.members[subject.name]
            own = None
        group = own or self._joined(subject) or self._opened(subject)
        if group is None:
            return Decision(Treatment.MASK, masked_instead=True)
        group.members[subject.name] = _to_be_counted(subject)
        return Decision(Treatment.REPLACE, group.surrogate, self.judge.cover)

    def passes(self, subject: Subject, surrogate: Surrogate | None) -> bool:
        """Tell whether somebody has a face in which the judge does not know them, by these views."""
        return surrogate is not None and self.judge.likeness(subject, surrogate) <= self.judge.limit

    def k_real(self) -> int | None:
        """Return the smallest number of confirmed people who have shared a face by now; None where nobody has one."""
        people: list[tuple[int | str, int | None]] = []
        for number, group in enumerate(self._groups):
            counted = distinct(list(group.members.values()), self.judge.recogniser.threshold)
            people += [(number, counted.get(name)) for name in group.members]
        return smallest_sharing(people)

    def _joined(self, subject: Subject) -> _OpenGroup | None:
        """Return an open group in whose face somebody is not known."""
        for group in self._groups:
            if group.woman is subject.woman and len(group.members) < self.k and self.passes(subject, group.surrogate):
                return group
        return None

    def _opened(self, subject: Subject) -> _OpenGroup | None:
        """Open a group with a face in which somebody is not known; None where no such face was found."""
        (drawn,) = choose_surrogates([subject], self.k, self.judge, self.rng, self.executor)
        if drawn.likeness[0] > self.judge.limit:
            return None
        group = _OpenGroup(subject.woman, drawn.surrogate)
        self._groups.append(group)
        return group


def _to_be_counted(subject: Subject) -> Subject:
    """Return what is needed to count somebody: hours of people do not fit into memory with their views."""
    nothing = Piece(np.zeros((1, 1, 3), dtype=np.uint8), np.empty((0, 3)), np.empty((0, 3)))
    views = (replace(view, piece=nothing) for view in subject.views)
    return replace(subject, views=tuple(views))
