"""Recordings with damage in the middle: refused, or black where the damage is."""

import av
import numpy as np
import pytest
from PIL import Image

from ksame.errors import InputError
from ksame.scene.media import open_media
from scene.clips import make_clip, numbers, through

N = 36


def packets_of(path):
    with av.open(str(path)) as container:
        return [(p.pos, p.size, p.is_keyframe) for p in container.demux(video=0) if p.size]


def flipped(path, number, seed=1):
    """Change a few bytes of one packet."""
    rng = np.random.default_rng(seed)
    pos, size, _ = packets_of(path)[number]
    data = bytearray(path.read_bytes())
    for at in rng.integers(8, size, 4):
        data[pos + at] ^= int(rng.integers(1, 256))
    path.write_bytes(data)
    return path


@pytest.fixture(params=["clip.mp4", "clip.avi", "clip.mkv"])
def damaged(request, tmp_path):
    codec, threshold = ("mpeg4", "1000000000") if request.param == "clip.avi" else ("libx264", "0")
    options = {"g": "12", "sc_threshold": threshold}
    path = make_clip(tmp_path / request.param, n=N, size=(192, 160), codec=codec, options=options)
    return flipped(path, 14)


def test_damage_in_the_middle_is_refused(damaged, tmp_path):
    with pytest.raises(InputError, match=r"--damaged mask"):
        list(open_media(damaged).frames())
    with pytest.raises(InputError, match="damaged"):
        through(damaged, tmp_path / "out.mp4")
    assert not (tmp_path / "out.mp4").exists()


def test_damage_can_be_made_black(damaged):
    media = open_media(damaged, damaged="mask")
    frames = list(media.frames())
    black = {frame.index for frame in frames if frame.pixels.max() == 0}
    assert len(frames) == N
    assert black == set(media.damaged)
    assert 14 in black
    assert not black & set(range(12))
    assert not black & set(range(24, N))
    seen = [number for number, frame in zip(numbers(media), frames, strict=True) if frame.index not in black]
    assert seen == [i for i in range(N) if i not in black]


def test_what_is_shown_before_a_damaged_frame_but_made_from_it_is_black_too(tmp_path):
    options = {"g": "12", "sc_threshold": "0", "bf": "3", "b_strategy": "0", "x264-params": "b-pyramid=none"}
    path = make_clip(tmp_path / "clip.mp4", n=N, size=(192, 160), options=options)
    with av.open(str(path)) as container:
        order = [(p.pts, p.dts) for p in container.demux(video=0) if p.size]
    ahead = next(i for i, (pts, _) in enumerate(order) if i > 13 and pts > max(p for p, _ in order[:i]) + 1000)
    media = open_media(flipped(path, ahead), damaged="mask")
    list(media.frames())
    shown = sorted(pts for pts, _ in order)
    made_from_it = [shown.index(pts) for pts, _ in order[ahead + 1 : ahead + 4]]
    assert set(made_from_it) <= set(media.damaged)


@pytest.mark.parametrize("name", ["clip.mp4", "clip.mkv"])
def test_a_lost_reference_is_refused(name, tmp_path):
    whole = make_clip(
        tmp_path / "whole.mp4", n=N, codec="libx265", options={"x265-params": "log-level=none:bframes=0:keyint=36"}
    )
    with av.open(str(whole)) as source, av.open(str(tmp_path / name), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for number, packet in enumerate(source.demux(video=0)):
            if packet.size and number != 10:
                packet.stream = stream
                target.mux(packet)
    with pytest.raises(InputError, match="damaged"):
        list(open_media(tmp_path / name).frames())


def test_a_whole_recording_has_no_damage(tmp_path):
    media = open_media(make_clip(tmp_path / "clip.mp4", n=N, options={"bf": "2"}), damaged="mask")
    assert numbers(media) == list(range(N))
    assert media.damaged == ()


@pytest.mark.parametrize("options", [{}, {"progressive": True}])
def test_a_damaged_jpeg_is_refused(options, tmp_path):
    noise = np.random.default_rng(1).integers(0, 256, (96, 128, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "photo.jpg", **options)
    data = bytearray((tmp_path / "photo.jpg").read_bytes())
    assert open_media(tmp_path / "photo.jpg").size == (128, 96)
    data[len(data) // 2 : len(data) // 2 + 64] = bytes(64)
    (tmp_path / "photo.jpg").write_bytes(data)
    with pytest.raises(InputError, match="photo.jpg: the picture is damaged"):
        open_media(tmp_path / "photo.jpg")
    with pytest.raises(InputError, match="photo.jpg: the picture is damaged"):
        list(open_media(tmp_path).frames())
