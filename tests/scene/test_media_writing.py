"""Recordings in and out: frames, times, sizes, sound and metadata."""

from fractions import Fraction

import av
import numpy as np
import pytest

from ksame.errors import InputError, OutputError, UsageError
from ksame.scene.media import EncoderConfig, Output, WorkFolder, open_media
from scene.clips import SIZE, contents, drawn_frame, flash_and_beep, make_clip, numbers, through, times_of, turn_mp4

NTSC = Fraction(30000, 1001)

SOURCES = {
    "clip.mp4": {"sound": "aac"},
    "clip.mov": {"sound": "pcm_s16le"},
    "clip.mkv": {"sound": "flac"},
    "clip.avi": {"codec": "mpeg4", "sound": "libmp3lame"},
    "clip.webm": {"codec": "libvpx-vp9", "sound": "libopus", "options": {"deadline": "realtime", "cpu-used": "8"}},
    "clip.wmv": {"codec": "wmv2", "sound": "wmav2"},
    "clip.gif": {"codec": "gif", "pixels": "rgb8"},
}


@pytest.fixture(params=SOURCES)
def source(request, tmp_path):
    return make_clip(tmp_path / request.param, **SOURCES[request.param])


@pytest.mark.parametrize("suffix", [".mp4", ".mov", ".mkv", ".avi", ".webm", ".wmv", ".gif"])
def test_every_format_into_every_format(source, suffix, tmp_path):
    destination = tmp_path / f"out{suffix}"
    media = through(source, destination)
    assert media.exact
    assert media.n_frames == 24
    result = open_media(destination)
    assert result.kind == "video"
    assert result.size == SIZE
    assert numbers(result) == list(range(24))
    assert abs(result.duration - media.duration) <= 1.01 / 25
    before, after = times_of(source), times_of(destination)
    assert np.ptp(np.subtract(after, before)) <= (0.04 if suffix == ".avi" else 0.011)
    assert result.has_sound == (media.has_sound and suffix != ".gif")
    if result.has_sound:
        flash, heard = flash_and_beep(source)
        new_flash, new_heard = flash_and_beep(destination)
        assert abs((new_heard - new_flash) - (heard - flash)) < 0.02
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted({source.name, destination.name})


@pytest.mark.parametrize(
    ("sound", "suffix", "kept"),
    [
        ("aac", ".mp4", True),
        ("aac", ".mkv", True),
        ("aac", ".webm", False),
        ("aac", ".wmv", False),
        ("aac", ".avi", False),
    ],
)
def test_sound_goes_over_as_it_is_where_the_container_allows(sound, suffix, kept, tmp_path):
    source = make_clip(tmp_path / "clip.mp4", sound=sound)
    through(source, tmp_path / f"out{suffix}")

    def packets(path):
        with av.open(str(path)) as container:
            return [bytes(p) for p in container.demux(audio=0) if p.size]

    assert (packets(source) == packets(tmp_path / f"out{suffix}")) == kept


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi", ".wmv"])
def test_sound_that_begins_later_stays_in_its_place(suffix, tmp_path):
    source = make_clip(tmp_path / "clip.mp4", sound="aac", sound_from=0.25)
    through(source, tmp_path / f"out{suffix}")
    flash, heard = flash_and_beep(tmp_path / f"out{suffix}")
    assert abs(flash - heard) < 0.02


def test_a_recording_that_begins_late_begins_at_zero(tmp_path):
    times = [90000 * 100 + 3600 * i for i in range(12)]
    source = make_clip(tmp_path / "clip.mkv", times=times, time_base=Fraction(1, 90000))
    through(source, tmp_path / "out.mp4")
    assert times_of(tmp_path / "out.mp4") == pytest.approx([i / 25 for i in range(12)])


def test_sound_can_be_dropped(tmp_path):
    source = make_clip(tmp_path / "clip.mp4", sound="aac")
    through(source, tmp_path / "out.mp4", EncoderConfig(audio="drop"))
    assert contents(tmp_path / "out.mp4")[0] == ["video"]


