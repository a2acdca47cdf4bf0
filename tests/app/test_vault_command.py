"""``ksame vault``: keys, opening, other recipients, shares; secrets are never printed and never left readable."""

import json
import re
import shutil
import stat

import numpy as np
import pytest
from typer.testing import CliRunner

from ksame.app.cli import app
from ksame.errors import ExitCode
from ksame.vault import load_identity
from ksame.vault.log import log_of
from scene.test_media_exact import decoded
from scene.test_sealing import two_people

runner = CliRunner()


def ksame(*arguments, code=ExitCode.DONE):
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert not re.search("AGE-SECRET-KEY-1[0-9A-Z]", result.output)
    assert "Traceback" not in result.output
    return result


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A key, an original, its release and its vault."""
    folder = tmp_path_factory.mktemp("case")
    recipient = ksame("vault", "keygen", "-o", folder / "key.txt").stdout.strip()
    two_people(folder / "film.mp4", 4)
    told = ksame(
        *("deidentify", folder / "film.mp4", "-o", folder / "safe.mp4", "-m", "fill", "--seed", 1),
        *("--vault", folder / "case.age", "--recipient", recipient),
    )
    assert "sealed" in told.stderr
    return folder


@pytest.fixture
def copy(case, tmp_path):
    """The same, to be spoiled."""
    shutil.copytree(case, tmp_path / "case")
    return tmp_path / "case"


def test_a_key_is_private_and_its_public_part_is_printed(case, tmp_path):
    assert stat.S_IMODE((case / "key.txt").stat().st_mode) == 0o600
    said = ksame("vault", "keygen", "-o", tmp_path / "key.txt")
    assert said.stdout.strip() == load_identity(tmp_path / "key.txt").recipient
    ksame("vault", "keygen", "-o", tmp_path / "key.txt", code=ExitCode.USAGE)


def test_a_list_shows_names_to_whoever_has_a_key(copy):
    told = json.loads(ksame("vault", "list", copy / "case.age", "--json").stdout)
    assert "people" not in told
    assert (told["recipients"], told["keys"], told["openings"]) == (1, 3, 0)
    told = json.loads(ksame("vault", "list", copy / "case.age", "-i", copy / "key.txt", "--json").stdout)
    assert [row["person"] for row in told["people"]] == ["P1", "P2"]
    assert "P1" not in ksame("vault", "list", copy / "case.age").output
    assert "P1" in ksame("vault", "list", copy / "case.age", "-i", copy / "key.txt").output


def test_one_person_is_opened_and_it_is_logged(copy):
    told = ksame(
        *("vault", "open", copy / "case.age", copy / "safe.mp4", "--person", "P1", "-i", copy / "key.txt"),
        *("-o", copy / "restored.mp4", "--reason", "warrant 7"),
    )
    assert "4 frames" in told.stderr
    assert "logged" in told.stderr
    line = json.loads(log_of(copy / "case.age").read_text())
    assert (line["people"], line["note"], line["action"]) == (["P1"], "warrant 7", "open")
    assert not np.array_equal(decoded(copy / "restored.mp4")[0][0], decoded(copy / "safe.mp4")[0][0])
    ksame("vault", "verify", copy / "case.age", "--release", copy / "safe.mp4", "-i", copy / "key.txt")
    log_of(copy / "case.age").write_text("")
    for command in (["verify", copy / "case.age"], ["list", copy / "case.age"]):
        assert "openings" in ksame("vault", *command, code=ExitCode.UNREADABLE).stderr


def test_the_link_table_is_opened_alone(copy):
    ksame("vault", "open", copy / "case.age", "-i", copy / "key.txt", "-o", copy / "link.json")
    assert json.loads((copy / "link.json").read_text())["seed"] == 1
    assert stat.S_IMODE((copy / "link.json").stat().st_mode) == 0o600
    ksame("verify", copy / "safe.mp4", "--linkage", copy / "link.json")
    ksame("vault", "open", copy / "case.age", "-i", copy / "key.txt", "-p", "P1", "-o", copy / "x", code=ExitCode.USAGE)


def test_verify_notices_a_vault_of_another_release(copy):
    found = ksame("vault", "verify", copy / "case.age", "--release", copy / "safe.mp4", "--json")
    assert json.loads(found.stdout)["passed"]
    certificate = json.loads((copy / "safe.certificate.json").read_text())
    certificate["vault"]["root"] = "0" * 64
    (copy / "safe.certificate.json").write_text(json.dumps(certificate))
    ksame("vault", "verify", copy / "case.age", "--release", copy / "safe.mp4", code=ExitCode.NOT_MET)


def test_ksame_verify_knows_certificates_that_tell_of_a_vault(copy):
    ksame("verify", copy / "safe.mp4")
    certificate = json.loads((copy / "safe.certificate.json").read_text())
    certificate["vault"]["statement"] = "There is nothing to see here."
    (copy / "safe.certificate.json").write_text(json.dumps(certificate))
    assert "vault" in ksame("verify", copy / "safe.mp4", code=ExitCode.NOT_MET).stdout


def test_rekey_gives_it_to_others_and_takes_it_from_the_first(copy):
    new = ksame("vault", "keygen", "-o", copy / "new.txt").stdout.strip()
    ksame("vault", "rekey", copy / "case.age", "-i", copy / "key.txt", "--recipient", new)
    opened = ("vault", "open", copy / "case.age", copy / "safe.mp4", "-p", "P2", "-o", copy / "restored.mp4", "-i")
    assert "Nothing was opened" in ksame(*opened, copy / "key.txt", code=ExitCode.UNREADABLE).stderr
    assert not (copy / "restored.mp4").exists()
    ksame(*opened, copy / "new.txt")
    ksame("vault", "verify", copy / "case.age", "--release", copy / "safe.mp4", "-i", copy / "new.txt")


def test_a_warrant_gets_one_person_and_no_other(copy):
    court = ksame("vault", "keygen", "-o", copy / "court.txt").stdout.strip()
    grant = ("vault", "rekey", copy / "case.age", "-i", copy / "key.txt", "--recipient", court, "-p", "P1")
    assert "copy" in ksame(*grant, code=ExitCode.USAGE).stderr
    ksame(*grant, "-o", copy / "p1.age")
    told = json.loads(ksame("vault", "list", copy / "p1.age", "-i", copy / "court.txt", "--json").stdout)
    assert [row["person"] for row in told["people"]] == ["P1"]
    assert told["left_out"] >= 4
    ksame("vault", "verify", copy / "p1.age", "--release", copy / "safe.mp4", "-i", copy / "court.txt")
    opened = ("vault", "open", copy / "p1.age", copy / "safe.mp4", "-i", copy / "court.txt", "-o", copy / "r.mp4", "-p")
    assert "no P2" in ksame(*opened, "P2", code=ExitCode.USAGE).stderr
    ksame(*opened, "P1")
    assert json.loads(log_of(copy / "case.age").read_text())["action"] == "grant"


def test_officers_open_it_together(copy, tmp_path):
    ksame("vault", "split", copy / "key.txt", "--needed", 2, "--total", 3, "-o", tmp_path / "shares")
    shares = sorted((tmp_path / "shares").iterdir())
    assert [stat.S_IMODE(share.stat().st_mode) for share in shares] == [0o600] * 3
    opened = ("vault", "open", copy / "case.age", copy / "safe.mp4", "-p", "P1", "-o", copy / "r.mp4")
    assert "1 of the 2" in ksame(*opened, "--share", shares[0], code=ExitCode.USAGE).stderr
    ksame(*opened, "--share", shares[0], "--share", shares[2])
    said = ksame("vault", "join", shares[1], shares[2], "-o", tmp_path / "again.txt")
    assert said.stdout.strip() == load_identity(copy / "key.txt").recipient
    assert load_identity(tmp_path / "again.txt") == load_identity(copy / "key.txt")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("list", "nothing.age"), ExitCode.UNREADABLE),
        (("list", "film.mp4"), ExitCode.UNREADABLE),
        (("open", "case.age", "safe.mp4", "-p", "P1", "-o", "r.mp4"), ExitCode.USAGE),
        (("open", "case.age", "safe.mp4", "-p", "P1", "-i", "film.mp4", "-o", "r.mp4"), ExitCode.UNREADABLE),
        (("open", "case.age", "safe.mp4", "-p", "P1", "-i", "key.txt", "-o", "safe.mp4"), ExitCode.USAGE),
        (("open", "case.age", "film.mp4", "-p", "P1", "-i", "key.txt", "-o", "r.mp4"), ExitCode.UNREADABLE),
        (("rekey", "case.age", "-i", "key.txt"), ExitCode.USAGE),
        (("split", "key.txt", "-m", "4", "-n", "3", "-o", "shares"), ExitCode.USAGE),
        (("join", "key.txt", "-o", "again.txt"), ExitCode.UNREADABLE),
    ],
)
def test_errors_name_what_is_wrong_and_write_nothing(copy, monkeypatch, arguments, code):
    monkeypatch.chdir(copy)
    before = sorted(path.name for path in copy.iterdir())
    assert "error:" in ksame("vault", *arguments, code=code).stderr
    assert sorted(path.name for path in copy.iterdir()) == before


def test_link_tables_of_releases_are_sealed(case, tmp_path):
    recipient, key = load_identity(case / "key.txt").recipient, case / "key.txt"
    sealed = ("--vault", tmp_path / "link.age", "--recipient", recipient)
    ksame("release", "synthetic:12", "-o", tmp_path / "out", "-k", 3, *sealed)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "state") == ["link.age", "out"]
    assert stat.S_IMODE((tmp_path / "link.age").stat().st_mode) == 0o600
    ksame("vault", "verify", tmp_path / "link.age", "--release", tmp_path / "out", "-i", key)
    ksame("verify", tmp_path / "out")
    refused = ksame("verify", tmp_path / "out", "--linkage", tmp_path / "link.age", code=ExitCode.UNREADABLE)
    assert "ksame vault open" in refused.stderr
    ksame("vault", "open", tmp_path / "link.age", "-i", key, "-o", tmp_path / "link.json")
    ksame("verify", tmp_path / "out", "--linkage", tmp_path / "link.json")
    more = ("release", "synthetic:18", "-o", tmp_path / "more", "-k", 3, "--after", tmp_path / "link.age")
    ksame(*more, code=ExitCode.UNREADABLE)
    assert "repeated" in ksame(*more, "--identity", key).stderr
    assert len(log_of(tmp_path / "link.age").read_text().splitlines()) == 2, "both openings are logged"
    ksame("release", "synthetic:12", "-o", tmp_path / "x", "--recipient", recipient, code=ExitCode.USAGE)
    ksame("release", "synthetic:12", "-o", tmp_path / "x", *sealed, code=ExitCode.USAGE)
    ksame("release", "synthetic:12", "-o", tmp_path / "x", "--vault", tmp_path / "x.age", code=ExitCode.USAGE)
    assert not (tmp_path / "x").exists()
