"""Media in and out: photographs, recordings and image sequences, with their sound and without their metadata."""

from ksame.pictures import Pixels
from ksame.scene.media.encoding import EncoderConfig
from ksame.scene.media.integrity import DamagePolicy
from ksame.scene.media.output import Output, check_destination, check_requests
from ksame.scene.media.probe import open_media
from ksame.scene.media.segments import WorkFolder
from ksame.scene.media.source import Frame, Media
from ksame.scene.media.voice import Voice

__all__ = [
    "DamagePolicy",
    "EncoderConfig",
    "Frame",
    "Media",
    "Output",
    "Pixels",
    "Voice",
    "WorkFolder",
    "check_destination",
    "check_requests",
    "open_media",
]
