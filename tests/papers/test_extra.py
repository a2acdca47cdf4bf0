"""Drawing the papers' figures is an extra: nothing else needs its chart library."""

import ast
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ksame.app.cli import app
from ksame.errors import UsageError
from ksame.papers.experiment import Findings, versions
from ksame.papers.figures import Sheet, draw

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bare(monkeypatch):
    """Python as it is without the extra."""
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.mark.usefixtures("bare")
def test_without_it_the_command_ends_before_any_work(tmp_path):
    done = CliRunner().invoke(app, ["reproduce", "newton2005", "--fast", "-j1", "-o", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert "pip install 'ksame[papers]'" in " ".join(done.output.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("bare")
def test_without_it_drawing_says_what_to_install():
    with pytest.raises(UsageError, match=r"pip install 'ksame\[papers\]'"):
        draw(Sheet("sheet", "Faces."), Findings([]))


def test_numbers_do_not_depend_on_it():
    assert "matplotlib" not in versions()


def test_nothing_else_imports_it():
    users = set()
    for path in (ROOT / "src" / "ksame").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "matplotlib" for name in names):
                users.add(path.relative_to(ROOT / "src" / "ksame").as_posix())
    assert users == {"papers/figures.py"}


def test_it_is_an_extra_and_developers_have_it():
    project = pytest.importorskip("tomllib").loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert not [need for need in project["dependencies"] if need.startswith("matplotlib")]
    extras = project["optional-dependencies"]
    assert [need for need in extras["papers"] if need.startswith("matplotlib")]
    assert set(extras["papers"]) <= set(extras["dev"])
