"""Options: how a command declares them, those that several share, and those that come from the registries."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, field, fields
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional, get_type_hints

import typer

from ksame.parameters import Spec

if TYPE_CHECKING:
    from ksame.recipes import Entry

_SHORT = {"k": ("-k",)}
_FILES, _MEDIA, _METHOD, _RUN = "Input and output", "Media", "Method", "How it is run"


def option(default: Any, text: str, *names: str, **how: Any) -> Any:
    """Declare an option as a field of a command's dataclass; ``text`` is its help, ``...`` stands for no default.

    Without names it is called as the field is. A field that is False gets no ``--no-``.
    """
    told = {} if default is ... else {"default": default}
    return field(**told, metadata={"option": partial(typer.Option, help=text, **how), "names": names})


file_option = partial(option, rich_help_panel=_FILES)
face_option = partial(option, rich_help_panel="Faces")
method_option = partial(option, rich_help_panel=_METHOD)
who_option = partial(option, rich_help_panel="Who, when and where")
media_option = partial(option, rich_help_panel=_MEDIA)
picture_option = partial(option, rich_help_panel="Picture")
run_option = partial(option, rich_help_panel=_RUN)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Check everything that can be checked before any work, say what would be done, write nothing."
    ),
]
Sign = Annotated[
    Path | None, typer.Option(help="Ed25519 private key (PEM) to sign the certificate.", rich_help_panel=_FILES)
]
PublicKeys = Annotated[
    list[str] | None,
    typer.Option(
        help="Public key, age1…, that opens the --vault; give it several times for several keys. Make one with: ksame "
        "vault keygen.",
        rich_help_panel=_FILES,
    ),
]
Frames = Annotated[
    bool, typer.Option("--frames", help="A folder is one recording in numbered pictures.", rich_help_panel=_FILES)
]
Damaged = Annotated[
    str,
    typer.Option(
        help="refuse a recording with damaged frames, or mask: these frames become black.", rich_help_panel=_MEDIA
    ),
]
Device = Annotated[str, typer.Option(help="Where heads are invented: auto, cpu or cuda.", rich_help_panel=_RUN)]
SCHEDULER_HELP = (
    "Where work is done: local (threads of this process), processes (of this machine, --workers of them), or the "
    "address of a Dask scheduler, tcp://HOST:PORT, whose workers see the same files under the same paths."
)
Workers = Annotated[
    int | None, typer.Option(help="How many processes, with --scheduler processes.", rich_help_panel=_RUN)
]


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
    typed: dict[str, Any] = {}
    for name, pairs in told.items():
        chosen = [spec for _, spec in pairs if not spec.level]
        if chosen:
            word = (chosen[0].option or name).replace("_", "-")
            flag = f"--{word}/--no-{word}" if chosen[0].kind is bool else f"--{word}"
            declared = typer.Option(flag, *_SHORT.get(name, ()), help=_sentence(pairs), rich_help_panel=_METHOD)
            typed[name] = Annotated[Optional[chosen[0].kind], declared]  # noqa: UP045 -- of a type made here
    return typed


def with_options(command: Callable[[Any], None]) -> Callable[..., None]:
    """Give a command one option for each field of the dataclass that it takes.

    Where the dataclass has a field ``params``, there is one for each parameter of the methods, gathered in it.
    """
    (kind,) = (hint for name, hint in get_type_hints(command).items() if name != "return")
    hints = get_type_hints(kind, include_extras=True)
    parameters: dict[str, Any] = {}

    @wraps(command)
    def run(**given: Any) -> None:
        if parameters:
            values = {name: given.pop(name) for name in parameters}
            given["params"] = {name: value for name, value in values.items() if value is not None}
        command(kind(**given))

    taken: dict[str, tuple[Any, Any]] = {}
    for each in fields(kind):
        if each.name == "params":
            parameters.update(options())
            taken |= {name: (hint, None) for name, hint in parameters.items()}
        else:
            taken[each.name] = (_declared(each, hints[each.name]), each.default)
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=hint,
                default=inspect.Parameter.empty if default is MISSING else default,
            )
            for name, (hint, default) in taken.items()
        ]
    )
    run.__annotations__ = {name: hint for name, (hint, _) in taken.items()}
    return run


def _declared(each: Field[Any], hint: Any) -> Any:
    """Return the type of a field with its option."""
    if "option" not in each.metadata:
        return hint
    flag = (f"--{each.name.replace('_', '-')}",) if each.default is False else ()
    return Annotated[hint, each.metadata["option"](*(each.metadata["names"] or flag))]
