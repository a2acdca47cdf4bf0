"""Sinks: segments are complete under their names, and the page is for this machine only."""

import http.client
import socket
import sys
import time
import types
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from ksame.errors import OutputError, UsageError
from ksame.live.page import PageSink
from ksame.live.sinks import CameraSink, SegmentSink, open_sink
from scene.clips import drawn_frame, number_of


def read(path):
    with av.open(str(path)) as container:
        return [(frame.time, number_of(frame.to_ndarray(format="rgb24"))) for frame in container.decode(video=0)]


def test_every_segment_is_complete_under_its_name_and_keeps_the_times(tmp_path):
    folder = tmp_path / "out"
    with SegmentSink(folder, seconds=1.0) as sink:
        for i in range(25):
            sink.show(drawn_frame(i), 50 + 0.1 * i + (0.04 if i == 3 else 0))
            time.sleep(0.01)
            for file in folder.glob("*.mp4"):
                assert len(read(file)) == 10, "only whole files have a name"
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == ["000001.mp4", "000002.mp4", "000003.mp4"]
    frames = [read(file) for file in files]
    assert [number for segment in frames for _, number in segment] == list(range(25))
    assert [time for time, _ in frames[0][:5]] == pytest.approx([0, 0.1, 0.2, 0.34, 0.4], abs=2e-3)


def test_numbers_go_on_and_nothing_is_overwritten(tmp_path):
    for _ in range(2):
        with SegmentSink(tmp_path, 1.0) as sink:
            sink.show(drawn_frame(1), 0.0)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["000001.mp4", "000002.mp4"]


def test_an_error_leaves_nothing_half_written(tmp_path, monkeypatch):
    sink = SegmentSink(tmp_path, 1.0)
    monkeypatch.setattr("ksame.live.sinks.VideoFrame.from_ndarray", broken, raising=False)
    with pytest.raises(OutputError, match="000001.mp4: cannot be written"), sink:
        sink.show(np.zeros((10, 10, 3), np.uint8), 0.1)
    assert list(tmp_path.iterdir()) == []


def broken(*_, **__):
    raise OSError(28, "No space left on device")


def request(port, path, host=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.putrequest("GET", path, skip_host=True)
    if host != "":
        connection.putheader("Host", host or f"127.0.0.1:{port}")
    connection.endheaders()
    return connection.getresponse()


def test_the_page_shows_the_newest_frame():
    with PageSink("127.0.0.1", 0) as page:
        page.show(drawn_frame(5), 0.0)
        answer = request(page.port, "/")
        assert answer.status == 200
        assert b"/stream" in answer.read()
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        jpeg = request(page.port, "/frame.jpg").read()
        assert number_of(cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)) == 5
        stream = request(page.port, "/stream")
        assert stream.headers["Content-Type"].startswith("multipart/x-mixed-replace")
        for number in (5, 6, 7):
            if number > 5:
                page.show(drawn_frame(number), 0.0)
            assert stream.readline() == b"--frame\r\n"
            assert stream.readline() == b"Content-Type: image/jpeg\r\n"
            length = int(stream.readline().split(b":")[1])
            stream.readline()
            jpeg = stream.read(length)
            assert number_of(cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)) == number
            stream.readline()
        assert request(page.port, "/etc/passwd").status == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{}", "127.0.0.1", "127.0.0.1.evil.example:{}", ""])
@pytest.mark.parametrize("path", ["/", "/frame.jpg", "/stream"])
def test_who_asks_by_another_name_gets_nothing(host, path):
    with PageSink("localhost", 0) as page:
        page.show(drawn_frame(5), 0.0)
        answer = request(page.port, path, host.format(page.port))
        assert answer.status == 421
        assert b"\xff\xd8" not in answer.read()


def test_the_page_listens_on_this_machine_only():
    with PageSink("127.0.0.1", 0) as page:
        assert page._server.server_address[0] == "127.0.0.1"
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.2", page.port), timeout=2)
    for host in ("0.0.0.0", "192.168.1.5", "", "::1"):  # noqa: S104
        with pytest.raises(UsageError, match="for this machine only"):
            PageSink(host, 0)


def test_a_port_that_is_taken_is_told():
    with PageSink("127.0.0.1", 0) as page, pytest.raises(OutputError, match="Choose another port"):
        PageSink("127.0.0.1", page.port)


def test_a_virtual_camera_gets_the_frames(monkeypatch):
    sent = []

    class Camera:
        def __init__(self, **options):
            sent.append(options)

        def send(self, pixels):
            sent.append(number_of(pixels))

        def close(self):
            sent.append("closed")

    monkeypatch.setitem(sys.modules, "pyvirtualcam", types.SimpleNamespace(Camera=Camera))
    with open_sink("camera:/dev/video2", 1.0) as sink:
        sink.show(drawn_frame(3), 0.0)
        sink.show(drawn_frame(4), 0.1)
    assert sent == [{"width": 64, "height": 48, "fps": 30, "device": "/dev/video2"}, 3, 4, "closed"]


def test_what_a_virtual_camera_needs_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyvirtualcam", None)
    with pytest.raises(UsageError, match=r"pip install 'ksame\[live\]'"):
        CameraSink(None)

    def no_camera(**_):
        raise RuntimeError("'v4l2loopback' backend: no devices")

    monkeypatch.setitem(sys.modules, "pyvirtualcam", types.SimpleNamespace(Camera=no_camera))
    with pytest.raises(OutputError, match="v4l2loopback on Linux"), CameraSink(None) as sink:
        sink.show(drawn_frame(0), 0.0)


@pytest.mark.parametrize(
    "name", ["film.mp4", "https://127.0.0.1:8089", "http://127.0.0.1", "http://127.0.0.1:99999", "http://127.0.0.1:1/x"]
)
def test_what_is_no_sink_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="Expected a folder such as out/, camera"):
        open_sink(name, 1.0)
    assert list(Path().iterdir()) == []
    with pytest.raises(UsageError, match="for this machine only"):
        open_sink("http://0.0.0.0:8089", 1.0)
