"""Three people who walk about, as if live: a detector that ksame does not use finds nobody who is not covered."""

import subprocess
import sys
from contextlib import AbstractContextManager, ExitStack

import cv2
import numpy as np
import pytest

from ksame.live import LiveConfig, run_live
from ksame.live.sources import FileSource
from scene.centerface import CenterFace
from scene.walkers import read

CLIP = "openface_multi_face.avi"
BUSY = "import time\nend = time.monotonic() + 120\nwhile time.monotonic() < end: pass"
COVERED = 0.97  # share of the ellipse in the detector's box that must be changed: fills may meet a colour by chance


class Numbered:
    """A file whose frames carry their number in the first pixel."""

    returns = False

    def __init__(self, path):
        self._file = FileSource(path)

    def frames(self):
        for number, pixels in enumerate(self._file.frames()):
            numbered = pixels.copy()
            numbered[0, 0] = number % 256, number // 256, 77
            yield numbered


class Kept(AbstractContextManager):
    def __init__(self):
        self.frames = {}

    def show(self, pixels, time):
        low, high, mark = (int(value) for value in pixels[0, 0])
        assert mark == 77, "the corner is far from everyone"
        self.frames[low + 256 * high] = pixels

    def __exit__(self, *_):
        pass


def uncovered(originals, published, detector):
    """Return frame, box and share of all faces in the originals that are not covered; and how many faces there are."""
    missed, count = [], 0
    for frame in originals:
        if frame.index not in published:
            continue
        changed = (frame.pixels != published[frame.index]).any(axis=2).astype(np.uint8)
        changed = cv2.morphologyEx(changed, cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8))
        for x, y, width, height, _ in detector.detect(frame.pixels):
            where = np.zeros_like(changed)
            middle = round(x + width / 2), round(y + height / 2)
            cv2.ellipse(where, middle, (round(width / 2), round(height / 2)), 0, 0, 360, 1, -1)
            share = changed[where > 0].mean()
            count += 1
            if share < COVERED:
                missed.append((frame.index, (x, y, width, height), share))
    return missed, count


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("busy", [False, True], ids=["alone", "beside a busy process"])
def test_nobody_is_shown_in_any_frame(shared, busy):
    clip = shared / "clips" / CLIP
    kept = Kept()
    with ExitStack() as stack:
        if busy:
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY]))
            stack.callback(process.kill)
        statistics = run_live(Numbered(clip), kept, LiveConfig(), seed=3)
    assert statistics.failures == {}
    assert statistics.shown == len(kept.frames) > 20
    assert statistics.captured == statistics.shown + statistics.skipped + statistics.late
    missed, count = uncovered(read(clip), kept.frames, CenterFace())
    assert count > 2 * statistics.shown, "most frames have three faces"
    assert not missed


@pytest.mark.slow
@pytest.mark.shared
def test_the_check_sees_who_is_not_covered(shared):
    """Without any work, and with masks that are a frame late, the check fails."""
    frames = [frame for _, frame in zip(range(40), read(shared / "clips" / CLIP), strict=False)]
    missed, count = uncovered(frames, {frame.index: frame.pixels for frame in frames}, CenterFace())
    assert len(missed) == count > 60
