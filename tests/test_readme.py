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
