"""The first second: neither the package nor the command line loads what it does not use yet."""

import ast
import importlib
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ksame
from ksame.app.cli import COMMANDS, app, load
from ksame.errors import ExitCode

HEAVY = ("cv2", "scipy", "sklearn", "skimage", "onnxruntime", "matplotlib")
FROM_REGISTRIES = {"release", "deidentify", "people", "audit"}
"""Commands whose help names methods, covers or recognisers: these are loaded, and OpenCV with them."""

SOURCE = """
import json, sys
from contextlib import redirect_stdout
{}
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""
CALL = """
from ksame.app.cli import main
sys.argv = ["ksame", *{!r}]
try:
    with redirect_stdout(sys.stderr):
        main()
except SystemExit as end:
    assert not end.code
"""


def loaded(code: str) -> set[str]:
    """Return the packages that are loaded in a fresh process after this code."""
    done = subprocess.run([sys.executable, "-c", SOURCE.format(code)], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("code", ["import ksame", CALL.format(["--help"]), CALL.format(["--version"])])
def test_a_start_loads_nothing_heavy(code):
    found = loaded(code)
    assert "ksame" in found
    assert not found & {*HEAVY, "numpy", "pydantic", "av"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_loads_nothing_heavy(name):
    allowed = {"cv2"} if name in FROM_REGISTRIES else set()
    assert loaded(CALL.format([name, "--help"])) & set(HEAVY) <= allowed


def test_masking_a_photograph_loads_only_what_finds_faces(tmp_path):
    photograph = Path(ksame.__file__).parent / "data" / "samples" / "m12.jpg"
    words = ["deidentify", str(photograph), "-o", str(tmp_path / "safe.jpg"), "-m", "blur"]
    assert loaded(CALL.format(words)) & set(HEAVY) == {"cv2", "onnxruntime"}


def test_an_interruption_while_a_command_is_loaded_is_said(monkeypatch):
    def interrupt(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("ksame.app.cli.load", interrupt)
    result = CliRunner().invoke(app, ["methods"])
    assert result.exit_code == ExitCode.INTERRUPTED
    assert "interrupted; nothing was written" in result.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_itself(name):
    assert load(name).help.splitlines()[0] == COMMANDS[name]


def test_every_public_name_is_listed_loads_and_is_what_type_checkers_see():
    tree = ast.parse(Path(ksame.__file__).read_text(encoding="utf-8"))
    (seen,) = (node for node in tree.body if isinstance(node, ast.If))
    homes = {alias.name: node.module for node in seen.body for alias in node.names}
    assert {*homes, "__version__"} == set(ksame.__all__) <= set(dir(ksame))
    for name, module in homes.items():
        assert getattr(ksame, name) is getattr(importlib.import_module(module), name) or name == "audit"
    with pytest.raises(AttributeError, match="module 'ksame' has no attribute 'nobody'"):
        ksame.nobody  # noqa: B018
    with pytest.raises(ImportError, match="nobody"):
        from ksame import nobody  # noqa: F401


@pytest.mark.parametrize("name", ["deidentify", "synthetic", "audit"])
@pytest.mark.parametrize("first", ["import ksame.{0}", "import ksame.app.release", "from ksame.{0} import {0}", ""])
def test_a_function_is_not_hidden_by_the_module_of_its_name(name, first):
    code = f"import ksame\n{first.format(name)}\nassert callable(ksame.{name})\nfrom ksame import {name} as got\n"
    loaded(code + "assert callable(got)")


def test_rooms_are_found_as_attributes():
    loaded("import ksame\nassert ksame.faces.FaceSet is ksame.FaceSet\nassert ksame.errors.KsameError")


@pytest.mark.parametrize("name", [name for name in ksame.__all__ if name[0].isupper() and name != "METHODS"])
def test_public_classes_are_pickled(name):
    kind = getattr(ksame, name)
    assert pickle.loads(pickle.dumps(kind)) is kind  # noqa: S301


def test_public_objects_are_pickled():
    for value in (ksame.recipe("k-same-pixel", k=3), ksame.JobConfig(k=3), ksame.Template.eyes_and_nose()):
        assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301
    faces = pickle.loads(pickle.dumps(ksame.synthetic(2, size=(40, 32))))  # noqa: S301
    assert faces.n_subjects == 2
