"""``ksame``: its commands, each in a module that is loaded when the command is called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import cleandoc
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from ksame.app.examples import epilog
from ksame.errors import ExitCode
from ksame.version import __version__

COMMANDS = {
    "deidentify": "Give everyone in photographs and video another face, keep everything else, and certify the result.",
    "live": "Replace everyone who is found in a live picture, with a bounded delay.",
    "people": "List who is in photographs and video, by the names that ksame deidentify has for the same files.",
    "release": "De-identify a set of registered faces and certify the result.",
    "verify": "Check a release of faces, or photographs and video, against the certificate.",
    "vault": "Make keys, see what a vault holds, bring one person back, change who can open it.",
    "audit": "Attack released pictures with real recognisers and write a report.",
    "reproduce": "Rerun a paper's experiments and draw its figures beside what the paper reported.",
    "methods": "List every method, cover and recogniser: what it does, what it promises and needs, and its origin.",
    "models": "List, pull and verify the pretrained networks.",
    "bench": "Measure how fast ksame is, each time beside a yardstick in the same run.",
    "studio": "Review and release in the browser, on this machine alone.",
    "demo": "Release people who do not exist and one real photograph, attack the result; then de-identify a film.",
}
"""The first line of each command's help. NAME is the function NAME_command, or the group ``app``, in app/NAME.py."""

_ELSEWHERE = {"studio": "ksame.studio.command"}


def load(name: str) -> Any:
    """Return a command with its options."""
    module = import_module(_ELSEWHERE.get(name, f"ksame.app.{name}"))
    group = getattr(module, "app", None)
    if group is None:
        group = typer.Typer(add_completion=False, rich_markup_mode="rich")
        group.command(name)(getattr(module, f"{name}_command"))
    made = get_command(group)
    made.epilog = epilog(name)
    for each in (made, *getattr(made, "commands", {}).values()):
        each.help = _flowing(each.help)
    return made


def _flowing(text: str | None) -> str:
    """Return help whose lines break where the terminal ends, not where the source did."""
    return "\n\n".join(" ".join(part.split()) for part in cleandoc(text or "").split("\n\n"))


@contextmanager
def _telling_interruptions() -> Iterator[None]:
    """Say that work was interrupted before a command was there that would say so."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("interrupted; nothing was written.", err=True)
        raise SystemExit(ExitCode.INTERRUPTED) from None


class _Commands(TyperGroup):
    """Lists the commands without loading them, and loads the one that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the command and what is left of the arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load(str(name)), rest

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the options of ``ksame`` itself."""
        with _telling_interruptions():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Load a command and run it."""
        with _telling_interruptions():
            return super().invoke(ctx)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},  # commands inherit them
    rich_markup_mode="rich",
    epilog="Examples of every command: ksame COMMAND -h",
    help="Publish pictures of people without publishing who they are, and prove it.",
)


def _listed() -> None:
    """Stand for a command in the list of them."""


for _name, _summary in COMMANDS.items():
    app.command(_name, help=_summary)(_listed)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ksame {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Hold the options of ``ksame`` itself."""


def main() -> None:
    """Run the command line."""
    with _telling_interruptions():
        app()
