"""Pretrained networks: where they are kept, and finding, meshing and recognising faces with them."""

from ksame.models.blazeface import BlazeFace
from ksame.models.catalogue import CATALOGUE, Model, Wheel
from ksame.models.detector import FaceDetector, detect
from ksame.models.face import Face, Mesh, Source
from ksame.models.mesh import BLENDSHAPES, FaceMesh, Pose, five_points
from ksame.models.recogniser import RECOGNISERS, DlibResNet, OnnxRecogniser, Recogniser, RecogniserEntry, SFace
from ksame.models.store import State, Store, path

__all__ = [
    "BLENDSHAPES",
    "CATALOGUE",
    "RECOGNISERS",
    "BlazeFace",
    "DlibResNet",
    "Face",
    "FaceDetector",
    "FaceMesh",
    "Mesh",
    "Model",
    "OnnxRecogniser",
    "Pose",
    "Recogniser",
    "RecogniserEntry",
    "SFace",
    "Source",
    "State",
    "Store",
    "Wheel",
    "detect",
    "five_points",
    "path",
]
