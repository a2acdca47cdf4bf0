"""Who is compared with whom, and after what preparation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ksame.attacks.base import AttackData, AttackResult, Recogniser, Remarking, compare, score
from ksame.errors import parameter_error
from ksame.faces.faceset import FaceSet


@dataclass(frozen=True)
class Scenario:
    """An attack that any recogniser can be used for.

    Attributes
    ----------
    name : str
    summary : str
        What is compared with what, and what the attacker needs for it.
    run : callable
        Takes a recogniser, the data and a generator, gives the result.
    """

    name: str
    summary: str
    run: Callable[[Recogniser, AttackData, np.random.Generator], AttackResult]

    def __call__(self, recogniser: Recogniser, data: AttackData, rng: np.random.Generator) -> AttackResult:
        """Attack."""
        return self.run(recogniser, data, rng)


def run_attack(name: str, recogniser: Recogniser, data: AttackData, seed: int = 0) -> AttackResult:
    """Run the scenario called ``name``.

    Parameters
    ----------
    name : str
        A key of :data:`SCENARIOS`.
    recogniser : Recogniser
        Not fitted yet; who trains it is part of the scenario.
    data : AttackData
    seed : int
        For what a scenario draws by lot.
    """
    if name not in SCENARIOS:
        raise parameter_error("name", "run_attack", f"one of {', '.join(SCENARIOS)}", name)
    return SCENARIOS[name](recogniser, data, np.random.default_rng(seed))


def _naive(recogniser: Recogniser, data: AttackData, rng: np.random.Generator) -> AttackResult:
    trained, notes = _trained(recogniser, data.training, data.originals, "the gallery of originals")
    return _matched("naive", trained, data.released, data.originals, notes)


def _reverse(recogniser: Recogniser, data: AttackData, rng: np.random.Generator) -> AttackResult:
    trained, notes = _trained(recogniser, data.training, data.released, "the gallery of released faces")
    return _matched("reverse", trained, data.originals, data.released, notes)


def _parrot(recogniser: Recogniser, data: AttackData, rng: np.random.Generator) -> AttackResult:
    if data.imitate is None:
        gallery, how = data.released, "the gallery is the release itself"
        training = None
    else:
        gallery, how = data.imitate(data.originals), "the attacker ran the method on the originals"
        training = None if data.training is None else data.imitate(data.training)
    trained, notes = _trained(recogniser, training, gallery, "the gallery of de-identified faces")
    return _matched("parrot", trained, data.released, gallery, (how, *notes))


def _trained(
    recogniser: Recogniser, training: FaceSet | None, otherwise: FaceSet, called: str
) -> tuple[Recogniser, tuple[str, ...]]:
    """Train on people outside where there are any, else on the gallery as Newton et al. (2005) do."""
    chosen, what = (otherwise, called) if training is None else (training, "a separate training set")
    return recogniser.fit(chosen), (f"trained on {what}: {len(chosen)} faces of {chosen.n_subjects} people",)


def _matched(name: str, trained: Recogniser, probes: FaceSet, gallery: FaceSet, notes: tuple[str, ...]) -> AttackResult:
    distances = compare(trained, probes, gallery)
    return score(name, trained, distances, probes, gallery, notes=(*notes, *remarks(trained, probes)))


def remarks(recogniser: Recogniser, faces: FaceSet) -> tuple[str, ...]:
    """Return what the recogniser has to say about the faces, if anything."""
    return recogniser.remarks(faces) if isinstance(recogniser, Remarking) else ()


SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        scenario.name: scenario
        for scenario in (
            Scenario("naive", "released faces against originals", _naive),
            Scenario("reverse", "originals against released faces", _reverse),
            Scenario("parrot", "released faces against faces de-identified in the same way", _parrot),
        )
    }
)
"""All scenarios by name (Newton et al. 2005, section 5.2; Gross et al. 2006, section 6.2)."""
