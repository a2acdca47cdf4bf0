"""How a result is written: containers, codecs, quality, and what of the source is lost by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Literal

from ksame.errors import UsageError, parameter_error
from ksame.parameters import Parameters, parameter
from ksame.scene.media.source import ColourSpace, Media

AUDIO = ("keep", "disguise", "drop")
"""What can become of the sound; a disguised voice is another one, but not anonymous."""
SEQUENCE_CODECS = ("png", "jpeg")
"""Codecs of an image sequence."""
SPEEDS = ("ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow")
THREADS = "4"
"""Of every encoder, on every machine: the number of threads changes the bytes."""


@dataclass(frozen=True)
class Container:
    """What a file with a certain suffix can hold."""

    muxer: str
    codecs: tuple[str, ...]  # of video, the default first
    audio_codecs: frozenset[str] = frozenset()  # of sound that is copied
    audio_encoder: str | None = None  # for all other sound; None where the container has no sound
    options: Mapping[str, str] = field(default_factory=dict)  # of the muxer
    subtitles: frozenset[str] = frozenset()  # codecs of those that are copied


_PCM = frozenset({"pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_f32le", "pcm_u8"})
_MP4_AUDIO = frozenset({"aac", "mp3", "ac3", "eac3", "alac"})
_MKV_AUDIO = _MP4_AUDIO | _PCM | {"opus", "vorbis", "flac", "mp2", "dts", "truehd"}
_MP4_SUBTITLES = frozenset({"mov_text"})
_MKV_SUBTITLES = frozenset({"subrip", "srt", "ass", "ssa", "webvtt", "dvd_subtitle"})
_FASTSTART = {"movflags": "+faststart"}

CONTAINERS: Mapping[str, Container] = {
    ".mp4": Container("mp4", ("h264", "hevc", "vp9"), _MP4_AUDIO | {"opus"}, "aac", _FASTSTART, _MP4_SUBTITLES),
    ".m4v": Container("mp4", ("h264", "hevc"), _MP4_AUDIO, "aac", _FASTSTART, _MP4_SUBTITLES),
    ".mov": Container("mov", ("h264", "hevc"), _MP4_AUDIO | _PCM, "aac", _FASTSTART),
    ".mkv": Container("matroska", ("h264", "hevc", "vp9", "ffv1"), _MKV_AUDIO, "libopus", {}, _MKV_SUBTITLES),
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


_CODECS = tuple(sorted({codec for c in CONTAINERS.values() for codec in c.codecs} | set(SEQUENCE_CODECS)))


@dataclass(frozen=True)
class EncoderConfig(Parameters):
    """Choices for the file that is written."""

    # "png" and "jpeg" are for image sequences
    codec: str | None = parameter(None, "codec; by default that of the destination", kind=str, choices=_CODECS)
    # as x264's constant rate factor: lower is better, 0 to 51; for JPEG and WebP 1 to 100, higher is better
    quality: int | None = parameter(None, "quality; a good one by default", kind=int, low=0, high=100)
    audio: Literal["keep", "disguise", "drop"] = parameter("keep", "what becomes of the sound", choices=AUDIO)
    # names of entries that go over: keys of the container ("title"), tags of a photograph ("Copyright"),
    # "subtitles", or groups: see :data:`ksame.scene.media.metadata.GROUPS`
    keep_metadata: tuple[str, ...] = ()
    speed: str = parameter("superfast", "preset of the encoder", choices=SPEEDS)
    lossless: bool = parameter(False, "whether every value is written as it is", kind=bool)

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
            raise parameter_error("quality", "EncoderConfig", "an integer in [0, 51] for video", self.quality)
        return codec


def mpeg4_rate(rate: Fraction) -> Fraction:
    """Return the rate as MPEG-4 Part 2 and AVI can tell it: a fraction of numbers below 65536.

    Examples
    --------
    >>> mpeg4_rate(Fraction(30000, 1001))
    Fraction(30000, 1001)
    """
    return rate.limit_denominator(max(1, min(1001, int(65535 / rate))))


@dataclass(frozen=True)
class VideoSettings:
    """One encoder with everything that decides its bytes."""

    encoder: str
    pixel_format: str
    options: Mapping[str, str]
    colours: ColourSpace | None  # None for RGB
    counts_frames: bool = False  # times are numbers of frames: the codec or its container knows no others

    @property
    def bits(self) -> int:
        """Per channel."""
        return next((bits for bits in (10, 12) if self.pixel_format.endswith(f"{bits}le")), 8)


_WITH_10_BITS = ("h264", "hevc", "ffv1")
"""Codecs whose encoders take 10 bits."""
_EFFICIENCY = {"av1": 2, "hevc": 1.6, "vp9": 1.5, "h264": 1, "vp8": 0.8, "mpeg4": 0.7, "msmpeg4v3": 0.6, "wmv2": 0.6}
"""Rough bits that H.264 needs for what a codec says in one; a rule of thumb. Others are not compared."""
_QUALITY = {"h264": 20, "hevc": 23, "vp9": 30, "mpeg4": 3, "wmv2": 3}
"""Where no quality is asked for, in each encoder's numbers; better than the defaults of x264 and x265, 23 and 28."""
_LOSSLESS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "h264": ("libx264", {"qp": "0", "a53cc": "0", "bf": "0", "mbtree": "0", "threads": THREADS}),
    "hevc": ("libx265", {"x265-params": "lossless=1:bframes=0:log-level=none:info=0"}),
}
"""Encoders that keep every value, beside FFV1."""
_HDR_TRANSFERS = (16, 18)
"""With a high dynamic range: PQ and HLG, in the numbers of ISO/IEC 23091-2."""


