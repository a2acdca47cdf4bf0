"""``ksame audit`` and ``ksame release --audit``: files, talk, exit codes."""

import json
import shutil

import jsonschema
import numpy as np
import pytest
from PIL import Image, ImageFilter

from ksame.audit import audit_schema
from restorers import write_restorer

PLAIN = ("--attackers", "eigenfaces", "--view", "faces")


@pytest.fixture(scope="module")
def after(people, tmp_path_factory):
    """The twelve people, blurred by another tool."""
    folder = tmp_path_factory.mktemp("blurred") / "after"
    folder.mkdir()
    for path in people.glob("*.png"):
        with Image.open(path) as picture:
            picture.filter(ImageFilter.GaussianBlur(1)).save(folder / path.name)
    return folder


def test_report_and_numbers(run, people, after, tmp_path):
    report = tmp_path / "out" / "report.html"
    result = run("audit", people, after, "-o", report, *PLAIN, code=0)
    assert "Of 12 people" in result.stderr
    assert "privacy warning" in result.stderr
    assert "Of 12 people" in report.read_text()
    numbers = json.loads((tmp_path / "out" / "audit.json").read_text())
    jsonschema.validate(numbers, audit_schema())
    assert numbers["utility"]["labels"]


def test_json_on_stdout(run, people, after, tmp_path):
    result = run("audit", people, after, "-o", tmp_path / "r.html", *PLAIN, "--json", "--scenarios", "naive", code=0)
    assert [a["scenario"] for a in json.loads(result.stdout)["attacks"]] == ["naive"]


def test_a_restorer_is_one_of_the_attackers(run, people, after, tmp_path):
    file = write_restorer(tmp_path / "same.onnx", 1.0, ("n", 3, 128, 128))
    words = ("--attackers", f"eigenfaces,restored={file}", "--view", "faces", "--scenarios", "naive", "--json")
    result = run("audit", people, after, "-o", tmp_path / "r.html", *words, code=0)
    names = [a["recogniser"] for a in json.loads(result.stdout)["attacks"]]
    assert names == ["eigenfaces", "sface on faces restored by same"]


def test_earlier_reports_stay_unless_told(run, people, after, tmp_path):
    words = ("audit", people, after, "-o", tmp_path / "r.html", *PLAIN, "--scenarios", "naive")
    run(*words, code=0)
    assert "--force" in run(*words, code=2).stderr
    run(*words, "--force", code=0)


def test_unequal_counts_are_named_and_told(run, people, after, tmp_path):
    shutil.copytree(after, tmp_path / "after")
    (tmp_path / "after" / "photo-Zk9-0003.png").unlink()
    shutil.copy(after / "photo-Zk9-0000.png", tmp_path / "after" / "stranger.png")
    result = run("audit", people, tmp_path / "after", "-o", tmp_path / "r.html", *PLAIN, code=3)
    assert "original photo-Zk9-0003.png: no released picture belongs to it" in result.stderr
    assert "released stranger.png: no original belongs to it" in result.stderr


def test_compare_with_an_earlier_audit(run, people, after, tmp_path):
    run("audit", people, after, "-o", tmp_path / "a" / "r.html", *PLAIN, "--name", "blur 1", code=0)
    earlier = tmp_path / "a" / "audit.json"
    run(
        "audit", people, people, "-o", tmp_path / "b" / "r.html", *PLAIN, "--compare", earlier, "--name", "none", code=0
    )
    assert "Privacy against utility" in (tmp_path / "b" / "r.html").read_text()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--attackers", "oracle"), 2, "Unknown attacker 'oracle'"),
        (("--attackers", "sface,restored="), 2, "restored= needs the path"),
        (("--attackers", "restored=nowhere.onnx"), 6, "nowhere.onnx: there is no such file"),
        (("--scenarios", "magic"), 2, "Unknown scenario 'magic'"),
        (("--view", "sideways"), 2, "--view must be one of"),
        (("--pairs", "nowhere.csv"), 5, "nowhere.csv: the table cannot be read"),
        (("--linkage", "nowhere.json"), 5, "nowhere.json: the link table cannot be read"),
        (("--labels", "nowhere.csv"), 5, "nowhere.csv: the table cannot be read"),
        (("--compare", "nowhere.json"), 5, "nowhere.json: the audit cannot be read"),
    ],
)
def test_errors(run, people, after, tmp_path, words, code, message):
    result = run("audit", people, after, "-o", tmp_path / "r.html", *words, code=code)
    assert message in result.stderr
    assert not list(tmp_path.glob("*.html"))


def test_a_report_never_lies_among_released_pictures(run, people, after):
    assert "must not lie among" in " ".join(run("audit", people, after, "-o", after / "r.html", code=2).stderr.split())


