"""Codings: pixels and eigenfaces."""

from ksame.spaces.base import FaceSpace
from ksame.spaces.eigen import EigenSpace
from ksame.spaces.pca import PCA, fit_pca
from ksame.spaces.pixel import PixelSpace

__all__ = ["PCA", "EigenSpace", "FaceSpace", "PixelSpace", "fit_pca"]
