"""What is not changed stays as it was: values, bits, colours, size of the file."""

from fractions import Fraction

import av
import numpy as np
import pytest

from ksame.scene.media import EncoderConfig, Output, WorkFolder, open_media
from scene.clips import make_clip, turn_mp4

PQ, BT2020, BT2020_NCL = 16, 9, 9


def planes(frame):
    """The planes of a frame as arrays."""
    found = []
    for plane, bits in zip(frame.planes, [c.bits for c in frame.format.components], strict=False):
        dtype = np.uint16 if bits > 8 else np.uint8
        rows = np.frombuffer(plane, dtype=dtype).reshape(plane.height, -1)
        found.append(rows[:, : plane.width].copy())
    return found


def decoded(path):
    with av.open(str(path)) as container:
        return [planes(frame) for frame in container.decode(video=0)]


def noise_clip(path, *, n=6, size=(64, 48), pixels="yuv420p", codec="ffv1", tags=None, seed=1, options=None):
    """A clip whose planes hold every value there is, and smooth movement where the encoder matters."""
    rng = np.random.default_rng(seed)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25, options=options or {})
        stream.width, stream.height = size
        stream.pix_fmt = pixels
        for name, value in (tags or {}).items():
            setattr(stream.codec_context, name, value)
        for i in range(n):
            frame = av.VideoFrame(*size, pixels)
            for plane, component in zip(frame.planes, frame.format.components, strict=True):
                top = 1 << component.bits
                values = rng.integers(0, top, (plane.height, plane.line_size // (2 if component.bits > 8 else 1)))
                plane.update(values.astype(np.uint16 if component.bits > 8 else np.uint8).tobytes())
            frame.pts, frame.time_base = i, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def changed_through(source, destination, encoding=None, where=None):
    """Copy a recording, and make a part of every frame grey."""
    media = open_media(source)
    with Output(
        media, destination, encoding or EncoderConfig(), WorkFolder(destination.parent / "work", segment_length=8)
    ) as output:
        for frame in media.frames():
            touched = np.zeros(frame.pixels.shape[:2], dtype=bool)
            pixels = frame.pixels.copy()
            if where is not None:
                touched[where], pixels[where] = True, 128
            output.write(pixels, frame.native, touched)
        output.finish()
    return media, output.losses


@pytest.mark.parametrize("pixels", ["yuv420p", "yuv422p", "yuv444p", "yuv420p10le"])
def test_what_is_not_touched_stays_to_the_bit(pixels, tmp_path):
    source = noise_clip(tmp_path / "clip.mkv", pixels=pixels)
    where = np.s_[16:32, 8:40]
    _, losses = changed_through(source, tmp_path / "out.mkv", EncoderConfig(codec="ffv1"), where)
    assert losses == ()
    for before, after in zip(decoded(source), decoded(tmp_path / "out.mkv"), strict=True):
        outside = np.ones((48, 64), dtype=bool)
        outside[where] = False
        np.testing.assert_array_equal(before[0][outside], after[0][outside])
        assert (before[0][where] != after[0][where]).mean() > 0.9
        assert np.ptp(after[0][where]) <= 4
        for old, new in zip(before[1:], after[1:], strict=True):
            step_y, step_x = 48 // old.shape[0], 64 // old.shape[1]
            np.testing.assert_array_equal(old[outside[::step_y, ::step_x]], new[outside[::step_y, ::step_x]])


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_hdr_keeps_its_bits_and_colours(suffix, tmp_path):
    tags = {"color_trc": PQ, "color_primaries": BT2020, "colorspace": BT2020_NCL, "color_range": 1}
    options = {"x265-params": "log-level=none"}
    source = noise_clip(tmp_path / "clip.mp4", pixels="yuv420p10le", codec="libx265", tags=tags, options=options)
    _, losses = changed_through(source, tmp_path / f"out{suffix}", where=np.s_[10:20, 10:20])
    assert losses == ()
    with av.open(str(tmp_path / f"out{suffix}")) as container:
        context = container.streams.video[0].codec_context
        frame = next(container.decode(video=0))
        assert frame.format.name == "yuv420p10le"
        assert (context.color_trc, context.color_primaries, context.colorspace) == (PQ, BT2020, BT2020_NCL)


def test_bits_that_are_lost_are_told(tmp_path):
    source = noise_clip(tmp_path / "clip.mkv", pixels="yuv420p10le")
    for name in ("out.webm", "out.avi", "out.gif"):
        _, losses = changed_through(source, tmp_path / name)
        assert any("8 bits" in loss for loss in losses), name


def test_full_range_and_colours_of_a_small_picture_stay(tmp_path):
    tags = {"color_trc": 1, "color_primaries": 1, "colorspace": 1, "color_range": 2}
    source = noise_clip(tmp_path / "clip.mp4", pixels="yuvj420p", codec="libx264", tags=tags)
    changed_through(source, tmp_path / "out.mkv", EncoderConfig(codec="ffv1"))
    np.testing.assert_array_equal(decoded(source)[3][0], decoded(tmp_path / "out.mkv")[3][0])
    changed_through(source, tmp_path / "out.mp4")
    with av.open(str(tmp_path / "out.mp4")) as container:
        context = container.streams.video[0].codec_context
        assert (context.colorspace, context.color_range) == (1, 2)


def test_a_turned_recording_stays_to_the_bit(tmp_path):
    source = noise_clip(tmp_path / "clip.mp4", codec="libx264")
    turn_mp4(source, (0, 1, -1, 0))
    changed_through(source, tmp_path / "out.mkv", EncoderConfig(codec="ffv1"))
    for before, after in zip(decoded(source), decoded(tmp_path / "out.mkv"), strict=True):
        for old, new in zip(before, after, strict=True):
            np.testing.assert_array_equal(np.rot90(old, -1), new)


def test_interlacing_and_further_streams_are_told(tmp_path):
    options = {"flags": "+ildct+ilme", "x264-params": "tff=1"}
    source = make_clip(tmp_path / "clip.mp4", options=options)
    _, losses = changed_through(source, tmp_path / "out.mp4")
    assert any("interlaced" in loss for loss in losses)
    one = make_clip(tmp_path / "one.mp4", sound="aac")
    with av.open(str(one)) as read, av.open(str(tmp_path / "two.mkv"), "w") as written:
        streams = [written.add_stream_from_template(read.streams[i]) for i in (0, 1, 1, 0)]
        for packet in read.demux():
            if packet.size:
                for stream, index in zip(streams, (0, 1, 1, 0), strict=True):
                    if packet.stream_index == index:
                        kept, packet.stream = packet.stream, stream
                        written.mux(packet)
                        packet.stream = kept
    _, losses = changed_through(tmp_path / "two.mkv", tmp_path / "out.mkv")
    assert any("1 of 2 sounds" in loss for loss in losses)
    assert any("1 of 2 pictures" in loss for loss in losses)


@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("clip.mp4", "libx264", {"preset": "slow", "crf": "34"}),
        ("clip.avi", "mpeg4", {"qmin": "12", "qmax": "12"}),
        ("clip.wmv", "wmv2", {"qmin": "12", "qmax": "12"}),
    ],
)
def test_files_do_not_grow(name, codec, options, tmp_path):
    size = (320, 240)
    rng = np.random.default_rng(3)
    texture = np.kron(rng.integers(0, 256, (90, 120, 3), dtype=np.uint8), np.ones((8, 8, 1), dtype=np.uint8))
    source = tmp_path / name
    with av.open(str(source), "w") as container:
        stream = container.add_stream(codec, rate=25, options=options)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        for i in range(100):
            noise = rng.integers(0, 24, (*size[::-1], 3), dtype=np.uint8)
            pixels = texture[2 * i : 2 * i + size[1], 3 * i : 3 * i + size[0]] // 2 + noise
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format="yuv420p")
            frame.pts, frame.time_base = i, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    media = open_media(source)
    with Output(media, tmp_path / f"out{source.suffix}", EncoderConfig(), WorkFolder(tmp_path / "work")) as output:
        for frame in media.frames():
            output.write(frame.pixels, frame.native, np.zeros(frame.pixels.shape[:2], dtype=bool))
        output.finish()
    assert (tmp_path / f"out{source.suffix}").stat().st_size < 1.5 * source.stat().st_size
