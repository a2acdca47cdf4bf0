"""What of a recording cannot be written, in words for the user."""

from __future__ import annotations

from ksame.scene.media.assemble import SUBTITLES
from ksame.scene.media.encoding import Container, Encoding
from ksame.scene.media.source import Media

_HDR = (16, 18)
"""Transfers with a high dynamic range: PQ and HLG."""


def video_losses(media: Media, bits: int) -> tuple[str, ...]:
    """Return what is lost of the pictures where they are written with some bits a channel."""
    coding = media.coding
    if coding is None:
        return ()
    found = []
    if coding.bits > bits:
        hdr = " and its high dynamic range looks wrong" if coding.colours.transfer in _HDR else ""
        found.append(f"its {coding.bits} bits became {bits} bits{hdr}; .mp4, .mov and .mkv keep them")
    if coding.interlaced:
        found.append("it is interlaced, and the output is not marked so; deinterlace it before or after")
    if coding.streams[0] > 1:
        found.append(f"1 of {coding.streams[0]} pictures (streams of video) was taken over")
    return tuple(found)


def sound_losses(media: Media, encoding: Encoding, container: Container) -> tuple[str, ...]:
    """Return what is lost of sound and subtitles that were to be kept."""
    found = []
    sounds = 0 if media.coding is None else media.coding.streams[1]
    if sounds > 1 and encoding.audio == "keep" and container.sound is not None:
        found.append(f"1 of {sounds} sounds was taken over")
    if "subtitles" in encoding.keep_metadata and not SUBTITLES.get(container.muxer):
        found.append("the container holds no subtitles")
    return tuple(found)