def test_ntsc_times_are_exact(tmp_path):
    source = make_clip(tmp_path / "clip.mp4", rate=NTSC, n=20)
    for suffix in (".mp4", ".mov", ".avi"):
        through(source, tmp_path / f"out{suffix}")
        assert times_of(tmp_path / f"out{suffix}") == pytest.approx([float(i / NTSC) for i in range(20)], abs=1e-6)
        assert open_media(tmp_path / f"out{suffix}").rate == NTSC


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".mov", ".webm", ".wmv"])
def test_a_variable_rate_is_kept(suffix, tmp_path):
    times = [0, 3000, 6003, 12000, 12500, 30000, 33000, 36000, 70000, 72000, 75000, 90000]
    source = make_clip(tmp_path / "clip.mp4", times=times, time_base=Fraction(1, 90000))
    through(source, tmp_path / f"out{suffix}", length=5)
    assert times_of(tmp_path / f"out{suffix}") == pytest.approx([t / 90000 for t in times], abs=0.0006)


def test_the_delays_of_a_gif_are_kept(tmp_path):
    times = [0, 7, 13, 20, 60, 65, 70, 75, 80, 85, 90, 200]
    source = make_clip(
        tmp_path / "clip.gif", codec="gif", pixels="rgb8", times=times, time_base=Fraction(1, 100),
        muxer_options={"loop": "3", "final_delay": "50"},
    )  # fmt: skip
    media = through(source, tmp_path / "out.gif")
    result = open_media(tmp_path / "out.gif")
    assert times_of(tmp_path / "out.gif") == pytest.approx([t / 100 for t in times])
    assert media.loop == result.loop == 3
    assert numbers(result) == list(range(12))
    assert result.duration == media.duration == pytest.approx(2.5)


def test_a_gif_is_drawn_with_a_palette_of_its_own(tmp_path):
    y, x = np.mgrid[0:48, 0:64]
    smooth = np.stack([x * 4, y * 5, 255 - x * 2 - y], axis=2).astype(np.uint8)
    from PIL import Image

    folder = tmp_path / "pictures"
    folder.mkdir()
    for i in range(3):
        Image.fromarray(np.roll(smooth, i, axis=1)).save(folder / f"{i}.png")
    through(folder, tmp_path / "out.gif")
    shown = next(iter(open_media(tmp_path / "out.gif").frames())).pixels
    error = np.mean((shown.astype(float) - smooth) ** 2)
    assert 10 * np.log10(255**2 / error) > 28


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ((0, 1, -1, 0), lambda p: np.rot90(p, -1)),
        ((-1, 0, 0, -1), lambda p: np.rot90(p, 2)),
        ((0, -1, 1, 0), lambda p: np.rot90(p, 1)),
        ((-1, 0, 0, 1), lambda p: p[:, ::-1]),
        ((1, 0, 0, -1), lambda p: p[::-1]),
        ((0, 1, 1, 0), lambda p: p.swapaxes(0, 1)),
    ],
)
def test_rotation_flags_are_applied(matrix, expected, tmp_path):
    source = make_clip(tmp_path / "clip.mp4", n=12)
    plain = [frame.pixels for frame in open_media(source).frames()]
    turn_mp4(source, matrix)
    media = through(source, tmp_path / "out.mp4")
    upright = expected(plain[5])
    assert media.size == upright.shape[1::-1]
    turned = [frame.pixels for frame in media.frames()]
    np.testing.assert_array_equal(turned[5], upright)
    result = open_media(tmp_path / "out.mp4")
    shown = [frame.pixels for frame in result.frames()]
    assert result.size == media.size
    assert np.abs(shown[5].astype(int) - upright).mean() < 8
    with av.open(str(tmp_path / "out.mp4")) as container:
        assert not next(container.decode(video=0)).side_data.get("DISPLAYMATRIX")


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi", ".webm", ".wmv", ".gif"])
def test_odd_sizes_are_kept(suffix, tmp_path):
    source = make_clip(tmp_path / "clip.mp4", size=(67, 49), pixels="yuv444p", n=12)
    through(source, tmp_path / f"out{suffix}")
    result = open_media(tmp_path / f"out{suffix}")
    assert result.size == (67, 49)
    assert numbers(result) == list(range(12))


def test_ten_bits_are_read(tmp_path):
    source = make_clip(tmp_path / "clip.mkv", codec="ffv1", pixels="yuv420p10le", n=12)
    frames = [frame.pixels for frame in open_media(source).frames()]
    assert frames[3].dtype == np.uint8
    assert np.abs(frames[3].astype(int) - drawn_frame(3))[30:, 40:].max() <= 2


