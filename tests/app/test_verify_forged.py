"""Certificates that somebody rewrote: what contradicts itself, the folder, the link table or a second run is found."""

import json
import os
import shutil
import threading
from hashlib import sha256

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from ksame.errors import ExitCode
from ksame.privacy.certificate import PromiseRecord, release_digest
from ksame.privacy.models import KAnonymity, NoGuarantee


def told(run, *words, code):
    return json.loads(run("verify", *words, "--json", code=code).stdout)


def wrong(found):
    return {f["name"] for f in found["findings"] if f["passed"] is False}


@pytest.fixture
def forge(published):
    """Rewrite the certificate, remove its signature, and return the folder."""

    def edit(change):
        path = published.folder / "certificate.json"
        content = json.loads(path.read_bytes())
        change(content)
        path.write_text(json.dumps(content))
        (published.folder / "certificate.sig").unlink(missing_ok=True)
        return published.folder

    return edit


def promise_of(content, promise):
    content["promise"] = json.loads(PromiseRecord.of(promise).model_dump_json())
    content["checks"][0]["name"] = promise.name


def put(*path, to):
    """Return a change of one place of a certificate."""

    def change(content):
        for part in path[:-1]:
            content = content[part]
        content[path[-1]] = to

    return change


FORGED = {
    "k that is nothing": (put("method", "params", "k", to=None), "method"),
    "k raised": (put("method", "params", "k", to=50), "method"),
    "k of people who do not exist": (lambda c: promise_of(c, KAnonymity(100, 3)), "promise, from the folder"),
    "unknown method": (put("method", "name", to="perfect-secrecy"), "method"),
    "another method": (put("method", "name", to="k-same-eigen"), "method"),
    "invented parameter": (put("method", "params", "strength", to="total"), "method"),
    "a parameter twice": (put("method", "params", "coding", to="pixel"), "method"),
    "unknown coding": (put("method", "coding", to="quantum"), "method"),
    "invented coding": (put("method", "coding_params", to={"bits": 3}), "method"),
    "predicted labels": (put("method", "labels", to="gender, always rightly"), "method"),
    "no promise": (lambda c: promise_of(c, NoGuarantee()), "method"),
    "distinct faces": (put("figures", "distinct_faces", to=1), "promise, from the folder"),
    "smallest group": (put("figures", "smallest_group", to=4), "figures"),
    "largest group": (put("figures", "largest_group", to=100), "figures"),
    "mean group": (put("figures", "mean_group", to=80.0), "figures"),
    "negative loss": (put("figures", "loss_sse", to=-1.0), "figures"),
    "invented figure": (put("figures", "recognition_rate", to=0.0), "figures"),
    "originals": (put("counts", "originals", to=5000), "counts"),
    "withheld": (put("counts", "withheld", to=3), "counts"),
    "subjects": (put("counts", "subjects", to=13), "counts"),
    "released people": (put("counts", "subjects_released", to=13), "counts"),
    "a check that was not": (lambda c: c["checks"].append({"name": "NSA", "how": "all", "passed": True}), "checks"),
    "no checks": (put("checks", to=[]), "checks"),
    "a failed check": (put("checks", 0, "passed", to=False), "checks"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_certificate_that_contradicts_itself_is_found(run, forge, name):
    change, finding = FORGED[name]
    assert finding in wrong(told(run, forge(change), code=ExitCode.NOT_MET))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("place", [("figures", "loss_sse"), ("method", "params", "k")])
def test_5_for_a_number_that_is_none(run, published, place, number):
    path = published.folder / "certificate.json"
    content = json.loads(path.read_bytes())
    put(*place, to="MARK")(content)
    path.write_text(json.dumps(content).replace('"MARK"', number))
    assert "not a valid certificate" in run("verify", published.folder, code=5).stderr


def test_5_for_a_certificate_that_says_one_thing_twice(run, published):
    path = published.folder / "certificate.json"
    path.write_text(path.read_text().replace('"k": 3', '"k": 3, "k": 50', 1))
    assert "'k' is said twice" in run("verify", published.folder, code=5).stderr


@pytest.mark.parametrize(
    "data",
    [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000, b"\xff\xfe", b"", b'"\\ud800"'],
    ids=["brackets", "braces", "closed", "no text", "empty", "half a letter"],
)
@pytest.mark.parametrize("name", ["certificate.json", "linkage.json"])
def test_5_without_a_traceback_for_what_is_no_certificate(run, published, data, name):
    path = published.folder / name if name == "certificate.json" else published.linkage
    path.write_bytes(data)
    result = run("verify", published.folder, "--linkage", published.linkage, code=5)
    assert name in result.stderr.replace("\n", "")


@pytest.mark.parametrize("words", [(), ("--linkage",), ("--linkage", "--originals")])
def test_a_face_replaced_by_a_link_is_found(run, published, people, words, tmp_path):
    face = published.folder / "faces" / "000001.png"
    shutil.move(face, tmp_path / "kept.png")
    face.symlink_to(tmp_path / "kept.png")
    values = {"--linkage": published.linkage, "--originals": people}
    found = told(run, published.folder, *(w for word in words for w in (word, values[word])), code=4)
    assert "no file changed" in wrong(found)
    assert any("000001.png (a link)" in f["detail"] for f in found["findings"])


@pytest.mark.parametrize("name", ["certificate.json", "certificate.sig"])
def test_a_certificate_that_is_a_link_is_found(run, published, tmp_path, name):
    shutil.move(published.folder / name, tmp_path / "elsewhere")
    (published.folder / name).symlink_to(tmp_path / "elsewhere")
    assert wrong(told(run, published.folder, "--key", published.public_key, code=4)) == {"signature"}


@pytest.mark.parametrize("name", ["000001 is Ann Example", "faces/Ann", "certificate.d/a/b"])
def test_empty_folders_with_telling_names_are_found(run, published, name):
    (published.folder / name).mkdir(parents=True)
    found = told(run, published.folder, code=4)
    assert wrong(found) == {"no file added"}
    assert any(f"{name} (a folder)" in f["detail"] for f in found["findings"])


def test_a_pipe_is_found_and_not_waited_for(run, published):
    os.mkfifo(published.folder / "pipe")
    assert wrong(told(run, published.folder, code=4)) == {"no file added"}


@pytest.mark.parametrize("name", [b"\xff\xfe.txt", b"\x1b[2J\x1b]0;owned\x07.txt"])
def test_odd_names_are_told_without_steering_the_terminal(run, published, name):
    (published.folder / os.fsdecode(name)).write_text("x")
    assert wrong(told(run, published.folder, code=4)) == {"no file added"}
    shown = run("verify", published.folder, code=4)
    assert "\x1b[2J" not in shown.output
    assert ".txt" in shown.output


def certify_anew(published, content):
    names = [n for n in content["files"] if (published.folder / n).is_file()]
    content["files"] = {n: sha256((published.folder / n).read_bytes()).hexdigest() for n in names}
    content["digest"] = release_digest(content["files"])


def test_a_secret_that_is_certified_is_still_found(run, published, forge):
    shutil.copy(published.linkage, published.folder / "notes.json")

    def change(content):
        content["files"]["notes.json"] = ""
        certify_anew(published, content)

    assert wrong(told(run, forge(change), code=4)) == {"pictures"}


def test_faces_in_a_telling_order_are_found(run, published, forge):
    faces = sorted((published.folder / "faces").iterdir())
    first = faces[0].read_bytes()
    other = next(f for f in reversed(faces) if f.read_bytes() != first)
    faces[0].write_bytes(other.read_bytes())
    other.write_bytes(first)
    assert wrong(told(run, forge(lambda content: certify_anew(published, content)), code=4)) == {"pictures"}


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda c: c["counts"].update(originals=17, merged=5), "counts, from the link table"),
        (lambda c: c["counts"].update(originals=17, withheld=5), "counts, from the link table"),
        (lambda c: c["counts"].update(originals=17, withheld=5, subjects=17), "counts, from the link table"),
        (lambda c: c["figures"].pop("mean_group"), "certificate, recomputed"),
        (lambda c: c["figures"].update(loss_sse=0.001), "certificate, recomputed"),
        (lambda c: c["figures"].pop("loss_sse"), "certificate, recomputed"),
        (lambda c: c["counts"].update(unreadable=4), "certificate, recomputed"),
        (lambda c: c["counts"].update(masked=4), "certificate, recomputed"),
        (lambda c: c["method"]["params"].update(grouping="mdav"), "recomputed"),
    ],
)
def test_what_was_invented_is_found_with_link_table_and_originals(run, published, people, forge, change, finding):
    words = ("--linkage", published.linkage, "--originals", people)
    assert finding in wrong(told(run, forge(change), *words, code=4))


