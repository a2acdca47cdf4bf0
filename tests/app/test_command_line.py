"""What people like of a command line: help, examples, completion, files of options, rehearsals, silence."""

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.conftest import write_people
from drawn import drawn_faces
from ksame.app.cli import COMMANDS, load
from ksame.app.examples import EXAMPLES

SAMPLES = Path(str(files("ksame.data") / "samples"))
KSAME = (sys.executable, "-c", "from ksame.app.cli import main; main()")


def data(result):
    return json.loads(result.stdout)


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    """Three pictures in which nobody is, all different."""
    folder = tmp_path_factory.mktemp("pictures")
    for i, name in enumerate(("b", "a", "c")):
        Image.fromarray(np.full((64, 80, 3), 60 + 40 * i, dtype=np.uint8)).save(folder / f"{name}.png")
    return folder


@pytest.mark.parametrize("words", [(), *((name,) for name in COMMANDS), ("models", "list"), ("models", "pull")])
def test_h_is_help(run, words):
    assert run(*words, "-h").output == run(*words, "--help").output


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_has_examples_that_can_be_typed(name, run):
    told = " ".join(run(name, "--help").output.split())
    for line in EXAMPLES[name]:
        assert line in told
        words = shlex.split(line)[2:]
        command = load(name)
        if inner := getattr(command, "commands", None):
            command, words = inner[words[0]], words[1:]
        if "--config" not in words:
            command.make_context(name, words, resilient_parsing=False)


def test_help_breaks_lines_where_the_terminal_ends(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert "The report shows originals: it stays with the publisher." in run("audit", "-h").output


@pytest.mark.parametrize(("typed", "expected"), [("ksame dei", "deidentify"), ("ksame deidentify --aud", "--audio")])
def test_shells_complete(typed, expected):
    words = typed.split()
    env = os.environ | {"_KSAME_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    code = "import sys; sys.argv[0] = 'ksame'; from ksame.app.cli import app; app(prog_name='ksame')"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert expected in done.stdout.split()


def test_nothing_stands_on_stderr_but_what_is_said(tmp_path):
    words = ("deidentify", SAMPLES / "m12.jpg", "-o", tmp_path / "safe.jpg", "-m", "fill")
    done = subprocess.run([*KSAME, *map(str, words)], capture_output=True, text=True, check=True)
    assert "INFO" not in done.stderr
    assert all(line.strip() for line in done.stderr.splitlines())
    assert "1 person: 1 masked." in done.stderr


def test_what_others_write_to_stderr_meanwhile_is_not_lost():
    code = """
import os, sys
from ksame.models.litert import _without_greeting
with _without_greeting():
    os.write(2, b"INFO: Created TensorFlow Lite XNNPACK delegate for CPU.\\nkept 1\\n")
os.write(2, b"kept 2\\n")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "kept 1\nkept 2\n"


def test_a_second_network_waits_until_the_first_has_been_greeted():
    code = """
import threading
from ksame.models.litert import _without_greeting
entered = threading.Event()
def load():
    with _without_greeting():
        entered.set()
with _without_greeting():
    other = threading.Thread(target=load)
    other.start()
    assert not entered.wait(0.2)
other.join(10)
assert entered.is_set()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_files_are_listed_in_the_order_in_which_they_were_named(run, pictures, tmp_path):
    named = [pictures / f"{name}.png" for name in "cab"]
    told = data(run("deidentify", *named, "-o", tmp_path / "out", "-m", "fill", "--json", code=3))
    assert [Path(file["source"]).name for file in told["files"]] == ["c.png", "a.png", "b.png"]
    told = data(run("deidentify", pictures, "-o", tmp_path / "again", "-m", "fill", "--json", code=3))
    assert [Path(file["source"]).name for file in told["files"]] == ["a.png", "b.png", "c.png"]


def write_config(tmp_path, text):
    path = tmp_path / "job.toml"
    path.write_text(text)
    return path


def test_a_file_of_options_is_as_if_it_were_typed(run, pictures, tmp_path):
    config = write_config(
        tmp_path,
        f'media = ["{pictures}/a.png", "{pictures}/b.png"]\noutput = "{tmp_path}/out"\nmethod = "blackout"\n'
        'keep-names = true\nlevel = 0.5\nregion = "1,2,30,40"\nfrom = 0\n',
    )
    told = data(run("deidentify", "--config", config, "--json", code=3))
    assert told["certificate"]["method"] == {"name": "blackout", "level": 0.5, "cover": "head", "regions": 1}
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"a.png", "b.png"}
    again = ("--method", "fill", "--force", "--level", "0.1", "-o", tmp_path / "typed")
    assert "level" in run("deidentify", "--config", config, *again, code=2).output


def test_a_table_of_the_command_is_taken(run, tmp_path):
    people = write_people(tmp_path / "faces", drawn_faces(6, width=24, height=32))
    config = write_config(
        tmp_path, f'[release]\nfaces = "{people}"\noutput = "{tmp_path}/out"\nk = 2\nseed = 3\n\n[deidentify]\nk = 5\n'
    )
    told = data(run("release", "--config", config, "--json", code=0))
    assert told["certificate"]["counts"]["released"] == 6


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('methd = "fill"\n', "'methd' is no option of ksame deidentify. Did you mean 'method'?"),
        ('keepmetadata = ["all"]\n', "Did you mean 'keep-metadata'?"),
        ("method = \n", "not TOML .*line 1"),
        ("frames = 1\n", "frames must be true or false. Got 1"),
        ("method = [1]\n", "method must be a text or a number"),
        ("keep = [true]\n", "keep must be a text or a number, or a list"),
        ('k = 2\n[deidentify]\nmethod = "fill"\n', "'k' stands outside of .deidentify."),
        ('config = "other.toml"\n', "'config' is no option"),
        ("keep-names = true\nkeep_names = true\n", "'keep_names' is said twice"),
    ],
)
def test_what_a_file_of_options_cannot_say_is_named(run, tmp_path, text, told):
    result = run("deidentify", "--config", write_config(tmp_path, text), code=5)
    assert re.search(told, result.output.replace("\n", " "))
    assert "job.toml" in result.output.replace("\n", "")


