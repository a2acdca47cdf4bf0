"""``--manifest``: a job in a file that is run, goes on, and says what became of each file."""

import json
from importlib.resources import files

import pytest
from PIL import Image

from ksame.scene.render import Renderer
from scene.walkers import background

SAMPLES = files("ksame.data") / "samples"


@pytest.fixture
def album(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "f99-Zk9.jpg").write_bytes((SAMPLES / "f99.jpg").read_bytes())
    Image.fromarray(background((200, 150))).save(folder / "wall-Zk9.png")
    (folder / "broken-Zk9.png").write_bytes(b"\x89PNG and no more")
    return folder


def states(manifest):
    content = json.loads(manifest.read_text())
    return content["state"], {each["source"].split("/")[-1]: each["state"] for each in content["files"]}


def test_a_job_is_described_run_and_listed(album, run, tmp_path):
    job, out = tmp_path / "job.json", tmp_path / "out"
    run("deidentify", album, "-o", out, "-m", "fill", "--seed", 5, "--manifest", job, code=3)
    assert job.stat().st_mode & 0o777 == 0o600
    assert states(job) == (
        "done",
        {"f99-Zk9.jpg": "done", "wall-Zk9.png": "withheld", "broken-Zk9.png": "failed"},
    )
    content = json.loads(job.read_text())
    assert content["options"] == {"method": "fill", "seed": 5}
    assert all(each["reason"] for each in content["files"] if each["state"] != "done")
    assert not any(b"Zk9" in path.read_bytes() for path in out.iterdir())


def test_an_interrupted_job_goes_on_from_its_manifest(album, run, tmp_path, monkeypatch):
    job, out = tmp_path / "job.json", tmp_path / "out"
    words = ("deidentify", album, "-o", out, "-m", "fill", "--keep-names", "--seed", 5)
    with monkeypatch.context() as patch:
        patch.setattr(Renderer, "compose", _interrupted)
        run(*words, "--manifest", job, code=130)
    state, listed = states(job)
    assert state == "interrupted"
    assert listed["broken-Zk9.png"] == "failed"
    assert "open" in listed.values()
    run("deidentify", "--manifest", job, code=3)
    assert states(job)[0] == "done"
    run(*words[:3], tmp_path / "whole", *words[4:], code=3)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == {
        p.name: p.read_bytes() for p in (tmp_path / "whole").iterdir()
    }


def _interrupted(*_):
    raise KeyboardInterrupt


def test_a_manifest_by_hand_runs(album, run, tmp_path):
    job = tmp_path / "job.json"
    text = {
        "schema": "ksame/job",
        "version": 1,
        "media": [str(album / "f99-Zk9.jpg")],
        "output": str(tmp_path / "a.jpg"),
    }
    job.write_text(json.dumps({**text, "options": {"method": "fill"}}))
    run("deidentify", "--manifest", job, code=0)
    assert states(job) == ("done", {"f99-Zk9.jpg": "done"})
    assert job.stat().st_mode & 0o777 == 0o600
    run("deidentify", "--manifest", job, code=2)


def test_a_command_that_could_do_nothing_leaves_no_manifest(album, run, tmp_path):
    job = tmp_path / "job.json"
    run("deidentify", tmp_path / "none.jpg", "-o", tmp_path / "a.jpg", "-m", "fill", "--manifest", job, code=5)
    assert not job.exists()
    run("deidentify", album / "f99-Zk9.jpg", "-o", tmp_path / "a.jpg", "-m", "fill", "--manifest", job, code=0)
    assert states(job)[0] == "done"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"methud": "fill"}, "'methud' is no option"),
        ({"k": "ten"}, "the option 'k' cannot be 'ten'"),
        ({"keep": "P1"}, "the option 'keep' cannot be 'P1'"),
        ({"scheduler": "tcp://elsewhere:1"}, "'scheduler' is no option"),
    ],
)
def test_a_manifest_with_odd_options_is_refused(options, words, album, run, tmp_path):
    job = tmp_path / "job.json"
    text = {"schema": "ksame/job", "version": 1, "media": [str(album)], "output": str(tmp_path / "out")}
    job.write_text(json.dumps({**text, "options": options}))
    assert words in run("deidentify", "--manifest", job, code=5).output.replace("\n", " ")


def test_a_manifest_is_neither_overwritten_nor_published(album, run, tmp_path):
    job = tmp_path / "job.json"
    job.write_text("{}")
    result = run("deidentify", album, "-o", tmp_path / "out", "--manifest", job, code=2)
    assert "give it alone" in result.output.replace("\n", " ")
    assert job.read_text() == "{}"
    run("deidentify", "--manifest", job, code=5)
    (tmp_path / "out").mkdir()
    inside = tmp_path / "out" / "job.json"
    result = run("deidentify", album, "-o", tmp_path / "out", "--manifest", inside, code=2)
    assert "must not lie in the folder" in result.output.replace("\n", " ")
    assert not inside.exists()
    assert "or a --manifest that has them" in run("deidentify", code=2).output.replace("\n", " ")