def test_a_warning_that_was_cleared_is_found(run, forge, published, people, tmp_path):
    """Without labels every file counts as a person, and the certificate warns of it."""
    for path in people.glob("*.png"):
        (tmp_path / "bare").mkdir(exist_ok=True)
        shutil.copy(path, tmp_path / "bare")
    words = ("-k", 3, "--seed", 5, "--link-table", tmp_path / "link.json")
    run("release", tmp_path / "bare", "-o", tmp_path / "out", *words, code=0)
    words = ("--linkage", tmp_path / "link.json", "--originals", tmp_path / "bare")
    assert wrong(told(run, tmp_path / "out", *words, code=0)) == set()
    path = tmp_path / "out" / "certificate.json"
    content = json.loads(path.read_bytes())
    assert content["warnings"]
    path.write_text(json.dumps({**content, "warnings": []}))
    assert wrong(told(run, tmp_path / "out", *words, code=4)) == {"certificate, recomputed"}


def test_figures_may_be_rounded_to_two_digits(run, published, people, forge):
    def rounded(content):
        content["figures"] = {n: v if isinstance(v, int) else float(f"{v:.2g}") for n, v in content["figures"].items()}

    words = ("--linkage", published.linkage, "--originals", people)
    assert told(run, forge(rounded), *words, code=0)["passed"]