def test_a_missing_file_of_options_is_told(run, tmp_path):
    assert "cannot be read" in run("release", "--config", tmp_path / "none.toml", code=5).output


def left(folder):
    return {path for path in folder.rglob("*") if "state" not in path.parts}


def test_a_rehearsal_says_what_would_be_done_and_writes_nothing(run, pictures, tmp_path):
    (tmp_path / "broken.mp4").write_bytes(b"no film")
    before = left(tmp_path)
    words = ("deidentify", pictures, tmp_path / "broken.mp4", "-o", tmp_path / "out", "-k", 4, "--dry-run")
    result = run(*words, "--link-table", tmp_path / "link.json", code=3)
    told = " ".join(result.output.split())
    for words_said in ("a.png: photograph, 80x64", "certificate.json", "link.json (link table)", "someone-else, k = 4"):
        assert words_said in told
    assert "left out" in told
    assert "broken.mp4" in told
    assert "Nothing was written" in told
    assert left(tmp_path) == before
    machine = data(run(*words, "--json", code=3))
    assert machine["schema"] == "ksame/dry-run"
    assert len(machine["files"]) == 3
    assert left(tmp_path) == before


@pytest.mark.parametrize("wrong", [("--region", "900,1,2,3"), ("--keep-metadata", "nothing"), ("--codec", "vp9")])
def test_a_rehearsal_refuses_what_the_run_would_refuse(run, tmp_path, wrong):
    words = ("deidentify", SAMPLES / "two-people.mp4", "-o", tmp_path / "safe.mov", "-m", "fill", *wrong)
    assert run(*words, "--dry-run", code=2).output == run(*words, code=2).output
    assert not left(tmp_path)


def test_a_rehearsal_of_a_release_writes_nothing(run, tmp_path):
    people = write_people(tmp_path / "faces", drawn_faces(6, width=24, height=32))
    before = set(tmp_path.rglob("*"))
    words = ("release", people, "-o", tmp_path / "out", "-k", 2, "--dry-run", "--link-table", tmp_path / "link.json")
    assert "6 faces of 6 people would be written" in " ".join(run(*words).output.split())
    assert data(run(*words, "--json", code=0))["written"] is False
    assert set(tmp_path.rglob("*")) == before
    assert "must be" in run("release", people, "-o", tmp_path / "out", "-k", 7, "--dry-run", code=2).output
