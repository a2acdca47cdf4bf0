"""Certificates of photographs and video that somebody rewrote."""

import json
import os
from pathlib import Path

import pytest

from ksame.errors import InputError
from ksame.privacy.findings import conclusion, passed
from ksame.scene.certificate import SceneCertificate, certify
from ksame.scene.config import JobConfig
from ksame.scene.decide import Decision, Plan, Treatment
from ksame.scene.linkage import SceneLinkage
from ksame.scene.result import FileResult, JobResult
from ksame.scene.track import People
from ksame.scene.track.tracks import Person, Tracks
from ksame.verification import certificate_of, verify
from scene_release import write_scene_release


@pytest.fixture
def released(tmp_path):
    """A folder with two photographs, their certificate and the frames at risk; the link table lies beside it."""
    return write_scene_release(tmp_path)


def found(folder, linked=False):
    table = SceneLinkage.read(folder.parent / "link.json") if linked else None
    return verify(folder / "certificate.json", linkage=table)


def wrong(folder, linked=False):
    return {finding.name for finding in found(folder, linked) if finding.passed is False}


def forge(folder, *path, to):
    file = folder / "certificate.json"
    content = place = json.loads(file.read_bytes())
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = to
    file.write_text(json.dumps(content))


def test_what_was_written_passes_and_is_said_to_be_unsigned(released):
    for linked in (False, True):
        findings = found(released, linked)
        assert passed(findings), [f for f in findings if f.passed is False]
        assert conclusion(findings) == "consistent, but unsigned: anyone could have written it"


@pytest.mark.parametrize(
    ("path", "to", "finding"),
    [
        (("k",), 100, "words"),
        (("k",), None, "method"),
        (("k",), -3, "method"),
        (("k_real",), 100, "shared faces"),
        (("k_real",), None, "shared faces"),
        (("k_real",), 2, "words"),
        (("method", "name"), "perfect", "method"),
        (("method", "name"), "blur", "method"),
        (("method", "name"), "k-diff", "method"),
        (("method", "level"), 3.0, "method"),
        (("method", "cover"), "everything", "method"),
        (("statement",), "Nobody can be recognised.", "words"),
        (("not_promised",), [], "words"),
        (("warnings",), [], "words"),
        (("warnings",), ["Certified by the authorities."], "words"),
        (("counts", "people"), 50, "counts"),
        (("counts", "kept"), 0, "counts"),
        (("counts", "masked_instead"), 0, "counts"),
        (("counts", "faces_masked_instead"), 0, "counts"),
        (("counts", "frames_at_risk"), 2, "counts"),
        (("counts", "files"), 3, "counts"),
        (("counts", "frames"), 20, "frames"),
        (("counts", "frames_damaged"), 1, "frames at risk"),
        (("counts", "frames_damaged"), 3, "counts"),
        (("counts", "without_faces"), 1, "frames at risk"),
        (("counts", "without_faces"), 3, "counts"),
        (("likeness",), None, "likeness"),
        (("likeness", "recognised"), True, "likeness"),
        (("likeness", "recogniser"), "oracle", "likeness"),
        (("likeness", "threshold"), 0.99, "likeness"),
        (("digest",), "0" * 64, "digest"),
    ],
)
def test_a_forged_certificate_that_contradicts_itself_is_found(released, path, to, finding):
    forge(released, *path, to=to)
    assert finding in wrong(released)


@pytest.mark.parametrize(
    ("counts", "finding"),
    [
        ({"replaced": 4, "masked_instead": 0}, "linkage"),
        ({"masked": 1, "masked_instead": 0}, "linkage"),
        ({"not_sure": 0}, "linkage"),
        ({"not_sure": 0, "not_sure_kept": 1}, "linkage"),
    ],
)
def test_invented_counts_are_found_with_the_link_table(released, counts, finding):
    file = released / "certificate.json"
    made = SceneCertificate.from_json(file.read_bytes())
    file.write_bytes(made.model_copy(update={"counts": made.counts.model_copy(update=counts)}).to_json())
    assert finding in wrong(released, linked=True)


def test_an_invented_likeness_is_found_with_the_link_table(released):
    table = released.with_name("link.json")
    people = json.loads(table.read_text())
    people["people"][0]["likeness"] = 0.9
    table.write_text(json.dumps(people))
    assert wrong(released) == set()
    assert wrong(released, linked=True) == {"linkage"}


