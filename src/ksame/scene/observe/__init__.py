"""Frames become observations: faces detected on keyframes, confirmed, and meshed where they are expected."""

from ksame.scene.observe.config import DetectorConfig
from ksame.scene.observe.detect import Map
from ksame.scene.observe.observations import Observations, observe

__all__ = ["DetectorConfig", "Map", "Observations", "observe"]
