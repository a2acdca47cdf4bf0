"""Codings: pixels and eigenfaces."""

from ksame.spaces.base import FaceSpace
from ksame.spaces.eigen import EigenSpace
from ksame.spaces.pca import PCA, fit_pca
from ksame.spaces.pixel import PixelSpace
from ksame.spaces.reference import FaceModels

__all__ = ["PCA", "EigenSpace", "FaceModels", "FaceSpace", "PixelSpace", "fit_pca"]