def test_release_audits_its_own_output(run, people, tmp_path):
    report = tmp_path / "review" / "report.html"
    words = ("release", people, "-o", tmp_path / "out", "-k", 3, "--audit", report)
    result = run(*words, "--json", code=0)
    audited = json.loads(result.stdout)["audit"]
    assert max(a["rank1"] for a in audited["attacks"] if a["covered"]) <= 1 / 3 + 1e-9
    assert audited["promise"]["bound"] == pytest.approx(1 / 3)
    assert report.is_file()
    assert not list((tmp_path / "out").rglob("*.html"))
    assert not list((tmp_path / "out").rglob("audit.json"))


def test_release_refuses_a_report_inside_itself_before_anything_is_written(run, people, tmp_path):
    run("release", people, "-o", tmp_path / "out", "-k", 3, "--audit", tmp_path / "out" / "r.html", code=2)
    assert not (tmp_path / "out").exists()


def test_differences_break_the_promise_of_k_diff_and_the_shell_is_told(run, tmp_path):
    """k-Diff promises that nobody is named in its own distance; people moved alike name each other all the same."""
    words = (
        "--size",
        "88x112",
        "-m",
        "k-diff-furthest",
        "-k",
        8,
        "--seed",
        1,
        "--audit",
        tmp_path / "r.html",
        "--json",
    )
    audited = json.loads(run("release", "synthetic:40", "-o", tmp_path / "out", *words, code=4).stdout)["audit"]
    rate = {(a["scenario"], a["recogniser"]): a["rank1"] for a in audited["attacks"]}
    assert audited["promise"]["bound"] == 0
    assert rate["naive", "eigenfaces"] == 0
    assert rate["difference", "eigenfaces"] > 0.3
    assert audited["verdict"]["outcome"] == "broken"
    assert "difference" in audited["verdict"]["explanation"]


def test_the_help_names_what_there_is():
    from ksame.app import audit as command
    from ksame.attacks import SCENARIOS
    from ksame.audit.attackers import DEFAULT

    assert tuple(SCENARIOS) == command.SCENARIOS
    assert tuple(DEFAULT) == command.DEFAULT


@pytest.mark.parametrize("honest", [True, False])
def test_an_earlier_release_is_subtracted(run, people, tmp_path, honest):
    """A later folder with new means over fewer members names the leavers; a series does not."""
    link, later = tmp_path / "1.json", tmp_path / "2.json"
    run("release", people, "-o", tmp_path / "1", "-k", 3, "--seed", 5, "--link-table", link, code=0)
    words = ("-k", 3, "--after", link, "--link-table", later)
    run("release", people, "-o", tmp_path / "2", *words, code=0)
    report = ("-o", tmp_path / "r.html", *PLAIN, "--scenarios", "naive,differencing", "--json")
    earlier = ("--earlier", tmp_path / "1", "--earlier-linkage", link)
    if honest:
        found = run("audit", people, tmp_path / "2", "--linkage", later, *earlier, *report)
    else:
        (tmp_path / "bad" / "faces").mkdir(parents=True)
        groups: dict[int, list[dict]] = {}
        for face in json.loads(link.read_text())["faces"]:
            groups.setdefault(face["group"], []).append(face)
        rows = ["original,released"]
        for number, group in groups.items():
            left = [np.asarray(Image.open(people / face["sources"][0]), dtype=float) for face in group[1:]]
            mean = Image.fromarray(np.rint(np.mean(left, axis=0)).astype(np.uint8))
            for i, face in enumerate(group[1:]):
                mean.save(tmp_path / "bad" / "faces" / f"{number}-{i}.png")
                rows.append(f"{face['sources'][0]},faces/{number}-{i}.png")
        (tmp_path / "pairs.csv").write_text("\n".join(rows) + "\n")
        found = run("audit", people, tmp_path / "bad", "--pairs", tmp_path / "pairs.csv", *earlier, *report)
    attacks = {a["scenario"]: a for a in json.loads(found.stdout)["attacks"]}
    rate = attacks["differencing"]["rank1"]
    assert rate <= 1 / 3 + 1e-9 if honest else rate > 0.9


def test_faces_of_people_who_left_are_not_judged(run, people, tmp_path):
    link, later = tmp_path / "1.json", tmp_path / "2.json"
    run("release", people, "-o", tmp_path / "1", "-k", 3, "--link-table", link, code=0)
    shutil.copytree(people, tmp_path / "in")
    (tmp_path / "in" / "photo-Zk9-0003.png").unlink()
    lines = [line for line in (people / "labels.csv").read_text().splitlines() if "0003.png" not in line]
    (tmp_path / "in" / "labels.csv").write_text("\n".join(lines) + "\n")
    run("release", tmp_path / "in", "-o", tmp_path / "2", "-k", 3, "--after", link, "--link-table", later, code=0)
    words = ("--linkage", later, "-o", tmp_path / "r.html", *PLAIN, "--json")
    told = json.loads(run("audit", tmp_path / "in", tmp_path / "2", *words, code=3).stdout)
    assert told["counts"]["not_judged"] == 1