def _max_rate(media: Media, codec: str) -> int | None:
    """Return how many bits per second are enough for what the source has; None where that is not known."""
    stream = media.stream
    if codec not in _EFFICIENCY or stream is None or not stream.bit_rate or stream.codec not in _EFFICIENCY:
        return None
    return round(stream.bit_rate * _EFFICIENCY[stream.codec] / _EFFICIENCY[codec])


def video_settings(codec: str, encoding: EncoderConfig, media: Media) -> VideoSettings:
    """Return the settings of a codec for the frames of ``media``.

    No encoder is allowed frames that are coded out of order (B-frames): then the packets of independent segments
    follow each other without a shift of their decoding times. x264's macroblock tree is off: with it, the same frames
    sometimes give other bytes, as they do with several threads under a limit of the bit rate. H.264 and HEVC refuse odd
    sizes at 4:2:0; those are written at 4:4:4, which VLC, mpv, Chrome and everything built on FFmpeg play. Windows
    Media Video 8 refuses them too; its predecessor MPEG-4 version 3 does not.

    Where no quality is asked for, it is good, but not better than the source: its bit rate is the limit.
    """
    odd = media.size[0] % 2 == 1 or media.size[1] % 2 == 1
    default_colours = ColourSpace.default_for(media.size)
    colours = default_colours if media.stream is None else media.stream.colours
    depth = "10le" if media.stream is not None and media.stream.bits > 8 and codec in _WITH_10_BITS else ""
    pixel_format = f"yuv444p{depth}" if odd else f"yuv420p{depth}"
    quality = str(_QUALITY.get(codec) if encoding.quality is None else encoding.quality)
    rate = _max_rate(media, codec) if encoding.quality is None else None
    limit = {} if rate is None else {"maxrate": str(rate), "bufsize": str(rate // 2)}
    threads = "1" if limit else THREADS  # several spend what a limit leaves in the order in which they come to it
    if encoding.lossless and codec in _LOSSLESS:
        encoder, options = _LOSSLESS[codec]
        return VideoSettings(encoder, pixel_format, {"preset": encoding.speed, **options}, colours)
    if codec == "h264":
        options = {"preset": encoding.speed, "crf": quality, "a53cc": "0", "bf": "0", "mbtree": "0", "threads": threads}
        return VideoSettings("libx264", pixel_format, options | limit, colours)
    if codec == "hevc":
        params = f"bframes=0:pools={threads}:frame-threads={1 if limit else 2}:log-level=none:info=0"
        if rate is not None:
            kilobits = max(1, rate // 1000)
            params += f":vbv-maxrate={kilobits}:vbv-bufsize={max(1, kilobits // 2)}"
        options = {"preset": encoding.speed, "crf": quality, "x265-params": params}
        return VideoSettings("libx265", pixel_format, options, colours)
    if codec == "vp9":
        speed = str(max(1, 8 - SPEEDS.index(encoding.speed)))
        options = {"crf": quality, "b": str(rate or 0), "deadline": "realtime", "cpu-used": speed, "lag-in-frames": "0"}
        return VideoSettings("libvpx-vp9", "yuv420p", options | {"row-mt": "1", "threads": THREADS}, colours)
    if codec in ("wmv2", "mpeg4"):
        min_scale = _QUALITY[codec] if encoding.quality is None else max(1, min(31, round(encoding.quality / 6)))
        max_scale = min_scale if rate is None else 31
        options = {"qmin": str(min_scale), "qmax": str(max_scale), "bf": "0", "threads": "1"}
        options |= {} if rate is None else {"b": str(rate)}
        encoder = "msmpeg4" if codec == "wmv2" and odd else codec
        return VideoSettings(encoder, "yuv420p", options | limit, default_colours, counts_frames=codec == "mpeg4")
    options = {"threads": THREADS, "slices": "4", "level": "3"}
    if codec == "ffv1" and media.stream is not None:
        pixel_format = media.stream.pixel_format.replace("yuvj", "yuv")
        if media.orientation % 2:
            pixel_format = pixel_format.replace("422", "444")
        return VideoSettings("ffv1", pixel_format, options, colours)
    return VideoSettings("ffv1", "bgr0", options, None)


def losses(media: Media, bits: int, encoding: EncoderConfig, container: Container | None = None) -> tuple[str, ...]:
    """Return what is lost where ``media`` are written with so many bits per channel, into a container or a folder."""
    stream, lost = media.stream, []
    if stream is not None and stream.bits > bits:
        hdr = " and its high dynamic range looks wrong" if stream.colours.transfer in _HDR_TRANSFERS else ""
        lost.append(f"its {stream.bits} bits became {bits} bits{hdr}; .mp4, .mov and .mkv keep them")
    if stream is not None and stream.interlaced:
        lost.append("it is interlaced, and the output is not marked so; deinterlace it before or after")
    if stream is not None and stream.n_video > 1:
        lost.append(f"1 of {stream.n_video} pictures (streams of video) was taken over")
    with_sound = encoding.audio != "drop" and container is not None and container.audio_encoder is not None
    if stream is not None and stream.n_audio > 1 and with_sound:
        lost.append(f"1 of {stream.n_audio} sounds was taken over")
    if "subtitles" in encoding.keep_metadata and container is not None and not container.subtitles:
        lost.append("the container holds no subtitles")
    return tuple(lost)
