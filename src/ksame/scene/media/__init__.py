"""Media in and out: photographs, recordings and folders of pictures, with their sound and without their metadata."""

from ksame.scene.media.damage import Damaged
from ksame.scene.media.encoding import Encoding
from ksame.scene.media.output import Output, check_destination, check_wishes
from ksame.scene.media.probe import open_media
from ksame.scene.media.source import Frame, Media, Pixels

__all__ = [
    "Damaged",
    "Encoding",
    "Frame",
    "Media",
    "Output",
    "Pixels",
    "check_destination",
    "check_wishes",
    "open_media",
]
