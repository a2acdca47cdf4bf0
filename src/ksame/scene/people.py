"""What was asked for each person."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ksame.errors import UsageError
from ksame.scene.composing import Treatment


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
