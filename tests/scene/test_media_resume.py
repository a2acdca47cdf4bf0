"""Interrupted and resumed: the result is the same to the byte."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ksame.errors import OutputError, UsageError
from ksame.scene.media import EncoderConfig, Output, WorkFolder, open_media
from scene.clips import make_clip, numbers, through

RUN = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background inherit that it is ignored
from pathlib import Path
from ksame.scene.media import EncoderConfig, Output, WorkFolder, open_media
source, destination, work, pause = sys.argv[1:]
media = open_media(Path(source))
with Output(media, Path(destination), EncoderConfig(), WorkFolder(Path(work), True, "a", 4)) as output:
    print("ready", flush=True)
    for frame in media.frames(output.next_frame):
        output.write(255 - frame.pixels)
        time.sleep(float(pause))
    output.finish()
"""


def start(source, destination, work, pause):
    command = [sys.executable, "-c", RUN, str(source), str(destination), str(work), str(pause)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_to_end(source, destination, work):
    _, errors = (run := start(source, destination, work, 0)).communicate()
    assert run.returncode == 0, errors


@pytest.mark.parametrize("suffix", [".mp4", ".gif", ".webm", ".avi", ".wmv", ".mkv", ""])
@pytest.mark.parametrize("stop", [0, 3, 9, 17, 24])
def test_abandoned_anywhere_and_resumed(suffix, stop, tmp_path):
    source = make_clip(tmp_path / "clip.mp4", sound="aac")
    through(source, tmp_path / f"whole{suffix}", length=4)
    destination, work = tmp_path / f"out{suffix}", tmp_path / "work"
    media = open_media(source)
    output = Output(media, destination, EncoderConfig(), WorkFolder(work, segment_length=4))
    for frame in media.frames():
        if frame.index >= stop:
            break
        output.write(frame.pixels)
    output.abandon()
    assert not destination.exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["clip.mp4", f"whole{suffix}", "work"])
    media = open_media(source)
    with Output(media, destination, EncoderConfig(), WorkFolder(work, resume=True, segment_length=4)) as output:
        assert output.next_frame == (stop - stop % 4 if suffix else stop)
        for frame in media.frames(output.next_frame):
            output.write(frame.pixels)
        output.finish()
    assert not work.exists()
    if suffix:
        assert destination.read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()
    else:
        names = sorted(p.name for p in destination.iterdir())
        assert names == [f"{i:06d}.png" for i in range(1, 25)]
        for name in names:
            assert (destination / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
def test_killed_at_random_and_resumed(kill, tmp_path):
    source = make_clip(tmp_path / "clip.mp4", sound="aac", n=40)
    run_to_end(source, tmp_path / "whole.mp4", tmp_path / "work0")
    rng = np.random.default_rng(3)
    for _ in range(3):
        run = start(source, tmp_path / "out.mp4", tmp_path / "work", 0.03)
        assert run.stdout.readline() == "ready\n"
        time.sleep(float(rng.uniform(0.05, 0.4)))
        run.send_signal(kill)
        run.communicate()
        assert run.returncode != 0
        assert not (tmp_path / "out.mp4").exists()
    run_to_end(source, tmp_path / "out.mp4", tmp_path / "work")
    assert (tmp_path / "out.mp4").read_bytes() == (tmp_path / "whole.mp4").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix != ".json") == ["clip.mp4", "out.mp4", "whole.mp4"]


def test_killed_while_putting_together(tmp_path):
    source = make_clip(tmp_path / "clip.mp4")
    through(source, tmp_path / "whole.mp4", length=4)
    media = open_media(source)
    output = Output(media, tmp_path / "out.mp4", EncoderConfig(), WorkFolder(tmp_path / "work", segment_length=4))
    for frame in media.frames():
        output.write(frame.pixels)
    output._writer.complete()
    (tmp_path / ".out.mp4.part").write_bytes(b"half a file")
    media = open_media(source)
    work = WorkFolder(tmp_path / "work", resume=True, segment_length=4)
    with Output(media, tmp_path / "out.mp4", EncoderConfig(), work) as output:
        assert output.next_frame == 24
        assert list(media.frames(output.next_frame)) == []
        output.finish()
    assert (tmp_path / "out.mp4").read_bytes() == (tmp_path / "whole.mp4").read_bytes()
    assert not (tmp_path / ".out.mp4.part").exists()


