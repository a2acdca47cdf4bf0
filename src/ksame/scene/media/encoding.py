"""How a result is written: containers, codecs, quality, and what of the source goes with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Literal

from ksame.errors import UsageError, parameter_error
from ksame.scene.media.source import Colours, Media

PICTURE_SUFFIXES: Mapping[str, str] = {
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".png": "PNG",
    ".webp": "WEBP",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".bmp": "BMP",
    ".avif": "AVIF",
}
"""Format of a photograph by the suffix of its file."""

FRAMES = ("png", "jpeg")
"""Codecs of a folder of numbered pictures."""
SPEEDS = ("ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow")
THREADS = 4
"""Of every encoder, on every machine: the number of threads changes the bytes."""


@dataclass(frozen=True)
class Container:
    """What a file with a certain suffix can hold.

    Attributes
    ----------
    muxer : str
    codecs : tuple of str
        Video codecs, the default first.
    sounds : frozenset of str
        Codecs of sound that go over as they are.
    sound : str or None
        Encoder for all other sound; None where the container has no sound.
    options : mapping
        Of the muxer.
    """

    muxer: str
    codecs: tuple[str, ...]
    sounds: frozenset[str] = frozenset()
    sound: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


_PCM = frozenset({"pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_f32le", "pcm_u8"})
_MP4_SOUNDS = frozenset({"aac", "mp3", "ac3", "eac3", "alac"})
_FASTSTART = {"movflags": "+faststart"}

CONTAINERS: Mapping[str, Container] = {
    ".mp4": Container("mp4", ("h264", "hevc", "vp9"), _MP4_SOUNDS | {"opus"}, "aac", _FASTSTART),
    ".m4v": Container("mp4", ("h264", "hevc"), _MP4_SOUNDS, "aac", _FASTSTART),
    ".mov": Container("mov", ("h264", "hevc"), _MP4_SOUNDS | _PCM, "aac", _FASTSTART),
    ".mkv": Container(
        "matroska",
        ("h264", "hevc", "vp9", "ffv1"),
        _MP4_SOUNDS | _PCM | {"opus", "vorbis", "flac", "mp2", "dts", "truehd"},
        "libopus",
    ),
    ".webm": Container("webm", ("vp9",), frozenset({"opus", "vorbis"}), "libopus"),
    ".avi": Container("avi", ("mpeg4",), frozenset({"pcm_s16le", "pcm_u8"}), "pcm_s16le"),
    ".wmv": Container("asf", ("wmv2",), frozenset({"wmav1", "wmav2"}), "wmav2"),
    ".gif": Container("gif", ("gif",)),
}
"""Containers by suffix.

