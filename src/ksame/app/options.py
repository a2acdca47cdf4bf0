"""Options and help that come from the registries: nothing that a method takes is listed a second time."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, Optional, get_type_hints

import typer

from ksame.parameters import Spec

if TYPE_CHECKING:
    from ksame.recipes import Entry

_SHORT = {"k": ("-k",)}
SCHEDULER_HELP = (
    "Where work is done: local (threads of this process), processes (of this machine, --workers of them), or the "
    "address of a Dask scheduler, tcp://HOST:PORT, whose workers see the same files under the same paths."
)
DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Check everything that can be checked before any work, say what would be done, write nothing."
    ),
]
METADATA_HELP = (
    "An entry that goes over, such as title, Copyright, subtitles; or a group. date: when it was made. location: "
    "where. all: dates, camera, names and notes, but no place and no serial number. Thumbnails never go over."
)


def sets() -> list[Entry]:
    """Return the methods for face sets."""
    from ksame.recipes import METHODS

    return [entry for entry in METHODS.values() if entry.for_sets]


def scenes() -> list[Entry]:
    """Return the methods for photographs and video."""
    from ksame.recipes import METHODS

    return [entry for entry in METHODS.values() if entry.scenes.works]


def _named(entries: Iterable[Entry]) -> str:
    return ", ".join(entry.name for entry in entries)


def described(spec: Spec) -> str:
    """Say what a parameter is, and what it may be."""
    return spec.help + (f" ({', '.join(spec.choices)})" if spec.choices else "")


def _sentence(told: Iterable[tuple[Entry, Spec]]) -> str:
    """Say what a parameter is, once for all methods that mean the same by it."""
    owners: dict[str, list[Entry]] = {}
    for entry, spec in told:
        owners.setdefault(described(spec), []).append(entry)
    return ". ".join(f"{_named(entries)}: {text}" for text, entries in owners.items()) + "."


def level_help(entries: Iterable[Entry]) -> str:
    """Say what ``--level`` sets."""
    return "Strength of a mask. " + _sentence((each, each.level) for each in entries if each.level is not None)


def method_help() -> str:
    """List the methods for photographs and video."""
    others = _named(entry for entry in scenes() if not entry.masks)
    return f"{others}, or a mask: {_named(entry for entry in scenes() if entry.masks)}."


def cover_help() -> str:
    """List the covers, and what they leave."""
    from ksame.heads.covers import COVERS

    return "What is invented. " + " ".join(f"{each.name}: {each.summary}. {each.leaks}" for each in COVERS.values())


def options() -> dict[str, Any]:
    """Return the type and option of every parameter of the methods for face sets, but for what ``--level`` sets."""
    told: dict[str, list[tuple[Entry, Spec]]] = {}
    for entry in sets():
        for name, spec in entry.parameters.items():
            if spec.public:
                told.setdefault(name, []).append((entry, spec))
    found: dict[str, Any] = {}
    for name, pairs in told.items():
        chosen = [spec for _, spec in pairs if not spec.level]
        if chosen:
            word = (chosen[0].option or name).replace("_", "-")
            flag = f"--{word}/--no-{word}" if chosen[0].kind is bool else f"--{word}"
            option = typer.Option(flag, *_SHORT.get(name, ()), help=_sentence(pairs))
            found[name] = Annotated[Optional[chosen[0].kind], option]  # noqa: UP045 -- of a type made here
    return found


def with_options(command: Callable[[Any], None]) -> Callable[..., None]:
    """Give a command one option for each field of the dataclass that it takes.

    Where the dataclass has a field ``params``, there is one for each parameter of the methods, gathered in it.
    """
    (kind,) = (hint for name, hint in get_type_hints(command).items() if name != "return")
    hints = get_type_hints(kind, include_extras=True)
    parameters: dict[str, Any] = {}

    @functools.wraps(command)
    def run(**given: Any) -> None:
        if parameters:
            values = {name: given.pop(name) for name in parameters}
            given["params"] = {name: value for name, value in values.items() if value is not None}
        command(kind(**given))

    taken: list[inspect.Parameter] = []
    for field in inspect.signature(kind).parameters.values():
        if field.name == "params":
            parameters.update(options())
            taken += [field.replace(name=name, annotation=hint, default=None) for name, hint in parameters.items()]
        else:
            taken.append(field.replace(annotation=hints[field.name]))
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in taken]
    )
    run.__annotations__ = {each.name: each.annotation for each in taken}
    return run
