"""What became of a batch of files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ksame.scene.at_risk import AtRisk, Shown
from ksame.scene.decide import Plan
from ksame.scene.sealing.sealer import Piece
from ksame.scene.track import People
from ksame.scene.track.tracks import Tracks


@dataclass(frozen=True, eq=False)
class FileResult:
    """What became of one file."""

    source: Path
    output: Path
    n_frames: int
    people: tuple[str, ...]  # who was found, by their names in the batch
    # where faces were masked because they could not be replaced; all of a file in which nobody was found
    at_risk: tuple[AtRisk, ...]
    files: Mapping[str, str]  # what was written, by names below the folder of the output
    losses: tuple[str, ...] = ()  # what of the source its output cannot hold
    shown: tuple[Shown, ...] = ()  # who is left as they are in at least one frame
    sealed: tuple[Piece, ...] = ()  # what of it goes into the vault


@dataclass(frozen=True, eq=False)
class JobResult:
    """What became of a batch. It holds secrets: who became whom."""

    files: tuple[FileResult, ...]
    failed: Mapping[Path, str]  # files for which nothing was written
    plan: Plan
    people: People
    tracks_of: Callable[[int], Tracks]  # those of a file that was written, by its place; gone with the work in progress
    seed: int
    keys: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of the vault, wrapped; for each person

    @property
    def shown(self) -> dict[str, Shown]:
        """Who is left as they are in at least one frame of a file; confirmed where they are in any of them."""
        people: dict[str, Shown] = {}
        for person in (person for file in self.files for person in file.shown):
            people[person.person] = person if person.confirmed else people.get(person.person, person)
        return people