def unfinished(tmp_path):
    media = open_media(make_clip(tmp_path / "clip.mp4"))
    output = Output(media, tmp_path / "out.mp4", EncoderConfig(), WorkFolder(tmp_path / "work", False, "a", 4))
    for frame in media.frames():
        output.write(frame.pixels)
    output.abandon()
    return media


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"run_key": "b"}, "options"),
        ({"encoding": EncoderConfig(quality=30)}, "encoding"),
        ({"destination": "out.mkv"}, "suffix"),
        ({"segment_length": 5}, "length"),
    ],
)
def test_other_work_is_not_gone_on_with(change, named, tmp_path):
    media = unfinished(tmp_path)
    encoding = change.pop("encoding", EncoderConfig())
    destination = tmp_path / change.pop("destination", "out.mp4")
    with pytest.raises(UsageError, match=f"another {named}.*without --resume"):
        Output(media, destination, encoding, replace(WorkFolder(tmp_path / "work", True, "a", 4), **change))


def test_another_source_is_refused_and_starting_anew_works(tmp_path):
    unfinished(tmp_path)
    other = open_media(make_clip(tmp_path / "other.mp4", n=12))
    with pytest.raises(UsageError, match="another source"):
        Output(other, tmp_path / "out.mp4", EncoderConfig(), WorkFolder(tmp_path / "work", True, "a", 4))
    with Output(other, tmp_path / "out.mp4", EncoderConfig(), WorkFolder(tmp_path / "work", False, "a", 4)) as output:
        assert output.next_frame == 0
        for frame in other.frames():
            output.write(frame.pixels)
        output.finish()
    assert numbers(open_media(tmp_path / "out.mp4")) == list(range(12))


def test_killed_as_it_began_and_resumed(tmp_path):
    source, work = make_clip(tmp_path / "clip.mp4", n=12), tmp_path / "work"
    work.mkdir()
    (work / ".state.json.0a1b2c3d.part").touch()
    run_to_end(source, tmp_path / "out.mp4", work)
    assert len(numbers(open_media(tmp_path / "out.mp4"))) == 12


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path):
    media = open_media(make_clip(tmp_path / "clip.mp4", n=12))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="not empty"):
        Output(media, tmp_path / "out.mp4", EncoderConfig(), WorkFolder(tmp_path / "work"))
    assert (tmp_path / "work" / "thesis.tex").read_text() == "years of work"
    (tmp_path / "work" / "state.json").write_text("{")
    with pytest.raises(UsageError, match="without --resume"):
        Output(media, tmp_path / "out.mp4", EncoderConfig(), WorkFolder(tmp_path / "work", resume=True))


def test_nowhere_to_write(tmp_path):
    media = open_media(make_clip(tmp_path / "clip.mp4", n=12))
    with pytest.raises(OutputError, match="does not exist"):
        Output(media, tmp_path / "missing" / "out.mp4", EncoderConfig(), WorkFolder(tmp_path / "work"))
    with pytest.raises(OutputError, match="cannot be written"):
        Output(media, Path("/proc/out.mp4"), EncoderConfig(), WorkFolder(tmp_path / "work"))
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        Output(media, tmp_path / "out.mp4", EncoderConfig(), WorkFolder(tmp_path / "file" / "work"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["clip.mp4", "file"]


@pytest.mark.skipif(os.name != "posix", reason="limits of processes are POSIX")
@pytest.mark.parametrize("limit", [600, 4000, 9000])
def test_a_full_disk(limit, tmp_path):
    """A limit on the size of files stands for a full disk: writing fails in the middle."""
    source = make_clip(tmp_path / "clip.mp4", n=40)
    code = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n" + RUN
    command = [sys.executable, "-c", code, str(source), str(tmp_path / "out.mp4"), str(tmp_path / "work"), "0"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "OutputError" in run.stderr
    assert "cannot be written" in run.stderr
    assert {p.name for p in tmp_path.iterdir()} <= {"clip.mp4", "work"}


def test_the_state_says_what_it_is(tmp_path):
    unfinished(tmp_path)
    state = json.loads((tmp_path / "work" / "state.json").read_text())
    assert (state["schema"], state["version"]) == ("ksame-media-work", 1)
    assert "clip" not in json.dumps(state)


MEASURE = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from scene.clips import through
through(Path(sys.argv[2]), Path(sys.argv[3]), length=60)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measured in the units of Linux")
@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_memory_does_not_grow_with_length(suffix, tmp_path):
    peaks = []
    for n in (200, 1000):
        source = make_clip(tmp_path / f"{n}.mp4", n=n, size=(320, 240), options={"preset": "ultrafast"})
        tests = str(Path(__file__).parent.parent)
        command = [sys.executable, "-c", MEASURE, tests, str(source), str(tmp_path / f"out{n}{suffix}")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout) / 1024)
    assert peaks[1] - peaks[0] < 30, "the further frames alone are 180 MB"