def test_the_conclusion_is_said_plainly(run, published):
    key = ("--key", published.public_key)
    assert told(run, published.folder, *key, code=0)["conclusion"].startswith("consistent, and signed")
    assert "signature was not checked" in told(run, published.folder, code=0)["conclusion"]
    (published.folder / "certificate.sig").unlink()
    said = "consistent, but unsigned: anyone could have written it"
    assert told(run, published.folder, code=0)["conclusion"] == said
    assert said in run("verify", published.folder, code=0).stderr
    (published.folder / "notes.txt").write_text("x")
    assert told(run, published.folder, code=4)["conclusion"].startswith("not as certified: 1 of")


def test_a_certificate_that_is_a_pipe_is_not_waited_for(run, published):
    (published.folder / "certificate.json").unlink()
    os.mkfifo(published.folder / "certificate.json")
    assert "not a plain file" in run("verify", published.folder, code=5).stderr


def test_a_link_table_may_come_through_a_pipe(run, published, tmp_path):
    """Such as one that is kept encrypted."""
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(published.linkage.read_bytes()))
    writer.start()
    run("verify", published.folder, "--linkage", tmp_path / "pipe", code=0)
    writer.join()


def test_names_inside_a_picture_are_found_although_certified(run, published, forge):
    notes = PngInfo()
    notes.add_text("Comment", "this is Ann")
    path = published.folder / "faces" / "000001.png"
    with Image.open(path) as picture:
        picture.save(path, pnginfo=notes)
    assert wrong(told(run, forge(lambda content: certify_anew(published, content)), code=4)) == {"pictures"}


def test_5_for_faces_that_differ_in_their_palettes_only(run, published):
    """The numbers of such pictures are alike, but not what is seen."""
    path = published.folder / "faces" / "000001.png"
    with Image.open(path) as picture:
        picture.convert("P").save(path)
    assert "mode P" in run("verify", published.folder, code=5).stderr
