"""The three flows over HTTP: what jobs write is what the command line writes, byte for byte."""

import io
import json
import shlex
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import ksame
from ksame.app.cli import app
from ksame.vault import Vault, new_identity, write_identity
from studio.conftest import tree


def command_line(words, folder):
    """Run ``ksame`` as if typed."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code in (0, 3), result.stderr
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def unpacked(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def found(api, media):
    """A project with three photographs, in which people were looked for."""
    trial = api.begin("scene")
    for name in ("f99.jpg", "m12.jpg", "m25.jpg"):
        trial.add(media / name)
    job = trial.ended(trial.start("find"))
    assert job["state"] == "done", job
    return trial


def names(trial):
    return [person["name"] for person in trial("GET", "/people")]


@pytest.mark.slow
def test_photographs_equal_the_command_line(found, media, tmp_path):
    found.settings(method="pixelate", level=12, seed=5)
    assert names(found) == ["P1", "P2", "P3"]
    found("PATCH", "", json={"wishes": {"P2": "keep"}})
    job = found.ended(found.start("run"))
    assert job["state"] == "done", job
    assert any("P2" in text and "recognised" in text for text in job["messages"])
    made = unpacked(found.download(job, "publish.zip"))
    out = tmp_path / "out"
    words = [media / name for name in ("f99.jpg", "m12.jpg", "m25.jpg")]
    words = ["deidentify", *words, "-o", f"{out}/", "-m", "pixelate", "--level", "12", "--seed", "5", "--keep", "P2"]
    typed = command_line([*words, "--tracks", tmp_path / "tracks"], out)
    digests = [
        {sha256(data).hexdigest() for name, data in files.items() if "cert" not in name} for files in (made, typed)
    ]
    assert digests[0] == digests[1], "they are numbered at random, so compared by content"
    assert json.loads(made["certificate.json"])["counts"] == json.loads(typed["certificate.json"])["counts"]
    assert found.download(job, "certificate.json") == made["certificate.json"]


@pytest.mark.slow
def test_a_film_that_was_cancelled_and_resumed_equals_the_command_line(api, media, root, tmp_path):
    trial = api.begin("scene")
    trial.add(media / "two-people.mp4")
    assert trial.ended(trial.start("find"))["state"] == "done"
    trial.settings(k=3, seed=7, audio="disguise")
    trial("PATCH", "", json={"another": ["P2"]})
    job, told = trial.start("run"), []
    while job["state"] == "running":
        told.append(job["progress"]["what"])
        if told[-1] == "writing":
            job = trial("POST", f"/jobs/{job['number']}/cancel")
            break
        time.sleep(0.05)
        job = trial("GET", f"/jobs/{job['number']}")
    assert job["state"] == "interrupted", job
    assert {"choosing surrogates", "writing"} <= set(told)
    assert job["downloads"] == [], "nothing stands under a final name"
    job = trial.ended(trial("POST", f"/jobs/{job['number']}/resume"))
    assert job["state"] == "done", job
    assert "--resume" in job["command"]
    made = unpacked(trial.download(job, "publish.zip"))
    out = tmp_path / "out"
    words = ["deidentify", media / "two-people.mp4", "-o", f"{out}/", "--k", "3", "--seed", "7", "--another", "P2"]
    assert command_line([*words, "--audio", "disguise", "--tracks", tmp_path / "tracks.json"], out) == made


@pytest.mark.slow
def test_the_command_that_is_shown_makes_the_same(found, root, tmp_path, monkeypatch):
    found.settings(method="blackout", seed=3)
    job = found.ended(found.start("run"))
    words = shlex.split(job["command"].replace("jobs/0002", str(tmp_path)))[1:]
    monkeypatch.chdir(root / found.project)
    typed = command_line(words, tmp_path / "out")
    made = unpacked(found.download(job, "publish.zip"))
    assert {sha256(data).hexdigest() for data in typed.values() if data[:1] != b"{"} == {
        sha256(data).hexdigest() for name, data in made.items() if name != "certificate.json"
    }


@pytest.mark.slow
def test_a_vault_brings_one_person_back_and_changes_no_picture(found, root, tmp_path):
    owner = new_identity()
    write_identity(tmp_path / "key.txt", owner)
    found.settings(method="blackout", seed=3)
    plain = found.ended(found.start("run"))
    found.settings(recipient=owner.recipient)
    job = found.ended(found.start("run"))
    assert job["state"] == "done", job
    without, made = (unpacked(found.download(each, "publish.zip")) for each in (plain, job))
    assert json.loads(without.pop("certificate.json"))["vault"] is None
    certificate = json.loads(made.pop("certificate.json"))
    assert len(made) == 3
    assert sorted(without.values()) == sorted(made.values())
    (listed,) = (each for each in job["downloads"] if each["name"] == "vault.age")
    assert not listed["publish"]
    vault = tmp_path / "case.age"
    vault.write_bytes(found.download(job, "vault.age"))
    assert Vault.read(vault).root == certificate["vault"]["root"]
    out = root / found.project / "jobs" / f"{job['number']:04d}" / "out"
    for picture in out.glob("*.jpg"):
        back = ["--person", "P1", "--identity", tmp_path / "key.txt", "-o", tmp_path / f"{picture.stem}.png"]
        CliRunner().invoke(app, [str(word) for word in ("vault", "open", vault, picture, *back)])
    assert len(list(tmp_path.glob("*.png"))) == 1, "P1 is in one of them"


@pytest.mark.slow
def test_corrections_change_who_is_who_and_can_be_taken_back(found, root):
    first = {path: (root / path).read_bytes() for path in tree(root) if "/tracks/" in path}

    def do(expect=200, **wanted):
        return found("POST", "/corrections", expect, json=wanted)

    found("PATCH", "", json={"wishes": {"P2": "mask", "P3": "keep"}, "another": ["P1", "P3"]})
    merged = do(do="merge", person="P3", into="P2")["project"]
    assert (merged["wishes"], merged["another"]) == ({"P2": "mask"}, ["P1"]), "nobody is P3 any more"
    assert names(found) == ["P1", "P2"]
    place = found("GET", "/people")[1]["tracks"]
    assert len(place) == 2
    do(do="split", file=place[1]["file"], track=place[1]["number"], frame=0)
    assert names(found) == ["P1", "P2", "P3"]
    do(do="draw", file=1, first=0, last=0, x=5, y=5, width=40, height=40)
    added = found("GET", "/people")[3]
    assert (added["name"], added["masked"]) == ("P4", 1)
    assert added["tracks"][0]["stretches"] == [{"first": 0, "last": 0, "what": "drawn"}]
    thumb = added["tracks"][0]
    picture = found("GET", f"/files/1/thumbs/{thumb['number']}/{thumb['thumbs'][0]}")
    assert Image.open(io.BytesIO(picture)).size == (176, 176)
    do(do="discard", file=1, track=thumb["number"])
    assert names(found) == ["P1", "P2", "P3"]
    for wrong in (
        {"do": "merge", "person": "P9", "into": "P1"},
        {"do": "split", "file": 9, "track": 1, "frame": 0},
        {"do": "discard", "file": 1, "track": 99},
        {"do": "draw", "file": 1, "first": 0, "last": 9, "x": 0, "y": 0, "width": 5, "height": 5},
    ):
        assert do(422, **wrong)["detail"]
    for left in (3, 2, 1, 0):
        assert do(do="undo")["undo"] == left
    assert "nothing to take back" in do(422, do="undo")["detail"]
    assert {path: (root / path).read_bytes() for path in first} == first, "to the byte"


@pytest.mark.slow
def test_a_drawn_box_is_masked_and_listed_and_the_preview_shows_it(found, media):
    found.settings(method="blackout")
    found(
        "POST",
        "/corrections",
        json={"do": "draw", "file": 1, "first": 0, "last": 0, "x": 5, "y": 5, "width": 60, "height": 60},
    )
    before, after = (
        np.asarray(Image.open(io.BytesIO(found("GET", f"/files/1/frames/0/{side}")))).astype(int)
        for side in ("before", "after")
    )
    changed = np.abs(before - after).max(axis=2) > 60
    assert changed[10:60, 10:60].mean() > 0.5
    assert changed[:, -20:].mean() < 0.05
    boxes = found("GET", "/files/1/frames/0/faces")
    assert {"P4"} < {box["person"] for box in boxes}
    job = found.ended(found.start("run"))
    assert job["state"] == "done", job
    files = [found.download(job, each["name"]) for each in job["downloads"] if each["name"].endswith(".jpg")]
    shown = [np.asarray(Image.open(io.BytesIO(data))).astype(int) for data in files]
    assert min(np.abs(picture - after).mean() for picture in shown if picture.shape == after.shape) < 3
    assert found("GET", "/files/1/frames/1/after", 422)


@pytest.mark.slow
def test_another_seed_is_another_face_and_one_seed_the_same(api, media):
    trial = api.begin("scene")
    trial.add(media / "m12.jpg")
    trial.ended(trial.start("find"))
    shown = []
    for seed in (1, 2, 1):
        trial.settings(seed=seed)
        shown.append(trial("GET", "/files/1/frames/0/after"))
    assert shown[0] == shown[2] != shown[1]


def add_set(trial, folder, role="faces"):
    for path in sorted(folder.iterdir()):
        table = path.name == "labels.csv"
        trial.add(path, "labels" if table else role, name=f"{folder.name}/{path.name}")


def test_a_face_set_equals_the_command_line(api, portraits, tmp_path, monkeypatch):
    trial = api.begin("faces")
    add_set(trial, portraits)
    trial.settings(method="k-same-pixel", k=4, select="gender", seed=11)
    monkeypatch.setenv("KSAME_STATE", str(tmp_path / "one"))  # a ledger would remember the first
    job = trial.ended(trial.start("run"))
    assert job["state"] == "done", job
    assert any("0.25" in text or "1/4" in text or "k-anonym" in text.lower() for text in job["summary"]), job["summary"]
    made = unpacked(trial.download(job, "publish.zip"))
    monkeypatch.setenv("KSAME_STATE", str(tmp_path / "two"))
    out = tmp_path / "out"
    words = ["release", portraits, "-o", out, "-m", "k-same-pixel", "--k", "4", "--select", "gender", "--seed", "11"]
    assert command_line(words, out) == made
    assert "contact-sheet.png" in made


def test_a_face_set_has_a_vault_for_a_public_key(api, portraits, tmp_path):
    trial = api.begin("faces")
    add_set(trial, portraits)
    trial.settings(method="k-same-pixel", k=4, recipient=new_identity().recipient)
    job = trial.ended(trial.start("run"))
    assert job["state"] == "done", job
    (tmp_path / "link.age").write_bytes(trial.download(job, "vault.age"))
    made = unpacked(trial.download(job, "publish.zip"))
    assert Vault.read(tmp_path / "link.age").root == json.loads(made["certificate.json"])["vault"]["root"]
    assert not [name for name in made if name.endswith(".age")]


@pytest.mark.parametrize("kind", ["scene", "faces"])
@pytest.mark.parametrize("key", ["age1nobody", "AGE-SECRET-KEY-1QQQQ", "", "--force", "ssh-ed25519 AAAA", "ü" * 62])
def test_a_key_that_is_none_is_refused_at_once_and_not_repeated(api, root, kind, key):
    trial = api.begin(kind)
    now = trial("GET", "")["project"]["settings"]
    told = trial("PATCH", "", 422, json={"settings": {**now, "recipient": key}})["detail"]
    assert "public key of age" in told
    assert not key or key not in told, "it may be a secret one"
    assert trial("GET", "")["project"]["settings"] == now


def test_sub_folders_say_who_is_who(api, portraits, root):
    trial = api.begin("faces")
    for i, path in enumerate(sorted(portraits.glob("*.png"))[:4]):
        trial.add(path, "faces", name=f"set/person {i // 2}/{path.name}")
    trial.settings(method="k-same-pixel", k=2)
    job = trial.ended(trial.start("run"))
    table = (root / trial.project / "faces" / "labels.csv").read_text().splitlines()
    assert table == ["file,subject", *(f"{i + 1:06d}.png,person {i // 2}" for i in range(4))]
    assert job["state"] in ("done", "withheld"), job
    trial.add(sorted(portraits.glob("*.png"))[5], "faces", name="set/loose.png")
    assert "unclear who is who" in trial.start("run", 422)["detail"]


def test_a_table_that_names_no_upload_is_refused(api, portraits, tmp_path):
    trial = api.begin("faces")
    trial.add(sorted(portraits.glob("*.png"))[0], "faces", name="set/a.png")
    table = tmp_path / "labels.csv"
    table.write_text("file,subject\n../../etc/passwd,x\n")
    trial.add(table, "labels")
    assert "not among the pictures" in trial.start("run", 422)["detail"]


@pytest.mark.slow
def test_two_folders_are_audited_by_equal_names(api, portraits, tmp_path):
    blurred = tmp_path / "blurred"
    blurred.mkdir()
    for path in portraits.glob("*.png"):
        Image.open(path).resize((6, 8)).resize((50, 67)).save(blurred / path.name)
    trial = api.begin("audit")
    for path in sorted(portraits.glob("*.png")):
        trial.add(path, "originals", name=f"before/{path.name}")
    for path in sorted(blurred.glob("*.png"), reverse=True):
        trial.add(path, "released", name=f"after/{path.name}")
    trial.settings(attackers="eigenfaces")
    job = trial.ended(trial.start("run"))
    assert job["state"] in ("done", "withheld"), job
    assert job["summary"]
    report = trial.download(job, "report.html").decode()
    assert "<html" in report
    numbers = json.loads(trial.download(job, "audit.json"))
    assert (numbers["counts"]["people"], numbers["counts"]["pairs"]) == (16, 16)
    assert not [each for each in job["downloads"] if each["publish"]]


def test_a_job_that_cannot_work_fails_with_its_words(api, portraits):
    trial = api.begin("faces")
    for path in sorted(portraits.glob("*.png"))[:3]:
        trial.add(path, "faces", name=f"set/{path.name}")
    trial.settings(method="k-same-pixel", k=10)
    job = trial.ended(trial.start("run"))
    assert job["state"] == "failed"
    assert any("error" in text for text in job["messages"])
    again = trial.ended(trial("POST", f"/jobs/{job['number']}/resume"))
    assert again["state"] == "failed"
    trial("DELETE", f"/jobs/{job['number']}", 204)
    assert trial("GET", "")["jobs"] == []


def test_a_worker_that_is_killed_takes_nothing_with_it(api, media, monkeypatch):
    trial = api.begin("scene")
    trial.add(media / "m12.jpg")
    job = trial.start("find")
    assert "running" in trial("POST", "/corrections", 409, json={"do": "undo"})["detail"]
    trial.start("run", 409)
    jobs = trial.http.app.state.studio.jobs
    jobs._running[trial.project, job["number"]].kill()
    job = trial.ended(job)
    assert job["state"] == "interrupted"
    assert trial.ended(trial("POST", f"/jobs/{job['number']}/resume"))["state"] == "done"


@pytest.mark.parametrize(
    ("kind", "settings"),
    [("scene", {"method": "k-same-pixel"}), ("scene", {"cover": "hat"}), ("scene", {"method": "fill", "level": 3}),
     ("faces", {"method": "someone-else"}), ("faces", {"method": "nobody"})],
)  # fmt: skip
def test_settings_with_which_nothing_begins_are_refused(api, kind, settings):
    trial = api.begin(kind)
    now = trial("GET", "")["project"]["settings"]
    assert trial("PATCH", "", 422, json={"settings": {**now, **settings}})["detail"]
    assert trial("GET", "")["project"]["settings"] == now


def test_promises_are_those_of_the_registry_and_none_is_claimed_for_masks_in_scenes(api):
    told = api.http.get("/api/choices").json()
    scenes, sets = ({each["name"]: each for each in told[kind]} for kind in ("scenes", "faces"))
    assert set(scenes) == {name for name, entry in ksame.METHODS.items() if entry.scenes.works}
    assert sets["k-same-pixel"]["bound"] == ksame.METHODS["k-same-pixel"].bound
    assert (scenes["blackout"]["promise"], scenes["blackout"]["bound"]) == ("nothing", "none")
    assert sets["blackout"]["promise"] != "nothing"


def test_other_files_forget_what_was_wished_for_names(api, root, media):
    """After another look the same name may be somebody else: a wish to keep them must not go over."""
    trial = api.begin("scene")
    trial.add(media / "m12.jpg")
    assert "Look for people first" in trial.start("run", 422)["detail"]
    assert trial.ended(trial.start("find"))["state"] == "done"
    trial("PATCH", "", json={"wishes": {"P1": "keep"}, "another": ["P1"]})
    trial.add(media / "f99.jpg")
    view = trial("GET", "")
    assert (view["project"]["wishes"], view["project"]["another"], view["found"]) == ({}, [], False)
    assert not (root / trial.project / "tracks").exists()
    trial.start("run", 422)
    (root / trial.project / "tracks").write_text("a file where a folder belongs")
    assert trial.start("find", 201)["state"] == "running", "it is cleared away"
    api.http.app.state.studio.jobs.stop()
    (root / trial.project / "jobs").rename(root / trial.project / "old")
    (root / trial.project / "jobs").write_text("")
    assert "cannot be" in trial.start("find", 409)["detail"]


def test_another_face_is_drawn_for_nobody_who_has_none(api):
    from ksame.studio.commands import command, scene_config
    from ksame.studio.state import Project

    trial = api.begin("scene")
    trial("PATCH", "", json={"another": ["P2", "P1", "P2"], "wishes": {"P1": "keep"}})

    def asked():
        project = Project.model_validate(trial("GET", "")["project"])
        words = command(project, "run", 1)
        named = tuple(words[i + 1] for i, word in enumerate(words) if word == "--another")
        assert scene_config(project).another == named, "the preview has the same faces"
        return named

    assert asked() == ("P2", "P2")
    trial.settings(method="blackout")
    assert asked() == ()


def test_a_level_is_given_to_the_command_with_all_its_digits(api, monkeypatch):
    from ksame.studio.commands import command
    from ksame.studio.state import Project

    trial = api.begin("scene")
    trial.settings(method="blackout", level=0.123456789)
    words = command(Project.model_validate(trial("GET", "")["project"]), "run", 1)
    assert words[words.index("--level") + 1] == "0.123456789"


def test_two_tabs_that_start_at_once_start_one_job(api, root, media):
    trial = api.begin("scene")
    trial.add(media / "m12.jpg")
    with ThreadPoolExecutor(6) as tabs:
        codes = list(tabs.map(lambda _: api.http.post(trial.path("/jobs?action=find")).status_code, range(6)))
    assert sorted(codes) == [201, 409, 409, 409, 409, 409]
    assert trial.ended(trial("GET", "/jobs/1"))["state"] == "done"
    assert tree(root / trial.project / "tracks") == {"000001.jpg.json"}
