"""Documents in JSON that anybody may have written: read strictly, with one meaning only, never with a traceback."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ksame.errors import InputError

Model = TypeVar("Model", bound=BaseModel)
Kind = TypeVar("Kind", bound="Document")

_SHOWN = 200  # characters of a foreign text that are repeated in a message


class Record(BaseModel):
    """What documents are made of: nothing can be changed or added, and every number is one."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)


class Document(Record):
    """A file that says itself what it is."""

    expected: ClassVar[str]
    """What the file should be, for messages."""

    schema_: str = Field(alias="schema")
    version: int


def read_document(kind: type[Model], data: bytes, what: str) -> Model:
    """Return what a JSON file says; ``what`` it should be, such as "a valid certificate", is for messages.

    Raises InputError when it is no JSON, does not fit, holds a number that is none, or says one thing twice.
    """
    try:
        document = kind.model_validate_json(data)  # bounds the depth, so it comes first
        json.loads(data, object_pairs_hook=_unique, parse_constant=_no_number, parse_float=_finite)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InputError(f"not {what} ({where[:_SHOWN]}: {first['msg'][:_SHOWN]})") from error
    except ValueError as error:
        raise InputError(f"not {what} ({str(error)[:_SHOWN]})") from error
    return document


class _Named(BaseModel):
    schema_: str = Field(alias="schema")


def schema_of(data: bytes, what: str) -> str:
    """Return the schema that a document names."""
    return read_document(_Named, data, what).schema_


def read_any(data: bytes, *kinds: type[Kind]) -> Kind:
    """Return a document of the kind whose schema it names, or of the first where it names none of them."""
    name = schema_of(data, kinds[0].expected)
    kind = next((each for each in kinds if each.model_fields["schema_"].default == name), kinds[0])
    return read_document(kind, data, kind.expected)


def read_bytes(path: Path, what: str, *, plain: bool = False) -> bytes:
    """Return a file; with ``plain``, for somebody else's folder, no pipe or device, which may never end."""
    try:
        if plain and path.exists() and not path.is_file():
            raise OSError(0, "not a plain file")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {what} cannot be read ({error.strerror}).") from error
    except ValueError as error:  # a name that no file can have
        raise InputError(f"{str(path)!r}: {what} cannot be read ({error}).") from error


def _unique(pairs: list[tuple[str, Any]]) -> None:
    """Refuse a name that is given twice: readers differ in which of the two they believe."""
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"{twice[:_SHOWN]!r} is said twice")


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number")


def _finite(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError(f"{text[:_SHOWN]} is too large a number")
    return float(text)
