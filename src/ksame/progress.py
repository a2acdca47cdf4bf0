"""How long work reports how far it is, without the library printing anything.

A function that may take seconds accepts ``progress``: a callable that is given the items and a short description and
yields the items. The default yields them silently; the command line passes one that draws a bar.
"""

from collections.abc import Iterable
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
