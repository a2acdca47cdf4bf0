"""The papers' chart library and classifiers are an extra: films and photographs need neither."""

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
    """Python as it is without the chart library."""
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.mark.usefixtures("bare")
def test_without_it_the_command_ends_before_any_work(tmp_path):
    done = CliRunner().invoke(app, ["reproduce", "newton2005", "--fast", "-j1", "-o", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert "pip install 'ksame[papers]'" in " ".join(done.output.split())
    assert not (tmp_path / "out").exists()


def test_without_the_classifiers_it_ends_before_any_work_too(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    done = CliRunner().invoke(app, ["reproduce", "newton2005", "--fast", "-j1", "-o", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert "scikit-learn" in done.output
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("bare")
def test_without_it_drawing_says_what_to_install():
    with pytest.raises(UsageError, match=r"pip install 'ksame\[papers\]'"):
        draw(Sheet("sheet", "Faces."), Findings([]))


def test_numbers_do_not_depend_on_it():
    assert "matplotlib" not in versions()


@pytest.mark.parametrize(
    ("package", "rooms"),
    [("matplotlib", {"papers/figures.py"}), ("sklearn", {"utility/classifiers.py", "bench/face_sets.py"})],
)
def test_nothing_else_imports_it(package, rooms):
    users = set()
    for path in (ROOT / "src" / "ksame").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == package for name in names):
                users.add(path.relative_to(ROOT / "src" / "ksame").as_posix())
    assert users == rooms


@pytest.mark.parametrize(("package", "named"), [("matplotlib", {"papers"}), ("scikit-learn", {"papers", "labels"})])
def test_it_is_an_extra_and_developers_have_it(package, named):
    project = pytest.importorskip("tomllib").loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert not [need for need in project["dependencies"] if need.startswith(package)]
    extras = project["optional-dependencies"]
    assert {name for name in extras if any(need.startswith(package) for need in extras[name])} == {*named, "dev"}
    assert set(extras["papers"]) <= set(extras["dev"])
