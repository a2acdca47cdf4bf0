"""What the README shows, works."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", TEXT, re.S))
def test_python_blocks_run(block, capsys):
    exec(compile(block, "README.md", "exec"), {})  # noqa: S102 -- our own README
    assert capsys.readouterr().out


def test_the_python_page_runs():
    failed, tried = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False)
    assert tried > 10
    assert not failed


def test_every_command_and_option_it_names_exists():
    from typer.testing import CliRunner

    from ksame.app.cli import app

    for line in re.findall(r"^ksame .*$", TEXT, re.M):
        words = line.split("#")[0].split()
        shown = CliRunner().invoke(app, [words[1], "--help"], env={"COLUMNS": "200"}).stdout
        for option in (w for w in words if w.startswith("--")):
            assert option in shown, line


def test_pictures_and_links_are_there():
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert target.startswith("http") or (ROOT / target).exists(), target
