import json
import resource
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from ksame import METHODS, __version__
from ksame.app.cli import app
from ksame.errors import ExitCode, OutputError
from ksame.privacy import Linkage


def left_in(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()} - {"state", "in"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-k", 1), "The 'k' parameter of k-same must be an integer"),
        (("-k", -3), "Got -3"),
        (("-k", 13), r"an integer in [2, number of subjects = 12]. Got 13"),
        (("-k", "many"), "Invalid value"),
        (("-m", "k-diff-furthest", "-k", 7), "number of subjects / 2 = 6"),
        (("-m", "k-same-magic"), "Unknown method 'k-same-magic'. Did you mean 'k-same-"),
        (("-m", "blur", "-k", 3), "blur takes no 'k'. It takes: sigma"),
        (("-k", 3, "--epsilon", 0.1), "k-same-pixel takes no 'epsilon'"),
        (("-m", "average", "-k", 3), "average takes no 'k'. It takes: no parameters"),
        (("-k", 3, "--level", 2), "k-same-pixel has no level"),
        (("-k", 3, "--coding", "eigen"), "The 'coding' parameter of k-same-pixel must be one of pixel"),
        (("-k", 3, "--components", 4), "number of components belongs to the eigen coding"),
        (("-k", 3, "--distance", "cosine"), "The 'distance' parameter"),
        (("-k", 3, "--grouping", "best"), "grouping"),
        (("-m", "k-same-eigen", "-k", 3, "--components", 12), "an integer in [1, 11] for 12 rows"),
        (("-k", 3, "--select", "kind"), "'rare-Wq3' (2 people). Lower k, or choose --small-classes merge or drop"),
        (("-k", 11, "--select", "kind", "--small-classes", "drop"), "No class of 'kind' has the 11 people"),
        (
            ("-k", 3, "--select", "gender", "--small-classes", "ignore"),
            "'small_classes' parameter of k-same-select must be one of error, merge, drop",
        ),
        (("-m", "blur", "--select", "gender"), "blur alters every face by itself"),
        (("-k", 3, "--size", "big"), "must be WIDTHxHEIGHT"),
        (("-k", 3, "--size", "2x2"), "The 'width' parameter of Template"),
        (("--no-such-option",), "No such option"),
    ],
    ids=lambda value: " ".join(str(v) for v in value) if isinstance(value, tuple) else "",
)
def test_2_for_what_cannot_be_asked(run, people, tmp_path, words, told):
    result = run("release", people, "-o", tmp_path / "out", *words, code=ExitCode.USAGE)
    assert told in " ".join(result.stderr.split())
    assert left_in(tmp_path) == set()


@pytest.mark.parametrize(
    "words",
    [
        ("-k", 3, "--seed", -4),
        ("-m", "pixelate", "--level", "inf"),
        ("-m", "pixelate", "--level", "nan"),
        ("-m", "pixelate", "--level", 2.5),
        ("-m", "pixelate", "--level", 0),
        ("-m", "blur", "--level", "nan"),
        ("-m", "blur", "--sigma", -1),
        ("-m", "threshold", "--level", 256),
        ("-m", "noise", "--level", 769),
        ("-m", "blackout", "--level", 2),
        ("-m", "eigen-reduce", "--level", 12),
        ("-m", "epsilon-map", "--epsilon", "nan"),
        ("-m", "epsilon-map", "--epsilon", -1),
        ("-m", "epsilon-map", "--sigma", 0),
        ("-m", "epsilon-k-map", "-k", 3, "--lambda", "nan"),
        ("-m", "epsilon-k-map", "-k", 3, "--lambda", -1),
        ("-m", "epsilon-k-map", "-k", 3, "--epsilon", "nan"),
        ("-m", "epsilon-k-map", "-k", 13),
        ("-m", "wrong-map", "--margin", "nan"),
        ("-m", "wrong-map", "--margin", "inf"),
        ("-m", "k-same-eigen", "-k", 3, "--components", 2.5),
        ("-m", "k-same-eigen", "-k", 3, "--components", "nan"),
        ("-m", "k-same-eigen", "-k", 3, "--components", "inf"),
    ],
    ids=lambda words: " ".join(str(w) for w in words),
)
def test_2_for_numbers_that_make_no_sense(run, people, tmp_path, words):
    assert "error: " in run("release", people, "-o", tmp_path / "out", *words, code=2).stderr
    assert left_in(tmp_path) == set()


