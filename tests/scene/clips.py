"""Clips for tests: every frame carries its number, and a flash and a beep fall together."""

import struct
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from ksame.scene.media import EncoderConfig, Output, WorkFolder, open_media

SIZE = (64, 48)
FLASH = 10
SAMPLE_RATE = 48000


def drawn_frame(index, size=SIZE, flash=FLASH):
    """A frame with its number in eight blocks above, and white below from the flash on for three frames."""
    width, height = size
    pixels = np.full((height, width, 3), 96, dtype=np.uint8)
    for bit in range(8):
        left, right = bit * width // 8, (bit + 1) * width // 8
        pixels[: height // 2, left:right] = 220 if index >> bit & 1 else 30
    pixels[height // 2 :] = 235 if flash <= index < flash + 3 else 60
    pixels[height // 2 : height // 2 + height // 4, : width // 4] = (200, 60, 40)
    return pixels


def number_of(pixels):
    height, width = pixels.shape[:2]
    bits = [pixels[height // 8 : height // 3, (2 * b + 1) * width // 16].mean() > 125 for b in range(8)]
    return sum(1 << b for b, bit in enumerate(bits) if bit)


def numbers(media, start=0):
    return [number_of(frame.pixels) for frame in media.frames(start)]


def is_flash(pixels):
    height, width = pixels.shape[:2]
    return pixels[height * 3 // 4 + 1 :, width // 2 :].mean() > 150


def beep(at, seconds):
    """Samples of silence with 0.1 s of 1 kHz at ``at`` seconds."""
    t = np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    return np.where((t >= at) & (t < at + 0.1), 0.5 * np.sin(2 * np.pi * 1000 * t), 0.0).astype(np.float32)


def make_clip(
    path,
    *,
    n=24,
    size=SIZE,
    rate=Fraction(25),
    times=None,
    time_base=None,
    codec="libx264",
    pixels="yuv420p",
    options=None,
    sound=None,
    sound_from=0.0,
    metadata=None,
    muxer=None,
    muxer_options=None,
):
    """Write a clip; ``times`` are in units of ``time_base``."""
    rate = Fraction(rate)
    time_base = time_base or 1 / rate
    times = list(range(n)) if times is None else times
    with av.open(str(path), "w", format=muxer, options=muxer_options or {}) as container:
        container.metadata.update(metadata or {})
        film = container.add_stream(codec, rate=rate, options=options or {})
        film.width, film.height = size
        film.pix_fmt = pixels
        film.codec_context.time_base = time_base
        packets = []
        if sound is not None:
            heard = container.add_stream(sound, rate=SAMPLE_RATE)
            heard.layout = "mono"
            heard.bit_rate = 96000
        for i, time in enumerate(times):
            frame = av.VideoFrame.from_ndarray(drawn_frame(i, size), format="rgb24").reformat(format=pixels)
            frame.pts, frame.time_base = time, time_base
            packets += film.encode(frame)
        packets += film.encode(None)
        if sound is not None:
            at = float(times[FLASH] * time_base)
            samples = beep(at, float(times[-1] * time_base) + 0.2)[int(sound_from * SAMPLE_RATE) :]
            frame = av.AudioFrame.from_ndarray(samples[None], format="fltp", layout="mono")
            frame.sample_rate, frame.time_base = SAMPLE_RATE, Fraction(1, SAMPLE_RATE)
            frame.pts = int(sound_from * SAMPLE_RATE)
            packets += heard.encode(frame) + heard.encode(None)
        for packet in sorted(packets, key=lambda p: p.dts * p.time_base):
            container.mux(packet)
    return path


def turn_mp4(path, matrix):
    """Set the display matrix (a, b, c, d) of the first track."""
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 4
    a, b, c, d = (value * 65536 for value in matrix)
    struct.pack_into(">9i", data, at + 40, a, b, 0, c, d, 0, 0, 0, 1 << 30)
    path.write_bytes(data)


def through(source, destination, encoding=None, *, work=None, length=8, **kwargs):
    """Copy media frame by frame; return what was opened."""
    media = open_media(source)
    work = work or destination.parent / "work"
    with Output(
        media, destination, encoding or EncoderConfig(), WorkFolder(work, segment_length=length), **kwargs
    ) as output:
        for frame in media.frames(output.next_frame):
            output.write(frame.pixels)
        output.finish()
    assert not work.exists()
    return media


def times_of(path):
    return [frame.time for frame in open_media(Path(path)).frames()]


def flash_and_beep(path):
    """When the flash is first seen and the beep first heard, in seconds."""
    flash = next(frame.time for frame in open_media(Path(path)).frames() if is_flash(frame.pixels))
    samples, offsets, heard = [], [], 0
    with av.open(str(path)) as container:
        for frame in container.decode(audio=0):
            if frame.pts is not None:
                offsets.append(float(frame.pts * frame.time_base) - heard / frame.sample_rate)
            array = frame.to_ndarray().astype(float)
            if not frame.format.is_planar:
                array = array.reshape(-1, len(frame.layout.channels)).T
            if frame.format.name.startswith("s16"):
                array = array / 32768
            heard += frame.samples
            samples.append(array[0])
            rate = frame.sample_rate
    loud = np.abs(np.concatenate(samples)) > 0.25
    assert loud.any(), "no beep"
    return flash, float(np.median(offsets)) + int(np.argmax(loud)) / rate


def contents(path):
    """Types of the streams and all metadata of a file."""
    with av.open(str(path)) as container:
        metadata = dict(container.metadata)
        for stream in container.streams:
            metadata.update(stream.metadata)
        return [stream.type for stream in container.streams], metadata
