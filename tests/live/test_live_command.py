"""``ksame live`` from end to end, on drawn people in a file that is played as if live."""

import json
from importlib.resources import files

import av
import jsonschema
import numpy as np
import pytest
from typer.testing import CliRunner

from ksame.app.cli import app
from ksame.errors import ExitCode
from scene.clips import make_clip
from scene.walkers import background, paste

SCHEMA = json.loads((files("ksame.live") / "statistics.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """Two seconds of somebody who moves about."""
    path = tmp_path_factory.mktemp("live") / "walk.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=20, options={"crf": "12"})
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        for i in range(40):
            picture = background((320, 240))
            paste(picture, 1, (150 + 15 * np.sin(i / 5), 120), 170)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode(None))
    return path


def test_a_file_as_if_live_becomes_segments_with_everyone_covered(clip, tmp_path):
    words = ["live", str(clip), "-o", str(tmp_path / "out"), "--segment", "1", "--latency", "5", "--json", "-m", "fill"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == ExitCode.DONE, result.output
    told = json.loads(result.stdout)
    jsonschema.validate(told, SCHEMA)
    frames = told["frames"]
    assert frames["captured"] == 40
    assert frames["shown"] + frames["skipped"] + frames["late"] == 40
    assert told["faces"]["masked"] >= frames["shown"] > 1
    assert set(told["latency_ms"]) == {"p50", "p99", "max"}
    files = sorted((tmp_path / "out").iterdir())
    assert {file.suffix for file in files} == {".mp4"}
    count = 0
    for file in files:
        with av.open(str(file)) as container:
            for frame in container.decode(video=0):
                face = frame.to_ndarray(format="rgb24")[80:160, 130:170]
                assert face.astype(float).std(axis=(0, 1)).max() < 25, "a plain fill"
                count += 1
    assert count == frames["shown"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nothing.mp4", "-o", "out"], ExitCode.UNREADABLE, "no such file"),
        (["{clip}", "-o", "out.mp4"], ExitCode.USAGE, "go into segments"),
        (["{clip}", "-o", "http://0.0.0.0:80"], ExitCode.USAGE, "for this machine only"),
        (["{clip}", "-o", "out", "-m", "k-same-m"], ExitCode.USAGE, "live they come one by one"),
        (["{clip}", "-o", "out", "--latency", "0"], ExitCode.USAGE, "latency"),
        (["{clip}", "-o", "out", "--seconds", "0"], ExitCode.USAGE, "'seconds' parameter of live"),
    ],
)
def test_what_cannot_work_is_told_before_anything_is_written(words, code, message, clip, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["live", *(word.format(clip=clip) for word in words)])
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_that_no_frame_was_in_time_is_told(clip, tmp_path):
    words = [
        "live",
        str(clip),
        "-o",
        str(tmp_path / "out"),
        "--latency",
        "0.02",
        "--seconds",
        "1",
    ]
    from ksame.live.tracker import LiveTracker

    slow = LiveTracker.step

    def later(self, frame, out_of_time):
        import time

        time.sleep(0.03)
        return slow(self, frame, out_of_time)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LiveTracker, "step", later)
        result = CliRunner().invoke(app, words)
    assert result.exit_code == ExitCode.WITHHELD
    assert "no frame was shown" in result.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_an_interruption_ends_it_and_the_last_segment_is_complete(clip, tmp_path, monkeypatch):
    from ksame.live import Statistics

    show = Statistics.show

    def interrupted(self, latency):
        show(self, latency)
        if self.shown == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Statistics, "show", interrupted)
    words = ["live", str(clip), "-o", str(tmp_path / "out"), "-m", "fill", "--latency", "5"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == ExitCode.DONE
    (file,) = (tmp_path / "out").iterdir()
    with av.open(str(file)) as container:
        assert len(list(container.decode(video=0))) == 3


def test_the_statistics_of_a_session_that_showed_nothing_fit_the_schema():
    from ksame.live import Statistics

    jsonschema.validate(Statistics().for_machines(), SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**Statistics().for_machines(), "fps": None}, SCHEMA)


def test_a_clip_without_anybody_is_shown(tmp_path):
    clip = make_clip(tmp_path / "clip.mp4", n=4)
    result = CliRunner().invoke(app, ["live", str(clip), "-o", str(tmp_path / "out"), "-m", "fill", "--latency", "5"])
    assert result.exit_code == ExitCode.DONE
    assert "faces replaced 0, masked 0" in " ".join(result.stderr.split())