@pytest.mark.parametrize("size", [(64, 48), (1280, 720)])
@pytest.mark.parametrize("suffix", [".mp4", ".webm", ".avi", ".wmv"])
def test_colours_survive(size, suffix, tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    from PIL import Image

    flat = np.zeros((size[1], size[0], 3), dtype=np.uint8)
    flat[:] = (200, 60, 40)
    flat[:, size[0] // 2 :] = (20, 140, 230)
    Image.fromarray(flat).save(folder / "1.png")
    through(folder, tmp_path / f"out{suffix}")
    shown = next(iter(open_media(tmp_path / f"out{suffix}").frames())).pixels
    for x in (size[0] // 4, size[0] * 3 // 4):
        assert np.abs(shown[size[1] // 2, x].astype(int) - flat[size[1] // 2, x]).max() <= 6


def test_shape_of_pixels_is_kept(tmp_path):
    source = make_clip(tmp_path / "clip.mp4", n=12)
    media = open_media(source)
    media.aspect = Fraction(4, 3)
    with Output(media, tmp_path / "out.mp4", EncoderConfig(), WorkFolder(tmp_path / "work")) as output:
        for frame in media.frames():
            output.write(frame.pixels)
        output.finish()
    assert open_media(tmp_path / "out.mp4").aspect == Fraction(4, 3)


METADATA = {
    "title": "Ward 7",
    "comment": "bed 3",
    "creation_time": "2020-01-02T03:04:05.000000Z",
    "location": "+48.2082+016.3738/",
}


@pytest.mark.parametrize("suffix", [".mp4", ".mov", ".mkv", ".avi", ".webm", ".wmv"])
def test_metadata_are_dropped_unless_named(suffix, tmp_path):
    source = make_clip(tmp_path / "clip.mkv", metadata=METADATA, n=12)
    through(source, tmp_path / f"out{suffix}")
    written = (tmp_path / f"out{suffix}").read_bytes()
    for secret in (b"Ward", b"bed 3", b"2020", b"48.2082", str(tmp_path).encode()):
        assert secret not in written
    through(source, tmp_path / f"kept{suffix}", EncoderConfig(keep_metadata=("title",)))
    found = contents(tmp_path / f"kept{suffix}")[1]
    assert found["title"] == "Ward 7"
    assert "comment" not in found


def add_subtitles(path, source):
    """Copy a clip to Matroska with a subtitle, and an attachment where PyAV can write one."""
    subtitles = path.with_suffix(".srt")
    subtitles.write_text("1\n00:00:00,100 --> 00:00:00,300\na spoken secret\n")
    with av.open(str(source)) as read, av.open(str(subtitles)) as spoken, av.open(str(path), "w") as written:
        film = written.add_stream_from_template(read.streams.video[0])
        words = written.add_stream_from_template(spoken.streams.subtitles[0])
        written.add_attachment("secret.txt", "text/plain", b"an attached secret")
        for stream, packets in ((words, spoken.demux(subtitles=0)), (film, read.demux(video=0))):
            for packet in packets:
                if packet.size:
                    packet.stream = stream
                    written.mux(packet)


@pytest.mark.skipif(not hasattr(av.container.OutputContainer, "add_attachment"), reason="this PyAV cannot attach")
def test_subtitles_and_attachments_are_dropped_unless_named(tmp_path):
    plain = make_clip(tmp_path / "plain.mp4", n=12)
    add_subtitles(tmp_path / "clip.mkv", plain)
    assert contents(tmp_path / "clip.mkv")[0] == ["video", "subtitle", "attachment"]
    through(tmp_path / "clip.mkv", tmp_path / "out.mkv")
    assert contents(tmp_path / "out.mkv")[0] == ["video"]
    assert b"secret" not in (tmp_path / "out.mkv").read_bytes()
    through(tmp_path / "clip.mkv", tmp_path / "kept.mkv", EncoderConfig(keep_metadata=("subtitles",)))
    assert contents(tmp_path / "kept.mkv")[0] == ["video", "subtitle"]
    assert b"a spoken secret" in (tmp_path / "kept.mkv").read_bytes()


@pytest.mark.parametrize(("codec", "suffix"), [("hevc", ".mp4"), ("vp9", ".mkv"), ("ffv1", ".mkv"), ("h264", ".mov")])
def test_codecs_by_name(codec, suffix, tmp_path):
    source = make_clip(tmp_path / "clip.mp4", n=20)
    through(source, tmp_path / f"out{suffix}", EncoderConfig(codec=codec))
    assert numbers(open_media(tmp_path / f"out{suffix}")) == list(range(20))
    with av.open(str(tmp_path / f"out{suffix}")) as container:
        context = container.streams.video[0].codec_context
        assert codec in context.name
        assert codec != "hevc" or context.codec_tag == "hvc1"


def test_quality_and_speed_count(tmp_path):
    source = make_clip(tmp_path / "clip.mp4", n=12, size=(128, 96))
    for name, quality in (("fine", 8), ("coarse", 45)):
        through(source, tmp_path / f"{name}.mp4", EncoderConfig(quality=quality, speed="ultrafast"))
    assert (tmp_path / "fine.mp4").stat().st_size > (tmp_path / "coarse.mp4").stat().st_size


def test_frames_from_the_middle_are_the_same(tmp_path):
    media = open_media(make_clip(tmp_path / "clip.mp4", options={"bf": "3", "g": "12"}))
    whole = list(media.frames())
    for start in (1, 11, 23):
        part = list(media.frames(start))
        assert [frame.index for frame in part] == list(range(start, 24))
        for a, b in zip(whole[start:], part, strict=True):
            assert a.time == b.time
            np.testing.assert_array_equal(a.pixels, b.pixels)
    assert list(media.frames(24)) == []


def test_stopping_in_the_middle_ends_the_reader(tmp_path):
    import threading

    media = open_media(make_clip(tmp_path / "clip.mp4"))
    frames = media.frames()
    next(frames)
    assert [t for t in threading.enumerate() if t.name.startswith("ksame-reader")]
    frames.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("ksame-reader")]


def test_one_frame_is_a_recording(tmp_path):
    source = make_clip(tmp_path / "clip.mp4", n=1)
    through(source, tmp_path / "out.mp4")
    assert numbers(open_media(tmp_path / "out.mp4")) == [0]


@pytest.mark.slow
def test_8k(tmp_path):
    source = make_clip(tmp_path / "clip.mp4", n=2, size=(7680, 4320), options={"preset": "ultrafast"})
    through(source, tmp_path / "out.mp4", EncoderConfig(speed="ultrafast"))
    result = open_media(tmp_path / "out.mp4")
    assert result.size == (7680, 4320)
    assert numbers(result) == [0, 1]


def test_wrong_use_is_refused(tmp_path):
    media = open_media(make_clip(tmp_path / "clip.mp4", n=12))
    work = WorkFolder(tmp_path / "work")
    with pytest.raises(UsageError, match="source itself"):
        Output(media, tmp_path / "clip.mp4", EncoderConfig(), work, force=True)
    with pytest.raises(UsageError, match="'.xyz' is not known"):
        Output(media, tmp_path / "out.xyz", EncoderConfig(), work)
    with pytest.raises(UsageError, match="cannot hold a recording"):
        Output(media, tmp_path / "out.jpg", EncoderConfig(), work)
    with pytest.raises(UsageError, match="holds vp9, not h264"):
        Output(media, tmp_path / "out.webm", EncoderConfig(codec="h264"), work)
    (tmp_path / "out.mp4").write_bytes(b"there")
    with pytest.raises(UsageError, match="--force"):
        Output(media, tmp_path / "out.mp4", EncoderConfig(), work)
    for bad in ({"codec": "divx"}, {"quality": 101}, {"audio": "mute"}, {"speed": "warp"}):
        with pytest.raises(UsageError, match="must be"):
            EncoderConfig(**bad)
    with pytest.raises(UsageError, match="for video"):
        Output(media, tmp_path / "new.mp4", EncoderConfig(quality=60), work)
    assert not work.path.exists()
    with Output(media, tmp_path / "new.mp4", EncoderConfig(), work) as output:
        with pytest.raises(InputError, match=r"expected uint8 of shape \(48, 64, 3\)"):
            output.write(np.zeros((10, 10, 3), dtype=np.uint8))
        with pytest.raises(InputError, match="has not been read yet"):
            output.write(np.zeros((48, 64, 3), dtype=np.uint8))
        for frame in media.frames():
            if frame.index < 5:
                output.write(frame.pixels)
        with pytest.raises(OutputError, match="5 of 12 frames"):
            output.finish()
    assert not (tmp_path / "new.mp4").exists()


@pytest.mark.shared
def test_real_clips(shared, tmp_path):
    clips = sorted(p for p in (shared / "clips").iterdir() if p.suffix in (".gif", ".avi", ".wmv"))
    if not clips:
        pytest.skip("no clips in the data folder")
    for clip in clips:
        for suffix in {".mp4", clip.suffix}:
            destination = tmp_path / f"{clip.stem}{suffix}"
            media = through(clip, destination, length=240)
            result = open_media(destination)
            assert sum(1 for _ in result.frames()) == media.n_frames
            assert result.size == media.size
            assert abs(result.duration - media.duration) <= 1.01 / media.rate
            assert result.has_sound == media.has_sound
            destination.unlink()
