"""How much of a head is invented: every cover by name."""

from __future__ import annotations

from dataclasses import dataclass

from ksame.registry import Registry


@dataclass(frozen=True)
class Cover:
    """How much of a head is invented."""

    name: str
    reach: float  # how far the region goes, in outlines of the mean face
    summary: str  # what is invented
    leaks: str  # what of the person is still to be seen, in one sentence


COVERS: Registry[Cover] = Registry("cover")
"""All covers by name; the default first."""

# Regions of these two reaches are what the network learned to invent: see tools/prepare_finisher.py.
HEAD = COVERS.add(Cover("head", 1.5, "the whole head: hair line, ears and jaw", "Hair beyond the region stays."))
FACE = COVERS.add(
    Cover("face", 1.0, "the face alone", "Hair and outline stay, and by them recognisers still pick out many people.")
)
