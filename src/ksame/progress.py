"""How long work reports how far it is, without the library printing anything.

A function that may take seconds accepts ``progress``: a callable that is given the items and a short description and
yields the items. The default yields them silently; the command line passes one that draws a bar.
"""

from collections.abc import Callable, Iterable
from operator import length_hint
from typing import Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """Yields ``items`` while showing progress under the heading ``what``."""

    def __call__(self, items: Iterable[T], what: str) -> Iterable[T]:
        """Yield every item of ``items`` in order."""
        ...


def silent(items: Iterable[T], what: str) -> Iterable[T]:
    """Yield the items and show nothing."""
    return items


def told(listener: Callable[[str, int, int], None]) -> Progress:
    """Return progress that tells a function what is done, how many items are done, and how many there are (or 0).

    Examples
    --------
    >>> list(told(print)("ab", "reading"))
    reading 0 2
    reading 1 2
    reading 2 2
    ['a', 'b']
    """

    def report(items: Iterable[T], what: str) -> Iterable[T]:
        total = length_hint(items)
        for done, item in enumerate(items):
            listener(what, done, total)
            yield item
        listener(what, total, total)

    return report
