"""Things by name: one place to add a method, a cover or a recogniser, and one wording for a name nobody knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Protocol, TypeVar

from ksame.errors import UsageError


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """What the command line, certificates and reports call it."""
        ...


T = TypeVar("T", bound=Named)


class Registry(Mapping[str, T]):
    """Entries by name, in the order in which they were added.

    Parameters
    ----------
    kind : str
        What the entries are, in one word for messages.

    Examples
    --------
    >>> from collections import namedtuple
    >>> fruit = Registry("fruit")
    >>> fruit.add(namedtuple("Fruit", "name")("apple")).name
    'apple'
    >>> fruit["appel"]
    Traceback (most recent call last):
        ...
    ksame.errors.UsageError: Unknown fruit 'appel'. Did you mean 'apple'? Choose one of: apple.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def add(self, entry: T) -> T:
        """Add an entry and return it; a name that is taken is refused."""
        if entry.name in self._entries:
            raise UsageError(f"A {self.kind} called {entry.name!r} exists already.")
        self._entries[entry.name] = entry
        return entry

    def remove(self, name: str) -> None:
        """Take an entry out again."""
        del self._entries[self[name].name]

    def choose(self, name: str, fits: Callable[[T], bool] | None = None, also: str = "") -> T:
        """Return the entry of a name, out of those that fit.

        Parameters
        ----------
        fits : callable, optional
            Which entries may be chosen here; all by default.
        also : str
            What else could be given instead of a name, for the message.
        """
        known = [each for each, entry in self._entries.items() if fits is None or fits(entry)]
        if name in known:
            return self._entries[name]
        near = get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        wrong = f"The {self.kind} {name!r} does not work here." if name in self else f"Unknown {self.kind} {name!r}."
        raise UsageError(f"{wrong}{hint} Choose one of: {', '.join(known)}{also}.")

    def __getitem__(self, name: str) -> T:
        return self.choose(name)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
