"""Who is compared with whom: naive, reverse and parrot recognition (Newton et al. 2005, section 5.2)."""

from __future__ import annotations

from typing import Protocol

from ksame.attacks.scoring import rank1_scores
from ksame.errors import parameter_error
from ksame.faces.faceset import FaceSet, FloatArray

SCENARIOS = ("naive", "reverse", "parrot")


class Recogniser(Protocol):
    """Learns from a training set, then measures how far faces are apart."""

    def fit(self, training: FaceSet) -> Recogniser:
        """Learn from a training set and return the trained recogniser."""
        ...

    def distances(self, probes: FaceSet, gallery: FaceSet) -> FloatArray:
        """Return distances, (n_probes, n_gallery)."""
        ...


def attack(scenario: str, recogniser: Recogniser, originals: FaceSet, released: FaceSet) -> FloatArray:
    """Return the chance with which each probe is named correctly, (n_probes,).

    Parameters
    ----------
    scenario : {"naive", "reverse", "parrot"}
        ``naive``: released probes, original gallery. ``reverse``: original probes, released gallery. ``parrot``:
        released probes, released gallery, and the recogniser is trained on released faces.
    recogniser : Recogniser
        Trained here on the gallery, as in the paper.
    originals, released : FaceSet
        The subjects of ``released`` are those the attacker does not know, and is scored against.
    """
    pairs = {"naive": (released, originals), "reverse": (originals, released), "parrot": (released, released)}
    if scenario not in pairs:
        raise parameter_error("scenario", "attack", f"one of {', '.join(SCENARIOS)}", scenario)
    probes, gallery = pairs[scenario]
    return rank1_scores(recogniser.fit(gallery).distances(probes, gallery), gallery.subjects, probes.subjects)
