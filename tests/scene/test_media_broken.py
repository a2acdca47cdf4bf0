"""Files that cannot be used: each is refused with its reason."""

import io
import struct
from fractions import Fraction

import av
import numpy as np
import pytest
from PIL import Image

from ksame.errors import ExitCode, InputError
from ksame.scene.media import open_media
from scene.clips import SIZE, drawn_frame, make_clip, numbers
from scene.test_media_writing import SOURCES


def refused(path, match):
    with pytest.raises(InputError, match=match) as caught:
        open_media(path)
    assert caught.value.exit_code == ExitCode.UNREADABLE
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("part", [0.3, 0.7, 0.97])
def test_cut_off(name, part, tmp_path):
    whole = make_clip(tmp_path / name, **SOURCES[name])
    data = whole.read_bytes()
    whole.write_bytes(data[: int(len(data) * part)])
    refused(whole, "cut off")


def test_cut_off_with_the_description_in_front(tmp_path):
    whole = make_clip(tmp_path / "clip.mp4", muxer_options={"movflags": "+faststart"})
    whole.write_bytes(whole.read_bytes()[:-100])
    refused(whole, "100 bytes are missing")


@pytest.mark.parametrize("name", ["clip.mp4", "photo.jpg", "photo.png", "clip.wmv"])
def test_empty(name, tmp_path):
    (tmp_path / name).write_bytes(b"")
    refused(tmp_path / name, "empty")


def test_missing(tmp_path):
    refused(tmp_path / "clip.mp4", "no such file")


@pytest.mark.parametrize("name", ["clip.mp4", "clip.txt", "photo.jpg", "clip.mkv"])
def test_something_else(name, tmp_path):
    (tmp_path / name).write_text("Dear diary, " * 500)
    refused(tmp_path / name, "not a readable photograph or recording")
    (tmp_path / name).write_bytes(np.random.default_rng(1).bytes(5000))
    refused(tmp_path / name, "not a readable photograph or recording")


def test_a_play_list_does_not_open_other_files(tmp_path):
    make_clip(tmp_path / "clip.mp4", n=12)
    (tmp_path / "list.m3u8").write_text("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nclip.mp4\n#EXT-X-ENDLIST\n")
    refused(tmp_path / "list.m3u8", "not a readable")
    (tmp_path / "list.mp4").write_text("ffconcat version 1.0\nfile clip.mp4\n")
    refused(tmp_path / "list.mp4", "not a readable")


def test_a_wrong_suffix_does_no_harm(tmp_path):
    make_clip(tmp_path / "clip.mp4", n=12).rename(tmp_path / "clip.avi")
    assert numbers(open_media(tmp_path / "clip.avi")) == list(range(12))
    make_clip(tmp_path / "clip.mkv", n=12).rename(tmp_path / "clip.jpg")
    assert open_media(tmp_path / "clip.jpg").kind == "video"


def test_metadata_of_any_bytes_do_no_harm(tmp_path):
    path = make_clip(tmp_path / "clip.avi", n=12, codec="mpeg4", metadata={"title": "a holiday"})
    path.write_bytes(path.read_bytes().replace(b"a holiday", b"\xff\xfe\x80liday"))
    assert numbers(open_media(path)) == list(range(12))


def test_only_sound(tmp_path):
    with av.open(str(tmp_path / "song.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=48000)
        stream.layout = "mono"
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 48000), dtype=np.float32), format="fltp", layout="mono")
        frame.sample_rate = 48000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    refused(tmp_path / "song.mp4", "only sound")


def test_encrypted_mp4(tmp_path):
    path = make_clip(
        tmp_path / "clip.mp4",
        muxer_options={
            "encryption_scheme": "cenc-aes-ctr",
            "encryption_key": "76a6c65c5ea762046bd749a2e632ccbb",
            "encryption_kid": "a7e61c373e219033c21091fa607bf3b8",
        },
    )
    refused(path, "encrypted")


def test_encrypted_wmv(tmp_path):
    path = make_clip(tmp_path / "clip.wmv", codec="wmv2")
    data = path.read_bytes()
    lock = bytes.fromhex("fbb3112223bdd211b4b700a0c955fc6e") + struct.pack("<Q", 32) + b"DRM key!"
    size, count = struct.unpack_from("<QI", data, 16)
    path.write_bytes(data[:16] + struct.pack("<QI", size + 32, count + 1) + data[28:30] + lock + data[30:])
    refused(path, "encrypted")


def test_encrypted_mkv(tmp_path):
    lock = bytes.fromhex("6d80 86 6240 83 5035 80")
    entry = b"\xae" + bytes([0x80 | len(lock)]) + lock
    tracks = bytes.fromhex("1654ae6b") + bytes([0x80 | len(entry)]) + entry
    segment = bytes.fromhex("18538067") + bytes([0x80 | len(tracks)]) + tracks
    (tmp_path / "clip.mkv").write_bytes(bytes.fromhex("1a45dfa3 80") + segment)
    refused(tmp_path / "clip.mkv", "encrypted")


def test_heic(tmp_path):
    (tmp_path / "photo.heic").write_bytes(b"\x00\x00\x00\x18ftypheic" + bytes(200))
    refused(tmp_path / "photo.heic", "pip install pi-heif|not a readable picture")


def test_damaged_in_the_middle(tmp_path):
    path = make_clip(tmp_path / "clip.mov", codec="png", pixels="rgb24", n=12)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 400] = bytes(400)
    path.write_bytes(data)
    with pytest.raises(InputError, match="clip.mov: frame . is damaged"):
        list(open_media(path).frames())


def test_headers_that_break_off(tmp_path):
    for number, start in enumerate([bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c"), b"RIFF\0\0", b"GIF89a"]):
        for extra in (b"", b"\0", b"\0" * 5):
            path = tmp_path / f"{number}-{len(extra)}.wmv"
            path.write_bytes(start + extra)
            refused(path, "cut off|not a readable|not a single frame|no pictures")


def test_boxes_within_boxes_without_end(tmp_path):
    depth = 5000
    nested = b"".join(struct.pack(">I4s", 8 * (depth - i), b"moov") for i in range(depth))
    (tmp_path / "clip.mp4").write_bytes(struct.pack(">I4s", 16, b"ftyp") + b"isom\0\0\0\0" + nested)
    refused(tmp_path / "clip.mp4", "makes no sense|not a readable")


def test_frames_with_side_data_that_are_not_known(tmp_path):
    """Cameras that write Motion JPEG put EXIF tags into its frames, which some versions of PyAV have no name for."""
    exif = Image.Exif()
    exif[0x010F] = "a camera"
    with av.open(str(tmp_path / "clip.avi"), "w") as container:
        stream = container.add_stream("mjpeg", rate=25)
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuvj420p"
        for i in range(12):
            buffer = io.BytesIO()
            Image.fromarray(drawn_frame(i)).save(buffer, "JPEG", quality=95, exif=exif)
            packet = av.Packet(buffer.getvalue())
            packet.pts = packet.dts = i
            packet.time_base = Fraction(1, 25)
            packet.stream = stream
            packet.is_keyframe = True
            container.mux(packet)
    assert numbers(open_media(tmp_path / "clip.avi")) == list(range(12))
