"""Invented heads, live: the network makes one now and then, and between its own points carry it along."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ksame.heads.between import between, carried
from ksame.heads.drawing import Invention
from ksame.heads.invention import INVENTION, FinishedHead, finish, taken_away
from ksame.live.background import Background, Change
from ksame.live.config import LiveConfig
from ksame.models.finisher import SIZES, Finisher
from ksame.scene.media import Frame
from ksame.scene.render import FramePlan

_FADE = 0.12  # seconds over which a new head takes the place of the one before, by choice


@dataclass(frozen=True, eq=False)
class _Made:
    """A head that the network made: for which surrogate, of a frame captured when, and since when it is there."""

    head: FinishedHead
    invention: Invention
    captured: float
    since: float
    before: FinishedHead | None


class HeadStore:
    """The newest finished head of every track.

    Parameters
    ----------
    config : LiveConfig
    network : Finisher
    background : Background
        Where heads are made, one at a time.
    """

    def __init__(self, config: LiveConfig, network: Finisher, background: Background) -> None:
        self._config, self._network, self._background = config, network, background
        self._made: dict[int, _Made] = {}
        self._free = True
        self._cost = 0.0  # seconds for a pixel of a head, lately

    def settle(self) -> None:
        """Put into effect what has been made."""
        self._free = self._background.free

    def ready(self, track: int, invention: Invention, now: float) -> FinishedHead | None:
        """Return a head for a frame; None where the last one is too old or too different, or of another surrogate."""
        made = self._made.get(track)
        if made is None or made.invention.looks is not invention.looks:
            return None
        if now - made.captured > self._config.head_age or _apart(made.head, invention) > self._config.carry:
            return None
        share = (now - made.since) / _FADE
        if made.before is not None and 0 <= share < 1:
            mixed = between(made.before, invention.points, made.head, share)
            if mixed is not None:
                return mixed
        return carried(made.head, invention.points)

    def request(self, frame: Frame, plan: FramePlan) -> None:
        """Let the network make the head that needs it most, where it has nothing else to do."""
        if not plan.heads or not self._free:
            return
        track = max(plan.heads, key=lambda track: self._need(track, plan.heads[track], frame.time))
        invention = plan.heads[track]
        size = self._size(invention, len(plan.heads))

        def work() -> Change | None:
            start = time.monotonic()
            hidden = taken_away(frame.pixels.shape, plan.outlines)
            head = finish(frame.pixels, hidden, invention, self._network, size)
            cost = (time.monotonic() - start) / size**2
            self._cost = cost if not self._cost else 0.7 * self._cost + 0.3 * cost
            return None if head is None else lambda: self._keep(track, head, invention, frame.time)

        self._background.start(work)

    def forget(self, tracks: Collection[int]) -> None:
        """Keep the heads of these tracks only."""
        self._made = {track: made for track, made in self._made.items() if track in tracks}

    def _need(self, track: int, invention: Invention, now: float) -> float:
        """Return how much a head is in need of being made: by its age in seconds, and by how far it was carried."""
        made = self._made.get(track)
        if made is None or made.invention.looks is not invention.looks:
            return np.inf
        return now - made.captured + _apart(made.head, invention) / self._config.carry

    def _keep(self, track: int, head: FinishedHead, invention: Invention, captured: float) -> None:
        old = self._made.get(track)
        same = old is not None and old.invention.looks is invention.looks
        self._made[track] = _Made(head, invention, captured, captured, old.head if old is not None and same else None)

    def _size(self, invention: Invention, n_heads: int) -> int:
        """Return at how many pixels a head is finished: as many as show, and as the machine can do for everyone."""
        wanted = next((size for size in SIZES if invention.region.side <= INVENTION.max_enlarged * size), SIZES[-1])
        limit = min(wanted, self._config.head_size)
        fits = (size for size in SIZES if size <= limit and n_heads * size**2 * self._cost <= self._config.round)
        return max(fits, default=SIZES[0])


def _apart(head: FinishedHead, invention: Invention) -> float:
    """Return how far the points of a finished head are from where they should be, in sides of the square."""
    return float(np.abs(head.points - invention.points).max())
