"""The adversary: recognisers, scenarios, protocols and scoring."""

from ksame.attacks.base import AttackData, AttackResult, Coder, Recogniser
from ksame.attacks.coders import Eigenfaces, Mahalanobis, ModelNeighbour, Posterior
from ksame.attacks.embedding import Embedding
from ksame.attacks.protocol import Split, label_split, other_photograph_split, same_photograph_split
from ksame.attacks.restorer import OnRestored, Restorer
from ksame.attacks.scenarios import SCENARIOS, Scenario, run_attack
from ksame.attacks.scoring import Roc, Verdict, clopper_pearson, cmc, rank1_scores, roc, verdict

__all__ = [
    "SCENARIOS",
    "AttackData",
    "AttackResult",
    "Coder",
    "Eigenfaces",
    "Embedding",
    "Mahalanobis",
    "ModelNeighbour",
    "OnRestored",
    "Posterior",
    "Recogniser",
    "Restorer",
    "Roc",
    "Scenario",
    "Split",
    "Verdict",
    "clopper_pearson",
    "cmc",
    "label_split",
    "other_photograph_split",
    "rank1_scores",
    "roc",
    "run_attack",
    "same_photograph_split",
    "verdict",
]
