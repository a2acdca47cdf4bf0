"""The thread that decodes ahead and the one that encodes behind: in order, a few frames only, up to the first error."""

import concurrent.futures.thread
import threading
import time
from importlib.resources import files
from itertools import islice
from pathlib import Path

import pytest

from ksame.scene.media import EncoderConfig, Output, WorkFolder, open_media
from ksame.scene.media.encoding import video_settings
from ksame.scene.media.threads import EncoderThread, prefetch


def counting(n, made):
    for i in range(n):
        made.append(i)
        yield i


def test_items_left_half_read_can_be_collected_while_another_thread_is_started():
    """The collector may run anywhere, also where the library holds the lock of all its pools."""
    items = prefetch(counting(50, []), 3)
    next(items)
    with concurrent.futures.thread._global_shutdown_lock:
        closing = threading.Thread(target=items.close, daemon=True)
        closing.start()
        closing.join(20)
        assert not closing.is_alive()


def test_prefetched_items_come_in_order_and_few_are_made_before_they_are_asked_for():
    made = []
    for i in (items := prefetch(counting(50, made), 3)):
        assert len(made) <= i + 1 + 3
        if i == 20:
            break
    items.close()
    assert len(made) <= 24
    assert list(prefetch(counting(7, []), 3)) == list(range(7))


def test_an_error_in_the_middle_reaches_the_caller_after_what_came_before_it():
    def failing():
        yield from range(3)
        raise ValueError("broken")

    items = prefetch(failing(), 2)
    assert [next(items) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="broken"):
        next(items)


def test_nothing_is_encoded_after_an_error_and_the_error_is_raised():
    encoded, gate = [], threading.Event()

    def encode(item):
        gate.wait(5)
        if item == 2:
            raise OSError("disk full")
        encoded.append(item)

    thread = EncoderThread(encode, 8)
    for item in range(5):
        thread.put(item)
    gate.set()
    with pytest.raises(OSError, match="disk full"):
        thread.close()
    assert encoded == [0, 1]


def test_the_encoder_holds_the_caller_back():
    started, encoded = [], []

    def encode(item):
        time.sleep(0.01)
        encoded.append(item)

    thread = EncoderThread(encode, 2)
    for item in range(10):
        thread.put(item)
        started.append(item)
        assert len(started) - len(encoded) <= 4
    thread.close()
    assert encoded == list(range(10))


@pytest.mark.parametrize("codec", ["h264", "hevc"])
def test_the_same_frames_under_a_limit_of_the_bit_rate_give_the_same_bytes(codec, tmp_path):
    media = open_media(Path(str(files("ksame.data") / "samples" / "two-people.mp4")))
    frames = list(islice(media.frames(), 40))
    assert "maxrate" in video_settings("h264", EncoderConfig(), media).options
    made = set()
    for i in range(4):
        work = WorkFolder(tmp_path / f"work{i}")
        with Output(media, tmp_path / f"{i}.mkv", EncoderConfig(codec), work) as output:
            for frame in frames:
                output.write(frame.pixels, frame.native)
            output.finish()
        made.add((tmp_path / f"{i}.mkv").read_bytes())
    assert len(made) == 1
