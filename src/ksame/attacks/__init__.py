"""The adversary: recognisers, scenarios and scoring."""

from ksame.attacks.base import AttackData, AttackResult, Coder, Recogniser
from ksame.attacks.eigenfaces import Eigenfaces, Mahalanobis
from ksame.attacks.scenarios import SCENARIOS, Scenario, run_attack
from ksame.attacks.scoring import (
    Roc,
    Verdict,
    clopper_pearson,
    cmc,
    expected_ranks,
    rank1_scores,
    roc,
    verdict,
)

__all__ = [
    "SCENARIOS",
    "AttackData",
    "AttackResult",
    "Coder",
    "Eigenfaces",
    "Mahalanobis",
    "Recogniser",
    "Roc",
    "Scenario",
    "Verdict",
    "clopper_pearson",
    "cmc",
    "expected_ranks",
    "rank1_scores",
    "roc",
    "run_attack",
    "verdict",
]
