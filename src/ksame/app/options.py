"""Options and help that come from the registries: nothing that a method takes is listed a second time."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Optional

import typer

from ksame.heads.covers import COVERS
from ksame.parameters import Spec
from ksame.recipes import METHODS, Entry

SETS = [entry for entry in METHODS.values() if entry.for_sets]
SCENES = [entry for entry in METHODS.values() if entry.scenes.works]
_SHORT = {"k": ("-k",)}


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
    others = _named(entry for entry in SCENES if not entry.masks)
    return f"{others}, or a mask: {_named(entry for entry in SCENES if entry.masks)}."


def cover_help() -> str:
    """List the covers, and what they leave."""
    return "What is invented. " + " ".join(f"{each.name}: {each.summary}. {each.leaks}" for each in COVERS.values())


def options() -> dict[str, Any]:
    """Return the type and option of every parameter of the methods for face sets, but for what ``--level`` sets."""
    told: dict[str, list[tuple[Entry, Spec]]] = {}
    for entry in SETS:
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


def with_parameters(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one option for each parameter of the methods, gathered in its argument ``params``."""
    made = options()

    @functools.wraps(command)
    def run(**given: Any) -> None:
        params = {name: given.pop(name) for name in made}
        command(**given, params={name: value for name, value in params.items() if value is not None})

    taken: list[inspect.Parameter] = []
    for own in inspect.signature(command, eval_str=True).parameters.values():
        new = [own.replace(name=name, annotation=kind, default=None) for name, kind in made.items()]
        taken += new if own.name == "params" else [own]
    run.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in taken}
    return run
