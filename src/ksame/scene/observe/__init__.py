"""Frames become observations: faces detected on keyframes, confirmed, and meshed where they are expected."""

from ksame.scene.observe.config import DetectorConfig
from ksame.scene.observe.observations import Map, Observations, observe

__all__ = ["DetectorConfig", "Map", "Observations", "observe"]
