"""Invented heads, live: the network makes them for the very frame while there is time, and carries them along else."""

from __future__ import annotations

import time
from collections.abc import Collection
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass

import numpy as np

from ksame.heads.between import carried
from ksame.heads.drawing import Invention
from ksame.heads.invention import INVENTION, FinishedHead, finish, taken_away
from ksame.live.config import LiveConfig
from ksame.live.statistics import Statistics
from ksame.models.finisher import SIZES, Finisher
from ksame.scene.media import Frame
from ksame.scene.render import FramePlan


@dataclass(frozen=True, eq=False)
class _Made:
    """A head that the network made, or is making: of which invention, and of a frame captured when."""

    invention: Invention
    captured: float
    head: FinishedHead | None = None

    def apart(self, invention: Invention) -> float:
        """Return how far its points are from where they should be, in sides of the square."""
        return float(np.abs(self.invention.points - invention.points).max())


class HeadStore:
    """The newest finished head of every track; the executor makes them, the statistics count what went wrong."""

    def __init__(self, config: LiveConfig, network: Finisher, executor: Executor, statistics: Statistics) -> None:
        self._config, self._network, self._executor, self._statistics = config, network, executor, statistics
        self._made: dict[int, _Made] = {}
        self._making: dict[int, tuple[_Made, Future[tuple[FinishedHead | None, float]]]] = {}
        self._cost = 0.0  # seconds for a pixel of a head, lately

    def heads(self, frame: Frame, plan: FramePlan, seconds: float) -> dict[int, FinishedHead]:
        """Return heads for a frame, after so many seconds at most; whoever has none there must be masked.

        A head is made for this frame unless the last one is new and near. Where it is not there in time the last one
        is carried here, if that is not too old and not too far.
        """
        self._collect()
        size = self._size(plan.heads.values())
        hidden = taken_away(frame.pixels.shape, plan.outlines) if plan.heads else None
        fresh = frame.time - self._config.fresh
        for track, invention in plan.heads.items():
            new = self._last(track, invention, fresh, self._config.near) is not None
            if track not in self._making and not new and hidden is not None:
                future = self._executor.submit(self._make, frame, hidden, invention, size)
                self._making[track] = _Made(invention, frame.time), future
        wait([future for _, future in self._making.values()], timeout=max(0.0, seconds))
        self._collect()
        ready = {track: self._carried(track, invention, frame.time) for track, invention in plan.heads.items()}
        return {track: head for track, head in ready.items() if head is not None}

    def forget(self, tracks: Collection[int]) -> None:
        """Keep the heads of these tracks only."""
        self._made = {track: made for track, made in self._made.items() if track in tracks}

    def _make(
        self, frame: Frame, hidden: np.ndarray, invention: Invention, size: int
    ) -> tuple[FinishedHead | None, float]:
        """Return a head, and the seconds that each of its pixels took."""
        start = time.monotonic()
        wanted = next((s for s in SIZES if invention.region.side <= INVENTION.max_enlarged * s), SIZES[-1])
        size = min(size, wanted)
        head = finish(frame.pixels, hidden, invention, self._network, size)
        return head, (time.monotonic() - start) / size**2

    def _collect(self) -> None:
        """Keep what has been made."""
        for track, (made, future) in list(self._making.items()):
            if not future.done():
                continue
            del self._making[track]
            error = future.exception()
            if error is not None:
                self._statistics.failures[f"heads: {type(error).__name__}: {error}"] += 1
                continue
            head, cost = future.result()
            self._cost = cost if not self._cost else 0.8 * self._cost + 0.2 * cost
            self._made[track] = _Made(made.invention, made.captured, head)

    def _last(self, track: int, invention: Invention, since: float, max_apart: float) -> FinishedHead | None:
        """Return the last head of a track, if it is of the same person, captured since then, and near enough."""
        made = self._made.get(track)
        if made is None or made.invention.looks is not invention.looks:
            return None
        return made.head if made.captured >= since and made.apart(invention) <= max_apart else None

    def _carried(self, track: int, invention: Invention, now: float) -> FinishedHead | None:
        head = self._last(track, invention, now - self._config.head_age, self._config.carry)
        return None if head is None else carried(head, invention.points)

    def _size(self, inventions: Collection[Invention]) -> int:
        """Return at how many pixels heads are finished, at most: as the machine can do it for everyone in time."""
        fits = (
            size
            for size in SIZES
            if size <= self._config.head_size and len(inventions) * size**2 * self._cost <= self._config.head_time
        )
        return max(fits, default=SIZES[0])