@pytest.mark.parametrize("words", [(), ("--force",)])
def test_2_for_output_that_is_somebody_elses(run, people, tmp_path, words):
    (tmp_path / "out").write_text("a file")
    assert "out" in run("release", people, "-o", tmp_path / "out", "-k", 3, *words, code=2).stderr
    assert (tmp_path / "out").read_text() == "a file"


def test_2_for_an_existing_release_without_force(run, people, published):
    before = published.certificate
    assert "--force" in run("release", people, "-o", published.folder, "-k", 3, code=2).stderr
    assert published.certificate == before


@pytest.mark.parametrize("inside", ["linkage.json", "faces/linkage.json", "../out/linkage.json"])
def test_2_for_a_link_table_inside_the_release(run, people, tmp_path, inside):
    result = run("release", people, "-o", tmp_path / "out", "-k", 3, "--link-table", tmp_path / "out" / inside, code=2)
    assert "must not lie inside the release" in result.stderr
    assert left_in(tmp_path) == set()


@pytest.mark.parametrize("faces", ["synthetic:", "synthetic:x", "synthetic:0", "synthetic:-4"])
def test_2_for_people_who_cannot_be_drawn(run, tmp_path, faces):
    run("release", faces, "-o", tmp_path / "out", "-k", 3, code=2)


def test_2_for_originals_without_a_link_table(run, published, people):
    assert "--linkage" in run("verify", published.folder, "--originals", people, code=2).stderr


def test_2_for_a_series_continued_by_a_method_that_forms_no_groups(run, people, published, tmp_path):
    words = ("-m", "blur", "--after", published.linkage)
    assert "forms no groups" in run("release", people, "-o", tmp_path / "out", *words, code=2).stderr


@pytest.fixture
def broken(people, tmp_path):
    """The people, of whom one has an empty file."""
    shutil.copytree(people, tmp_path / "in")
    (tmp_path / "in" / "photo-Zk9-0003.png").write_bytes(b"")
    return tmp_path / "in"


def test_3_when_files_were_left_out_and_they_are_named(run, broken, tmp_path):
    result = run("release", broken, "-o", tmp_path / "out", "-k", 3, "--skip-unreadable", code=ExitCode.WITHHELD)
    assert "photo-Zk9-0003.png: the file is empty" in result.stderr
    counts = json.loads((tmp_path / "out" / "certificate.json").read_bytes())["counts"]
    assert (counts["unreadable"], counts["released"]) == (1, 11)
    run("verify", tmp_path / "out", code=0)


def test_3_when_small_classes_were_dropped_and_they_are_named(run, people, tmp_path):
    words = ("-k", 3, "--select", "kind", "--small-classes", "drop")
    result = run("release", people, "-o", tmp_path / "out", *words, code=3)
    for name in ("photo-Zk9-0000.png", "photo-Zk9-0001.png"):
        assert f"withheld {name}: its class of 'kind' has fewer than 3 people" in result.stderr
    assert "photo-Zk9-0002.png" not in result.stderr


@pytest.mark.parametrize("damage", [b"", b"no picture", b"\x89PNG\r\n\x1a\n"])
def test_5_for_a_file_that_cannot_be_read_and_it_is_named(run, broken, tmp_path, damage):
    (broken / "photo-Zk9-0003.png").write_bytes(damage)
    result = run("release", broken, "-o", tmp_path / "out", "-k", 3, code=ExitCode.UNREADABLE)
    assert "1 of 12 files cannot be read" in result.stderr
    assert "photo-Zk9-0003.png" in result.stderr
    assert left_in(tmp_path) == set()


def test_5_for_a_constant_picture_and_it_is_named(run, broken, tmp_path):
    Image.fromarray(np.full((32, 24, 3), 7, dtype=np.uint8)).save(broken / "photo-Zk9-0003.png")
    result = run("release", broken, "-o", tmp_path / "out", "-k", 3, code=5)
    assert "Constant images show no face: photo-Zk9-0003.png" in result.stderr
    assert left_in(tmp_path) == set()


