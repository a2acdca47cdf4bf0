"""The face model that comes with ksame."""

from ksame.spaces.facemodel.model import FaceModel, face_model

__all__ = ["FaceModel", "face_model"]
