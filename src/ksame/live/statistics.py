"""What happened, counted in constant memory: frames, faces, and how late frames were shown."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SCHEMA, VERSION = "ksame-live", 1
_MAX_LATENCY = 20_000  # milliseconds; later ones count as so late


@dataclass(eq=False)
class Statistics:
    """Counts of one session."""

    captured: int = 0  # frames that the source gave
    shown: int = 0  # that were published
    skipped: int = 0  # that were never looked at, because a newer one was there
    late: int = 0  # that were too old when their faces were covered: never shown
    damaged: int = 0  # of a stream that could not be decoded as a whole: never shown
    reconnects: int = 0
    replaced: int = 0  # faces in published frames that got another head
    masked: Counter[str] = field(default_factory=Counter)  # that were masked, by the reason
    failures: Counter[str] = field(default_factory=Counter)  # beside the picture; whoever it was about stays masked
    people: int = 0
    never_replaced: int = 0
    k_real: int | None = None
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self._latency = np.zeros(_MAX_LATENCY + 1, dtype=np.int64)

    def show(self, latency: float) -> None:
        """Count a frame that was published so many seconds after it was captured."""
        self.shown += 1
        self._latency[min(_MAX_LATENCY, max(0, int(np.ceil(1000 * latency))))] += 1

    def percentile(self, share: float) -> float | None:
        """Return the milliseconds within which that share of the frames was published; None before the first.

        Examples
        --------
        >>> statistics = Statistics()
        >>> for milliseconds in range(1, 101):
        ...     statistics.show(milliseconds / 1000)
        >>> statistics.percentile(0.5), statistics.percentile(0.99), statistics.percentile(1)
        (50.0, 99.0, 100.0)
        """
        if not self.shown:
            return None
        return float(np.searchsorted(self._latency.cumsum(), np.ceil(share * self.shown)))

    @property
    def fps(self) -> float:
        """Published frames per second."""
        return self.shown / self.seconds if self.seconds > 0 else 0.0

    def for_machines(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "seconds": round(self.seconds, 3),
            "frames": {
                "captured": self.captured,
                "shown": self.shown,
                "skipped": self.skipped,
                "late": self.late,
                "damaged": self.damaged,
            },
            "fps": round(self.fps, 2),
            "latency_ms": {
                "p50": self.percentile(0.5),
                "p99": self.percentile(0.99),
                "max": self.percentile(1.0),
            },
            "faces": {
                "replaced": self.replaced,
                "masked": sum(self.masked.values()),
                "masked_because": dict(self.masked.most_common()),
            },
            "people": {"seen": self.people, "never_replaced": self.never_replaced, "k_real": self.k_real},
            "reconnects": self.reconnects,
            "failures": dict(self.failures.most_common()),
        }