def test_5_for_several_sizes_without_a_face_in_any(run, tmp_path):
    for name, size in (("ann", (24, 32)), ("bob", (20, 30))):
        (tmp_path / "in" / name).mkdir(parents=True)
        Image.effect_noise(size, 50).save(tmp_path / "in" / name / "1.png")
    result = run("release", tmp_path / "in", "-o", tmp_path / "out", "-k", 2, code=5)
    assert "no photograph shows exactly one face" in result.stderr


def test_5_for_an_empty_folder(run, tmp_path):
    (tmp_path / "in").mkdir()
    assert "no pictures found" in run("release", tmp_path / "in", "-o", tmp_path / "out", "-k", 2, code=5).stderr


def test_5_for_no_folder_at_all(run, tmp_path):
    assert "no such folder" in run("release", tmp_path / "in", "-o", tmp_path / "out", "-k", 2, code=5).stderr


def test_5_for_k_diff_furthest_with_several_images_of_a_person(run, pairs, tmp_path):
    result = run("release", pairs, "-o", tmp_path / "out", "-m", "k-diff-furthest", "-k", 2, code=5)
    assert "needs one image per person" in result.stderr
    assert left_in(tmp_path) == set()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--select", "age"), "no label 'age' (labels they carry: gender, kind)"),
        (("--sign", "{people}/labels.csv"), "not a readable private key"),
        (("--sign", "{keys}/none.pem"), "not a readable private key"),
        (("--after", "{people}/labels.csv"), "not a ksame link table"),
        (("--after", "{people}/none.json"), "link table cannot be read"),
        (("--reference", "{people}/none"), "no such folder"),
        (("--labels", "{people}/none.csv"), "cannot be read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_5_for_other_input_that_cannot_be_used(run, people, keys, tmp_path, words, told):
    filled = [word.format(people=people, keys=keys) for word in words]
    result = run("release", people, "-o", tmp_path / "out", "-k", 3, *filled, code=5)
    assert told in result.stderr
    assert left_in(tmp_path) == set()


def test_4_when_the_promise_holds_for_no_face_and_nothing_is_written(run, people, tmp_path):
    words = ("-m", "epsilon-k-map", "-k", 3, "--epsilon", 1e-30)
    result = run("release", people, "-o", tmp_path / "out", *words, code=ExitCode.NOT_MET)
    assert "Every face breaks the promise of (epsilon,k)-map" in result.stderr
    assert left_in(tmp_path) == set()


def test_3_when_the_promise_holds_for_some_faces_and_the_others_are_named(run, people, tmp_path):
    words = ("-m", "epsilon-k-map", "-k", 3, "--epsilon", 1e-5, "--seed", 1)
    result = run("release", people, "-o", tmp_path / "out", *words, code=3)
    withheld = json.loads((tmp_path / "out" / "certificate.json").read_bytes())["counts"]["withheld"]
    assert 0 < withheld < 12
    assert result.stderr.count("its k posteriors differ by more than epsilon") == withheld


@pytest.mark.parametrize("where", ["file/out", "/proc/ksame/out", "y" * 300])
def test_1_for_output_that_cannot_be_written(people, tmp_path, where):
    (tmp_path / "file").write_text("no folder")
    result = CliRunner().invoke(app, ["release", str(people), "-o", str(tmp_path / where), "-k", "3"])
    assert result.exit_code == ExitCode.FAILED
    assert isinstance(result.exception, SystemExit), f"not told in words: {result.exception!r}"
    assert "cannot be written" in result.stderr
    assert left_in(tmp_path) == {"file"}


def test_1_when_the_disk_is_full_and_nothing_is_left_behind(start, people, published, tmp_path):
    sheet = (published.folder / "contact-sheet.png").stat().st_size
    assert max(p.stat().st_size for p in (published.folder / "faces").iterdir()) < sheet // 2
    shutil.rmtree(published.folder)

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (sheet // 2, sheet // 2))

    process = start("release", people, "-o", tmp_path / "out", "-k", 3, "--seed", 5, preexec_fn=small_files)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == ExitCode.FAILED
    assert "File too large" in stderr
    assert "Traceback" not in stderr
    assert left_in(tmp_path) == {"linkage.json"}
    assert not (tmp_path / "state" / "released.jsonl").exists()  # it is not remembered as released


def test_130_when_interrupted_at_work_and_nothing_is_left_behind(start, tmp_path):
    process = start(
        "release", "synthetic:60", "--size", "99x134", "-o", tmp_path / "out", "-m", "epsilon-map", "--over", "noise"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.0)
    assert process.poll() is None, "the job was over before it could be interrupted"
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED
    assert "interrupted" in stderr
    assert "Traceback" not in stderr
    assert left_in(tmp_path) == set()


@pytest.mark.parametrize("after", [0, 5, 13])
def test_130_when_interrupted_while_writing_and_nothing_is_left_behind(people, tmp_path, monkeypatch, after):
    calls = iter(range(1000))

    def interrupt(*_: object) -> None:
        if next(calls) == after:
            raise KeyboardInterrupt

    monkeypatch.setattr("os.utime", interrupt)
    result = CliRunner().invoke(app, ["release", str(people), "-o", str(tmp_path / "out"), "-k", "3"])
    assert result.exit_code == ExitCode.INTERRUPTED
    assert "interrupted" in result.stderr
    assert left_in(tmp_path) == set()


def test_1_and_no_half_link_table_when_the_disk_is_full(published, tmp_path, monkeypatch):
    table = Linkage.read(published.linkage)

    def full(*_):
        raise OSError(28, "full")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OutputError, match=r"cannot be written \(full\)"):
        table.write(tmp_path / "half.json")
    assert not [path for path in tmp_path.iterdir() if "half" in path.name]


def test_0_as_a_process_of_its_own(start, people, tmp_path):
    process = start("release", people, "-o", tmp_path / "out", "-k", 3, "--json")
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert json.loads(stdout.removeprefix("ready\n"))["schema"] == "ksame/release"
    process = start("verify", tmp_path / "out", "--json")
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(stdout.removeprefix("ready\n"))["passed"] is True


def test_2_as_a_process_of_its_own(start, people, tmp_path):
    process = start("release", people, "-o", tmp_path / "out", "-k", 1)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 2
    assert stderr.startswith("error: The 'k' parameter of k-same must be an integer")
    assert "Traceback" not in stderr


def test_the_version(run):
    assert run("--version", code=0).stdout == f"ksame {__version__}\n"


@pytest.mark.parametrize("words", [("--help",), ("release", "--help"), ("verify", "--help"), ("methods", "--help")])
def test_help(run, words):
    assert "Usage" in run(*words, code=0).stdout


def test_methods_lists_every_recipe(run):
    shown = run("methods", code=0).stdout
    assert [name for name in METHODS if name not in shown.split()] == []


def test_methods_as_json_says_what_each_one_promises(run):
    told = json.loads(run("methods", "--json", code=0).stdout)
    assert [entry["name"] for entry in told] == list(METHODS)
    assert all(entry[key] for entry in told for key in ("summary", "promise", "bound", "paper"))


def test_the_demo_writes_what_it_says(run, tmp_path):
    result = run("demo", "-o", tmp_path / "demo", "--people", 12, "-k", 3, code=0)
    written = {p.name for p in (tmp_path / "demo").iterdir()}
    assert written == {"release", "before-after.png", "k-same-pixel.png", "someone-else.png", "scenes"}
    for name in written:
        assert str(tmp_path / "demo" / name) in result.stderr
    assert "(verified)" in result.stderr
    assert "k-same-pixel" in result.stdout
    with Image.open(tmp_path / "demo" / "before-after.png") as picture:
        assert picture.size == (10 * 178 + 2, 2 * 226 + 2)
    run("verify", tmp_path / "demo" / "release", code=0)
    scenes = tmp_path / "demo" / "scenes"
    assert {p.name for p in scenes.iterdir()} == {"before", "after", "review.png"}
    names = {p.name for p in (scenes / "before").iterdir()}
    assert {p.name for p in (scenes / "after").iterdir()} == names | {"certificate.json"}
    certificate = json.loads((scenes / "after" / "certificate.json").read_text(encoding="utf-8"))
    assert certificate["counts"]["people"] == 8  # nobody in the photographs is taken for somebody in the film
    run("verify", scenes / "after", code=0)
    run("demo", "-o", tmp_path / "demo", "--people", 12, "-k", 3, code=2)


@pytest.mark.parametrize(("people", "k"), [(4, 5), (5, 3), (12, 1)])
def test_a_demo_that_cannot_be_leaves_nothing(run, tmp_path, people, k):
    run("demo", "-o", tmp_path / "demo", "--people", people, "-k", k, code=2)
    assert left_in(tmp_path) == set()
