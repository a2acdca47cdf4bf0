"""Heads: where one is in a frame, the drawing of a surrogate in its place, and the photograph made of it."""

from ksame.heads.covers import COVERS, FACE, HEAD, Cover
from ksame.heads.drawing import Invention, Looks, draw
from ksame.heads.head import Head, Region, expression_of, neutral_shape, wearing
from ksame.heads.invention import invent, taken_away
from ksame.heads.surrogate import Surrogate, draw_surrogate, modelled, tone_of

__all__ = [
    "COVERS",
    "FACE",
    "HEAD",
    "Cover",
    "Head",
    "Invention",
    "Looks",
    "Region",
    "Surrogate",
    "draw",
    "draw_surrogate",
    "expression_of",
    "invent",
    "modelled",
    "neutral_shape",
    "taken_away",
    "tone_of",
    "wearing",
]
