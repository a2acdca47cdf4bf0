"""Plans: what becomes of everyone in a batch, and what was asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from ksame.errors import UsageError
from ksame.heads.covers import HEAD, Cover
from ksame.heads.surrogate import Surrogate
from ksame.scene.decide.counting import smallest_sharing


class Treatment(str, Enum):
    """What becomes of a person."""

    REPLACE = "replace"
    MASK = "mask"
    KEEP = "keep"


@dataclass(frozen=True, eq=False)
class Decision:
    """What becomes of one person in a whole batch; who shares a face with whom, and how alike they are, is secret."""

    treatment: Treatment
    surrogate: Surrogate | None = None  # who they become, if they are replaced
    cover: Cover = HEAD  # how much of the head is invented
    masked_instead: bool = False  # the mask was not asked for: the person could not be replaced safely
    group: int | None = None  # of those who share the surrogate
    likeness: float | None = None  # highest cosine between original and replacement over the views
    # members of a group who may be one and the same have one number; None for whoever is not confirmed as a person
    counts_as: int | None = None


@dataclass(frozen=True)
class JudgeRecord:
    """The recogniser that judged: its name, and the cosine from which it takes two faces for one person."""

    name: str
    threshold: float


@dataclass(frozen=True, eq=False)
class Plan:
    """What becomes of everyone, by name, and who measured the likeness; nobody did where nobody was replaced."""

    decisions: Mapping[str, Decision]
    judge: JudgeRecord | None = None

    @property
    def likeness(self) -> dict[str, float]:
        """Likeness of those who were replaced; secret, but for whether the highest is too high."""
        return {name: each.likeness for name, each in self.decisions.items() if each.likeness is not None}

    def k_real(self, shown: Collection[str] = ()) -> int | None:
        """Return the smallest number of real people who share a face; None where nobody does.

        Nobody can be taken for one of those who are ``shown``, left as they are in some frame.
        """
        return smallest_sharing(
            (name if each.group is None else each.group, each.counts_as)
            for name, each in self.decisions.items()
            if each.treatment is Treatment.REPLACE and name not in shown
        )

    def only(self, people: Collection[str]) -> Plan:
        """Return the plan for some of the people: the others are not published, and nobody is hidden among them."""
        return Plan({name: decision for name, decision in self.decisions.items() if name in people}, self.judge)


def treatments(
    people: Sequence[str],
    *,
    keep: Sequence[str] = (),
    only: Sequence[str] = (),
    mask: Sequence[str] = (),
    unmatched: Collection[str] = (),
    unconfirmed: Collection[str] = (),
) -> dict[str, Treatment]:
    """Return what was asked for each person.

    With ``only``, everyone else is kept, but nobody ``unmatched``: each may be one of those who are not to be seen, in
    profile or in the dark. What is perhaps no face (``unconfirmed``) is masked, unless it is kept by name.

    Examples
    --------
    >>> {name: t.value for name, t in treatments(("P1", "P2", "P3"), keep=("P2",), mask=("P3",)).items()}
    {'P1': 'replace', 'P2': 'keep', 'P3': 'mask'}
    >>> {name: t.value for name, t in treatments(("P1", "P2", "U1"), only=("P2",), unconfirmed=("U1",)).items()}
    {'P1': 'keep', 'P2': 'replace', 'U1': 'mask'}
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
    chosen |= dict.fromkeys((*unmatched, *only), Treatment.REPLACE)
    chosen |= dict.fromkeys(unconfirmed, Treatment.MASK)  # never replaced, even if named in only
    return chosen | dict.fromkeys(keep, Treatment.KEEP) | dict.fromkeys(mask, Treatment.MASK)
