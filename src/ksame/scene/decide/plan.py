"""Plans: what becomes of everyone in a batch, and what was asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
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
    """What becomes of one person in a whole batch.

    Attributes
    ----------
    treatment : Treatment
    surrogate : Surrogate, optional
        Who they become, if they are replaced.
    cover : Cover
        How much of the head is invented.
    masked_instead : bool
        Whether the mask was not asked for: the person could not be replaced safely.
    """

    treatment: Treatment
    surrogate: Surrogate | None = None
    cover: Cover = HEAD
    masked_instead: bool = False


@dataclass(frozen=True)
class JudgeRecord:
    """The recogniser that judged: its name, and the cosine from which it takes two faces for one person."""

    name: str
    threshold: float


@dataclass(frozen=True, eq=False)
class Plan:
    """Who becomes whom.

    Attributes
    ----------
    decisions : mapping of person to Decision
    groups : mapping of person to int
        Who shares a face with whom; secret.
    likeness : mapping of person to float
        Highest cosine between original and replacement over the views; secret, but for the highest of all.
    counted : mapping of person to int
        Confirmed people, by a number that members of a group who may be one and the same have in common.
    judge : JudgeRecord or None
        Who measured the likeness; None where nobody was replaced.
    """

    decisions: Mapping[str, Decision]
    groups: Mapping[str, int] = field(default_factory=dict)
    likeness: Mapping[str, float] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=dict)
    judge: JudgeRecord | None = None

    def k_real(self, shown: Collection[str] = ()) -> int | None:
        """Return the smallest number of real people who share a face; None where nobody does.

        Parameters
        ----------
        shown : collection of str
            Those who are left as they are in some frame: nobody can be taken for one of them.
        """
        replaced = [name for name, decision in self.decisions.items() if decision.treatment is Treatment.REPLACE]
        return smallest_sharing((self.groups[name], self.counted.get(name)) for name in replaced if name not in shown)

    def only(self, people: Collection[str]) -> Plan:
        """Return the plan for some of the people: the others are not published, and nobody is hidden among them."""
        decisions = {name: value for name, value in self.decisions.items() if name in people}
        groups = {name: value for name, value in self.groups.items() if name in people}
        likeness = {name: value for name, value in self.likeness.items() if name in people}
        counted = {name: value for name, value in self.counted.items() if name in people}
        return Plan(decisions, groups, likeness, counted, self.judge)


def treatments(
    people: Sequence[str],
    *,
    keep: Sequence[str] = (),
    only: Sequence[str] = (),
    mask: Sequence[str] = (),
    strangers: Collection[str] = (),
    unsure: Collection[str] = (),
) -> dict[str, Treatment]:
    """Return what was asked for each person.

    With ``only``, everyone else is kept, but not ``strangers``: each may be one of those who are not to be seen, in
    profile or in the dark. What is perhaps no face (``unsure``) is masked, unless it is kept by name.

    Examples
    --------
    >>> {name: t.value for name, t in treatments(("P1", "P2", "P3"), keep=("P2",), mask=("P3",)).items()}
    {'P1': 'replace', 'P2': 'keep', 'P3': 'mask'}
    >>> {name: t.value for name, t in treatments(("P1", "P2", "U1"), only=("P2",), unsure=("U1",)).items()}
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
    chosen.update(dict.fromkeys(strangers, Treatment.REPLACE))
    chosen.update(dict.fromkeys(only, Treatment.REPLACE))
    chosen.update(dict.fromkeys(unsure, Treatment.MASK))  # never replaced, even if named in only
    chosen.update(dict.fromkeys(keep, Treatment.KEEP))
    chosen.update(dict.fromkeys(mask, Treatment.MASK))
    return chosen
