"""``ksame models``: what pretrained networks there are, getting them, checking them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ksame.app import talk
from ksame.app.options import AsJson
from ksame.errors import ExitCode

if TYPE_CHECKING:
    from ksame.models import Model, State, Store

app = typer.Typer(help="List, pull and verify the pretrained networks.", no_args_is_help=True, add_completion=False)

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Models, as `ksame models list` names them.")]


@app.command("list")
@talk.guarded
def list_models(as_json: AsJson = False) -> None:
    """Show every model: size, licence, whether it is in the cache, and where."""
    from ksame.models import Store

    store = Store()
    _answer(store, list(store.catalogue), as_json)


@app.command()
@talk.guarded
def pull(
    names: Names = None,
    every: Annotated[bool, typer.Option("--all", help="Take the optional models too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Download models into the cache and check them; damaged files are replaced.

    Without names, takes all that ksame needs and leaves the optional ones out.
    """
    from ksame.models import Store

    store = Store()
    if every:
        chosen = list(store.catalogue)
    else:
        chosen = names or [model.name for model in store.catalogue.values() if not model.optional]
    store.pull(chosen, progress=talk.progress)
    _answer(store, chosen, as_json)


@app.command()
@talk.guarded
def verify(names: Names = None, as_json: AsJson = False) -> None:
    """Hash the files in the cache. Exit code 6 when one is damaged, or missing and not optional.

    With names, a missing optional model counts as well.
    """
    from ksame.models import State, Store

    store = Store()
    chosen = names or list(store.catalogue)
    states = _answer(store, chosen, as_json)
    bad = [
        name
        for name, state in states.items()
        if state is State.DAMAGED or (state is State.MISSING and (names or not store.model(name).optional))
    ]
    if bad:
        typer.echo(f"Not ready: {', '.join(bad)}. Run `ksame models pull {' '.join(bad)}`.", err=True)
        raise typer.Exit(ExitCode.MODEL_MISSING)


def _answer(store: Store, names: Sequence[str], as_json: bool) -> dict[str, State]:
    states = {name: store.state(name) for name in names}
    if as_json:
        rows = [_row(store, store.model(name), state) for name, state in states.items()]
        talk.emit({"folder": str(store.folder), "models": rows})
        return states
    table = Table()
    for heading in ("name", "size", "licence", "cached"):
        table.add_column(heading, no_wrap=True)
    table.add_column("file and purpose", overflow="fold")
    for name, state in states.items():
        model = store.model(name)
        note = f"{model.filename}\n{'optional: ' if model.optional else ''}{model.purpose}"
        table.add_row(name, f"{model.size / 1e6:.1f} MB", model.licence, state.value, note)
    talk.show(table, f"in {store.folder}")
    return states


def _row(store: Store, model: Model, state: State) -> dict[str, Any]:
    told = ("name", "size", "sha256", "licence", "purpose", "optional")
    return {
        **{field: getattr(model, field) for field in told},
        "state": state.value,
        "path": str(store.location(model.name)),
        "source": {"requirement": model.source.requirement, "member": model.source.member},
    }
