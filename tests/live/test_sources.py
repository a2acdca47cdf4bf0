"""Sources: the newest frame counts, files keep their rate, and what drops is opened again."""

from pathlib import Path

import numpy as np
import pytest

from ksame.errors import InputError
from ksame.live.newest import Newest
from ksame.live.sources import CameraSource, FileSource, Grabber, StreamSource, open_source
from ksame.live.statistics import Statistics
from ksame.scene.media import Frame
from live.stand_ins import Clock
from scene.clips import make_clip, number_of

PICTURE = np.zeros((4, 4, 3), np.uint8)


def captured(index):
    return Frame(index, float(index), PICTURE)


def test_only_the_newest_frame_is_handed_on():
    newest = Newest()
    for i in range(5):
        newest.put(captured(i))
    assert newest.take(0).index == 4
    assert newest.take(0) is None
    assert (newest.captured, newest.skipped) == (5, 4)


def test_the_last_frame_is_shown_before_the_end_is_told():
    newest = Newest()
    newest.put(captured(0))
    newest.end(InputError("gone"))
    assert not newest.ended
    assert newest.take(0).index == 0
    assert newest.ended
    with pytest.raises(InputError, match="gone"):
        newest.take(0)


class Dropping:
    """Gives two frames, then drops; the last time it stops the grabber."""

    returns = True

    def __init__(self, times, error):
        self.times, self.error, self.opened = times, error, 0

    def frames(self):
        self.opened += 1
        if self.opened in (2, 3):
            raise InputError("nobody answers")
        yield from (PICTURE, PICTURE)
        if self.opened >= self.times:
            raise SystemExit
        if self.error:
            raise InputError("dropped")


@pytest.mark.parametrize("error", [True, False])
def test_a_source_that_drops_is_opened_again_after_longer_and_longer_waits(error):
    newest, statistics, clock = Newest(), Statistics(), Clock()
    waits = []
    source = Dropping(5, error)
    Grabber(source, newest, statistics, clock, waits.append).read()
    assert source.opened == 5
    assert statistics.reconnects == 4
    assert waits == [0.5, 1.0, 2.0, 0.5], "a source that is back is waited for shortly again"
    assert newest.captured == 6
    assert newest.take(0).index == 5, "frames are numbered on"


def test_a_source_that_was_never_there_is_an_error():
    class Missing:
        returns = True

        def frames(self):
            raise InputError("no such camera")
            yield

    newest = Newest()
    Grabber(Missing(), newest, Statistics(), Clock(), lambda _: pytest.fail("not waited for")).read()
    with pytest.raises(InputError, match="no such camera"):
        newest.take(0)


def test_a_file_is_played_at_its_own_rate(tmp_path):
    clock = Clock()
    source = FileSource(make_clip(tmp_path / "clip.mp4", n=12, rate=10), clock, clock.sleep)
    times = []
    for i, pixels in enumerate(source.frames()):
        assert number_of(pixels) == i
        times.append(clock.now - 100)
        clock.now += 0.25 if i == 3 else 0.01  # whoever takes frames is late once
    assert times[:4] == pytest.approx([0, 0.1, 0.2, 0.3], abs=1e-6)
    assert times[4] == pytest.approx(0.55, abs=1e-6), "late, and not asleep"
    assert times[7:] == pytest.approx([0.7, 0.8, 0.9, 1.0, 1.1], abs=1e-6), "in time again"


def test_a_file_ends(tmp_path):
    newest = Newest()
    clip = make_clip(tmp_path / "clip.mp4", n=3, rate=100)
    Grabber(FileSource(clip), newest, Statistics()).read()
    assert newest.captured == 3
    newest.take(0)
    assert newest.ended


def test_names_of_sources(tmp_path):
    statistics = Statistics()
    assert open_source("0", statistics) == CameraSource(0)
    with pytest.raises(InputError, match="no such file"):
        open_source("\u00b2", statistics)  # a digit, but no number
    assert open_source("/dev/video2", statistics) == CameraSource("/dev/video2")
    assert isinstance(open_source("rtsp://user:word@10.0.0.1/a", statistics), StreamSource)
    assert isinstance(open_source(str(make_clip(tmp_path / "clip.mp4")), statistics), FileSource)
    with pytest.raises(InputError, match=r"no such file. A source is the number of a camera"):
        open_source("nothing.mp4", statistics)
    photograph = Path(__file__).parents[2] / "src" / "ksame" / "data" / "samples" / "m12.jpg"
    with pytest.raises(InputError, match="Use ksame deidentify"):
        open_source(str(photograph), statistics)


def test_a_stream_that_nobody_serves_is_an_error_without_its_password():
    source = StreamSource("http://user:secret@127.0.0.1:9/none.mp4", Statistics())
    with pytest.raises(InputError, match="Check the address") as caught:
        list(source.frames())
    assert "secret" not in str(caught.value)


def test_a_stream_is_read_and_ends(tmp_path):
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
    from threading import Thread

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    make_clip(tmp_path / "clip.mp4", n=5)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/clip.mp4"
        numbers = [number_of(pixels) for pixels in StreamSource(address, Statistics()).frames()]
        server.shutdown()
    assert numbers == [0, 1, 2, 3, 4]


def test_after_damage_a_stream_waits_for_a_whole_picture():
    import av

    class Frame:
        def __init__(self, key, corrupt=False):
            self.key_frame, self.is_corrupt = key, corrupt

        def to_ndarray(self, format):
            return PICTURE

    class Packet:
        is_corrupt = False

        def __init__(self, *frames):
            self.frames = frames

        def decode(self):
            if not self.frames:
                raise av.InvalidDataError(1, "damaged")
            return self.frames

    class Container:
        class streams:  # noqa: N801
            video = (type("Stream", (), {"codec_context": type("Context", (), {})()}),)

        def demux(self, stream):
            assert "explode" in stream.codec_context.options["err_detect"]
            return [
                Packet(Frame(False)),  # joined in the middle: patchwork
                Packet(Frame(True)),
                Packet(Frame(False)),
                Packet(),
                Packet(Frame(False)),
                Packet(Frame(True)),
                Packet(Frame(False, corrupt=True)),
                Packet(Frame(False)),
            ]

    statistics = Statistics()
    assert len(list(StreamSource("rtsp://x", statistics)._decoded(Container()))) == 3
    assert statistics.damaged == 5


def test_a_camera_gives_rgb_until_it_is_gone(monkeypatch):
    red = np.zeros((4, 6, 3), np.uint8)
    red[..., 2] = 255  # OpenCV has blue first

    class Capture:
        def __init__(self, camera):
            self.left, self.camera = 3, camera
            opened.append(self)

        def isOpened(self):  # noqa: N802
            return self.camera == 0

        def set(self, *_):
            pass

        def read(self):
            self.left -= 1
            return (True, red) if self.left >= 0 else (False, None)

        def release(self):
            self.left = None

    opened = []
    monkeypatch.setattr("cv2.VideoCapture", Capture)
    pictures = list(CameraSource(0).frames())
    assert len(pictures) == 3
    assert pictures[0][0, 0].tolist() == [255, 0, 0]
    assert opened[0].left is None, "it is given back"
    with pytest.raises(InputError, match="Camera 1 cannot be opened"):
        list(CameraSource(1).frames())
