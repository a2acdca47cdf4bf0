"""Large photographs and frames: what is held in memory, and that parts are worked on several at a time."""

import re
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ksame
from ksame.models import FaceDetector
from ksame.scene.media import open_media
from ksame.scene.media.conversion import FrameConverter, OutputFrame
from ksame.scene.media.images import Photograph
from ksame.scene.media.recording import Recording
from ksame.scene.memory import forget_mapped
from ksame.scene.observe import DetectorConfig, observe

SAMPLES = files("ksame.data") / "samples"
_READ = """
import resource, sys
from pathlib import Path
from ksame.pictures import read_rgb
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
read_rgb(Path(sys.argv[1]))
before = peak()
pixels = read_rgb(Path(sys.argv[2]))
print((peak() - before) / (pixels.size / 3))
"""


def sample(name: str, side: int) -> np.ndarray:
    with Image.open(str(SAMPLES / name)) as picture:
        return np.asarray(picture.convert("RGB").resize((side, side)))


@pytest.mark.skipif(
    resource.getrusage(resource.RUSAGE_SELF).ru_maxrss == 0, reason="nobody says how much memory it was"
)
def test_a_large_picture_is_read_with_little_more_memory_than_pillow_and_the_result_take(tmp_path):
    """Pillow takes four bytes for a pixel, the result three."""
    for name, side in (("small.bmp", 16), ("large.bmp", 3000)):
        Image.new("RGB", (side, side)).save(tmp_path / name)
    command = [sys.executable, "-c", _READ, str(tmp_path / "small.bmp"), str(tmp_path / "large.bmp")]
    bytes_per_pixel = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert bytes_per_pixel < 10


def test_tiles_of_a_large_picture_go_through_map():
    picture = np.zeros((2200, 2200, 3), np.uint8)
    picture[100:500, 100:500] = sample("f99.jpg", 400)
    tiles = []

    def counting(function, items):
        taken = list(items)
        tiles.append(len(taken))
        return map(function, taken)

    detector = FaceDetector()
    plain, several = detector.detect(picture), detector.detect(picture, map=counting)
    assert [face.box for face in plain] == [face.box for face in several]
    assert plain
    assert tiles[0] == 4


def test_a_photograph_is_searched_by_all_threads_and_nothing_waits_for_itself():
    """One thread is enough: a task that waited for another of the same executor would wait for ever."""
    pixels = np.zeros((2000, 2000, 3), np.uint8)
    pixels[100:500, 100:500] = sample("f99.jpg", 400)
    frames = [ksame.scene.media.Frame(0, 0.0, pixels)]
    alone = observe(frames, (2000, 2000), DetectorConfig(), still=True)
    with ThreadPoolExecutor(1) as pool:
        pooled = observe(frames, (2000, 2000), DetectorConfig(), still=True, map=pool.map)
    np.testing.assert_array_equal(alone.rows, pooled.rows)
    assert len(alone.rows)


def test_a_photograph_is_decoded_once_for_detecting_and_meshing(tmp_path, monkeypatch):
    Image.fromarray(sample("f99.jpg", 240)).save(tmp_path / "a.png")
    decoded = []
    decode = Photograph._decode
    monkeypatch.setattr(Photograph, "_decode", lambda self, wanted: decoded.append(0 in wanted) or decode(self, wanted))
    ksame.deidentify_media(tmp_path / "a.png", tmp_path / "b.png", seed=1)
    assert decoded == [True] * 3, "once for detecting, for reading faces and for writing"


def test_frames_that_come_late_are_made_rgb_when_they_are_asked_for_and_are_the_same(monkeypatch):
    media, made = open_media(SAMPLES / "two-people.mp4", "refuse"), []
    upright = Recording._upright
    monkeypatch.setattr(Recording, "_upright", lambda self, *what: made.append(1) or upright(self, *what))
    late = list(islice(media.frames(2, late=True), 5))
    assert not made
    ahead = list(islice(media.frames(2), 5))
    made.clear()
    for one, other in zip(late[:3], ahead, strict=False):
        assert (one.index, one.time) == (other.index, other.time)
        np.testing.assert_array_equal(one.pixels, other.pixels)
        assert one.pixels is one.pixels
        assert not one.pixels.flags.writeable
    assert len(made) == 3, "once each, and nothing of those that nobody asked for"


def test_large_frames_are_decoded_one_at_a_time_and_are_the_same(monkeypatch):
    media = open_media(SAMPLES / "two-people.mp4", "refuse")
    several = [frame.pixels for frame in islice(media.frames(), 9)]
    monkeypatch.setattr("ksame.scene.media.recording.queue_length", lambda size: 1)
    alone = [frame.pixels for frame in islice(media.frames(), 9)]
    np.testing.assert_array_equal(several, alone)


def test_frames_that_wait_for_the_encoder_hold_only_what_was_touched():
    media = open_media(SAMPLES / "two-people.mp4", "refuse")
    frame = next(iter(media.frames()))
    touched = np.zeros(frame.pixels.shape[:2], bool)
    touched[40:60, 32:64] = True
    converter = FrameConverter(media, "yuv420p", media.stream.colours)
    _, pixels, held, _ = converter.prepare(OutputFrame(frame.pixels, frame.native, touched)).args
    assert pixels.base is None
    assert pixels.shape[:2] == held.shape
    assert pixels.size < frame.pixels.size / 4
    nothing = converter.prepare(OutputFrame(frame.pixels, frame.native, np.zeros_like(touched)))
    assert nothing.args[1].size == 0
    assert nothing().width == media.size[0]
    (whole,) = converter.prepare(OutputFrame(frame.pixels)).args
    assert whole is frame.pixels


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what is in memory")
def test_what_was_read_of_a_mapped_array_is_let_go_of_and_read_again(tmp_path):
    np.save(tmp_path / "points.npy", np.arange(1 << 20))
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")

    def kilobytes():
        parts = Path("/proc/self/smaps").read_text().split(str(tmp_path / "points.npy"))[1:]
        return sum(int(re.search(r"Rss: +(\d+) kB", part)[1]) for part in parts)

    total = mapped[10:].sum()
    assert kilobytes() > 4000
    forget_mapped(mapped[5:100])
    assert kilobytes() < 1000
    assert mapped[10:].sum() == total
    forget_mapped(np.zeros(3))  # nothing to be let go of
