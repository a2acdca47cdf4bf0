"""How it is done: every method of the papers, on arrays."""

from ksame.methods.adhoc import AdHoc, BarMask, Blur, EigenReduce, FlipNoise, Noise, Pixelate, Threshold, TMask
from ksame.methods.base import Method, Outcome, Problem
from ksame.methods.furthest import Furthest
from ksame.methods.ksame import Average, Blackout, KSame
from ksame.methods.maps import EpsilonKMap, EpsilonMap, WrongMap
from ksame.methods.select import Select

__all__ = [
    "AdHoc",
    "Average",
    "BarMask",
    "Blackout",
    "Blur",
    "EigenReduce",
    "EpsilonKMap",
    "EpsilonMap",
    "FlipNoise",
    "Furthest",
    "KSame",
    "Method",
    "Noise",
    "Outcome",
    "Pixelate",
    "Problem",
    "Select",
    "TMask",
    "Threshold",
    "WrongMap",
]