def huge(text):
    return text.replace("P4,0,0", f"P4,0,{10**30}")


@pytest.mark.parametrize(
    "edit", [lambda t: t.replace("P4,0,0", "P4,0,7"), lambda t: "nothing", lambda t: t + "x\n", huge]
)
def test_a_changed_list_of_frames_at_risk_is_found(released, edit):
    file = released.with_name(f"{released.name}.at-risk.csv")
    file.write_text(edit(file.read_text()))
    assert "frames at risk" in wrong(released)


def test_links_folders_and_pipes_are_found(released, tmp_path):
    (released / "Ann Example is here").mkdir()
    assert wrong(released) == {"no file added"}
    (released / "Ann Example is here").rmdir()
    os.mkfifo(released / "pipe")
    assert wrong(released) == {"no file added"}
    (released / "pipe").unlink()
    (released / "000001.png").rename(tmp_path / "kept.png")
    (released / "000001.png").symlink_to(tmp_path / "kept.png")
    assert "no file changed" in wrong(released)
    assert any("000001.png (a link)" in f.detail for f in found(released))


def test_a_certificate_that_is_a_link_is_found(released, tmp_path):
    (released / "certificate.json").rename(tmp_path / "kept.json")
    (released / "certificate.json").symlink_to(tmp_path / "kept.json")
    assert "signature" in wrong(released)


@pytest.mark.parametrize("name", ["", ".", "..", "/etc/passwd", "a\0b", "x" * 5000, "000001.png/", "../out/000001.png"])
def test_names_that_no_output_has_are_found(released, name):
    forge(released, "files", name, to="0" * 64)
    assert "no file missing" in wrong(released)


def test_beside_a_single_output_nothing_else_is_looked_at(released):
    (released / "certificate.json").rename(released / "000001.certificate.json")
    released.with_name(f"{released.name}.at-risk.csv").rename(released / "000001.at-risk.csv")
    (released / "diary.txt").write_text("x")
    os.mkfifo(released / "pipe")
    path = certificate_of(released / "000001.png")
    assert path == released / "000001.certificate.json"
    assert passed(verify(path))


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"schema":' * 100_000, b"\xff", b""])
def test_what_is_no_certificate_is_no_traceback(released, data):
    (released / "certificate.json").write_bytes(data)
    for path in (released, released / "certificate.json"):
        with pytest.raises(InputError, match="not a valid certificate"):
            verify(path)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_a_number_that_is_none_is_refused(released, number):
    forge(released, "likeness", "threshold", to="MARK")
    file = released / "certificate.json"
    file.write_text(file.read_text().replace('"MARK"', number))
    with pytest.raises(InputError, match="not a valid certificate"):
        verify(file)


def test_one_thing_said_twice_is_refused(released):
    file = released / "certificate.json"
    file.write_text(file.read_text().replace('"k": 10', '"k": 10, "k": 100'))
    with pytest.raises(InputError, match="'k' is said twice"):
        verify(file)


def test_leaving_everyone_is_not_called_a_mask():
    place = Path("/nowhere/out/a.png")
    done = FileResult(Path("/in.png"), place, 1, ("P1",), (), {"a.png": "00"})
    tracks = [Tracks((8, 8), 1, (Person("P1", None),), ())]
    kept = Plan({"P1": Decision(Treatment.KEEP)})
    result = JobResult((done,), {}, kept, People({(0, "P1"): "P1"}), tracks.__getitem__, 5)
    made = certify(result, JobConfig(), place.parent)
    assert "masked" not in made.statement
    assert "left as they are" in made.statement


def test_a_link_certified_as_a_link_is_found(released, tmp_path):
    """The word that stands for a link is no hash."""
    (released / "000003.png").symlink_to(tmp_path / "link.json")
    forge(released, "files", "000003.png", to="a link")
    assert "no file changed" in wrong(released)


def test_what_a_killed_run_left_of_a_certificate_is_gone_when_it_is_written_again(released):
    for name in (".certificate.json.0123abcd.part", ".certificate.sig.0123abcd.part"):
        (released / name).write_bytes(b"half")
    assert wrong(released) == {"no file added"}
    SceneCertificate.read(released / "certificate.json").write(released / "certificate.json")
    assert wrong(released) == set()
