"""Media know files and frames, and nothing of faces."""

import ast
import inspect
from pathlib import Path

import pytest

from ksame.scene.media import Output

FOLDER = Path(inspect.getfile(Output)).parent
ALLOWED = {"ksame.errors", "ksame.files", "ksame.parameters", "ksame.pictures"}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = [f"ksame.{a.name}" for a in node.names] if node.module == "ksame" else [node.module]
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name for name in names if name.startswith("ksame"))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_media_import_nothing_of_faces(path):
    assert [name for name in imported(path) if name not in ALLOWED and not name.startswith("ksame.scene.media")] == []


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_functions_take_at_most_eight_parameters(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            assert len(node.args.args) + len(node.args.kwonlyargs) <= 8, node.name
