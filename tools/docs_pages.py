"""Write the pages of the documentation that say what the code says: commands and options, privacy models.

``python -m tools.docs_pages docs`` writes ``command-line.md`` and ``privacy-models.md``; ``make docs`` calls it, and a
test compares what is there with what it would write.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click
from typer.main import get_command

from ksame.app.cli import COMMANDS, app, load
from ksame.app.examples import EXAMPLES as COMMAND_LINES
from ksame.privacy.maps import EpsilonKMap, EpsilonMap, WrongMap, ZeroRecognition
from ksame.privacy.models import KAnonymity, NoGuarantee

EXAMPLES = (KAnonymity(5), ZeroRecognition(), WrongMap(), EpsilonKMap(5, 0.1), EpsilonMap(0.1, 1.0), NoGuarantee())
"""One of each promise; the numbers are only examples."""


def plain(text: str | None) -> str:
    """Return help as Markdown, without the marks of the terminal."""
    return re.sub(r"\[/?[a-z ]+\]", "", inspect.cleandoc(text or "")).replace("\b", "").strip()


def cell(text: str) -> str:
    return " ".join(plain(text).split()).replace("|", "\\|")


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command by its whole name."""
    yield "ksame", get_command(app)
    for name in COMMANDS:
        command = load(name)
        yield f"ksame {name}", command
        for part, inner in getattr(command, "commands", {}).items():
            yield f"ksame {name} {part}", inner


def command_line() -> str:
    """Return the page of commands."""
    parts = ["# Command line", "Made from the code by `python -m tools.docs_pages docs`."]
    for name, command in commands():
        parts += [f"## {name}", plain(command.help)]
        examples = COMMAND_LINES.get(name.removeprefix("ksame "))
        parts += ["```sh\n" + "\n".join(examples) + "\n```"] if examples else []
        rows = [row(each) for each in command.params if not getattr(each, "hidden", False)]
        if rows:
            parts.append("\n".join(["| option | what it does |", "| --- | --- |", *rows]))
    return "\n\n".join(parts) + "\n"


def row(parameter: click.Parameter) -> str:
    """Return the line of a table about an option or an argument."""
    is_option = parameter.param_type_name == "option"
    shown = [*parameter.opts, *parameter.secondary_opts] if is_option else [str(parameter.name).upper()]
    default = parameter.default
    worth = "" if default in (None, False, ()) or callable(default) else f" Default: `{default}`."
    return f"| {', '.join(f'`{each}`' for each in shown)} | {cell(getattr(parameter, 'help', None) or '')}{worth} |"


def privacy_models() -> str:
    """Return the page of promises."""
    parts = [
        "# Privacy models",
        "What a certificate may promise, in its own words. A model judges the released bytes, and never learns which "
        "method made them. Made from the code by `python -m tools.docs_pages docs`; k, epsilon and all other numbers "
        "are examples.",
    ]
    for model in EXAMPLES:
        bound = model.risk_bound()
        worth = "none" if bound.value is None else f"at most {bound.value:.4g}"
        parts += [
            f"## {model.name}",
            " ".join(str(inspect.getdoc(type(model))).replace("``", "`").split()),
            f"**It says:** {model.statement()}",
            f"**Bound on being named:** {worth}; {bound.scope}.",
            "**It does not promise:**",
            "\n".join(f"- {line}" for line in model.not_promised()),
        ]
    return "\n\n".join(parts) + "\n"


PAGES = {"command-line.md": command_line, "privacy-models.md": privacy_models}


def main() -> None:
    """Write both pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
