import json

import pytest
from typer.testing import CliRunner

from ksame.app.models import app
from ksame.errors import ExitCode
from ksame.models import CATALOGUE


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setenv("KSAME_MODELS", str(tmp_path))
    monkeypatch.setenv("KSAME_OFFLINE", "1")
    return lambda *words: CliRunner().invoke(app, list(words))


def test_list_shows_every_model(run):
    result = run("list")
    assert result.exit_code == 0
    for name, model in CATALOGUE.items():
        assert name in result.stdout
        assert model.licence in result.stdout
    assert "missing" in result.stdout


def test_list_as_json(run, tmp_path):
    answer = json.loads(run("list", "--json").stdout)
    assert answer["folder"] == str(tmp_path)
    assert [row["name"] for row in answer["models"]] == list(CATALOGUE)
    assert {row["state"] for row in answer["models"]} == {"missing"}


def test_verify_exits_6_and_names_what_is_missing(run):
    result = run("verify")
    assert result.exit_code == ExitCode.MODEL_MISSING
    assert "ksame models pull yunet face-landmarker sface\n" in result.stderr.replace("`.", "")
    assert run("verify", "dlib-resnet").exit_code == ExitCode.MODEL_MISSING


def test_verify_sees_a_damaged_file(run, tmp_path):
    (tmp_path / CATALOGUE["dlib-resnet"].filename).write_bytes(b"damaged")
    answer = run("verify", "--json")
    assert {row["name"]: row["state"] for row in json.loads(answer.stdout)["models"]}["dlib-resnet"] == "damaged"
    assert "dlib-resnet" in answer.stderr


def test_pull_offline_exits_6_and_says_what_to_do(run):
    result = run("pull", "yunet")
    assert result.exit_code == ExitCode.MODEL_MISSING
    assert "yunet" in result.stderr


def test_an_unknown_model_is_a_usage_error(run):
    assert run("pull", "yolo").exit_code == ExitCode.USAGE
