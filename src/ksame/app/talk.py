"""Messages and progress bars on stderr, data on stdout, one exit code for each kind of error."""

from __future__ import annotations

import errno
import functools
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from ksame.errors import ExitCode, KsameError, KsameWarning, PrivacyWarning
from ksame.progress import told

P = ParamSpec("P")
T = TypeVar("T")
Listener = Callable[[str, int, int], None]
"""Is told what is being done, how much of it is done, and how much there is (0 where that is not known)."""
_listener: Listener | None = None

console = Console(stderr=True, soft_wrap=True)
"""For messages, warnings and progress bars."""
_WIDE = 10_000  # columns, more than any table has


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Turn errors into a message and an exit code, and warnings into lines on stderr."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("always", KsameWarning)
            warnings.showwarning = _show_warning
            try:
                command(*args, **kwargs)
            except KsameError as error:
                console.print(f"[bold red]error:[/] {plain(str(error))}")
                raise typer.Exit(error.exit_code) from error
            except OSError as error:
                if error.errno != errno.ENAMETOOLONG:
                    raise
                console.print("[bold red]error:[/] The name of a file is too long. Choose a shorter one.")
                raise typer.Exit(ExitCode.USAGE) from error
            except KeyboardInterrupt as error:
                console.print("[bold red]interrupted[/]; nothing was written.")
                raise typer.Exit(ExitCode.INTERRUPTED) from error

    return run


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **how: Any) -> None:
    heading = "privacy warning" if issubclass(category, PrivacyWarning) else "warning"
    console.print(f"[bold yellow]{heading}:[/] {plain(str(message))}")


def plain(text: str) -> str:
    r"""Return a text from any file, safe to be shown: no markup, no control characters.

    Examples
    --------
    >>> print(plain("[red]\x1b[2J\udc80"))
    \[red]\x1b[2J\udc80
    """
    return escape(_printable(text, "\n"))


def _printable(text: str, kept: str = "") -> str:
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)


@contextmanager
def listened(listener: Listener) -> Iterator[None]:
    """Tell progress to a function instead of drawing bars."""
    global _listener
    _listener = listener
    try:
        yield
    finally:
        _listener = None


def progress(items: Iterable[T], what: str) -> Iterable[T]:
    """Yield the items under a progress bar."""
    if _listener is not None:
        yield from told(_listener)(items, what)
        return
    with _bars() as bars:
        yield from bars.track(items, description=what)


@contextmanager
def bars() -> Iterator[Listener]:
    """Give a callback that shows what is being done, how much of it is done and how much there is."""
    if _listener is not None:
        yield _listener
        return
    tasks: dict[str, TaskID] = {}
    with _bars() as progress:

        def show_progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                for task in tasks.values():
                    progress.update(task, visible=False)
                tasks[what] = progress.add_task(what)
            progress.update(tasks[what], completed=done, total=total or None)

        yield show_progress


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show that something is going on, and for how long."""
    if _listener is not None:
        _listener(what, 0, 0)
        yield
        return
    with _bars() as bars:
        bars.add_task(what, total=None)
        yield


def _bars() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,  # elsewhere it would only leave empty lines
    )


def warn_of_secret(text: str) -> None:
    """Warn that a file was written which must not be published."""
    warnings.warn(text, PrivacyWarning, stacklevel=3)


def say(text: str) -> None:
    """Print a line for people."""
    console.print(text)


def say_table(table: Table) -> None:
    """Print a table for people; where there is no terminal, as wide as it is, so that no path is broken."""
    Console(stderr=True, width=None if console.is_terminal else _WIDE).print(table)


def show(table: Table, heading: str = "") -> None:
    """Print a table that was asked for; a heading, such as a path, stays on one line."""
    if heading:
        typer.echo(_printable(heading))
    Console().print(table)


def show_lines(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns without a frame; what stands last is never broken, so that a path there can be copied."""
    lines = [headings, *([_printable(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def emit(data: Any) -> None:
    """Print JSON for machines."""
    typer.echo(json.dumps(data, indent=1))
