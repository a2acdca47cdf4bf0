"""Warnings of others, kept away without losing our own."""

from __future__ import annotations

import warnings
from threading import Lock
from typing import Any


class QuietReaders:
    """Keeps warnings of picture readers about odd metadata away, in any number of threads at once.

    ``warnings.catch_warnings`` puts back what it found. Of two threads, the one that ends last would put back what the
    other had set, and all later warnings of the process were lost, those about privacy too.
    """

    def __init__(self) -> None:
        self._lock, self._users = Lock(), 0
        self._rule: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                warnings.filterwarnings("ignore", module=r"(PIL|pi_heif)\b")
                self._rule = warnings.filters[0]
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._rule in warnings.filters:
                warnings.filters.remove(self._rule)  # type: ignore[attr-defined]  # a list in every version


QUIET_READERS = QuietReaders()
"""The one that all threads share."""