A ``.wmv`` holds Windows Media Video 8, which every player of that format shows; one that needs better quality for its
size asks for ``.mp4``. An ``.avi`` holds MPEG-4 Part 2, because players shift H.264 in it by a frame; sound that has
to be made anew for it becomes PCM, because the format has no way to tell of an encoder's delay.
"""


@dataclass(frozen=True)
class Encoding:
    """Choices for the file that is written.

    Attributes
    ----------
    codec : str or None
        "h264", "hevc", "vp9", "mpeg4", "wmv2" or "ffv1"; for a folder of pictures "png" or "jpeg". None takes the
        default of the destination.
    quality : int or None
        As x264's constant rate factor: lower is better, 0 to 51; for JPEG and WebP 1 to 100, higher is better. None
        takes a good default.
    audio : "keep" or "drop"
    keep_metadata : tuple of str
        Names of entries that go over: keys of the container ("title", "creation_time", "location"), tags of a
        photograph ("Copyright"), or "subtitles". Nothing by default.
    speed : str
        Preset of the encoder.
    """

    codec: str | None = None
    quality: int | None = None
    audio: Literal["keep", "drop"] = "keep"
    keep_metadata: tuple[str, ...] = ()
    speed: str = "superfast"

    def __post_init__(self) -> None:
        known = sorted({codec for c in CONTAINERS.values() for codec in c.codecs} | set(FRAMES))
        if self.codec is not None and self.codec not in known:
            raise parameter_error("codec", "Encoding", f"one of {', '.join(known)}", self.codec)
        if self.quality is not None and not 0 <= self.quality <= 100:
            raise parameter_error("quality", "Encoding", "an integer in [0, 100]", self.quality)
        if self.audio not in ("keep", "drop"):
            raise parameter_error("audio", "Encoding", "'keep' or 'drop'", self.audio)
        if self.speed not in SPEEDS:
            raise parameter_error("speed", "Encoding", f"one of {', '.join(SPEEDS)}", self.speed)

    def codec_for(self, destination: Path, bits: int = 8) -> str:
        """Return the video codec for a destination, or refuse one that its container cannot hold.

        More than 8 bits go into HEVC by default: few players show H.264 that has them.
        """
        suffix = destination.suffix.lower()
        codecs = CONTAINERS[suffix].codecs
        codec = self.codec or ("hevc" if bits > 8 and "hevc" in codecs else codecs[0])
        if codec not in codecs:
            raise UsageError(f"{destination.name}: a {suffix} file holds {' or '.join(codecs)}, not {codec}.")
        if self.quality is not None and self.quality > 51:
            raise parameter_error("quality", "Encoding", "an integer in [0, 51] for video", self.quality)
        return codec


def countable(rate: Fraction) -> Fraction:
    """Return the rate as MPEG-4 Part 2 and AVI can tell it: a fraction of numbers below 65536.

    Examples
    --------
    >>> countable(Fraction(30000, 1001))
    Fraction(30000, 1001)
    """
    return rate.limit_denominator(max(1, min(1001, int(65535 / rate))))


@dataclass(frozen=True)
class VideoSettings:
    """One encoder with everything that decides its bytes.

    Attributes
    ----------
    encoder : str
    pixels : str
        Pixel format.
    options : mapping
    colours : Colours or None
        None for RGB.
    counted : bool
        Times are numbers of frames: the codec or its container knows no others.
    """

    encoder: str
    pixels: str
    options: Mapping[str, str]
    colours: Colours | None
    counted: bool = False

    @property
    def bits(self) -> int:
        """Of a channel."""
        return next((bits for bits in (10, 12) if self.pixels.endswith(f"{bits}le")), 8)


_DEEP = ("h264", "hevc", "ffv1")
"""Codecs whose encoders take 10 bits."""
_THRIFT = {"av1": 2.0, "hevc": 1.6, "vp9": 1.5, "h264": 1.0, "vp8": 0.8, "mpeg4": 0.7, "msmpeg4v3": 0.6, "wmv2": 0.6}
"""About how much H.264 needs for what a codec says in one bit; others are not compared."""


def _rate(media: Media, codec: str) -> int | None:
    """Return how many bits per second are enough for what the source has; None where that is not known."""
    coding = media.coding
    if coding is None or not coding.bit_rate or coding.codec not in _THRIFT:
        return None
    return round(coding.bit_rate * _THRIFT[coding.codec] / _THRIFT[codec])


def video_settings(codec: str, encoding: Encoding, media: Media) -> VideoSettings:
    """Return the settings of a codec for the frames of ``media``.

    No encoder is allowed frames that are coded out of order (B-frames): then the packets of independent segments
    follow each other without a shift of their decoding times. x264's macroblock tree is off: with it, the same frames
    sometimes give other bytes. H.264 and HEVC refuse odd sizes at 4:2:0; those are
    written at 4:4:4, which VLC, mpv, Chrome and everything built on FFmpeg play. Windows Media Video 8 refuses them
    too; its predecessor MPEG-4 version 3 does not.

    Where no quality is asked for, it is good, but not better than the source: its bit rate is the limit.
    """
    odd = media.size[0] % 2 == 1 or media.size[1] % 2 == 1
    coding = media.coding
    usual = Colours.usual(media.size)
    colours = usual if coding is None else coding.colours
    deep = "10le" if coding is not None and coding.bits > 8 and codec in _DEEP else ""
    pixels = f"yuv444p{deep}" if odd else f"yuv420p{deep}"
    quality = encoding.quality
    rate = _rate(media, codec) if quality is None and codec in _THRIFT else None
    threads = str(THREADS)
    if codec == "h264":
        options = {"preset": encoding.speed, "crf": str(20 if quality is None else quality), "a53cc": "0"}
        options |= {"bf": "0", "mbtree": "0", "threads": threads}
        limit = {} if rate is None else {"maxrate": str(rate), "bufsize": str(rate // 2)}
        return VideoSettings("libx264", pixels, options | limit, colours)
    if codec == "hevc":
        crf = str(23 if quality is None else quality)
        fixed = f"bframes=0:pools={THREADS}:frame-threads=2:log-level=none:info=0"
        if rate is not None:
            kilobits = max(1, rate // 1000)
            fixed += f":vbv-maxrate={kilobits}:vbv-bufsize={max(1, kilobits // 2)}"
        return VideoSettings("libx265", pixels, {"preset": encoding.speed, "crf": crf, "x265-params": fixed}, colours)
    if codec == "vp9":
        crf = str(30 if quality is None else quality)
        swift = str(max(1, 8 - SPEEDS.index(encoding.speed)))
        options = {"crf": crf, "b": str(rate or 0), "deadline": "realtime", "cpu-used": swift, "lag-in-frames": "0"}
        return VideoSettings("libvpx-vp9", "yuv420p", options | {"row-mt": "1", "threads": threads}, colours)
    if codec in ("wmv2", "mpeg4"):
        least = 3 if quality is None else max(1, min(31, round(quality / 6)))
        most = least if rate is None else 31
        options = {"qmin": str(least), "qmax": str(most), "bf": "0", "threads": "1"}
        limit = {} if rate is None else {"b": str(rate), "maxrate": str(rate), "bufsize": str(rate // 2)}
        encoder = "msmpeg4" if codec == "wmv2" and odd else codec
        return VideoSettings(encoder, "yuv420p", options | limit, usual, counted=codec == "mpeg4")
    options = {"threads": threads, "slices": "4", "level": "3"}
    if codec == "ffv1" and coding is not None:
        kept = coding.pixels.replace("yuvj", "yuv")
        if media.turn % 2 and "422" in kept:
            kept = kept.replace("422", "444")
        return VideoSettings("ffv1", kept, options, colours)
    return VideoSettings("ffv1", "bgr0", options, None)
