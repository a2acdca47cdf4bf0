"""The Active Appearance Model: build it, fit it to a photograph, render it."""

from ksame.spaces.aam.build import build
from ksame.spaces.aam.fitting import Fit, Fitter
from ksame.spaces.aam.model import AppearanceModel, Params
from ksame.spaces.aam.procrustes import generalised_procrustes
from ksame.spaces.aam.space import AamSpace
from ksame.spaces.aam.warp import PiecewiseAffine, triangulate

__all__ = [
    "AamSpace",
    "AppearanceModel",
    "Fit",
    "Fitter",
    "Params",
    "PiecewiseAffine",
    "build",
    "generalised_procrustes",
    "triangulate",
]
