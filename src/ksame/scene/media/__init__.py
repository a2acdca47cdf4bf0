"""Media in and out: photographs, recordings and image sequences, with their sound and without their metadata."""

from ksame.pictures import Pixels
from ksame.scene.media.conversion import OutputFrame
from ksame.scene.media.encoding import CONTAINERS, EncoderConfig
from ksame.scene.media.integrity import DamagePolicy
from ksame.scene.media.output import Output, check_destination, check_requests, open_part
from ksame.scene.media.probe import open_media
from ksame.scene.media.segments import SEGMENT, WorkFolder
from ksame.scene.media.source import Frame, Media
from ksame.scene.media.voice import Voice

__all__ = [
    "CONTAINERS",
    "SEGMENT",
    "DamagePolicy",
    "EncoderConfig",
    "Frame",
    "Media",
    "Output",
    "OutputFrame",
    "Pixels",
    "Voice",
    "WorkFolder",
    "check_destination",
    "check_requests",
    "open_media",
    "open_part",
]
