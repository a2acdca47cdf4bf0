"""What a paper is: where it was published, its experiments, its claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ksame.papers.claims import Claim
from ksame.papers.experiment import Drawing, Experiment, Run


@dataclass(frozen=True)
class Paper:
    """One of the papers that this package implements."""

    name: str
    citation: str
    data: str  # the faces the paper had, in words
    claims: Sequence[Claim]
    experiments: list[Experiment] = field(default_factory=list)

    def experiment(self, name: str, where: str, *drawings: Drawing, heavy: bool = False) -> Callable[[Run], Run]:
        """Add the function below as an experiment, whose title is its first line; see :class:`Experiment`."""

        def added(run: Run) -> Run:
            title = (run.__doc__ or "").partition("\n")[0].rstrip(".")
            self.experiments.append(Experiment(name, where, title, run, drawings, heavy))
            return run

        return added
