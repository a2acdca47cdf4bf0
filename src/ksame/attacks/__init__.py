"""The adversary: recognisers, scenarios and scoring."""

from ksame.attacks.eigenfaces import Eigenfaces
from ksame.attacks.scenarios import SCENARIOS, Recogniser, attack
from ksame.attacks.scoring import rank1_scores

__all__ = ["SCENARIOS", "Eigenfaces", "Recogniser", "attack", "rank1_scores"]
