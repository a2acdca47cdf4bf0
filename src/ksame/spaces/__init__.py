"""Codings: pixels, eigenfaces, appearance models."""

from ksame.spaces.aam.space import AamSpace
from ksame.spaces.base import FaceSpace
from ksame.spaces.eigen import EigenSpace
from ksame.spaces.facemodel.space import FaceModelSpace
from ksame.spaces.pca import PCA, fit_pca
from ksame.spaces.pixel import PixelSpace
from ksame.spaces.reference import FaceModels

__all__ = ["PCA", "AamSpace", "EigenSpace", "FaceModelSpace", "FaceModels", "FaceSpace", "PixelSpace", "fit_pca"]
