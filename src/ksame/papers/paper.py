"""What a paper is: where it was published, its experiments, its claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ksame.papers.claims import Claim
from ksame.papers.experiment import Experiment


@dataclass(frozen=True)
class Paper:
    """One of the papers that this package implements."""

    name: str
    citation: str
    data: str  # the faces the paper had, in words
    experiments: tuple[Experiment, ...]
    claims: Sequence[Claim]
