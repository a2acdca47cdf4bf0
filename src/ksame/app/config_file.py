"""``--config``: options of a command in a TOML file; those on the command line win.

What is in it is read as if it were typed, relative paths included.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from ksame.app import talk
from ksame.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LARGEST = 1 << 20  # bytes
_NOT_IN_FILES = ("config", "help")


def _use(ctx: typer.Context, path: Path | None) -> Path | None:
    """Take the options of the file as defaults of the command that is being parsed."""
    if path is not None:
        _apply(ctx, path)
    return path


ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        callback=_use,
        is_eager=True,
        help="Read options from this TOML file, by their long names; what is typed as well wins. Where the file has a "
        "table named after the command, only that is read.",
    ),
]


@talk.guarded
def _apply(ctx: typer.Context, path: Path) -> None:
    command = ctx.info_name or ""
    ctx.default_map = {**(ctx.default_map or {}), **read_config(path, command, ctx.command.params)}


def read_config(path: Path, command: str, params: Any) -> dict[str, Any]:
    """Return the options of a command in a file, by the names of its parameters.

    Raises InputError when it cannot be read, has a key that is no option, or a value that the option cannot have.
    """
    given = _table(_read(path), command, path)
    known: dict[str, Any] = {}
    for param in params:
        names = [name.removeprefix("--") for name in param.opts if name.startswith("--")]
        known |= dict.fromkeys((*names, param.name), param)
    values: dict[str, Any] = {}
    for key, value in given.items():
        param = known.get(key) or known.get(key.replace("_", "-")) or known.get(key.replace("-", "_"))
        if param is None or param.name in _NOT_IN_FILES:
            near = get_close_matches(key.replace("_", "-"), [n for n in known if "_" not in n and n != "config"], 1)
            meant = f" Did you mean {near[0]!r}?" if near else f" See: ksame {command} -h."
            raise InputError(f"{path}: {key!r} is no option of ksame {command}.{meant}")
        if param.name in values:
            raise InputError(f"{path}: {key!r} is said twice, under two names.")
        values[param.name] = _value(param, key, value, path)
    return values


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(f"{path}: too large for a file of options.")
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: the file of options cannot be read ({error.strerror}).") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not TOML ({error}). Write lines such as: k = 5") from error


def _table(content: Mapping[str, Any], command: str, path: Path) -> Mapping[str, Any]:
    """Return the table of a command; the whole file where it has none."""
    if not isinstance(content.get(command), dict):
        return content
    beside = [key for key, value in content.items() if not isinstance(value, dict)]
    if beside:
        raise InputError(f"{path}: {beside[0]!r} stands outside of [{command}]. Put it there.")
    return dict(content[command])


def _value(param: Any, key: str, value: Any, path: Path) -> Any:
    """Return a value as it would be typed."""
    many = bool(getattr(param, "multiple", False)) or param.nargs == -1
    if getattr(param, "is_flag", False):
        if not isinstance(value, bool):
            raise InputError(f"{path}: {key} must be true or false. Got {value!r}.")
        return value
    values = value if isinstance(value, list) and many else [value]
    if not all(isinstance(each, (str, int, float)) and not isinstance(each, bool) for each in values):
        expected = "a text or a number, or a list of them" if many else "a text or a number"
        raise InputError(f"{path}: {key} must be {expected}. Got {value!r}.")
    return [str(each) for each in values] if many else str(values[0])
